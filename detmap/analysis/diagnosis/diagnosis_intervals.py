"""Intervals of the numbers of a diagnosis, and differences of two detectors.

The subsets of the images are those of the intervals of a result with the same seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis import breakdowns, diagnosis_replicates, tide
from detmap.analysis.diagnosis.analysis import Diagnosis
from detmap.analysis.diagnosis.calibration import bins
from detmap.analysis.diagnosis.operating_sweep import OVERALL
from detmap.analysis.diagnosis.ranked_lists import Ranked
from detmap.analysis.diagnosis.sections import Parts
from detmap.core.curves import scores as curves
from detmap.core.protocol.metric_rows import NO_LIMIT, MetricRow
from detmap.core.statistics.estimates import OF_ONE, Difference, Estimates, Interval
from detmap.core.statistics.evaluations import evaluate_matches
from detmap.core.statistics.refusals import LEAST_GAIN, LEAST_OF_CLASS, reason
from detmap.core.statistics.sampling_units import Units, units
from detmap.core.statistics.subsets import Subsets, subsets

LEVEL = 0.95
WIDER_GAIN = 1.2  # `Rule.wider`: few images have the cases of one kind of error


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Q numbers with their values on subsets of the images, and an interval each."""

    estimates: Estimates
    intervals: tuple[Interval, ...]

    @property
    def values(self) -> NDArray[np.float64]:
        """(Q,) the numbers."""
        return self.estimates.value


def sampled(estimates: Estimates) -> Sampled:
    """The numbers with their intervals."""
    return Sampled(estimates, tuple(estimates.intervals(LEVEL)))


def joined(each: Sequence[Sampled]) -> Sampled:
    """Concatenate numbers of the same subsets."""
    estimates = [one.estimates for one in each]
    every = replace(
        estimates[0],
        value=np.concatenate([one.value for one in estimates]),
        whole=np.concatenate([one.whole for one in estimates]),
        parts=np.concatenate([one.parts for one in estimates], axis=1),
        rules=tuple(rule for one in estimates for rule in one.rules),
    )
    return Sampled(every, tuple(interval for one in each for interval in one.intervals))


def differences(after: Sampled, before: Sampled) -> list[Difference]:
    """B minus A of each number, with its p-value, not adjusted."""
    return after.estimates.differences(before.estimates, 1 - LEVEL)


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """Parts of a diagnosis with intervals; fractions.

    Parameters
    ----------
    units : the sampling units
    gain : AP without any fix, as ``""``, and the AP gain if each kind of error is fixed
    slice_ap, slice_recall : one number per slice, in their order
    best : precision, recall and F1 of all detections at the best F1; of each subset at its own
    curve : the same at each of P scores, (3 P,)
    classes : the same of k classes, each at its own best score, and of the mean of all (3 (k + 1),)
    listed : (k,) int64, their positions among all classes, ascending
    calibration : ECE, largest and mean deviation, D-ECE; None where scores are no probabilities
    overlap : mean overlap of the true positives
    olrp : oLRP, of localization, of false positives, of misses
    """

    units: Units
    gain: dict[str, Sampled]
    slice_ap: Sampled
    slice_recall: Sampled
    best: Sampled
    curve: Sampled
    classes: Sampled
    listed: NDArray[np.int64]
    calibration: Sampled | None
    overlap: Sampled
    olrp: Sampled

    def rates(self, k: int) -> tuple[int, int, int]:
        """Places in `classes` of precision, recall and F1 of the listed class at position k."""
        step, k = len(self.classes.values) // 3, int(np.searchsorted(self.listed, k))
        return k, step + k, 2 * step + k


