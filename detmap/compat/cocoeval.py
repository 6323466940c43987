"""`COCOeval`: pycocotools' class with detmap's engine."""

import copy
import datetime
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from pycocotools import _mask, cocoeval
from pycocotools.coco import COCO as OfficialCOCO
from pycocotools.cocoeval import COCOeval as Official

from detmap.compat import accumulate, drop_in_engine, eval_imgs, matched_objects, summary
from detmap.compat.accumulate import Selection
from detmap.compat.annotation_rows import Rows, Unusual, from_records
from detmap.compat.class_stand_in import StandIn, stands_in_for
from detmap.compat.coco_api import columns_of, shaped_columns_of
from detmap.compat.eval_imgs_snapshot import Snapshot
from detmap.compat.lazy_attributes import Lazy, own_dict
from detmap.compat.quirks import warn_of
from detmap.compat.shape_rows import boundary_overlaps, overlaps, with_shapes
from detmap.errors import DataError

OVERLAPS = _mask.iou
"""What pycocotools computes overlaps with, unless somebody replaced it."""
LOOKUPS = {name: getattr(OfficialCOCO, name) for name in ("getAnnIds", "loadAnns")}
"""How annotations are looked up, which may have been replaced too."""
CONVERSION = {"annToRLE": OfficialCOCO.annToRLE}
"""How segmentations become run lengths."""
LATER = ("evalImgs", "ious", "_gts", "_dts")
"""Results of ``evaluate`` that are built at first use."""


