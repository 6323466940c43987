"""Where the files that travel with detmap are: the protocols and the sample set.

An installed wheel carries them inside the package;
a checkout (editable install) has them beside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """The folder ``configs`` or ``datasets`` of this installation."""
    inside = PACKAGE / "_data" / name
    return inside if inside.is_dir() else PACKAGE.parent / name
