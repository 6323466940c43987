"""What all plots share. Matplotlib is imported when a plot is rendered."""

import io
import sys
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
