"""Charts of the page and their captions."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from detmap.curves import aggregation
from detmap.diagnosis.operating_sweep import point
from detmap.diagnosis.tide import ERRORS, SPECIAL
from detmap.html_report import charts
from detmap.html_report.gather import GRID, Run, threshold_curve

MULTIPLES, MATRIX = 12, 30  # classes that are worst and best; most confused
BESIDE = 12  # rows of a matrix that has room beside a table
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


def costs(runs: Sequence[Run]) -> Markup:
    """Bars of the AP gain per kind of error."""
    names = [*ERRORS, *SPECIAL]
    series, ranges = [], []
    for (style, name), run in zip(letters(runs), runs, strict=True):
        series.append((name, style, [run.tide.gain[kind] for kind in names]))
        if run.uncertainty is not None:
            each = [run.uncertainty.gain[kind].intervals[0] for kind in names]
            ranges.append([(100 * one.low, 100 * one.high) for one in each])
    worst = max(ERRORS, key=lambda kind: np.nan_to_num(runs[0].tide.gain[kind]))
    title = "AP gain if fixed"
    return charts.bars(title, f"most: {worst}", names, series, ranges)


def multiples(runs: Sequence[Run]) -> list[tuple[str, Markup, str]]:
    """Name, small curve and AP of each class: of all, or the worst and the best."""
    t = threshold(runs[0])
    names = runs[0].diagnosis.truth.categories.names
    area = np.array([100 * np.nan_to_num(_ap(run, t)) for run in runs])
    has = ~np.isnan(runs[0].precision[t]).all(axis=0)
    order = [k for k in np.argsort(area[0], kind="stable").tolist() if has[k]]
    if len(order) > 2 * MULTIPLES:
        order = order[:MULTIPLES] + order[-MULTIPLES:]
    found = []
    for k in order:
        drawn = [
            charts.Line(GRID, run.precision[t][:, k], "", style)
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
    return int(np.argmin(np.abs(run.result.protocol.thresholds() - run.diagnosis.iou)))


def mean(runs: Sequence[Run]) -> Markup:
    """Precision over recall, mean of the classes, at three overlaps."""
    thresholds = runs[0].result.protocol.thresholds()
    some = sorted({0, len(thresholds) // 2, len(thresholds) - 1})
    drawn = []
    for (style, name), run in zip(letters(runs), runs, strict=True):
        for i, t in enumerate(some):
            mean = nanmean(run.precision[t], axis=1)
            label = f"{name} IoU {thresholds[t]:.2f}".strip()
            drawn.append(charts.Line(GRID, mean, label, f"{style} i{i}"))
    told = ", ".join(
        f"{line.name} {100 * nanmean(line.y, None):.1f}" for line in drawn if len(line.y)
    )
    return charts.lines("Precision over recall", told, drawn, ("recall", "precision"))


def over_iou(runs: Sequence[Run]) -> Markup:
    """AP over the threshold of overlap; nothing of a single one."""
    thresholds = runs[0].result.protocol.thresholds()
    if len(thresholds) == 1:
        return Markup()
    drawn = []
    for (style, name), run in zip(letters(runs), runs, strict=True):
        mean = np.array([nanmean(each, axis=None) for each in run.precision])
        band = None
        if run.intervals is not None:
            rows = threshold_curve(run.result.protocol)
            each = [run.intervals.metrics[row.name] for row in rows]
            band = np.array([(one.low, one.high) for one in each])
        drawn.append(charts.Line(thresholds, mean, name, style, band))
    told = f"from {100 * drawn[0].y[0]:.1f} to {100 * drawn[0].y[-1]:.1f}"
    span = (float(thresholds[0]), float(thresholds[-1]))
    return charts.lines("AP over IoU", told, drawn, ("IoU", "AP"), x_range=span)


def nanmean(values: Any, axis: int | None) -> Any:
    """The mean of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return total / np.where(known.sum(axis=axis) > 0, known.sum(axis=axis), np.nan)


