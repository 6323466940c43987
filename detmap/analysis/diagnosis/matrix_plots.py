"""Confusion matrices as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import atomic_files
from detmap.core.output import plots

MOST_NUMBERS = 30
"""Classes up to which each cell shows its number."""


def plot(
    matrix: NDArray[np.int64],
    names: Sequence[str],
    path: str | Path | None = None,
    *,
    ax: Any = None,
    normalize: bool = False,
) -> Any:
    """Draws an (n, n) matrix of counts with true classes down and predicted classes across.

    Parameters
    ----------
    names : n names

    The others and the errors are those of `Confusion.plot`.
    """
    if path is not None:
        plots.check(Path(path))
    side = 3 + 0.4 * min(len(names), 40)
    figure = plots.new_figure((side, side)) if ax is None else ax.figure
    axes = figure.subplots() if ax is None else ax
    sums = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    values = matrix / sums if normalize else matrix
    axes.imshow(values, cmap="Blues")
    labels, places = [plots.label(name) for name in names], range(len(names))
    axes.set_xticks(places, labels, rotation=90)
    axes.set_yticks(places, labels)
    axes.set(xlabel="predicted class", ylabel="true class")
    middle = values.max(initial=0) / 2
    for i, j in np.argwhere(matrix) if len(names) <= MOST_NUMBERS else ():
        text = f"{values[i, j]:.2f}" if normalize else f"{matrix[i, j]}"
        color = "white" if values[i, j] > middle else "black"
        axes.text(j, i, text, ha="center", va="center", fontsize="x-small", color=color)
    if path is not None:
        atomic_files.write_bytes(path, plots.saved(figure, Path(path)))
    return figure