def uncertainty(
    diagnosis: Diagnosis,
    known: Parts,
    scores: NDArray[np.float64],
    *,
    calibrated: bool = True,
    listed: NDArray[np.int64] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Uncertainty:
    """Evaluate everything on subsets of the images.

    Parameters
    ----------
    known : of `detmap.analysis.diagnosis.summary.parts`
    scores : (P,) at which the curve is wanted, highest first
    calibrated : whether scores are probabilities
    listed : (k,) ascending, positions of the classes with intervals of their own (default: all)
    """
    dealt = subsets(units(diagnosis.truth.images.ids), seed)
    chosen = np.arange(len(known.points) - len(OVERALL)) if listed is None else listed
    known_lists: dict[bytes, Estimates] = {}  # most kinds of errors of a small set change nothing

    def ap_of(listed: Ranked, undefined: str | None = None) -> Estimates:
        key = listed.digest() + str(undefined).encode()
        if key not in known_lists:
            known_lists[key] = estimate_ap(listed, undefined, dealt, threads)
        return known_lists[key]

    fixed = tide.lists(diagnosis)
    _, unchanged = next(fixed)
    before = ap_of(unchanged)
    gain = {"": sampled(before)}
    for name, each in fixed:
        gain[name] = sampled(_gain(ap_of(each), before, each.n_changed(unchanged)))
    masks: list[NDArray[np.bool_]] = []
    of_slices: list[Sampled] = []
    for _, _, each in breakdowns.lists(diagnosis):
        masks.append(each.objects)
        of_slices.append(sampled(ap_of(each, "skip")))
    makers = _makers(diagnosis, known, scores, chosen, masks)
    if calibrated:
        makers["calibration"] = lambda: diagnosis_replicates.calibrated(diagnosis, bins(diagnosis))
    every: dict[str, Any] = {  # one after the other: a part holds a number or more a detection
        name: sampled(diagnosis_replicates.estimate(make(), dealt)) for name, make in makers.items()
    }
    return Uncertainty(
        units=dealt.units,
        gain=gain,
        slice_ap=joined(of_slices) if of_slices else every["slice_recall"],
        listed=chosen,
        **{"calibration": None, **every},
    )


def estimate_ap(
    listed: Ranked, undefined: str | None, dealt: Subsets, threads: int | None = None
) -> Estimates:
    """AP of a ranked list: the mean over classes; `undefined` as in `Ranked.matches`."""
    matches = listed.matches(undefined=undefined)
    row = MetricRow("AP", "AP", None, matches.protocol.axes().main, "", NO_LIMIT)
    scores = curves.scores(matches, threads=threads)
    found = evaluate_matches(matches, scores, dealt, rows=(row,), classes=False, threads=threads)
    return found.estimates


def _gain(after: Estimates, before: Estimates, n_changed: int) -> Estimates:
    """AP gain of a fix that changes so many images. Both AP lose the same points of recall. Away
    from 0 a gain is skewed like a fraction.
    """
    gain = after.minus(before)
    (rule,) = gain.rules
    rule = rule._replace(wider=WIDER_GAIN, of_bias=max(rule.of_bias, OF_ONE), step=0.0)
    of = gain.subsets.units
    few = reason("cases", of, m=n_changed) if n_changed < LEAST_OF_CLASS else ""
    small = reason("gain", of) if abs(gain.value[0]) < LEAST_GAIN else ""
    gain = replace(gain, rules=(rule.refused(few, small),))
    _, bias, error = gain.errors()
    return replace(gain, is_difference=bool(gain.value[0] - bias[0] <= error[0]))


def _makers(
    diagnosis: Diagnosis,
    known: Parts,
    scores: NDArray[np.float64],
    chosen: NDArray[np.int64],
    masks: list[NDArray[np.bool_]],
) -> dict[str, Callable[[], diagnosis_replicates.Part]]:
    """Functions that make the fractions of `Uncertainty`, by name."""
    best = known.points[0].score
    return {
        "slice_recall": lambda: diagnosis_replicates.recalled(diagnosis, masks, best),
        "best": lambda: diagnosis_replicates.best(diagnosis, known.points[0]),
        "curve": lambda: diagnosis_replicates.operating(diagnosis, scores),
        "classes": lambda: diagnosis_replicates.classes(
            diagnosis, known.points[len(OVERALL) :], chosen
        ),
        "overlap": lambda: diagnosis_replicates.localised(diagnosis),
        "olrp": lambda: diagnosis_replicates.least_lrp(diagnosis),
    }
