"""A drop-in replacement for pycocotools: the same classes, numbers and printed text.

>>> from detmap.compat import COCO, COCOeval                     # doctest: +SKIP
>>> truth = COCO("instances_val2017.json")                       # doctest: +SKIP
>>> run = COCOeval(truth, truth.loadRes("results.json"), "bbox") # doctest: +SKIP
>>> run.evaluate(); run.accumulate(); run.summarize()            # doctest: +SKIP

or, for code that you cannot change, ``with patch_pycocotools(): ...``. ``mask`` is pycocotools'
own module.

Both classes inherit from pycocotools' own, which must be installed. detmap's tables and compiled
kernels match boxes, masks and keypoints and compute the curves; pycocotools converts masks.
Everything else is inherited (rendering, downloads), and so is the evaluation of unusual input:

- ``pycocotools.mask.iou`` replaced by another function; a subclass that overrides ``_prepare``,
  ``computeIoU``, ``computeOks`` or ``evaluateImg``;
- annotations without area, iscrowd or score; NaN values; ids that are not 64-bit integers;
  detection ids of 0 or less; keypoints with ``useCats = 0``; boxes that are not lists or arrays
  of four numbers, or so small that an IoU is 0/0;
- thresholds that are neither float64 nor integers; no images, classes, ranges or limits;
  ``useCats`` other than 0 and 1; detection limits below 1;
- ``accumulate(p)`` where `p` has another number of thresholds or longer lists than ``evaluate``
  had; ``evalImgs`` whose arrays do not fit each other.

Large plain files stay text and columns. The first access to ``dataset`` or an index creates all
records as dicts; from then on the dicts are evaluated, as in pycocotools. ``evalImgs``, ``ious``,
``_gts`` and ``_dts`` are computed on first access or by ``vars()``, the last two (without the empty
lists of pycocotools) from the annotations as they are then. After an access or assignment,
``accumulate`` reads ``evalImgs``, changes included.

Differences: evaluation adds no ``ignore`` and ``_ignore`` keys to annotations; numbers in
``evalImgs`` are Python floats and integers, and its arrays are slices of larger ones. Objects
and subclasses that exist before the patch continue to use pycocotools' methods.

The drop-in reproduces these known errors of pycocotools 2.0.11, which detmap itself does not
have. The first time that one can change a number, it issues a `PycocotoolsQuirk` warning:

====================  ============================================================================
id-zero               a detection matched to the object with annotation id 0 counts as unmatched
id-not-positive       a detection with an id of 0 or less leaves its matched object unmatched
id-twice              of annotations with the same id, the last one replaces the others
category-unlisted     detections of categories that the ground truth does not list are dropped
subset-by-position    ``accumulate(p)`` with other imgIds, catIds or areaRng than evaluated reads
                      the first results, not those of the given ids and ranges
points-unsorted       all recall points after the first unreached one read 0
categories-forgotten  with ``useCats = 0``, ``accumulate`` sets ``params.catIds`` to [-1]: another
                      ``evaluate`` finds nothing
summary-of-defaults   ``summarize`` prints -1 or fails for other ``maxDets`` or ``areaRngLbl`` than
                      the default ones; only this one is not reproduced, see below
====================  ============================================================================

Additions, where pycocotools raises an error or prints -1:

- ``COCOeval(truth, found, "boundary", dilation_ratio=0.02)`` computes Boundary AP; input that only
  pycocotools evaluates is an error;
- ``COCO(dataset)`` takes a dict, which is not copied, or a path;
- ``loadRes`` takes a path, and an empty list, array or file: no detections;
- ``summarize`` follows ``params``: a row whose limit is not in ``maxDets`` reads the last limit
  that the other rows read, and a row whose label is not in ``areaRngLbl`` reads the next label
  that no other row reads. All values that pycocotools gives stay the same. It issues a
  `PycocotoolsQuirk` warning (``summary-of-defaults``).
"""

from detmap.errors import require

require("pycocotools.cocoeval", "parity")  # so that its absence is told before it is met

# ruff: noqa: E402
from pycocotools import mask

from detmap.compat.coco_api import COCO
from detmap.compat.cocoeval import COCOeval
from detmap.compat.patch import Patch, patch_pycocotools
from detmap.compat.quirks import PycocotoolsQuirk

__all__ = ["COCO", "COCOeval", "Patch", "PycocotoolsQuirk", "mask", "patch_pycocotools"]
