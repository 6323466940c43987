"""Recognizes files of benchmarks by their first bytes; see
`detmap.core.adapters.format_rows.Looks`.

It imports no reader, since each evaluation calls it, whatever its formats.
"""

from __future__ import annotations

from pathlib import Path

from detmap.core.base import open_files

ODGT = b'{"ID"'
HEAD = 1 << 16  # bytes of a file that are looked at


def scalabel(path: Path) -> int:
    """Matches JSON with box2d, and JSON with names or frames that is not of COCO; -2 for COCO."""
    if path.is_dir() or path.suffix.lower() != ".json":
        return 0
    with open_files.opened(path) as file:
        begin = open_files.plain_letters(file.read(0, HEAD))
    if b'"box2d"' in begin:
        return 2
    other = any(word in begin for word in (b'"image_id"', b'"images"', b'"annotations"'))
    return -2 if other else int(any(word in begin for word in (b'"name"', b'"frames"')))


def odgt(path: Path) -> int:
    """Matches the suffix, or a first record with an ID."""
    if not path.is_file():
        return 0
    if path.suffix.lower() == ".odgt":
        return 2
    with open_files.opened(path) as file:
        begin = file.read(0, len(ODGT) + 8).replace(b" ", b"")
    return 2 * begin.startswith(ODGT + b':"')
