"""What the page shows of one detector, gathered once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis import Diagnosis, diagnose
from detmap.analysis.diagnosis.analysis import TP
from detmap.analysis.diagnosis.breakdowns import Slice
from detmap.analysis.diagnosis.calibration import Calibration, calibration
from detmap.analysis.diagnosis.confusion import Confusion
from detmap.analysis.diagnosis.diagnosis_intervals import LEVEL, Uncertainty, uncertainty
from detmap.analysis.diagnosis.mistakes import ImageErrors, Mistake, images, worst
from detmap.analysis.diagnosis.olrp import Lrp, olrp, overlap_taken
from detmap.analysis.diagnosis.operating_sweep import Point, sweep
from detmap.analysis.diagnosis.sections import SECTIONS, Choices, Known
from detmap.analysis.diagnosis.summary import parts, sentences
from detmap.analysis.diagnosis.tide import Tide
from detmap.analysis.html_report.numbers import Number, known
from detmap.core.curves import scores as curves
from detmap.core.curves.operating_points import Points
from detmap.core.matching.engine import match
from detmap.core.output.cell_text import scaled
from detmap.core.output.table import Style, Table
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import MetricRow
from detmap.core.results.result import Result
from detmap.core.statistics.evaluations import Evaluated
from detmap.core.statistics.intervals import Intervals, intervals
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError, DetmapError
from detmap.evaluate import summarize

GRID = np.linspace(0, 1, 101)
SCORE_BINS, OVERLAP_BINS = 25, 20
MOST_CLASSES = 2000  # that are listed: a page of 30,000 takes 12 MB
CLASSES_AT_ONCE = 500  # whose curves are sampled together
SHOWN = 160  # scores of the slider
WORST = 8  # mistakes of each kind
LOW = 5.0  # AP at the IoU of the diagnosis below which the files are more likely wrong


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Run:
    """One detector.

    Parameters
    ----------
    name : for people
    evaluated, intervals, uncertainty : None where there are too few images, or a rule of a tool
        cannot evaluate some of them
    precision : (101, K) envelope of each class's curve at the threshold that is nearest to the
        diagnosis's; NaN where it has no object
    mean_precision : (T, 101) its mean over the classes, at every threshold
    shown : places in `sweep` that the slider shows
    scores : edges of the bins, and true and false positives in each
    overlaps : the same of overlaps of true positives; overlap : their mean
    added : tables of the sections of a diagnosis that have a title, by name
    """

    name: str
    result: Result
    diagnosis: Diagnosis
    evaluated: Evaluated | None
    intervals: Intervals | None
    uncertainty: Uncertainty | None
    sentences: list[str]
    tide: Tide
    confusion: Confusion
    calibration: Calibration | None
    olrp: dict[str, Lrp]
    points: list[Point]
    sweep: Points
    shown: NDArray[np.int64]
    slices: list[Slice]
    images: list[ImageErrors]
    worst: list[Mistake]
    suspects: list[Mistake]
    precision: NDArray[np.float64]
    mean_precision: NDArray[np.float64]
    scores: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    overlaps: tuple[NDArray[np.float64], NDArray[np.float64]]
    overlap: float
    added: Mapping[str, Table]

    @property
    def doubtful(self) -> bool:
        """Whether so little matches that the kinds of errors mean nothing."""
        return self.tide.ap < LOW

    def metric(self, name: str) -> Number:
        """A metric in points, with its interval where there is one."""
        interval = None if self.intervals is None else self.intervals.metrics[name]
        return known(self.result.metrics[name], interval)


def gather(
    name: str,
    truth: Truth,
    detections: Detections,
    rules: Protocol,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Run:
    """Evaluate and diagnose a detector."""
    # Over 60 lines: one line per field of `Run`.
    progress(f"evaluating {name}")
    truth, detections = rules.classes.rename(truth, detections)
    result = summarize(match(truth, detections, rules, threads=threads), threads=threads)
    result = replace(result, matched=(truth, detections))  # as in evaluate: notes on ties
    _ = result.metrics  # cached now: with many classes this needs memory that the rest will hold
    progress(f"analyzing errors of {name}")
    found = diagnose(truth, detections, rules, threads=threads)
    seen = parts(found, macro=False)
    try:
        calibrated = calibration(found)
    except DataError:  # scores that are no probabilities
        calibrated = None
    swept, best = sweep(found), seen.points[0].score
    shown = _shown(swept)
    progress(f"computing confidence intervals of {name}")
    evaluated, own = _intervals(result, seed, threads)
    drawn = None
    if own is not None:
        drawn = uncertainty(
            found,
            seen,
            swept.threshold[shown],
            calibrated=calibrated is not None,
            listed=listed_classes(found.truth),
            seed=seed,
            threads=threads,
        )
    told = sentences(seen)
    overlaps, overlap = _overlaps(found)
    precision, mean_precision = _precision(result, found.iou, threads)
    return Run(
        name=name,
        result=result,
        diagnosis=found,
        evaluated=evaluated,
        intervals=own,
        uncertainty=drawn,
        sentences=told,
        tide=seen.tide,
        confusion=seen.confusion,
        calibration=calibrated,
        olrp=olrp(found),
        points=seen.points,
        sweep=swept,
        shown=shown,
        slices=seen.slices,
        images=images(found, confidence=None if np.isnan(best) else best),
        worst=worst(found, WORST),
        suspects=seen.suspects,
        precision=precision,
        mean_precision=mean_precision,
        scores=_scores(found),
        overlaps=overlaps,
        overlap=overlap,
        added=_added(Known(found, seen, told, Choices())),
    )


def listed_classes(truth: Truth) -> NDArray[np.int64]:
    """(k,) positions of the classes that are listed, ascending: of thousands, those with the most
    objects.
    """
    n_objects = np.bincount(truth.label, minlength=len(truth.categories))
    return np.sort(np.argsort(-n_objects, kind="stable")[:MOST_CLASSES])


def _added(known: Known) -> dict[str, Table]:
    """The tables of sections that the report does not draw itself, by name."""
    tables = {
        section.name: section.tabled({section.name: section.content(known)}, percent=True)
        for section in SECTIONS
        if section.title
    }
    percent = Style(percent=True)
    return {
        name: replace(
            each, rows=tuple(tuple(scaled(cell, percent) for cell in row) for row in each.rows)
        )
        for name, each in tables.items()
    }


def _shown(sweep: Points) -> NDArray[np.int64]:
    """Places of some scores, the best F1's among them."""
    n, best = len(sweep.threshold), sweep.best()
    some = np.linspace(0, max(n - 1, 0), min(n, SHOWN)).astype(np.int64)
    return np.unique(some if best is None else np.append(some, best))


