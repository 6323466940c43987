"""Confusion matrices of each detector, and what changed between two."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from detmap.analysis.diagnosis.confusion import Confusion
from detmap.analysis.html_report import charts
from detmap.analysis.html_report.figures import BROWSER, letters, short
from detmap.analysis.html_report.gather import Run

MATRIX = 30  # most confused classes


def confused(runs: Sequence[Run], linked: bool = False) -> list[dict[str, Any]]:
    """The matrix of each detector over the same classes, and B - A."""
    names = [*runs[0].confusion.classes, "background"]
    every = [run.confusion for run in runs]
    some = _most_confused(every)
    names = [names[k] for k in some]
    found = []
    for (style, name), run in zip(letters(runs), runs, strict=True):
        n = len(run.confusion.classes)
        row, column, count = run.confusion.counts()
        right, n_objects = (int(count[each & (row < n)].sum()) for each in (row == column, row < n))
        text = (
            f"{right:,} of {n_objects:,} objects have the "
            f"right class. Score threshold: {short(run.confusion.confidence, 4)}."
        )
        if len(some) <= n:
            text += f" Shown: the {MATRIX} most confused classes."
        title = f"Confusion matrix {name}".strip()
        links = [
            [f"{BROWSER}#detector={style}&view=cases&cell={i}-{j}" for j in some] for i in some
        ]
        counts = run.confusion.among(some)
        chart = charts.matrix(title, text, names, counts, links=links if linked else ())
        found.append({"title": title, "chart": chart, "text": text})
    if len(runs) == 2:
        text = "Counts of B minus counts of A. Blue: better (more right, fewer wrong). Red: worse."
        before, after = (each.among(some) for each in every)
        chart = charts.matrix("Confusion, B - A", text, names, after, before=before)
        found.append({"title": "Confusion matrix, B - A", "chart": chart, "text": text})
    return found


def _most_confused(every: Sequence[Confusion]) -> list[int]:
    """The classes that are most often confused, in order, and background."""
    n = len(every[0].classes)
    if n <= MATRIX:
        return list(range(n + 1))
    wrong = np.zeros(n, dtype=np.int64)
    for row, column, count in (each.swapped() for each in every):
        np.add.at(wrong, row, count)
        np.add.at(wrong, column, count)
    return [*np.sort(np.argsort(-wrong, kind="stable")[:MATRIX]).tolist(), n]
