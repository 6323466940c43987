"""Error analysis: Truth, Detections and Protocol -> Diagnosis, at one IoU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.shape_overlaps import compare_shapes
from detmap.core.adapters import ClassNames, options_of, read_detections
from detmap.core.adapters.truth_by_protocol import TruthByProtocol, truth_by_protocol
from detmap.core.base import memory
from detmap.core.base.arguments import is_number
from detmap.core.base.immutable import Immutable, blank, keep, own
from detmap.core.base.pair_limits import limit_compared
from detmap.core.base.parallel import each_batch
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.matching.scope import clipped, objects_that_take_part
from detmap.core.output import formats
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol, load
from detmap.core.protocol.default_protocol import choose_protocol
from detmap.core.tables import BoxFormat, Detections, Truth, boxes_as
from detmap.core.tables.extension import extended, with_class_names
from detmap.core.tables.grouping import group as grouped
from detmap.core.tables.grouping import group_images
from detmap.errors import DataError
from detmap.evaluate import read_truth_and_protocol

if TYPE_CHECKING:
    from detmap.analysis.kernels.diagnosis import Seen

KINDS = ("TP", "Cls", "Loc", "Both", "Dupe", "Bkg", "beyond")
"""Kinds of detections: true positive; wrong class (right location); poor location (right class);
both; duplicate; background; beyond the detection limit. `Diagnosis.kind` has their positions."""
TP, CLS, LOC, BOTH, DUPE, BKG, BEYOND = range(7)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis(Immutable, Tabular):
    """The match result and error kind of D detections and G objects at one IoU, by row.

    >>> import detmap
    >>> from detmap.core.base.resources import folder
    >>> sample = folder("datasets") / "shapes"
    >>> found = detmap.diagnose(sample, sample / "detections" / "contours")
    >>> found.counts()["Cls"]
    673

    Parameters
    ----------
    truth, detections : the tables, with boxes clipped if the protocol clips them
    protocol : the matching rules
    iou : the IoU threshold of a match
    background : the IoU up to which a detection is background
    same, same_object : (D,) float64, (D,) int32, best overlap with a counted object of the
        detection's class, and its row (the first of ties); 0.0 and -1 for none
    other, other_object : the same with an object of another class
    twin : (D,) float32, best overlap with a higher-scoring detection of its class and image
    took : (D,) int32, row of the matched object, -1 for none
    kind : (D,) uint8, position in `KINDS`
    ignored : (D,) bool, neither TP nor FP by the protocol
    by : (G,) int32, row of the detection matched to the object, -1 for none
    to_find : (G,) bool, whether the object counts (is not ignored)
    near : (G,) float32, best overlap with another counted object, of any class: crowding
    reach : (G,) float32, best overlap of a detection of the object's class
    tide_tables : the ground truth as TIDE's protocol reads it, and the detections as they were
        read; None if they are `truth` and `detections`
    """

    truth: Truth
    detections: Detections
    protocol: Protocol
    iou: float
    background: float
    same: NDArray[np.float64]
    same_object: NDArray[np.int32]
    other: NDArray[np.float64]
    other_object: NDArray[np.int32]
    twin: NDArray[np.float32]
    took: NDArray[np.int32]
    kind: NDArray[np.uint8]
    ignored: NDArray[np.bool_]
    by: NDArray[np.int32]
    to_find: NDArray[np.bool_]
    near: NDArray[np.float32]
    reach: NDArray[np.float32]
    tide_tables: tuple[Truth, Detections] | None = None

    def __post_init__(self) -> None:
        for names, n in ((OF_DETECTIONS, len(self.detections)), (OF_OBJECTS, len(self.truth))):
            for name in names:
                column = getattr(self, name)
                if column.shape != (n,):
                    what = f"{column.shape} where ({n},) is needed"
                    raise DataError(f"Diagnosis.{name}", what, "diagnose the tables anew")
                keep(self, **{name: own(column)})

    def counts(self) -> dict[str, int]:
        """Detections of each kind that are not ignored, in the order of `KINDS`; ignored ones; and
        ``missed``: all unmatched objects (TIDE's Miss is a part of them).
        """
        numbers = np.bincount(self.kind[~self.ignored], minlength=len(KINDS)).tolist()
        return {
            **dict(zip(KINDS, numbers, strict=True)),
            "ignored": int(self.ignored.sum()),
            "missed": int((self.to_find & (self.by < 0)).sum()),
        }

    def counted(self) -> NDArray[np.bool_]:
        """(D,) whether a detection is a true or a false positive."""
        return np.asarray(~self.ignored & (self.kind != BEYOND))

    def order(self) -> NDArray[np.int32]:
        """(D,) int32, rows of detections by image, by descending score, ties in input order."""
        return _ranked(self.detections, len(self.truth.images))[0]

    @property
    def overlap_name(self) -> str:
        """The overlap of matching: ``OKS`` of keypoints, else ``IoU``."""
        return "OKS" if self.protocol.iou.of == "keypoints" else "IoU"

    def fixer(self, *, ignored: bool = False) -> NDArray[np.int32]:
        """(G,) int32, the detection that would match an unmatched object if its class or location
        were fixed: the highest-scoring one whose best object it is; -1 for none.

        ignored : whether ignored detections are considered

        Source: tidecv 1.0.1, error.py, BestGTMatch.
        """
        target = np.where(self.kind == LOC, self.same_object, -1)
        target = np.where(self.kind == CLS, self.other_object, target)
        if not ignored:
            target[self.ignored] = -1
        rows = self.order()
        rows = rows[target[rows] >= 0]
        rows = rows[self.by[target[rows]] < 0]
        objects, first = np.unique(target[rows], return_index=True)
        fixer = np.full(len(self.truth), -1, dtype=np.int32)
        fixer[objects] = rows[first]
        return fixer

    @proposes_arguments
    def confusion_matrix(
        self, *, confidence: float | None = None, iou: float | None = None, rule: str = "detmap"
    ) -> Any:
        """Returns the `Confusion`; see `detmap.Result.confusion_matrix`."""
        from detmap.analysis.diagnosis.confusion import confusion

        return confusion(self, confidence=confidence, iou=iou, rule=rule)

    _MAIN = "costs"

    def tables(self) -> list[Table]:
        """Returns the tables that `detmap diagnose` prints, and ``errors``: one row per error."""
        from detmap.analysis.diagnosis.diagnosis_tables import error_table
        from detmap.analysis.diagnosis.sections import summary_tables
        from detmap.analysis.diagnosis.summary import summary

        return [*summary_tables(summary(self)), error_table(self)]

    def to_dict(self) -> dict[str, Any]:
        """Returns what ``detmap diagnose --format json`` prints."""
        from detmap.analysis.diagnosis.summary import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from detmap.analysis.diagnosis.summary import notebook_html

        return notebook_html(self)

    def __str__(self) -> str:
        return formats.text(self.tables()[:-1])

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {kind}" for kind, n in self.counts().items() if n)
        return f"<Diagnosis at IoU {self.iou:g}: {counts}>"


OF_DETECTIONS = ("same", "same_object", "other", "other_object", "twin", "took", "kind", "ignored")
OF_OBJECTS = ("by", "to_find", "near", "reach")


@proposes_arguments
def diagnose(
    truth: Truth | TruthByProtocol | str | Path,
    detections: Detections | str | Path,
    protocol: Protocol | str | None = None,
    *,
    iou: float = 0.5,
    background: float = 0.1,
    settings: Mapping[str, Any] | None = None,
    threads: int | None = None,
    class_names: ClassNames | None = None,
) -> Diagnosis:
    """Classifies every detection as a true positive or a kind of error.

    >>> import detmap
    >>> found = detmap.diagnose("shapes", "shapes/detections/contours", "coco-bbox")
    >>> found.counts()["TP"], found.counts()["Cls"]
    (242, 672)

    Parameters
    ----------
    truth, detections, protocol, settings, threads : as of `detmap.evaluate`; the protocol has
        the matching rule, the ignored objects and the detection limit. A path or a
        `TruthByProtocol` gives TIDE's own protocol the flags that it reads
    iou : the IoU threshold of a match, in place of the protocol's thresholds
    background : the IoU up to which a detection is background, below `iou`
    class_names : as in `detmap.read_detections`, if `detections` is no table

    Raises
    ------
    DataError, ProtocolError : as of `detmap.evaluate`; thresholds that are not in order
    """
    iou, background = _thresholds(iou, background)
    truths, truth, rules = _read_truth(truth, protocol, settings)
    if not isinstance(detections, Detections):
        detections = read_detections(
            detections, truth, class_names=class_names, **options_of(rules)
        )
        truth = extended(truth, detections)
    require_protocol(rules)
    tide = replace(load("tide"), classes=rules.classes)
    for_tide = rules.classes.rename(extended(truths.table(tide), detections), detections)
    rules = rules.override({"iou.thresholds": [iou], "limits.max_dets": _highest(rules)})
    truth, detections = clipped(
        *rules.classes.rename(with_class_names(truth, detections), detections), rules
    )
    memory.require(120 * len(detections) + 60 * len(truth), "diagnose", "the diagnosis")
    main = rules.subsets[rules.subset()]
    alone = replace(rules, subsets=(main,), groups=(), metrics=("AP",))
    judged = _judged(
        truth, detections, match(truth, detections, alone, threads=threads, taken=True)
    )
    found = _look(truth, detections, rules, judged, (iou, background), threads)
    same = for_tide[0] is truth and for_tide[1] is detections
    return found if same else replace(found, tide_tables=for_tide)


def _read_truth(
    truth: Truth | TruthByProtocol | str | Path,
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
) -> tuple[TruthByProtocol, Truth, Protocol]:
    """The ground truth of every protocol, that of the chosen one, and the protocol."""
    if isinstance(truth, TruthByProtocol):
        rules = choose_protocol(protocol, truth.first, settings)
        return truth, truth.table(rules), rules
    table, rules = read_truth_and_protocol(truth, protocol, settings)
    return truth_by_protocol(truth, table, rules), table, rules


def require_protocol(rules: Protocol) -> None:
    """Raises an error that names the protocol if a diagnosis does not support its rules."""
    rules.rows()  # a benchmark's own rule is refused by name
    rules.require("diagnosis")


def _thresholds(iou: float, background: float) -> tuple[float, float]:
    for name, value in (("iou", iou), ("background", background)):
        if not is_number(value) or not 0 <= value <= 1:
            raise DataError(f"diagnose: {name}", f"{value!r}", "give a number from 0 to 1")
    if background >= iou:
        what = f"background {background:g} is not below iou {iou:g}"
        raise DataError("diagnose", what, "TIDE's are 0.1 and 0.5")
    return float(iou), float(background)


def _highest(rules: Protocol) -> list[int]:
    from detmap.core.protocol.metric_rows import NO_LIMIT

    highest = rules.max_dets()[-1]
    return [highest] if highest < NO_LIMIT else []


def _ranked(detections: Detections, n_images: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows by image, best score first; and where each image begins."""
    from detmap.kernels.grouping import sorter
    from detmap.kernels.ranked import rank_lists

    order, off = group_images(detections.image, n_images)
    scratch = sorter(int(np.diff(off).max(initial=0)))
    rank_lists(detections.score.view(np.uint64), off, order, scratch)
    return order, off


class _Judged(NamedTuple):
    """By row of the detections: the matched object, whether it is a TP, ignored, and within the
    limit; by row of the ground truth: whether the object counts.
    """

    took: NDArray[np.int32]
    right: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    listed: NDArray[np.bool_]
    to_find: NDArray[np.bool_]


def _look(
    truth: Truth,
    detections: Detections,
    rules: Protocol,
    judged: _Judged,
    thresholds: tuple[float, float],
    threads: int | None,
) -> Diagnosis:
    """Overlaps and kinds of all detections, from their match results."""
    from detmap.analysis.kernels import diagnosis as kernels

    n_images, n_classes = len(truth.images), len(truth.categories)
    took, right, ignored, listed, to_find = judged
    by = np.full(len(truth), -1, dtype=np.int32)
    rows = np.flatnonzero(right)
    by[took[rows]] = rows
    found = by >= 0
    seen = _unseen(len(detections), len(truth))
    seen.kind[:] = np.where(right, TP, BKG)
    inclusive = rules.boxes.extent == "inclusive"
    native: BoxFormat = "voc" if inclusive else "xywh"
    order, off = _ranked(detections, n_images)
    obj_order, obj_off = group_images(truth.image, n_images)
    boxes = boxes_as(detections.boxes, detections.box_format, native)
    columns = kernels.Boxes(off, order, detections.label, boxes, listed)
    obj_boxes = boxes_as(truth.boxes, truth.box_format, native)
    objects = kernels.Boxes(obj_off, obj_order, truth.label, obj_boxes, to_find)
    sizes, obj_sizes = np.diff(off), np.diff(obj_off)
    _limit_pairs(detections.image[listed], truth.image[to_find], n_images)

    def look_at_some(images: NDArray[np.int32]) -> None:
        n_objects, n_rows = (int(each[images].max(initial=0)) for each in (obj_sizes, sizes))
        scratch = kernels.edges(n_objects, n_rows, n_classes)
        bounds = (float(inclusive), rules.iou.epsilon, *thresholds)
        kernels.diagnose_images(images, columns, objects, found, *bounds, seen, scratch)

    each_batch(look_at_some, sizes + obj_sizes, threads)
    if rules.iou.of != "boxes":
        compare_shapes(truth, detections, rules, (listed, to_find, found), thresholds, seen)
    return Diagnosis(
        truth,
        detections,
        rules,
        *thresholds,
        seen.same,
        seen.same_object,
        seen.other,
        seen.other_object,
        seen.twin,
        took,
        seen.kind,
        ignored,
        by,
        to_find,
        seen.near,
        seen.reach,
    )


def _limit_pairs(image: NDArray[np.int32], obj_image: NDArray[np.int32], n_images: int) -> None:
    """Raises `CrowdedError` if the boxes of the images are too many to be compared."""
    d, g = (np.bincount(each, minlength=n_images) for each in (image, obj_image))
    n_pairs = int((d * g + (d**2 + g**2) // 2).sum())
    limit_compared("diagnose", n_pairs, len(image) + len(obj_image))


def _unseen(n_rows: int, n_objects: int) -> Seen:
    """Columns to fill."""
    from detmap.analysis.kernels.diagnosis import Seen

    return Seen(
        same=blank((n_rows,), np.float64),
        same_object=blank((n_rows,), np.int32),
        other=blank((n_rows,), np.float64),
        other_object=blank((n_rows,), np.int32),
        twin=blank((n_rows,), np.float32),
        kind=blank((n_rows,), np.uint8),
        near=blank((n_objects,), np.float32),
        reach=blank((n_objects,), np.float32),
    )


def _judged(truth: Truth, detections: Detections, verdicts: Matches) -> _Judged:
    """The match results of the main subset, by row."""
    taken = verdicts.taken
    assert taken is not None
    took = blank((len(detections),), np.int32)
    took[:] = -1
    right, ignored, listed = (blank((len(detections),), np.bool_) for _ in range(3))
    position = verdicts.position
    right[position] = verdicts.tp[:, 0] & 1
    ignored[position] = verdicts.ignored[:, 0] & 1
    listed[position] = True
    mine = np.flatnonzero(taken.words[:, 0] & 1)
    by = taken.detection()[mine]
    label = np.repeat(np.arange(len(verdicts.off) - 1), np.diff(verdicts.off))[by]
    rows = grouped(truth.image, truth.label, len(truth.images), len(truth.categories))[0]
    cell = label.astype(np.int64) * len(truth.images) + verdicts.image[by]
    key = truth.label[rows].astype(np.int64) * len(truth.images) + truth.image[rows]
    begins = np.searchsorted(key, cell)
    took[position[by]] = rows[begins + taken.object[mine]]
    to_find = np.zeros(len(truth), dtype=bool)
    to_find[_objects(truth, verdicts.protocol)] = verdicts.counted[:, 0]
    return _Judged(took, right, ignored, listed, to_find)


def _objects(truth: Truth, rules: Protocol) -> NDArray[np.int32]:
    """Rows of objects in the order of `Matches`."""
    some = objects_that_take_part(truth, rules)
    return grouped(truth.image, truth.label, len(truth.images), len(truth.categories), some)[0]
