"""What the page shows of one detector, gathered once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import curves
from detmap.diagnosis import Diagnosis, diagnose
from detmap.diagnosis.calibration import Calibration, calibration
from detmap.diagnosis.confusion import Confusion
from detmap.diagnosis.mistakes import ImageErrors, Mistake, images, worst
from detmap.diagnosis.olrp import Lrp, olrp, overlap_taken
from detmap.diagnosis.operating import Point, sweep
from detmap.diagnosis.passing import BEYOND, TP
from detmap.diagnosis.slices import Slice
from detmap.diagnosis.summary import parts, sentences
from detmap.diagnosis.tide import Tide, tidecv
from detmap.errors import DataError, ProtocolError
from detmap.evaluate import summarize
from detmap.matching import match
from detmap.operating import Points
from detmap.protocol import Protocol
from detmap.result import Result
from detmap.statistics.intervals import Intervals
from detmap.tables import Detections, Truth

GRID = np.linspace(0, 1, 101)
SCORE_BINS, OVERLAP_BINS = 25, 20
MANY, REPLICATES = 200_000, (1000, 200)  # detections from which on there are fewer replicates
WORST = 8  # mistakes of each kind


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One detector.

    Parameters
    ----------
    name : for people
    precision : (T, 101, K) envelope of each class's curve; NaN where it has no object
    scores : edges of the bins, and true and false positives in each
    overlaps : the same of overlaps of true positives
    """

    name: str
    result: Result
    diagnosis: Diagnosis
    intervals: Intervals | None
    sentences: list[str]
    tide: Tide
    tidecv: Tide
    confusion: Confusion
    calibration: Calibration | None
    olrp: dict[str, Lrp]
    points: list[Point]
    sweep: Points
    slices: list[Slice]
    images: list[ImageErrors]
    worst: list[Mistake]
    suspects: list[Mistake]
    precision: NDArray[np.float64]
    scores: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    overlaps: tuple[NDArray[np.float64], NDArray[np.float64]]

    def shown(self, metric: str) -> dict[str, Any]:
        """A metric in points, with its interval where there is one."""
        value = self.result.metrics[metric]
        low = high = None
        if self.intervals is not None:
            interval = self.intervals.metrics[metric]
            low, high = interval.low, interval.high
        return {"value": value, "low": low, "high": high}


def gather(
    name: str,
    truth: Truth,
    detections: Detections,
    rules: Protocol,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> Run:
    """Evaluate and diagnose a detector."""
    result = summarize(match(truth, detections, rules, threads=threads), threads=threads)
    found = diagnose(truth, detections, rules, threads=threads)
    known = parts(found)
    try:
        calibrated = calibration(found)
    except DataError:  # scores that are no probabilities
        calibrated = None
    return Run(
        name,
        result,
        found,
        _intervals(result, len(detections), seed, threads),
        sentences(known),
        known.tide,
        tidecv(truth, detections),
        known.confusion,
        calibrated,
        olrp(found),
        known.points,
        sweep(found),
        known.slices,
        images(found),
        worst(found, WORST),
        known.suspects,
        _precision(result, threads),
        _scores(found),
        _overlaps(found),
    )


def _intervals(
    result: Result, n_detections: int, seed: int, threads: int | None
) -> Intervals | None:
    if len(result.matches.image_ids) < 2:
        return None
    replicates = REPLICATES[n_detections >= MANY]
    try:
        return result.intervals(replicates=replicates, seed=seed, threads=threads)
    except ProtocolError:  # rules of a tool, whose influence nobody has worked out
        return None


def _precision(result: Result, threads: int | None) -> NDArray[np.float64]:
    """(T, 101, K) of the main subset and the highest limit."""
    matches, protocol = result.matches, result.protocol
    limits = np.array(protocol.max_dets()[-1:], dtype=np.int64)
    sampled = curves.sample(matches, GRID, limits, threads=threads)["precision"]
    mine = sampled[:, :, :, protocol.subset(), 0]
    return np.where(mine < 0, np.nan, mine)


def _scores(
    found: Diagnosis,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    listed = ~found.ignored & (found.kind != BEYOND)
    score, right = found.detections.score[listed], found.kind[listed] == TP
    low, high = (float(score.min()), float(score.max())) if len(score) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    edges = np.linspace(low, high if high > low else low + 1, SCORE_BINS + 1)
    return (
        edges,
        np.histogram(score[right], edges)[0].astype(float),
        np.histogram(score[~right], edges)[0].astype(float),
    )


def _overlaps(found: Diagnosis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    edges = np.linspace(found.iou, 1, OVERLAP_BINS + 1)
    right = np.flatnonzero(found.kind == TP)
    return edges, np.histogram(overlap_taken(found, right), edges)[0].astype(float)
