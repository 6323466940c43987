"""One picture for a paper: the classes with their intervals, in the width of a journal's column."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.row_figures import class_rows
from detmap.analysis.html_report.row_plots import Row
from detmap.errors import DetmapError

COLUMNS = {"single": 89.0, "double": 183.0}  # millimeters, as most journals ask for
SUFFIXES = ("pdf", "svg", "png", "eps")
MOST = 80  # classes; of more, those at both ends
INCH = 25.4
COLORS = ("#0072b2", "#ad4300")
STYLE: Any = {
    **{
        "font.size": 7,
        "font.family": "sans-serif",
        "axes.linewidth": 0.6,
        "svg.hashsalt": "detmap",
    },
    **{"pdf.fonttype": 42, "svg.fonttype": "none", "savefig.dpi": 600, "text.parse_math": False},
}


def check(path: Path) -> None:
    """A `DetmapError` unless the suffix is one of a picture."""
    if path.suffix.lower().lstrip(".") not in SUFFIXES:
        known = ", ".join(f".{suffix}" for suffix in SUFFIXES)
        raise DetmapError(str(path), "is not the name of a picture", f"use one of {known}")


def picture(runs: Sequence[Run], kind: str, column: str = "single") -> bytes:
    """The classes as dots, and with two detectors their differences, each with its interval.

    Parameters
    ----------
    kind : of `SUFFIXES`
    column : of `COLUMNS`

    Raises
    ------
    DetmapError : no class has an object, or matplotlib is not installed
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise DetmapError("figure", "needs matplotlib", "pip install 'detmap-eval[plot]'") from None
    key, rows = class_rows(runs)
    if not rows:
        raise DetmapError("figure", "no class has a ground-truth object", "check the ground truth")
    if len(rows) > MOST:
        rows = rows[: MOST // 2] + rows[-MOST // 2 :]
    panels, width = len(rows[0].marks), COLUMNS[column] / INCH
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 0.55 + 0.135 * len(rows)), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False, sharey=True)[0]
        names = ("A", "B")[: len(runs)] if len(runs) == 2 else ("",)
        labels = [f"{letter}: {run.name}" for letter, run in zip(names, runs, strict=True)]
        if panels == 2:
            for y, row in enumerate(rows):
                ends = [mark.value for mark in row.marks[0]]
                axes[0].plot(ends, [y, y], color="0.6", linewidth=0.8, zorder=1)
        _values(axes[0], rows, labels)
        axes[0].set_xlabel(key)
        axes[0].set_yticks(range(len(rows)), [row.name for row in rows])
        axes[0].set_ylim(len(rows) - 0.4, -0.6)
        if panels == 2:
            _values(axes[1], rows, [], panel=1)
            axes[1].axvline(0, color="0.3", linewidth=0.7)
            axes[1].set_xlabel("B \N{MINUS SIGN} A, 95 % interval")
            figure.legend(loc="outside upper center", ncols=2, frameon=False)
        for each in axes:
            each.grid(axis="x", color="0.88", linewidth=0.5)
            each.set_axisbelow(True)
            each.tick_params(length=2, width=0.6)
            each.spines[["top", "right"]].set_visible(False)
        made = io.BytesIO()
        dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        figure.savefig(made, format=kind, metadata=dated.get(kind))
    return made.getvalue()


def _values(axes: Any, rows: Sequence[Row], labels: Sequence[str], panel: int = 0) -> None:
    """Dots of a panel at their rows, with their intervals."""
    for k in range(len(rows[0].marks[panel])):
        marks = [(y, row.marks[panel][k]) for y, row in enumerate(rows)]
        color = COLORS[k] if panel == 0 else "0.15"
        for y, mark in marks:
            if mark.low == mark.low and (panel or len(rows[0].marks) == 1) and not mark.rough:
                axes.plot([mark.low, mark.high], [y, y], color=color, linewidth=1, zorder=2)
        known = [(mark.value, y) for y, mark in marks if not math.isnan(mark.value)]
        x, y_of = zip(*known, strict=True) if known else ((), ())
        label = labels[k] if labels else None
        axes.scatter(x, y_of, s=9, color=color, marker="os"[k], label=label, zorder=3, linewidths=0)