@stands_in_for(Official)
class COCOeval(Lazy, Official, metaclass=StandIn):  # type: ignore[misc]
    """Evaluates detections against annotations; `detmap.compat` lists what it inherits.

    Parameters
    ----------
    cocoGt, cocoDt : annotations and detections, `COCO` objects of this package or of pycocotools
    iouType : ``bbox``, ``segm``, ``keypoints`` or ``boundary`` (masks by the lower of mask IoU and
        boundary IoU, as in boundary-iou-api)
    dilation_ratio : the width of boundaries, as a part of the image's diagonal
    """

    _evaluated: drop_in_engine.Evaluated | None = None
    _made: Snapshot | None = None  # evalImgs before any change

    def __init__(
        self,
        cocoGt: Any = None,  # pycocotools' names
        cocoDt: Any = None,
        iouType: str = "segm",
        dilation_ratio: float = 0.02,
    ) -> None:
        super().__init__(cocoGt, cocoDt, "segm" if iouType == "boundary" else iouType)
        self.params.iouType, self.dilation_ratio = iouType, dilation_ratio

    def _make(self, name: str) -> None:
        assert self._evaluated is not None
        if name == "evalImgs":
            self._made = eval_imgs.image_results(self._evaluated, self._paramsEval.areaRng)
            self._fill({"evalImgs": list(self._made.listed)})
        elif name == "ious" and self._evaluated.rules.kind == "bbox":
            self._fill({"ious": eval_imgs.overlaps(self._evaluated)})
        elif name == "ious" and self._evaluated.rules.kind == "boundary":
            self._fill({"ious": boundary_overlaps(self._evaluated)})
        elif name == "ious":
            self._fill({"ious": overlaps(self._evaluated, self._paramsEval)})
        else:
            other = Official()
            other.cocoGt, other.cocoDt = self._sides
            other.params = copy.copy(self._paramsEval)
            if other.params.iouType == "segm":  # `evaluate` made run lengths; later edits stay
                other.params.iouType = "bbox"
            try:
                Official._prepare(other)
            except KeyError:  # ids that were edited since
                other.cocoGt, other.cocoDt = map(_indexed_again, self._sides)
                Official._prepare(other)
            self._fill({"_gts": other._gts, "_dts": other._dts})

    def evaluate(self) -> None:
        """Matches detections with annotations under ``params``."""
        params, begin = self.params, time.time()
        matched, kinds = self._matched(params)
        if matched is None:
            if self._kind() == "boundary":
                raise DataError(
                    "COCOeval",
                    "iouType boundary with annotations or params that only pycocotools evaluates",
                    "see help(detmap.compat) for what they need, such as area, iscrowd and score",
                )
            super().evaluate()
            self._evaluated = self._made = None
            for kind in kinds:
                warn_of(kind)
            return
        rules = matched.rules
        print("Running per image evaluation...")
        if params.useSegm is not None:
            params.iouType = self._kind()
            print(f"useSegm (deprecated) is not None. Running {params.iouType} evaluation")
        print(f"Evaluate annotation type *{params.iouType}*")
        params.imgIds, params.maxDets = rules.image_ids, rules.limits
        if not rules.together:
            params.catIds = rules.category_ids
        self._evaluated, self._made = matched, None
        self._sides = self.cocoGt, self.cocoDt
        self._wait_for(*LATER)
        self.eval: dict[str, Any] = {}
        self._paramsEval = _copied(params)
        print(f"DONE (t={time.time() - begin:0.2f}s).")
        for kind in kinds:
            warn_of(kind)

    def _matched(self, params: Any) -> tuple[drop_in_engine.Evaluated | None, list[str]]:
        """The matches, None for input that only pycocotools handles; and the quirks to warn of."""
        unlisted = ["category-unlisted"] if _has_unlisted(self.cocoDt, self.cocoGt) else []
        try:
            if _replaced(self, STEPS) or cocoeval.maskUtils.iou is not OVERLAPS:
                raise Unusual
            rules = drop_in_engine.read_rules(params, self._kind(), self.dilation_ratio)
            objects, results = (
                _rows(self.cocoGt, rules, scored=False),
                _rows(self.cocoDt, rules, scored=True),
            )
            evaluated = drop_in_engine.evaluate_rows(objects, results, rules)
            matched = matched_objects.pycocotools_matches(evaluated)
        except Unusual as reason:
            return None, [*reason.args, *unlisted]
        return matched, [*_quirks(matched, objects, results), *unlisted]

    def _kind(self) -> str:
        """The iouType; the deprecated useSegm overrides it."""
        if self.params.useSegm is None:
            return str(self.params.iouType)
        return "segm" if self.params.useSegm == 1 else "bbox"

    def accumulate(self, p: Any = None) -> None:
        """Computes the curves of the evaluation under `p` or ``params``, into ``eval``."""
        params, begin = self.params if p is None else p, time.time()
        selected = self._selected(params)
        if selected is None:
            super().accumulate(p)
            return
        chosen, parts = selected
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
            **accumulate.arrays(parts, chosen, counts),
        }
        print(f"DONE (t={time.time() - begin:0.2f}s).")
        if chosen.displaced:
            warn_of("subset-by-position")
        if (np.diff(chosen.points) < 0).any():
            warn_of("points-unsorted")
        if params.useCats != 1:
            warn_of("categories-forgotten")

    def _selected(self, params: Any) -> tuple[Selection, list[drop_in_engine.Part]] | None:
        """What ``accumulate`` counts; None for parameters that only pycocotools handles."""
        try:
            chosen = accumulate.select(self._paramsEval, params)
            return chosen, self._parts(chosen, len(params.iouThrs))
        except Unusual:
            return None

    def _parts(self, chosen: Selection, n_thresholds: int) -> list[drop_in_engine.Part]:
        """The match results that ``accumulate`` counts: those of ``evalImgs`` if it was changed."""
        ours = self._waits_for("evalImgs")
        if not (ours or isinstance(self.evalImgs, list | tuple)):
            raise Unusual  # pycocotools asks whether it is empty, which an array refuses
        if not (ours or self._is_as_made()):
            evaluated = self._paramsEval
            sizes = len(evaluated.imgIds), len(evaluated.areaRng)
            try:
                return eval_imgs.parts_of_results(self.evalImgs, chosen, sizes, n_thresholds)
            except DataError:  # no matching of ours has such results: objects found twice
                raise Unusual from None
        assert self._evaluated is not None
        if n_thresholds != len(self._evaluated.rules.thresholds):
            raise Unusual
        parts = self._evaluated.parts
        if chosen.images is None:
            return parts
        return [replace(part, matches=part.matches.select(chosen.images)) for part in parts]

    def _is_as_made(self) -> bool:
        """Whether ``evalImgs`` and the lengths of its axes are what ``evaluate`` made."""
        if self._made is None or self._evaluated is None:
            return False
        p, rules = self._paramsEval, self._evaluated.rules
        n_classes = 1 if rules.together else len(p.catIds)
        sizes = n_classes, len(p.areaRng), len(p.imgIds)
        same_sizes = sizes == (rules.n_classes, len(rules.areas), len(rules.image_ids))
        return same_sizes and self._made.shows(self.evalImgs)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_made": None}  # copies of cells are other objects

    def summarize(self) -> None:
        """Prints the summary, and stores its numbers as ``stats``.

        Rows that pycocotools reads at limits or area labels that ``params`` does not list, where
        it prints -1 or fails, follow ``params``.
        """
        if summary.follows_parameters(self):
            self.stats = summary.summarize(self)
            warn_of("summary-of-defaults")
        elif self.eval and self.params.iouType == "boundary":
            self.stats = summary.summarize(self)
        else:
            super().summarize()


