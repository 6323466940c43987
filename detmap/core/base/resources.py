"""Finds the data files of detmap: protocols and the sample set.

A wheel holds them inside the package, a checkout beside it.
"""

from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


@cache  # the package does not change while it runs
def folder(name: str) -> Path:
    """Returns the folder ``configs`` or ``datasets`` of this installation."""
    inside = PACKAGE / "_data" / name
    return inside if inside.is_dir() else PACKAGE.parent / name
