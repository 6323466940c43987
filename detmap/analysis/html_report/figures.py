"""Charts of the page and their captions."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from detmap.analysis.diagnosis.operating_sweep import found_from, point
from detmap.analysis.html_report import charts
from detmap.analysis.html_report.gather import GRID, Run, nearest, threshold_curve
from detmap.analysis.html_report.what_changed import one_only
from detmap.core.base.sums import add_integers
from detmap.core.curves import aggregation

BROWSER = "images.html"
"""The page of all images, beside the report in a folder."""
MULTIPLES = 12  # classes that are worst and best
RATES = (("precision", "good"), ("recall", "bad"), ("F1", "ink"))


def letters(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Style and name of each run."""
    if len(runs) == 1:
        return [("a", "")]
    return [("a", f"A {runs[0].name}"), ("b", f"B {runs[1].name}")]


def titled(run: Run, two: bool, text: str) -> str:
    """A heading, with the detector's name where there are two."""
    return f"{text}, {run.name}" if two else text


def short(value: float, digits: int = 3) -> str:
    """Format a number; a dash for NaN and infinity."""
    return "-" if math.isnan(value) or math.isinf(value) else f"{value:.{digits}g}"


def multiples(runs: Sequence[Run]) -> list[tuple[str, Markup, str]]:
    """Name, small curve and AP of each class: of all, or the worst and the best."""
    t = threshold(runs[0])
    names = runs[0].diagnosis.truth.categories.names
    area = np.array([100 * np.nan_to_num(_ap(run, t)) for run in runs])
    has = np.isfinite(runs[0].precision[0])
    order = [k for k in np.argsort(area[0], kind="stable").tolist() if has[k]]
    if len(order) > 2 * MULTIPLES:
        order = order[:MULTIPLES] + order[-MULTIPLES:]
    found = []
    for k in order:
        drawn = [
            charts.Line(GRID, run.precision[:, k], "", style)
            for (style, _), run in zip(letters(runs), runs, strict=True)
        ]
        text = " / ".join(f"{each[k]:.1f}" for each in area)
        found.append((names[k], charts.spark(f"{names[k]}: {text}", drawn), text))
    return found


def _ap(run: Run, t: int) -> NDArray[np.float64]:
    """(K,) AP of the classes at a threshold, by the protocol."""
    rules = run.result.protocol
    return aggregation.per_class(run.result.scores, threshold_curve(rules)[t], rules)


def threshold(run: Run) -> int:
    """Place of the protocol's threshold that is nearest to the diagnosis's."""
    return nearest(run.result.protocol.thresholds(), run.diagnosis.iou)


