"""`COCOeval`: pycocotools' class, evaluating boxes with detmap's engine."""

from __future__ import annotations

import copy
import datetime
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from pycocotools.coco import COCO as OfficialCOCO
from pycocotools.cocoeval import COCOeval as Official

from detmap.compat import engine
from detmap.compat.coco import COCO
from detmap.compat.quirks import tell
from detmap.compat.rows import Rows, Unusual, from_records

STEPS = {
    name: getattr(Official, name)
    for name in ("_prepare", "computeIoU", "computeOks", "evaluateImg")
}
"""The steps of an evaluation, which a subclass may have replaced."""
LOOKUPS = {name: getattr(OfficialCOCO, name) for name in ("getAnnIds", "loadAnns")}
"""How annotations are looked up, which may have been replaced too."""


class COCOeval(Official):  # type: ignore[misc]
    """Detections held against annotations; see `detmap.compat` for what is inherited and what is
    not.

    Parameters
    ----------
    cocoGt, cocoDt : annotations and detections, of this package's `COCO` or of pycocotools'
    iouType : ``bbox``, ``segm`` or ``keypoints``
    """

    _judged: engine.Judged | None = None
    _eval_imgs: Any = None  # None: to be made of what was judged
    _ious: Any = None

    @property
    def evalImgs(self) -> Any:
        """Results by category, area range and image. Once they were read, ``accumulate`` reads
        them too.
        """
        if self._eval_imgs is None and self._judged is not None:
            self._eval_imgs = engine.image_results(self._judged, self._paramsEval.areaRng)
        return self._eval_imgs

    @evalImgs.setter
    def evalImgs(self, value: Any) -> None:
        self._eval_imgs = value

    @property
    def ious(self) -> Any:
        """Overlaps of detections and objects by image and category."""
        if self._ious is None and self._judged is not None:
            self._ious = engine.overlaps(self._judged)
        return self._ious

    @ious.setter
    def ious(self, value: Any) -> None:
        self._ious = value

    def evaluate(self) -> None:
        """Match detections with annotations under ``params``."""
        params, begin = self.params, time.time()
        self._judged = None
        try:
            if self._kind() != "bbox" or _replaced(self, STEPS):
                raise Unusual
            rules = engine.read_rules(params)
            objects, found = (
                _rows(self.cocoGt, rules, scored=False),
                _rows(self.cocoDt, rules, scored=True),
            )
        except Unusual:
            super().evaluate()
            return
        print("Running per image evaluation...")
        if params.useSegm is not None:
            params.iouType = self._kind()
            print(f"useSegm (deprecated) is not None. Running {params.iouType} evaluation")
        print(f"Evaluate annotation type *{params.iouType}*")
        params.imgIds, params.maxDets = rules.image_ids, rules.limits
        if not rules.together:
            params.catIds = rules.category_ids
        judged = engine.judge(objects, found, rules)
        self.eval: dict[str, Any] = {}
        self._judged, self._eval_imgs, self._ious = judged, None, None
        self._paramsEval = copy.deepcopy(params)
        print(f"DONE (t={time.time() - begin:0.2f}s).")
        for kind in _quirks(judged, objects, found, self.cocoGt):
            tell(kind)

    def _kind(self) -> str:
        """The iouType, which the older useSegm may decide."""
        if self.params.useSegm is None:
            return str(self.params.iouType)
        return "segm" if self.params.useSegm == 1 else "bbox"

    def accumulate(self, p: Any = None) -> None:
        """Curves of what was evaluated, under ``params`` or those given, into ``eval``."""
        params, judged, begin = self.params if p is None else p, self._judged, time.time()
        try:
            if judged is None or self._eval_imgs is not None:
                raise Unusual
            chosen = engine.choose(self._paramsEval, params, judged.rules)
        except Unusual:
            super().accumulate(p)
            return
        print("Accumulating evaluation results...")
        if params.useCats != 1:
            params.catIds = [-1]
        counts = [
            len(params.iouThrs),
            len(params.recThrs),
            len(params.catIds),
            len(params.areaRng),
            len(params.maxDets),
        ]
        self.eval = {
            "params": params,
            "counts": counts,
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            **engine.arrays(judged, chosen, counts),
        }
        print(f"DONE (t={time.time() - begin:0.2f}s).")
        if chosen.displaced:
            tell("subset-by-position")
        if (np.diff(chosen.points) < 0).any():
            tell("points-unsorted")
        if params.useCats != 1:
            tell("categories-forgotten")

    def summarize(self) -> None:
        """Print the stock summary, and keep its numbers as ``stats``."""
        super().summarize()
        if self.params.iouType != "keypoints" and 100 not in self.params.maxDets:
            tell("limit-not-100")


def _replaced(owner: Any, methods: dict[str, Any]) -> bool:
    """Whether an object has other methods than pycocotools wrote."""
    return any(
        getattr(type(owner), name, None) is not method or name in vars(owner)
        for name, method in methods.items()
    )


def _rows(coco: Any, rules: engine.Rules, *, scored: bool) -> Rows:
    """The annotations as columns: as they were read, or of the dicts that pycocotools would look
    up.
    """
    replaced = _replaced(coco, LOOKUPS)
    rows = coco.columns() if isinstance(coco, COCO) and not replaced else None
    if rows is not None:
        return rows
    category_ids = (
        [] if rules.together else rules.category_ids if replaced else set(rules.category_ids)
    )
    return from_records(
        coco.loadAnns(coco.getAnnIds(imgIds=rules.image_ids, catIds=category_ids)), scored=scored
    )


def _quirks(judged: engine.Judged, objects: Rows, found: Rows, truth: Any) -> Iterator[str]:
    """Wrong behaviours of pycocotools that this evaluation meets."""
    if (judged.objects.ids == 0).any():
        yield "id-zero"
    if (judged.found.ids <= 0).any():
        yield "id-not-positive"
    if objects.ids_twice() or found.ids_twice():
        yield "id-twice"
    used = np.flatnonzero(np.bincount(found.category)).tolist()
    if not {found.category_ids[code] for code in used} <= set(truth.getCatIds()):
        yield "category-unlisted"
