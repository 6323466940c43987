"""Curve plots: precision over recall by class, subset, IoU and detector, and F1 vs. confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.plot_panels import Curve, Panel, draw_panel, figure_of
from detmap.core.base import atomic_files as files
from detmap.core.base.suggestions import did_you_mean, proposes_arguments
from detmap.core.curves import aggregation, operating_points
from detmap.core.curves.operating_points import Points
from detmap.core.matching.matches import Matches
from detmap.core.output import plots
from detmap.core.output.named_values import MetricAccess
from detmap.core.protocol.metric_rows import MetricRow
from detmap.errors import DataError

if TYPE_CHECKING:
    from detmap.core.results.result import Result

RECALL = np.linspace(0, 1, 101)
"""Recall grid on which class curves are averaged."""

Floats = NDArray[np.float64]


PANELS = ("classes", "subsets", "iou", "f1")
"""Names of the panels of a result; several results have ``detectors`` and ``f1``."""


@proposes_arguments
def plot(
    results: Any,
    path: str | Path | None = None,
    *,
    panels: str | Sequence[str] | None = None,
    ax: Any = None,
    iou: float | None = None,
) -> Any:
    """Plots the curves of a result, or of several results in one plot.

    >>> import detmap
    >>> names = ("template", "contours")
    >>> results = {name: detmap.evaluate("shapes", f"shapes/detections/{name}") for name in names}
    >>> figure = detmap.plot(results, "two.png")

    Parameters
    ----------
    results : a `Result`, or a dict from the name of a detector to its `Result`
    path : .png, .svg or .pdf file to write too; or the name of a panel
    panels : names of the panels (default: all). A result has ``classes``, ``subsets``, ``iou`` and
        ``f1``; several have ``detectors`` (mean precision-recall curves) and ``f1``
    ax : Matplotlib axes to draw one panel in (default: the first)
    iou : IoU threshold of the curves (default: 0.5)

    Returns
    -------
    matplotlib.figure.Figure ; legends have the AP at the IoU threshold

    Raises
    ------
    DetmapError : another suffix, no matplotlib, an unknown panel, no match rows, or the write fails
    """
    if isinstance(path, str) and path in (*PANELS, "detectors"):
        path, panels = None, path
    if path is not None:
        if not isinstance(path, str | Path):
            raise DataError("plot: path", f"a {type(path).__name__}", "give a string or a Path")
        plots.check(Path(path))
    several = isinstance(results, Mapping) and not isinstance(results, MetricAccess)
    every = dict(results) if several else {"": results}
    for each in every.values():
        if not hasattr(each, "scores"):
            fix = "give the return value of detmap.evaluate, or a dict from name to it"
            raise DataError("plot", f"a {type(each).__name__}, not a Result", fix)
    made = detector_panels(every, iou) if several else panels_of(results, iou)
    chosen = _selected(made, panels, ax is not None)
    if ax is not None:
        draw_panel(ax, chosen[0])
        figure = ax.figure
    else:
        caption = " | ".join(dict.fromkeys(each.signature for each in every.values()))
        figure = figure_of(chosen, caption)
    if path is not None:
        files.write_bytes(path, plots.saved(figure, Path(path)))
    return figure


def _selected(
    made: Sequence[Panel], wanted: str | Sequence[str] | None, single: bool
) -> list[Panel]:
    """The panels of these names; of ``ax=`` only one."""
    names = [each.name for each in made]
    if wanted is None:
        return list(made[:1] if single else made)
    chosen = [wanted] if isinstance(wanted, str) else list(wanted)
    for each in chosen:
        if each not in names:
            hint = did_you_mean("panel", str(each), names)
            raise DataError("plot: panels", f"no panel {each!r}", f"{hint}there are {names}")
    if not chosen or (single and len(chosen) != 1):
        raise DataError("plot: panels", f"{len(chosen)} panels", "give one for ax=, else some")
    return [made[names.index(each)] for each in chosen]


def detector_panels(results: Mapping[str, Result], iou: float | None) -> list[Panel]:
    """Returns two panels with one curve per detector: mean precision over recall, and mean F1."""
    means, scores, at = [], [], ""
    for name, result in results.items():
        matches, main, t = result._rows(iou)
        at = f"at IoU {matches.protocol.thresholds()[t]:g}"
        every = operating_points.points_of_classes(matches, main, t)
        ap = aggregation.mean(
            result.scores, _row(matches, t, main), matches.protocol, matches.categories
        )
        means.append(_mean(name, every, matches.n_objects()[:, main], ap=ap))
        if any(len(each.tp) for each in every):
            points = operating_points.macro_points(every)
            scores.append(Curve(name, points.threshold, points.f))
    return [
        Panel("detectors", f"mean of the classes, {at}", "recall", "precision", tuple(means)),
        Panel("f1", f"mean F1 vs. confidence, {at}", "confidence", "F1", tuple(scores), False),
    ]


def _row(matches: Matches, t: int, a: int) -> MetricRow:
    """The AP at one IoU threshold and subset."""
    protocol = matches.protocol
    iou, subset = float(protocol.thresholds()[t]), protocol.subsets[a].name
    return MetricRow("AP", "AP", iou, subset, "", protocol.max_dets()[-1])


def panels_of(result: Result, iou: float | None = None) -> list[Panel]:
    """Returns the four panels of a result at an IoU threshold.

    Class curves have a point per distinct score and are not interpolated. The mean curve uses 101
    recalls: it averages each class's highest precision at that recall or above, over the classes
    with objects.
    """
    matches, main, t = result._rows(iou)
    protocol, names, scored = matches.protocol, matches.categories.names, result.scores
    every, n_objects = operating_points.points_of_classes(matches, main, t), matches.n_objects()
    shown = [k for k, n in enumerate(n_objects[:, main].tolist()) if n > 0 and len(every[k].tp)]
    own = aggregation.per_class(scored, _row(matches, t, main), protocol)

    def mean(name: str, i: int, a: int, strong: bool = False) -> Curve:
        points = operating_points.points_of_classes(matches, a, i)
        ap = aggregation.mean(scored, _row(matches, i, a), protocol, matches.categories)
        return _mean(name, points, n_objects[:, a], strong, ap)

    classes = [Curve(names[k], *_from_zero(every[k]), ap=float(own[k])) for k in shown]
    subsets = [
        mean(subset.name, t, a)
        for a, subset in enumerate(protocol.subsets)
        if n_objects[:, a].any()
    ]
    by_iou = [
        mean(f"{value:.2f}", i, main)
        for i, value in enumerate(protocol.thresholds().tolist())
        if n_objects[:, main].any()
    ]
    scores = [Curve(names[k], every[k].threshold, every[k].f) for k in shown]
    if shown:
        pool = operating_points.points_of_all(matches, main, t)
        for name, points in (("micro", pool), ("macro", operating_points.macro_points(every))):
            scores.append(Curve(name, points.threshold, points.f, strong=True))
        classes.append(mean("mean", t, main, strong=True))
    at = f"at IoU {protocol.thresholds()[t]:g}"
    return [
        Panel("classes", f"classes, {at}", "recall", "precision", tuple(classes)),
        Panel("subsets", f"subsets of the objects, {at}", "recall", "precision", tuple(subsets)),
        Panel("iou", "IoU", "recall", "precision", tuple(by_iou)),
        Panel("f1", f"F1 vs. confidence, {at}", "confidence", "F1", tuple(scores), unit_x=False),
    ]


def _from_zero(points: Points) -> tuple[Floats, Floats]:
    """Recall and precision, extended to recall 0 with the first precision."""
    return np.append(0.0, points.recall), np.append(points.precision[:1], points.precision)


def _mean(
    name: str,
    every: Sequence[Points],
    n_objects: NDArray[np.int64],
    strong: bool = False,
    ap: float = np.nan,
) -> Curve:
    """The mean precision of the classes with objects."""
    total = np.zeros(len(RECALL))
    for points, n in zip(every, n_objects.tolist(), strict=True):
        if n > 0:
            best = np.maximum.accumulate(points.precision[::-1])[::-1]
            place = np.searchsorted(points.recall, RECALL, side="left")
            total += np.append(best, 0.0)[place]
    return Curve(name, RECALL, total / max(int((n_objects > 0).sum()), 1), strong, ap)