def mean(runs: Sequence[Run]) -> Markup:
    """Precision-recall curve (class mean), at three overlaps; of two at two."""
    thresholds = runs[0].result.protocol.thresholds()
    some = sorted({0, len(thresholds) // 2, *([] if len(runs) == 2 else [len(thresholds) - 1])})
    drawn = []
    for (style, name), run in zip(letters(runs), runs, strict=True):
        for i, t in enumerate(some):
            label = f"{name} {run.diagnosis.overlap_name} {thresholds[t]:.2f}".strip()
            drawn.append(charts.Line(GRID, run.mean_precision[t], label, f"{style} i{i}"))
    told = ", ".join(
        f"{line.name} {100 * nanmean(line.y, None):.1f}" for line in drawn if len(line.y)
    )
    readings = [
        _near(x, 0.025, (0.0, 1.0), f"recall {x:.2f}, precision: {_each(drawn, 5 * k)}")
        for k, x in enumerate(GRID[::5])
    ]
    axes = ("recall", "precision")
    return charts.lines("Precision-recall curve", told, drawn, axes, readings=readings)


def _near(at: float, half: float, span: tuple[float, float], text: str) -> charts.Reading:
    """A text around a place, within an axis."""
    return max(at - half, span[0]), min(at + half, span[1]), text


def _each(drawn: Sequence[charts.Line], k: int, scale: float = 1.0) -> str:
    """The k-th value of each line with its name."""
    return ", ".join(f"{line.name} {short(scale * float(line.y[k]))}".strip() for line in drawn)


def over_iou(runs: Sequence[Run]) -> Markup:
    """AP over the threshold of overlap; nothing of a single one."""
    thresholds, overlap = runs[0].result.protocol.thresholds(), runs[0].diagnosis.overlap_name
    if len(thresholds) == 1:
        return Markup()
    drawn = []
    for (style, name), run in zip(letters(runs), runs, strict=True):
        mean = np.array([nanmean(each, axis=None) for each in run.mean_precision])
        band = None
        if run.intervals is not None:
            rows = threshold_curve(run.result.protocol)
            each = [run.intervals.metrics[row.name] for row in rows]
            band = np.array([(one.low, one.high) for one in each])
        drawn.append(charts.Line(thresholds, mean, name, style, band))
    told = f"from {100 * drawn[0].y[0]:.1f} to {100 * drawn[0].y[-1]:.1f}"
    span = (float(thresholds[0]), float(thresholds[-1]))
    half = (span[1] - span[0]) / (len(thresholds) - 1) / 2
    readings = [
        _near(iou, half, span, f"{overlap} {iou:.2f}, AP: {_each(drawn, k, 100)}")
        for k, iou in enumerate(thresholds.tolist())
    ]
    axes = (f"{overlap} threshold", "AP")
    return charts.lines(f"AP over {overlap}", told, drawn, axes, x_range=span, readings=readings)


def nanmean(values: Any, axis: int | None) -> Any:
    """The mean of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return total / np.where(known.sum(axis=axis) > 0, known.sum(axis=axis), np.nan)


def operating(run: Run, two: bool) -> dict[str, Any]:
    """Precision, recall and F1 over the score."""
    best, drawn = run.points[0], run.uncertainty
    points = [point("", run.sweep, i) for i in run.shown.tolist()[::-1]]  # lowest score first
    score = np.array([p.score for p in points])
    bounds = np.full((3, len(points), 2), np.nan)
    if drawn is not None and points:
        every = [(each.low, each.high) for each in drawn.curve.intervals]
        bounds = np.array(every).reshape(3, -1, 2)[:, ::-1]
    rates = np.array([(p.precision, p.recall, p.f1) for p in points]).reshape(-1, 3).T
    drawn_lines = [
        charts.Line(score, rates[q], label, style, bounds[q])
        for q, (label, style) in enumerate(RATES)
    ]
    texts = [
        f"score {short(p.score, 4)}: "
        + ", ".join(
            f"{label} {short(rates[q, i])}{_between(bounds[q, i])}"
            for q, (label, _) in enumerate(RATES)
        )
        + f"; {p.fp} FP, {p.missed} missed"
        for i, p in enumerate(points)
    ]
    span = (0.0, 1.0)
    if points and not (score[0] >= 0 and score[-1] <= 1):
        span = (float(score[0]), float(score[-1]))
    if span[0] == span[1]:
        span = (min(span[0], 0.0), max(span[1], 1.0))
    text = f"No detections; {best.missed} missed"
    if points:
        start = next((i for i, p in enumerate(points) if p.score == best.score), 0)
        text = f"Best F1 at {texts[start]}"
    ends = [span[0], *(score[:-1] / 2 + score[1:] / 2).tolist(), span[1]]
    title = titled(run, two, "Precision, recall and F1 over score")
    marker = best.score if best.score == best.score else None
    readings = list(zip(ends, ends[1:], texts, strict=False))
    how = {"x_range": span, "marker": marker, "readings": readings}
    return _panel(title, text, drawn_lines, ("score threshold", "fraction"), **how)


def _panel(
    title: str, text: str, drawn: Sequence[charts.Line], axes: tuple[str, str], **how: Any
) -> dict[str, Any]:
    """A chart of lines with its title and caption; `how` as of `charts.lines`."""
    chart = charts.lines(title, text, drawn, axes, **how)
    return {"title": title, "chart": chart, "text": text}


def _between(bounds: NDArray[np.float64]) -> str:
    """An interval behind its number; "" for none."""
    low, high = bounds.tolist()
    return "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"


def reliability(runs: Sequence[Run]) -> dict[str, Any]:
    """Precision of detections by their score; nothing where scores are no probabilities."""
    drawn, texts = [], []
    bins = None
    for (style, name), run in zip(letters(runs), runs, strict=True):
        if run.calibration is None:
            continue
        bins = run.calibration.bins
        score, precision = (
            np.array([getattr(b, key) for b in bins]) for key in ("score", "precision")
        )
        drawn.append(charts.Line(score, precision, name or "precision", f"{style} dots"))
        ece = f"ECE {short(100 * run.calibration.ece)} points, {run.calibration.n:,} detections"
        texts.append(f"{name}: {ece}" if name else ece)
    if bins is None:
        return {}
    readings = []
    for k, (low, high) in enumerate((each.low, each.high) for each in bins):
        text = f"score {low:.2g} to {high:.2g}, precision: {_each(drawn, k)}"
        readings.append((low, high, text))
    diagonal = charts.Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "calibrated", "faint")
    drawn = [diagonal, *drawn]
    axes = ("mean score", "precision")
    return _panel("Reliability", "; ".join(texts), drawn, axes, readings=readings)


def scores(runs: Sequence[Run]) -> dict[str, Any]:
    """How many true and false positives there are by score: true ones up, false ones down."""
    low = min(float(run.scores[0][0]) for run in runs)
    high = max(float(run.scores[0][-1]) for run in runs)
    drawn, texts, most = [], [], 0.0
    for (style, name), run in zip(letters(runs), runs, strict=True):
        edges, right, wrong = run.scores
        up, down = np.log10(1 + right), np.log10(1 + wrong)
        most = max(most, float(up.max(initial=0)), float(down.max(initial=0)))
        drawn.append(charts.stepped(edges, up, name, f"{style} area"))
        drawn.append(charts.stepped(edges, -down, "", f"{style} area"))
        told = f"{int(right.sum()):,} true and {int(wrong.sum()):,} false positives"
        texts.append(f"{name}: {told}" if name else told)
    most = max(math.ceil(most), 1)
    powers = range(-most, most + 1)
    y_ticks = [
        (math.copysign(np.log10(1 + 10.0 ** abs(k)), k), charts.short(10 ** abs(k)))
        if k
        else (0.0, "0")
        for k in powers
    ]
    end = float(np.log10(1 + 10.0**most))
    edges = runs[0].scores[0]
    readings = []
    if all(np.array_equal(run.scores[0], edges) for run in runs):
        readings = _bins(
            runs,
            edges,
            lambda low, high: f"score {short(low)} to {short(high)}",
            lambda run, k: f"{int(run.scores[1][k])} TP, {int(run.scores[2][k])} FP",
        )
    axes = ("score", "FP, down; TP, up (log)")
    how = {"x_range": (low, high), "y_range": (-end, end), "y_ticks": y_ticks}
    made = _panel("Scores", "; ".join(texts), drawn, axes, readings=readings, **how)
    return {**made, "title": "Scores: true positives up, false positives down"}


def _bins(
    runs: Sequence[Run],
    edges: NDArray[np.float64],
    place: Callable[[float, float], str],
    count: Callable[[Run, int], str],
) -> list[tuple[float, float, str]]:
    """What hovering shows for each bin of a histogram: its range, and the counts of each run."""
    each = [(name, run) for (_, name), run in zip(letters(runs), runs, strict=True)]
    bins = []
    for k, (low, high) in enumerate(itertools.pairwise(edges.tolist())):
        counts = "; ".join(f"{name} {count(run, k)}".strip() for name, run in each)
        bins.append((low, high, f"{place(low, high)}: {counts}"))
    return bins


def localized(runs: Sequence[Run]) -> dict[str, Any]:
    """Overlaps of the true positives."""
    drawn, texts, most = [], [], 1.0
    overlap = runs[0].diagnosis.overlap_name
    for (style, name), run in zip(letters(runs), runs, strict=True):
        edges, counts = run.overlaps
        most = max(most, float(counts.max(initial=0)))
        drawn.append(charts.stepped(edges, counts, name, f"{style} area"))
        told = f"{int(counts.sum()):,} true positives, mean {overlap} {short(run.overlap)}"
        texts.append(f"{name}: {told}" if name else told)
    edges, text = runs[0].overlaps[0], "; ".join(texts)
    readings = _bins(
        runs,
        edges,
        lambda low, high: f"{overlap} {low:.3g} to {high:.3g}",
        lambda run, k: f"{int(run.overlaps[1][k])} TP",
    )
    how = {"x_range": (float(edges[0]), float(edges[-1])), "y_range": (0.0, most)}
    axes = (overlap, "true positives")
    return _panel(f"{overlap} of true positives", text, drawn, axes, readings=readings, **how)


def shares(a: Run, b: Run, linked: bool = False) -> Markup:
    """How many objects both detectors match, one alone, or none."""
    only_b, only_a = one_only(a, b)
    found = found_from(a.diagnosis, a.points[0].score)
    both = found & ~only_a
    total = int(a.diagnosis.to_find.sum())
    counts = [int(each.sum()) for each in (both, only_a, only_b)]
    parts = (
        ("both match", "good", counts[0]),
        ("only A matches", "a", counts[1]),
        ("only B matches", "b", counts[2]),
        ("both miss", "none", total - add_integers(counts)),
    )
    links = [f"{BROWSER}#group={group}" for group in ("both", "a", "b", "neither")]
    title = "Objects by who matches them, each at its best-F1 threshold"
    return charts.shares(title, parts, links if linked else ())
