"""A drop-in for pycocotools: the same classes, the same numbers, the same printed text; detmap's
engine underneath.

>>> from detmap.compat import COCO, COCOeval                     # doctest: +SKIP
>>> truth = COCO("instances_val2017.json")                       # doctest: +SKIP
>>> run = COCOeval(truth, truth.loadRes("results.json"), "bbox") # doctest: +SKIP
>>> run.evaluate(); run.accumulate(); run.summarize()            # doctest: +SKIP

or, for code that is not yours, ``with patch_pycocotools(): ...``.

Both classes are subclasses of pycocotools' own, which must be installed. Boxes, masks and keypoints
are evaluated by detmap: tables, compiled matching, compiled curves; rasterising is pycocotools'.
Everything else is inherited: drawing, downloads; and so is the evaluation where something is
beyond the tables: ``pycocotools.mask.iou`` replaced by another function, a subclass that overrides
``_prepare``, ``computeIoU``, ``computeOks`` or ``evaluateImg``; annotations without an area,
iscrowd or score, with numbers that are NaN, ids that are no 64-bit integers, detections whose ids
are 0 or less, keypoints with ``useCats = 0``, boxes that are no lists or arrays of four or so
small that an overlap is 0/0;
thresholds that are neither float64 nor integers; no images, classes, ranges or limits; ``useCats``
other than 0 and 1; detection limits below 1; ``accumulate(p)`` where `p` has another number of
thresholds or longer lists than ``evaluate`` had; ``evalImgs`` whose arrays do not fit each other.

What is not asked for is not built. Of a large plain file the text and columns are kept; its
records become dicts, all of them and all indexes at once, when ``dataset`` or an index is first
read. From then on the dicts are what is evaluated, by way of the index as in pycocotools.
``evalImgs``, ``ious``, ``_gts`` and ``_dts`` are built when first read, or by ``vars()``.
``accumulate`` reads ``evalImgs`` as soon as somebody has read or assigned it, changes included.

What differs: evaluating leaves no ``ignore`` and ``_ignore`` keys in the annotations; the numbers
in ``evalImgs`` are Python's own floats and integers, equal to those of the annotations, and its
arrays are slices of larger ones.

A patch may come late: objects and subclasses that exist already go on as pycocotools' own,
whichever class their methods are looked up in.

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

from detmap.errors import require

require("pycocotools.cocoeval", "parity")  # so that its absence is told before it is met

# ruff: noqa: E402
from detmap.compat.coco_api import COCO
from detmap.compat.cocoeval import COCOeval
from detmap.compat.patch import Patch, patch_pycocotools
from detmap.compat.quirks import PycocotoolsQuirk

__all__ = ["COCO", "COCOeval", "Patch", "PycocotoolsQuirk", "patch_pycocotools"]
