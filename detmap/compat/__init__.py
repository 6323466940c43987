"""A drop-in for pycocotools: the same classes, the same numbers, the same printed text; detmap's
engine underneath.

>>> from detmap.compat import COCO, COCOeval                     # doctest: +SKIP
>>> truth = COCO("instances_val2017.json")                       # doctest: +SKIP
>>> run = COCOeval(truth, truth.loadRes("results.json"), "bbox") # doctest: +SKIP
>>> run.evaluate(); run.accumulate(); run.summarize()            # doctest: +SKIP

or, for code that is not yours, ``with patch_pycocotools(): ...``.

Both classes are subclasses of pycocotools' own, which must be installed. Boxes are evaluated by
detmap: tables, compiled matching, compiled curves. Everything else is inherited: segmentations,
keypoints, drawing, downloads; and so is the evaluation of boxes where something is beyond the
tables: a subclass that overrides ``_prepare``, ``computeIoU``, ``computeOks`` or ``evaluateImg``;
annotations without an area, iscrowd or score, with numbers that are NaN, annotation ids that are no
64-bit integers, boxes that are no lists or arrays of four; thresholds that are neither float64 nor
integers; no images, classes, ranges or limits; ``useCats`` other than 0 and 1; detection limits
below 1; ``accumulate(p)`` where `p` has another number of thresholds or longer lists than
``evaluate`` had, and ``accumulate`` after ``evalImgs`` was read or assigned.

What is not asked for is not built: of a large plain file only columns are kept, and its records
become dicts when ``dataset``, ``anns``, ``imgToAnns`` or ``catToImgs`` is first read (from the
file, which stays open for it). From then on the dicts are what is evaluated, so changes of them
count as they do in pycocotools. ``evalImgs`` and ``ious`` are built when first read.

What differs: evaluating leaves no ``ignore`` and ``_ignore`` keys in the annotations; ``_gts`` and
``_dts`` stay empty; the numbers in ``evalImgs`` are Python's own floats and integers, equal to
those of the annotations; a file that was overwritten after it was loaded can be evaluated, but to
ask for its dicts then is a `DataError`.

Known wrong behaviours of pycocotools 2.0.11, which detmap itself does not have, are imitated here.
Each is warned about, as a `PycocotoolsQuirk`, the first time that it can change a number in this
process:

====================  ============================================================================
id-zero               a detection that takes the object whose annotation id is 0 counts as unmatched
id-not-positive       a detection whose own id is 0 or less takes an object without using it up
id-twice              of annotations that share an id the last one stands for all of them
category-unlisted     detections of categories that the truth does not list are left out silently
subset-by-position    ``accumulate(p)`` with other imgIds, catIds or areaRng than evaluated reads
                      the first results, not those of the given ids and ranges
points-unsorted       behind the first recall point that is not reached, all others read 0
categories-forgotten  with ``useCats = 0``, ``accumulate`` sets ``params.catIds`` to [-1]: another
                      ``evaluate`` finds nothing
limit-not-100         ``summarize`` looks up AP at maxDets 100; where that is not among them the
                      first row is -1
====================  ============================================================================
"""

from detmap.errors import DetmapError

try:
    import pycocotools.cocoeval  # noqa: F401
except ImportError:
    raise DetmapError(
        "detmap.compat", "pycocotools is not installed", "pip install 'detmap[all]'"
    ) from None

from detmap.compat.coco import COCO
from detmap.compat.evaluation import COCOeval
from detmap.compat.patching import Patch, patch_pycocotools
from detmap.compat.quirks import PycocotoolsQuirk

__all__ = ["COCO", "COCOeval", "Patch", "PycocotoolsQuirk", "patch_pycocotools"]
