"""Recognizes files of benchmarks by their first bytes; see
`detmap.core.adapters.format_rows.Looks`.

It imports no reader, since each evaluation calls it, whatever its formats.
"""

from pathlib import Path

from detmap.core.base import open_files

ODGT = b'{"ID"'


def scalabel(path: Path) -> int:
    """Matches JSON with box2d, and JSON with names or frames that is not of COCO; -2 for COCO."""
    if path.suffix.lower() != ".json" or open_files.is_folder(path):
        return 0
    begin = open_files.plain_head(path)
    if open_files.has(begin, b'"box2d"'):
        return 2
    other = any(word in begin for word in (b'"image_id"', b'"images"', b'"annotations"'))
    return -2 if other else int(any(word in begin for word in (b'"name"', b'"frames"')))


def odgt(path: Path) -> int:
    """Matches the suffix, or a first record with an ID that is not the object of COCO."""
    if not open_files.is_file(path):
        return 0
    if path.suffix.lower() == ".odgt":
        return 2
    begin = open_files.head(path, len(ODGT) + 8).replace(b" ", b"")
    if not begin.startswith(ODGT + b':"'):
        return 0
    whole = open_files.plain_head(path)
    return 2 * (b'"images"' not in whole and b'"annotations"' not in whole)
