"""Curve plots: precision over recall by class, subset and IoU, and F1 over the score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import atomic_files as files
from detmap.core.curves import operating_points
from detmap.core.curves.operating_points import Points
from detmap.core.matching.matches import Matches
from detmap.core.output.plot_panels import Curve, Panel, draw
from detmap.errors import DataError

RECALL = np.linspace(0, 1, 101)
"""Recall grid on which class curves are averaged."""

Floats = NDArray[np.float64]


def write(path: str | Path, matches: Matches, t: int, signature: str) -> None:
    """Renders the panels to a file, in the format of its suffix."""
    if not isinstance(path, str | Path):
        raise DataError("plot: path", f"a {type(path).__name__}", "give a string or a Path")
    files.write_bytes(path, draw(Path(path), panels(matches, t), signature))


def panels(matches: Matches, t: int) -> list[Panel]:
    """Returns the four panels at threshold `t`.

    Class curves have a point per distinct score and are not interpolated. The mean curve uses 101
    recalls: it averages each class's highest precision at that recall or above, over the classes
    with objects.
    """
    protocol, names = matches.protocol, matches.categories.names
    main, iou = protocol.subset(), protocol.thresholds()[t]
    every, n_objects = operating_points.points_of_classes(matches, main, t), matches.n_objects()
    shown = [k for k, n in enumerate(n_objects[:, main].tolist()) if n > 0 and len(every[k].tp)]
    classes = tuple(Curve(names[k], *_from_zero(every[k])) for k in shown)
    subsets = tuple(
        _mean(subset.name, operating_points.points_of_classes(matches, a, t), n_objects[:, a])
        for a, subset in enumerate(protocol.subsets)
        if n_objects[:, a].any()
    )
    by_iou = tuple(
        _mean(
            f"{value:.2f}", operating_points.points_of_classes(matches, main, i), n_objects[:, main]
        )
        for i, value in enumerate(protocol.thresholds().tolist())
        if n_objects[:, main].any()
    )
    scores = tuple(Curve(names[k], every[k].threshold, every[k].f) for k in shown)
    if shown:
        pool = operating_points.points_of_all(matches, main, t)
        mean = operating_points.macro_points(every)
        scores += tuple(
            Curve(name, points.threshold, points.f, strong=True)
            for name, points in (("micro", pool), ("macro", mean))
        )
        classes += (_mean("mean", every, n_objects[:, main], strong=True),)
    at = f"at IoU {iou:g}"
    return [
        Panel(f"classes, {at}", "recall", "precision", classes),
        Panel(f"subsets of the objects, {at}", "recall", "precision", subsets),
        Panel("IoU", "recall", "precision", by_iou),
        Panel(f"F1 over the score, {at}", "score", "F1", scores, unit_x=False),
    ]


def _from_zero(points: Points) -> tuple[Floats, Floats]:
    """Recall and precision, extended to recall 0 with the first precision."""
    return np.append(0.0, points.recall), np.append(points.precision[:1], points.precision)


def _mean(
    name: str, every: Sequence[Points], n_objects: NDArray[np.int64], strong: bool = False
) -> Curve:
    """The mean precision of the classes with objects."""
    total = np.zeros(len(RECALL))
    for points, n in zip(every, n_objects.tolist(), strict=True):
        if n > 0:
            best = np.maximum.accumulate(points.precision[::-1])[::-1]
            place = np.searchsorted(points.recall, RECALL, side="left")
            total += np.append(best, 0.0)[place]
    return Curve(name, RECALL, total / max(int((n_objects > 0).sum()), 1), strong)
