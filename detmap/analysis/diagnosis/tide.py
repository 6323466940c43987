"""TIDE: the AP gain if each kind of error is fixed.

Each kind is fixed alone, so the gains do not add up: neither to 100, nor to the gain of fixing all
kinds.

Source: Bolya et al., TIDE, ECCV 2020; tidecv 1.0.1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import BEYOND, CLS, KINDS, LOC, TP, Diagnosis, diagnose
from detmap.analysis.diagnosis.class_labels import told_apart
from detmap.analysis.diagnosis.ranked_lists import Ranked, ranked, tie_order
from detmap.core.output.cell_text import or_none
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

ERRORS = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")
MEANING = {
    "Cls": "right location, wrong class",
    "Loc": "right class, poor location",
    "Both": "wrong class and poor location",
    "Dupe": "duplicate detection of an object",
    "Bkg": "background detected as object",
    "Miss": "missed object, without a Cls or Loc error on it",
}
SPECIAL = ("FalsePos", "FalseNeg")
RULES = ("protocol", "tidecv")

MEANS = ("occurring", "objects")
MAX_DETS = 100


@dataclass(frozen=True, slots=True)
class Tide:
    """AP at one IoU, and its gain if all errors of a kind are fixed; in points (0 to 100).

    Parameters
    ----------
    rule : one of `RULES`
    iou : the IoU threshold of a match
    ap : AP without any fix
    gain : AP gain if each kind of `ERRORS` and `SPECIAL` is fixed; can be below 0 with tied scores
    counts : errors of each kind
    per_class : AP of each class by its unique name (`told_apart`); NaN if undefined
    """

    rule: str
    iou: float
    ap: float
    gain: dict[str, float]
    counts: dict[str, int]
    per_class: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """As tidecv prints it, None if undefined: gains of `ERRORS` are at least 0;
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
    compared: Mapping[str, Any] = MappingProxyType({}),
    threads: int | None = None,
) -> Tide:
    """The numbers of tidecv 1.0.1, by its names and under its protocol, `configs/tools/tide.toml`.

    Errors rank before true positives of the same score once something is fixed. Ignored detections
    count as errors, though not in AP. Boxes are compared as COCO does, also where the ground truth
    is VOC's; difficult objects are crowds.

    Parameters
    ----------
    pos_threshold : the IoU threshold of a match
    background_threshold : the IoU up to which a detection is background
    max_dets : detection limit per image, over all classes
    mean : of `MEANS`. ``occurring``: over the classes with an object or a detection that is not
        ignored, which is 0 for a class without objects; a class that a fix empties is left out of
        the mean then, as tidecv does. ``objects``: over the classes with an object
    compared : protocol keys of another overlap than that of boxes, as `compared_keys`

    Raises
    ------
    DataError : as of `diagnose`; an unknown mean; a limit that is not a whole number from 1
    """
    whole = isinstance(max_dets, int | np.integer) and not isinstance(max_dets, bool)
    if not whole or max_dets < 1:
        raise DataError("tidecv: max_dets", repr(max_dets), "give a whole number from 1")
    if mean not in MEANS:
        raise DataError("tidecv: mean", repr(mean), f"choose one of {', '.join(MEANS)}")
    found = diagnose(
        truth,
        detections,
        "tide",
        iou=pos_threshold,
        background=background_threshold,
        settings={"limits.max_dets": [int(max_dets)], **compared},
        threads=threads,
    )
    return _Fixing(found, True, mean).all()


def compared_keys(rules: Protocol) -> dict[str, Any]:
    """The keys of a protocol that name its overlap; none for boxes."""
    if rules.iou.of == "boxes":
        return {}
    of = rules.iou
    return {"iou.of": of.of, "iou.sigmas": list(of.sigmas), "iou.dilation": of.dilation}


def tide(diagnosis: Diagnosis) -> Tide:
    """The AP gain if each kind of error is fixed, by the protocol of the diagnosis.

    AP, its mean and its order of ties are the protocol's; ignored detections are not errors. A
    class that a fix leaves without an object is left out of the mean, or counted, as any other.

    Source: quantify.py, main_errors.py, error.py and ap.py of tidecv 1.0.1.
    """
    return _Fixing(diagnosis, False, "").all()


def lists(diagnosis: Diagnosis) -> Iterator[tuple[str, Ranked]]:
    """The ranked lists whose AP differences are the gains of ``protocol``: without any fix,
    ``""``, and with each kind of `ERRORS` and `SPECIAL` fixed.
    """
    fixing = _Fixing(diagnosis, False, "")
    yield "", fixing.unchanged_list()
    for name in (*ERRORS, *SPECIAL):
        yield name, fixing.fixed_list(name)


