"""Precision-recall and ROC curves as a picture. Matplotlib is imported when a plot is rendered."""

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DetmapError, require

FORMATS: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Formats of pictures, and what would make two of them differ."""

MOST_POINTS = 2000  # of one line: more than a picture has pixels
MOST_NAMED = 20  # lines in colour and named; of more, all are thin and grey
MOST_DRAWN = 2000  # of these: more would be a grey area, and take a millisecond each


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
    named = len(lines) <= MOST_NAMED
    figure = empty_figure(path, (12, 5.4 + (0.22 * len(lines) / 2 if named else 0)))
    left, right = figure.subplots(1, 2)
    for line in (lines[i] for i in spread(len(lines), MOST_DRAWN)):
        style = (
            {"label": label(line.name), "linewidth": 1.5}
            if named
            else {"color": "0.6", "linewidth": 0.5}
        )
        some = spread(len(line.recall), MOST_POINTS)
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
        title += left_out(len(lines))
        axes.set(title=title, xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    if lines and named:
        figure.legend(
            *left.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small"
        )
    figure.suptitle(label(caption), fontsize="x-small", color="0.4")
    return saved(figure, path)


def spread(n: int, most: int) -> NDArray[np.int64]:
    """Returns up to `most` of n positions, spread evenly, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).round().astype(np.int64))


def left_out(n: int) -> str:
    """Says at the end of a title that not all of n lines are drawn; "" if they are."""
    return f" ({MOST_DRAWN:,} of {n:,})" if n > MOST_DRAWN else ""


def label(name: str) -> str:
    """A name as Matplotlib shows it letter by letter: no formula, and not left out of a legend."""
    plain = name.replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain


def check(path: Path) -> None:
    """Raises `DetmapError` early if no plot can be rendered."""
    if path.suffix.lower() not in FORMATS:
        what = "cannot be drawn" if path.suffix else "no suffix says what to draw"
        raise DetmapError(str(path), what, "name a .png, .svg or .pdf file")
    require("matplotlib.figure", "plot")


def empty_figure(path: Path, size: tuple[float, float]) -> Any:
    """A figure that needs no display.

    Raises
    ------
    DetmapError : matplotlib is missing, or does not know the suffix
    """
    check(path)
    return require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")


def new_figure(size: tuple[float, float]) -> Any:
    """A figure that ``plt.show()`` shows if the caller has imported pyplot.

    Raises `DetmapError` if matplotlib is missing.
    """
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        return pyplot.figure(figsize=size, layout="constrained")
    return require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")


def saved(figure: Any, path: Path) -> bytes:
    """The content of its file: without the time and with fixed names of parts, so that the same
    figure gives the same bytes.
    """
    picture = io.BytesIO()
    kind = path.suffix[1:].lower()
    with require("matplotlib", "plot").rc_context({"svg.hashsalt": "detmap"}):
        figure.savefig(picture, format=kind, metadata=FORMATS[f".{kind}"])
    return picture.getvalue()
