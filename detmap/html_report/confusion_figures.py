"""Confusion matrices of each detector, and what changed between two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.html_report import charts
from detmap.html_report.figures import letters, short
from detmap.html_report.gather import Run

MATRIX = 30  # most confused classes


def confused(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The matrix of each detector over the same classes, and B - A."""
    names = [*runs[0].confusion.classes, "background"]
    every = [run.confusion.matrix for run in runs]
    some = _most_confused(every)
    names = [names[k] for k in some]
    cells = np.ix_(some, some)
    found = []
    for (_, name), run in zip(letters(runs), runs, strict=True):
        n = len(run.confusion.classes)
        matrix = run.confusion.matrix
        text = (
            f"{int(np.trace(matrix[:n, :n])):,} of {int(matrix[:n].sum()):,} objects have the "
            f"right class. Score threshold: {short(run.confusion.confidence, 4)}."
        )
        if len(some) <= n:
            text += f" Shown: the {MATRIX} most confused classes."
        title = f"Confusion matrix {name}".strip()
        chart = charts.matrix(title, text, names, matrix[cells])
        found.append({"title": title, "chart": chart, "text": text})
    if len(runs) == 2:
        text = "Counts of B minus counts of A. Blue: better (more right, fewer wrong). Red: worse."
        before, after = (matrix[cells] for matrix in every)
        chart = charts.matrix("Confusion, B - A", text, names, after, before=before)
        found.append({"title": "Confusion matrix, B - A", "chart": chart, "text": text})
    return found


def _most_confused(every: Sequence[NDArray[np.int64]]) -> list[int]:
    """The classes that are most often confused, in order, and background."""
    n = len(every[0]) - 1
    if n <= MATRIX:
        return list(range(n + 1))
    inner = np.sum([matrix[:n, :n] for matrix in every], axis=0)
    np.fill_diagonal(inner, 0)
    wrong = inner.sum(axis=0) + inner.sum(axis=1)
    return [*np.sort(np.argsort(-wrong, kind="stable")[:MATRIX]).tolist(), n]