STEPS = {
    name: getattr(COCOeval, name)
    for name in ("_prepare", "computeIoU", "computeOks", "evaluateImg")
}
"""The steps of an evaluation, which a subclass may have replaced."""


def _replaced(owner: Any, methods: dict[str, Any]) -> bool:
    """Whether an object has other methods than these."""
    own = own_dict(owner) if isinstance(owner, Lazy) else getattr(owner, "__dict__", {})
    return any(
        getattr(type(owner), name, None) is not method or name in own
        for name, method in methods.items()
    )


def _indexed_again(coco: Any) -> OfficialCOCO:
    """The annotations of each image, looked up by the ids that they have now."""
    made = OfficialCOCO()
    made.imgToAnns = coco.imgToAnns
    made.anns = {each["id"]: each for some in coco.imgToAnns.values() for each in some}
    return made


def _copied(params: Any) -> Any:
    """A deep copy that copies the list of ids only once, as its items are immutable."""
    return copy.deepcopy(params, {id(params.imgIds): list(params.imgIds)})


def _rows(coco: Any, rules: drop_in_engine.Rules, *, scored: bool) -> Rows:
    """Annotations as columns: as read, or from the dicts that pycocotools would look up."""
    replaced = _replaced(coco, LOOKUPS)
    if rules.kind == "bbox" and not replaced:
        rows = columns_of(coco, scored=scored)
        if rows is not None:
            return rows
    if rules.kind != "bbox" and not _replaced(coco, LOOKUPS | CONVERSION):
        wanted = rules.image_ids, None if rules.together else rules.category_ids
        rows = shaped_columns_of(coco, rules.shape, wanted, scored=scored)
        if rows is not None:
            return rows
    category_ids = (
        [] if rules.together else rules.category_ids if replaced else set(rules.category_ids)
    )
    try:
        records = coco.loadAnns(coco.getAnnIds(imgIds=rules.image_ids, catIds=category_ids))
    except Exception:  # any that a client's index raises; pycocotools will meet it in its own order
        raise Unusual from None
    if rules.kind == "bbox":
        return from_records(records, scored=scored)
    return with_shapes(rules.shape, records, coco, scored=scored)


def _quirks(evaluated: drop_in_engine.Evaluated, objects: Rows, results: Rows) -> Iterator[str]:
    """The known errors of pycocotools that this evaluation meets."""
    if (evaluated.objects.ids == 0).any():
        yield "id-zero"
    if objects.ids_twice() or results.ids_twice():
        yield "id-twice"


def _has_unlisted(found: Any, truth: Any) -> bool:
    """Whether detections have categories that the ground truth does not list."""
    try:
        rows = columns_of(found, scored=True)
        if rows is None:
            used = {each["category_id"] for each in found.dataset["annotations"]}
        else:
            codes = np.flatnonzero(np.bincount(rows.category)).tolist()
            used = {rows.category_ids[code] for code in codes}
        return not used <= set(truth.getCatIds())
    except Exception:  # any that a client's index raises; pycocotools will meet it in its own order
        return False