def threshold_curve(rules: Protocol) -> list[MetricRow]:
    """AP at each IoU threshold."""
    main, most = rules.axes().main, rules.max_dets()[-1]
    return [
        MetricRow(f"AP at IoU {iou:g}", "AP", float(iou), main, "", most)
        for iou in rules.thresholds()
    ]


def _intervals(
    result: Result, seed: int, threads: int | None
) -> tuple[Evaluated | None, Intervals | None]:
    if len(result.matches.image_ids) < 2:
        return None, None
    dealt, more = subsets(units(result.matches.image_ids), seed), threshold_curve(result.protocol)
    try:
        found = result.evaluate_subsets(dealt, more, threads=threads)
    except DetmapError:
        return None, None
    names = result.matches.categories.names
    return found, intervals(found, names, LEVEL, seed)


def nearest(thresholds: NDArray[np.float64], iou: float) -> int:
    """Place of the threshold that is nearest to an IoU."""
    return int(np.argmin(np.abs(thresholds - iou)))


def _precision(
    result: Result, iou: float, threads: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`Run.precision` and `Run.mean_precision`: of the main subset and the highest limit.

    Sampled in blocks of classes: all curves of 30,000 classes take gigabytes.
    """
    matches, protocol = result.matches, result.protocol
    limits = np.array(protocol.max_dets()[-1:], dtype=np.int64)
    main, thresholds = protocol.subset(), protocol.thresholds()
    t = nearest(thresholds, iou)
    judged = np.flatnonzero(matches.n_objects()[:, main])
    precision = np.full((len(GRID), len(matches.categories)), np.nan)
    total = np.zeros((len(thresholds), len(GRID)))
    for begin in range(0, len(judged), CLASSES_AT_ONCE):
        some = judged[begin : begin + CLASSES_AT_ONCE]
        part = matches.select_classes(some)
        curve = curves.sample(part, GRID, limits, threads=threads)["precision"][..., main, 0]
        precision[:, some] = curve[t]
        total += curve.sum(axis=2)
    return precision, total / (len(judged) or np.nan)


def _scores(
    found: Diagnosis,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    listed = found.counted()
    score, right = found.detections.score[listed], found.kind[listed] == TP
    low, high = (float(score.min()), float(score.max())) if len(score) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    if high == low:
        low, high = min(low, 0.0), max(high, 1.0)
    part = np.linspace(0, 1, SCORE_BINS + 1)
    edges = low * (1 - part) + high * part  # no difference, which may be beyond all numbers
    edges = np.maximum.accumulate(np.clip(edges, low, high))
    return (
        edges,
        np.histogram(score[right], edges)[0].astype(float),
        np.histogram(score[~right], edges)[0].astype(float),
    )


def _overlaps(found: Diagnosis) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], float]:
    edges = np.linspace(found.iou, 1, OVERLAP_BINS + 1)
    taken = overlap_taken(found, np.flatnonzero(found.kind == TP))
    mean = float(taken.mean()) if len(taken) else float("nan")
    inside = np.clip(taken, found.iou, 1)  # overlaps of equal boxes may be a bit above 1
    return (edges, np.histogram(inside, edges)[0].astype(float)), mean