class _Fixing:
    """The ranked rows of a diagnosis, and their match results."""

    def __init__(self, diagnosis: Diagnosis, as_tidecv: bool, of_classes: str) -> None:
        self.diagnosis, self.as_tidecv, self.of_classes = diagnosis, as_tidecv, of_classes
        self.rows = diagnosis.order() if as_tidecv else tie_order(diagnosis)
        self.rows = self.rows[diagnosis.kind[self.rows] != BEYOND]
        self.plain = ranked(diagnosis, self.rows)
        self.first = self.plain  # fixed detections are ranked among these
        if as_tidecv:  # errors rank before true positives of the same score
            wrong = diagnosis.kind[self.rows] != TP
            self.rows = np.concatenate([self.rows[wrong], self.rows[~wrong]])
            self.first = ranked(diagnosis, self.rows)
        self.fixer = diagnosis.fixer(ignored=as_tidecv)
        self.ap = diagnosis.protocol.ap
        self.points = self.ap.points()

    def all(self) -> Tide:
        """AP without any fix and with each kind fixed."""
        diagnosis = self.diagnosis
        unchanged = self.unchanged_list()
        base = self.integrated(unchanged)
        ap = self.mean(base, self.plain, unchanged)
        gain = {}
        for name in (*ERRORS, *SPECIAL):
            fixed_list = self.fixed_list(name)
            left = unchanged if name == "FalsePos" else fixed_list  # tidecv ranks them last there
            gain[name] = self.mean(self.integrated(fixed_list), fixed_list, left) - ap
        errors = diagnosis.kind[self.rows]
        errors = errors if self.as_tidecv else errors[~diagnosis.ignored[self.rows]]
        counts = {
            name: int((errors == KINDS.index(name)).sum()) for name in ERRORS if name != "Miss"
        }
        counts["Miss"] = int(self.missed().sum())
        names = told_apart(diagnosis.truth.categories)
        per_class = dict(zip(names, (100 * base).tolist(), strict=True))
        rule = "tidecv" if self.as_tidecv else "protocol"
        scaled = {name: 100 * value for name, value in gain.items()}
        return Tide(rule, diagnosis.iou, 100 * ap, scaled, counts, per_class)

    def missed(self) -> NDArray[np.bool_]:
        """(G,) unmatched objects that fixing another error would not match."""
        lost = self.diagnosis.to_find & (self.diagnosis.by < 0)
        return np.asarray(lost & (self.fixer < 0))

    def unchanged_list(self) -> Ranked:
        """The list without any fix."""
        return self.plain.kept(~self.diagnosis.ignored[self.plain.rows])

    def fixed_list(self, name: str) -> Ranked:
        """The list with all errors of a kind fixed: matched, else removed."""
        diagnosis, first = self.diagnosis, self.first
        listed = ~diagnosis.ignored[first.rows]
        if name == "Miss":
            return first.kept(listed, objects=diagnosis.to_find & ~self.missed())
        if name == "FalseNeg":
            return first.kept(listed, objects=diagnosis.to_find & (diagnosis.by >= 0))
        if name == "FalsePos":
            return first.kept(listed & first.right)
        found = self._found(name)
        if name == KINDS[CLS]:  # among the detections of the object's class
            there = found[self.rows]
            label = diagnosis.detections.label[self.rows]
            label[there >= 0] = diagnosis.truth.label[there[there >= 0]]
            right = (diagnosis.kind[self.rows] == TP) | (there >= 0)
            first = ranked(diagnosis, self.rows, label=label, right=right)
            listed = ~diagnosis.ignored[first.rows]
        fixed = found[first.rows] >= 0
        mine = diagnosis.kind[first.rows] == KINDS.index(name)
        return first.kept((listed & ~mine) | fixed, right=first.right | fixed)

    def integrated(self, ranks: Ranked) -> NDArray[np.float64]:
        """(K,) AP; NaN where a class has no object."""
        return ranks.average_precision(self.ap.rule, self.points, self.ap.epsilon)

    def mean(self, ap: NDArray[np.float64], ranks: Ranked, left: Ranked) -> float:
        """The mean over the classes of the rule; `left` has the remaining detections."""
        if self.as_tidecv:
            some = (self.plain if self.of_classes == "objects" else ranks).n_objects() > 0
            if self.of_classes == "occurring":
                some |= np.diff(left.off) > 0
            return float(np.nan_to_num(ap[some]).mean()) if some.any() else float("nan")
        rules = self.diagnosis.protocol.mean
        if rules.undefined == "no_mean" and np.isnan(ap[np.diff(self.plain.off) > 0]).any():
            return float("nan")
        value = np.full(len(ap), {"skip": np.nan, "one": 1.0}.get(rules.undefined, 0.0))
        if rules.undefined == "detected":
            value[np.diff(ranks.off) == 0] = np.nan
        ap = np.where(np.isnan(ap), value, ap)
        some = ~np.isnan(ap)
        weight = ranks.n_images() if rules.weights == "images" else np.ones(len(ap))
        total = float(weight[some].sum())
        return float((weight * ap)[some].sum() / total) if total else float("nan")

    def _found(self, name: str) -> NDArray[np.int32]:
        """(D,) the object that each error of a kind matches after the fix, -1 for none."""
        found = np.full(len(self.diagnosis.detections), -1, dtype=np.int32)
        if name in (KINDS[CLS], KINDS[LOC]):
            objects = np.flatnonzero(self.fixer >= 0)
            found[self.fixer[objects]] = objects
            found[self.diagnosis.kind != KINDS.index(name)] = -1
        return found
