"""How results look: tables of cells in, text out. Nothing here knows what a detection is."""

from pathlib import Path
from typing import Any

from detmap.errors import DetmapError

SUFFIXES = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
    ".latex": "latex",
    ".txt": "table",
    "": "table",
}
"""The format of a file by the suffix of its name."""


def format_of(path: Any) -> str:
    """Returns the format that the suffix of a path names.

    Raises
    ------
    DetmapError : not a path, or a suffix that is not written
    """
    if not isinstance(path, str | Path):
        raise DetmapError("output", f"a {type(path).__name__}", "give a string or a Path")
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(each for each in SUFFIXES if each)
        more = "; `detmap report` writes HTML and PDF" if suffix in (".html", ".pdf") else ""
        what = f"the format {suffix} is not written"
        raise DetmapError(str(path), what, f"the suffixes are {known}{more}")
    return SUFFIXES[suffix]