def operating(run: Run, two: bool) -> dict[str, Any]:
    """Precision, recall and F1 over the score, and the points of the slider."""
    sweep, best, drawn = run.sweep, run.points[0], run.uncertainty
    points = [point("", sweep, i) for i in run.shown.tolist()[::-1]]  # lowest score first
    start = next((i for i, p in enumerate(points) if p.score == best.score), 0)
    low = min((p.score for p in points), default=0.0)
    high = max((p.score for p in points), default=1.0)
    score = np.array([p.score for p in points])
    bounds = np.full((3, len(points), 2), np.nan)
    if drawn is not None and points:
        every = [(each.low, each.high) for each in drawn.curve.intervals]
        bounds = np.array(every).reshape(3, -1, 2)[:, ::-1]
    rates = [(p.precision, p.recall, p.f1) for p in points]
    drawn_lines = [
        charts.Line(score, np.array([each[q] for each in rates]), label, style, bounds[q])
        for q, (label, style) in enumerate(RATES)
    ]
    rows = [
        [short(p.score, 4)]
        + [f"{short(each)}{_between(bounds[q, i])}" for q, each in enumerate(rates[i])]
        + [p.fp, p.missed]
        for i, p in enumerate(points)
    ]
    text = f"No detections; {best.missed} missed"
    if points:
        shown = rows[start]
        text = (
            f"Best F1 {shown[3]} at score {shown[0]}: precision {shown[1]}, recall {shown[2]}; "
            f"{best.fp} FP, {best.missed} missed"
        )
    span = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    if span[0] == span[1]:
        span = (min(low, 0.0), max(high, 1.0))
    chart = charts.lines(
        titled(run, two, "Precision, recall and F1 over score"),
        text,
        drawn_lines,
        ("score", ""),
        x_range=span,
        marker=best.score if best.score == best.score else None,
    )
    return {
        "title": titled(run, two, "Operating point"),
        "chart": chart,
        "text": text,
        "start": start,
        "span": span,
        "step": (span[1] / 2 - span[0] / 2) / 500,
        "score": best.score,
        "any": bool(points),
        "points": Markup(json.dumps(rows).replace("<", "\\u003c")),
    }


def _between(bounds: NDArray[np.float64]) -> str:
    """An interval behind its number; "" for none."""
    low, high = bounds.tolist()
    return "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"


def calibrated(run: Run, two: bool) -> list[dict[str, Any]]:
    """Scores of true and false positives, and the reliability diagram."""
    edges, right, false = run.scores
    series = [("true positives", "good", right), ("false positives", "bad", false)]
    told = f"{int(right.sum())} true and {int(false.sum())} false positives"
    found = [
        {
            "title": titled(run, two, "Scores"),
            "chart": charts.columns(
                "Scores", told, edges, series, ("score", "detections (log)"), log=True
            ),
            "text": told,
        }
    ]
    if run.calibration is None:
        return found
    bins = run.calibration.bins
    edges = np.array([each.low for each in bins] + [bins[-1].high])
    precision = np.array([each.precision for each in bins])
    text = (
        f"ECE {short(100 * run.calibration.ece)}, largest deviation "
        f"{short(100 * run.calibration.mce)}, D-ECE {short(100 * run.calibration.d_ece)} points; "
        f"{run.calibration.n} detections"
        if run.calibration.n
        else "no detections"
    )
    found.append(
        {
            "title": titled(run, two, "Reliability"),
            "chart": charts.columns(
                "Reliability",
                text,
                edges,
                [("", "a", np.nan_to_num(precision))],
                ("score", "precision"),
                diagonal=True,
            ),
            "text": text,
        }
    )
    return found


def confused(run: Run, two: bool) -> dict[str, Any]:
    """The matrix of the most confused classes, and the pairs."""
    matrix, names = run.confusion.matrix, [*run.confusion.classes, "background"]
    n = len(names) - 1
    text = (
        f"{int(np.trace(matrix[:n, :n]))} of {int(matrix[:n].sum())} objects have the right class."
    )
    if n > MATRIX:
        inner = matrix[:n, :n].copy()
        np.fill_diagonal(inner, 0)
        wrong = inner.sum(axis=0) + inner.sum(axis=1)
        some = np.sort(np.argsort(-wrong, kind="stable")[:MATRIX])
        rows = np.append(some, n)
        matrix, names = matrix[np.ix_(rows, rows)], [names[k] for k in rows.tolist()]
        text += f" Shown: the {MATRIX} most confused classes."
    title = titled(run, two, "Confusion matrix")
    return {
        "title": title,
        "chart": charts.matrix(title, text, names, matrix),
        "wide": len(names) > BESIDE,
        "text": text + f" Score threshold: {short(run.confusion.confidence, 4)}.",
    }


def localized(run: Run, two: bool) -> dict[str, Any]:
    """IoU histogram of the true positives."""
    edges, counts = run.overlaps
    text = f"{int(counts.sum())} true positives, mean IoU {short(run.overlap)}"
    return {
        "title": titled(run, two, "IoU of true positives"),
        "chart": charts.columns(
            "IoU of true positives", text, edges, [("", "a", counts)], ("IoU", "detections")
        ),
        "text": text,
    }
