"""TIDE: what each kind of error costs in AP, found by mending it and integrating anew.

Each kind is mended alone, so the gains do not add up: not to 100, and not to what mending all of
them would give.

Source: Bolya et al., TIDE, ECCV 2020; tidecv 1.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.diagnosis.integrating import average_precision
from detmap.diagnosis.passing import BEYOND, CLS, KINDS, LOC, TP, Diagnosis, diagnose
from detmap.errors import DataError
from detmap.protocol import load
from detmap.report.cells import or_none
from detmap.tables import Detections, Truth

ERRORS = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")
SPECIAL = ("FalsePos", "FalseNeg")
RULES = ("protocol", "tidecv")

MEANS = ("occurring", "objects")
MAX_DETS = 100


@dataclass(frozen=True, slots=True)
class Tide:
    """AP at one IoU, and what it would gain were all errors of a kind mended; in points (0 to 100).

    Parameters
    ----------
    rule : one of `RULES`
    iou : the overlap that is a match
    ap : AP as it is
    gain : what mending each kind of `ERRORS` and `SPECIAL` adds; below 0 where ties decide
    counts : errors of each kind
    per_class : AP of each class by its name, NaN where nothing is defined
    """

    rule: str
    iou: float
    ap: float
    gain: dict[str, float]
    counts: dict[str, int]
    per_class: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """As tidecv prints it, None where nothing is defined: gains of `ERRORS` are at least 0;
        ``raw`` has them as they are.
        """
        raw = {kind: or_none(value) for kind, value in self.gain.items()}
        clipped = {kind: value and max(value, 0.0) for kind, value in raw.items() if kind in ERRORS}
        return {
            f"AP{100 * self.iou:.0f}": or_none(self.ap),
            **clipped,
            **{kind: raw[kind] for kind in SPECIAL},
            "counts": dict(self.counts),
            "raw": raw,
            "rule": self.rule,
        }


def tidecv(
    truth: Truth,
    detections: Detections,
    *,
    pos_threshold: float = 0.5,
    background_threshold: float = 0.1,
    max_dets: int = MAX_DETS,
    mean: str = "occurring",
    threads: int | None = None,
) -> Tide:
    """The numbers of tidecv 1.0.1, by its names; its matching and its curve are those of
    `configs/tools/tide.toml`.

    Boxes are compared as COCO does, also where the truth is VOC's; difficult objects are crowds.

    Parameters
    ----------
    pos_threshold : the overlap that is a match
    background_threshold : the overlap up to which a detection is on nothing
    max_dets : detections of an image that are looked at, over all classes
    mean : of `MEANS`, as in `tide`

    Raises
    ------
    DataError : as of `diagnose` and `tide`; a limit that is no whole number from 1
    """
    whole = isinstance(max_dets, int | np.integer) and not isinstance(max_dets, bool)
    if not whole or max_dets < 1:
        raise DataError("tidecv: max_dets", repr(max_dets), "give a whole number from 1")
    rules = load("tide")
    found = diagnose(
        truth,
        detections,
        "coco-bbox",
        iou=pos_threshold,
        background=background_threshold,
        settings={
            "matching.equal": rules.matching.equal,
            "limits.scope": rules.limits.scope,
            "limits.max_dets": [int(max_dets)],
        },
        threads=threads,
    )
    return tide(found, rule="tidecv", mean=mean)


def tide(diagnosis: Diagnosis, *, rule: str = "protocol", mean: str = "occurring") -> Tide:
    """What each kind of error costs.

    Parameters
    ----------
    rule : ``protocol``: AP, its mean and its order of ties are the protocol's, ignored detections
        are no errors. ``tidecv``: 101 points, errors rank before true positives of the same score
        once something is mended, and ignored detections count as errors though not in AP.
    mean : of ``tidecv``. ``occurring``: over the classes with an object or a detection, which is 0
        for a class without objects, as tidecv has it; ``objects``: over the classes with an object

    Raises
    ------
    DataError : an unknown rule, an unknown mean

    Source: quantify.py, main_errors.py, error.py and ap.py of tidecv 1.0.1.
    """
    for name, value, known in (("rule", rule, RULES), ("mean", mean, MEANS)):
        if value not in known:
            raise DataError(f"tide: {name}", repr(value), f"choose one of {', '.join(known)}")
    return _Mending(diagnosis, rule == "tidecv", mean).all()


class _Mending:
    """The ranked rows of a diagnosis, and what becomes of them."""

    def __init__(self, diagnosis: Diagnosis, as_tidecv: bool, of_classes: str) -> None:
        self.diagnosis, self.as_tidecv, self.of_classes = diagnosis, as_tidecv, of_classes
        truth, detections = diagnosis.truth, diagnosis.detections
        self.n_classes = len(truth.categories)
        self.n_objects = np.bincount(truth.label[diagnosis.to_find], minlength=self.n_classes)
        rows = diagnosis.order()
        if not as_tidecv and diagnosis.protocol.ranking.ties == "input":
            rows = np.arange(len(detections), dtype=np.int32)
        self.rows = rows[diagnosis.kind[rows] != BEYOND]
        self.kind, self.ignored = diagnosis.kind[self.rows], diagnosis.ignored[self.rows]
        self.fixer = diagnosis.fixer(ignored=as_tidecv)
        self.ap = load("tide").ap if as_tidecv else diagnosis.protocol.ap
        self.points = self.ap.points()

    def all(self) -> Tide:
        """AP as it is and with each kind mended."""
        diagnosis = self.diagnosis
        base = self.as_it_is()
        ap = self.mean(base)
        gain = {name: self.mean(self.mended(name)) - ap for name in (*ERRORS, *SPECIAL)}
        errors = self.kind if self.as_tidecv else self.kind[~self.ignored]
        counts = {
            name: int((errors == KINDS.index(name)).sum()) for name in ERRORS if name != "Miss"
        }
        counts["Miss"] = int(self.missed().sum())
        names = diagnosis.truth.categories.names
        per_class = dict(zip(names, (100 * base).tolist(), strict=True))
        rule = "tidecv" if self.as_tidecv else "protocol"
        scaled = {name: 100 * value for name, value in gain.items()}
        return Tide(rule, diagnosis.iou, 100 * ap, scaled, counts, per_class)

    def missed(self) -> NDArray[np.bool_]:
        """(G,) objects that nothing found and that mending no other error would find."""
        lost = self.diagnosis.to_find & (self.diagnosis.by < 0)
        return np.asarray(lost & (self.fixer < 0))

    def mended(self, name: str) -> NDArray[np.float64]:
        """(K,) AP with all errors of a kind mended: found, else removed."""
        n_objects = self.n_objects
        right, label = self.kind == TP, self.diagnosis.detections.label[self.rows]
        score = self.diagnosis.detections.score[self.rows]
        listed = ~self.ignored
        first = self.kind != TP if self.as_tidecv else np.zeros(len(right), dtype=bool)
        if name == "Miss":
            n_objects = n_objects - self._by_class(self.missed())
        elif name == "FalseNeg":
            lost = self.diagnosis.to_find & (self.diagnosis.by < 0)
            n_objects = n_objects - self._by_class(lost)
        elif name == "FalsePos":
            score = right.astype(np.float64)
        else:
            mine = self.kind == KINDS.index(name)
            found = np.full(len(self.diagnosis.detections), -1, dtype=np.int32)
            objects = np.flatnonzero(self.fixer >= 0)
            found[self.fixer[objects]] = objects
            found = found[self.rows]
            fixed = mine & (found >= 0) & (name in (KINDS[CLS], KINDS[LOC]))
            listed = (listed & ~mine) | fixed
            right = right | fixed
            label = label.copy()
            label[fixed] = self.diagnosis.truth.label[found[fixed]]
        order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)])
        order = order[listed[order]]
        return self._integrate(label[order], score[order], right[order], n_objects)

    def as_it_is(self) -> NDArray[np.float64]:
        """(K,) AP with nothing mended."""
        rows = self.rows[~self.ignored]
        detections = self.diagnosis.detections
        label, score = detections.label[rows], detections.score[rows]
        right = self.diagnosis.kind[rows] == TP
        return self._integrate(label, score, right, self.n_objects)

    def mean(self, ap: NDArray[np.float64]) -> float:
        """Over the classes that the rule looks at."""
        if self.as_tidecv:
            seen = np.bincount(
                self.diagnosis.detections.label[self.rows[~self.ignored]], minlength=self.n_classes
            )
            some = self.n_objects > 0
            if self.of_classes == "occurring":
                some |= seen > 0
            return float(np.nan_to_num(ap[some]).mean()) if some.any() else float("nan")
        undefined = {"skip": np.nan, "zero": 0.0, "one": 1.0}[
            self.diagnosis.protocol.mean.undefined
        ]
        ap = np.where(self.n_objects > 0, np.nan_to_num(ap), undefined)
        ap = ap[~np.isnan(ap)]
        return float(ap.mean()) if len(ap) else float("nan")

    def _by_class(self, objects: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(self.diagnosis.truth.label[objects], minlength=self.n_classes)

    def _integrate(
        self,
        label: NDArray[np.int32],
        score: NDArray[np.float64],
        right: NDArray[np.bool_],
        n_objects: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """(K,) AP of rows in the order of ties; NaN where a class has no object."""
        return average_precision(
            label, score, right, n_objects, self.ap.rule, self.points, self.ap.epsilon
        )
