"""Precision-recall and ROC curves as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.core.output import plots
from detmap.errors import require


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """The two curves of one ranked list, best score first.

    Parameters
    ----------
    name : for the legend
    recall, precision : (P,), recall being the true positive rate too
    fpr : (P,), NaN where it is undefined
    """

    name: str
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    fpr: NDArray[np.float64]


def draw(path: Path, lines: Sequence[Line], caption: str) -> bytes:
    """The content of a file with precision over recall beside the ROC curves, in the format that
    its suffix names.

    Raises
    ------
    DetmapError : matplotlib is missing, or does not know the suffix
    """
    named = len(lines) <= plots.MOST_NAMED
    plots.check(path)
    size = (12, 5.4 + (0.22 * len(lines) / 2 if named else 0))
    figure = require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2)
    for line in (lines[i] for i in plots.spread(len(lines), plots.MOST_DRAWN)):
        style = (
            {"label": plots.label(line.name), "linewidth": 1.5}
            if named
            else {"color": "0.6", "linewidth": 0.5}
        )
        some = plots.spread(len(line.recall), plots.MOST_POINTS)
        # a threshold's precision holds for the recall that it adds
        left.plot(
            np.append(0, line.recall[some]),
            np.append(line.precision[:1], line.precision[some]),
            drawstyle="steps-pre",
            **style,
        )
        right.plot(np.append(0, line.fpr[some]), np.append(0, line.recall[some]), **style)
    right.plot([0, 1], [0, 1], color="0.8", linewidth=1, linestyle="--", zorder=0)
    for axes, title, x, y in (
        (left, "precision-recall", "recall", "precision"),
        (right, "ROC", "false positive rate", "true positive rate"),
    ):
        title += plots.left_out(len(lines))
        axes.set(title=title, xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    if lines and named:
        figure.legend(
            *left.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small"
        )
    figure.suptitle(plots.label(caption), fontsize="x-small", color="0.4")
    return plots.saved(figure, path)
