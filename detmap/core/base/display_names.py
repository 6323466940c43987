"""Names of detectors, from their paths."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def detector_names(detectors: Sequence[Any]) -> list[str]:
    """Returns unique names: of paths the shortest part, from the end, that differs in all.

    >>> detector_names(["base.json", "new.json"])
    ['base', 'new']
    >>> detector_names(["runs/a/predictions.json", "runs/b/predictions.json"])
    ['a', 'b']
    """
    parts = [_parts(each) for each in detectors]
    longest = max(map(len, parts), default=0)
    for depth in range(longest):
        names = [part[min(depth, len(part) - 1)] for part in parts if part]
        if len(set(names)) == len(names) and all(names):
            given = iter(names)
            return _unique([next(given) if part else "" for part in parts])
    names = [Path(each).name if part else "" for each, part in zip(detectors, parts, strict=True)]
    if len(set(names)) == len(names):  # a file and a folder of one stem
        return _unique(names)
    return _unique(["/".join(reversed(part)) for part in parts])


def _parts(detector: Any) -> list[str]:
    """The stem of a path and its folders, from the end; empty for an object."""
    if not isinstance(detector, str | os.PathLike):
        return []
    path = Path(detector)
    folders = [each for each in path.parts[:-1] if each not in ("..", path.anchor)]
    return [path.stem or path.name or str(path), *reversed(folders)]


def _unique(names: Sequence[str]) -> list[str]:
    """Names without an empty or repeated one."""
    unique: list[str] = []
    for i, each in enumerate(names):
        name = each or f"detector {i + 1}"
        while name in unique:
            name += "'"
        unique.append(name)
    return unique
