"""Everything that a diagnosis says with its replicates: what a report needs for intervals beside
its numbers, and for p-values beside differences of two detectors.

The images are drawn as for the intervals of a result, with the same seed the same images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis import breakdowns, diagnosis_replicates, tide
from detmap.analysis.diagnosis.analysis import Diagnosis
from detmap.analysis.diagnosis.calibration import bins
from detmap.analysis.diagnosis.operating_sweep import OVERALL
from detmap.analysis.diagnosis.ranked_lists import Ranked
from detmap.analysis.diagnosis.sections import Parts
from detmap.core.statistics.resampled_numbers import (
    Part,
    Sampled,
    joined,
    less,
    resample_ap,
    resample_fractions,
)
from detmap.core.statistics.sampling_units import Units, units

MOST_PAIRS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """Parts of a diagnosis in replicates; fractions.

    Parameters
    ----------
    units : the sampling units
    replicates, of_lists : numbers of replicates of sums over images, and of APs
    gain : AP without any fix, as ``""``, and the AP gain if each kind of error is fixed
    slice_ap, slice_recall : one number per slice, in their order
    best : precision, recall and F1 of all detections at the score of the best F1
    curve : the same at each of P scores, (3 P,)
    classes : the same of k classes, each at its own best score, and of the mean of all (3 (k + 1),)
    listed : (k,) int64, their positions among all classes, ascending
    calibration : ECE, largest and mean deviation, D-ECE; None where scores are no probabilities
    overlap : mean overlap of the true positives
    olrp : oLRP, of localization, of false positives, of misses
    confused : share of the true class's objects, of the pairs that are most confused
    """

    units: Units
    replicates: int
    of_lists: int
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
    confused: Sampled

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
    replicates: int = 1000,
    of_lists: int = 200,
    seed: int = 0,
    threads: int | None = None,
) -> Uncertainty:
    """Draw everything.

    Parameters
    ----------
    known : of `detmap.analysis.diagnosis.summary.parts`
    scores : (P,) at which the curve is wanted, highest first
    calibrated : whether scores are probabilities
    listed : (k,) ascending, positions of the classes with intervals of their own (default: all)
    replicates, of_lists : of sums over images, and of APs, which take longer

    Raises
    ------
    ProtocolError : rules of a tool, without influence functions
    """
    drawn = units(diagnosis.truth.images.ids)
    chosen = np.arange(len(known.points) - len(OVERALL)) if listed is None else listed
    known_lists: dict[bytes, Sampled] = {}  # most kinds of errors of a small set change nothing

    def resampled(listed: Ranked, undefined: str | None = None) -> Sampled:
        key = listed.digest() + str(undefined).encode()
        if key not in known_lists:
            matches = listed.matches(undefined=undefined)
            known_lists[key] = resample_ap(matches, drawn, of_lists, seed, threads=threads)
        return known_lists[key]

    ap = {name: resampled(each) for name, each in tide.lists(diagnosis)}
    masks: list[NDArray[np.bool_]] = []
    of_slices: list[Sampled] = []
    for _, _, each in breakdowns.lists(diagnosis):
        masks.append(each.objects)
        of_slices.append(resampled(each, "skip"))
    makers = _makers(diagnosis, known, scores, chosen, masks)
    if calibrated:
        makers["calibration"] = lambda: diagnosis_replicates.calibrated(diagnosis, bins(diagnosis))
    every = {  # one after the other: a part holds a number or more a detection
        name: resample_fractions([make()], drawn, replicates, seed, threads=threads)[0]
        for name, make in makers.items()
    }
    return Uncertainty(
        drawn,
        replicates,
        of_lists,
        {"": ap[""], **{name: less(each, ap[""]) for name, each in ap.items() if name}},
        joined(of_slices) if of_slices else every["recall"],
        every["recall"],
        every["best"],
        every["curve"],
        every["classes"],
        chosen,
        every.get("calibration"),
        every["overlap"],
        every["olrp"],
        every["confused"],
    )


def _makers(
    diagnosis: Diagnosis,
    known: Parts,
    scores: NDArray[np.float64],
    chosen: NDArray[np.int64],
    masks: list[NDArray[np.bool_]],
) -> dict[str, Callable[[], Part]]:
    """Functions that make the fractions of `Uncertainty`, by name."""
    return {
        "recall": lambda: diagnosis_replicates.recalled(diagnosis, masks, known.points[0].score),
        "best": lambda: diagnosis_replicates.operating(
            diagnosis, np.array([known.points[0].score])
        ),
        "curve": lambda: diagnosis_replicates.operating(diagnosis, scores),
        "classes": lambda: diagnosis_replicates.classes(
            diagnosis, known.points[len(OVERALL) :], chosen
        ),
        "overlap": lambda: diagnosis_replicates.localised(diagnosis),
        "olrp": lambda: diagnosis_replicates.least_lrp(diagnosis),
        "confused": lambda: diagnosis_replicates.confused(diagnosis, known.confusion, pairs(known)),
    }


def pairs(known: Parts) -> list[tuple[int, int]]:
    """Places of the classes that are most often confused: true, predicted."""
    place = {name: k for k, name in enumerate(known.confusion.classes)}
    return [(place[true], place[taken]) for true, taken, _ in known.confusion.confused(MOST_PAIRS)]
