"""The files of the cases, damage to them, and what readers may say of them."""

import random
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from detmap.errors import DetmapError
from tests.support.mutation import damaged

_FOLDER = tempfile.TemporaryDirectory(prefix="detmap-fuzz-")


def scratch(name: str) -> Path:
    """The path of a file or folder of the cases, also of those that are called by hand: it is
    removed at the end of the process.
    """
    return Path(_FOLDER.name, name)


def empty_folder(name: str) -> Path:
    """A folder of the cases, made anew."""
    folder = scratch(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def damage_one(rng: random.Random, files: Iterable[Path], whole: float = 0.1) -> bool:
    """Damages one of the files; returns False for this share of the cases, and without files."""
    listed = sorted(file for file in files if file.is_file())
    if not listed or rng.random() < whole:
        return False
    victim = rng.choice(listed)
    data = victim.read_bytes()
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = damaged(rng, data)
    victim.write_bytes(data)
    return True


def judge_refusal(
    counts: dict[str, int], kind: str, error: DetmapError, *, whole: bool
) -> str | None:
    """Counts a refusal; returns its fault: an undamaged file, or an error without place or fix."""
    counts[f"{kind} refused"] += 1
    if whole:
        return f"{kind}: refused: {error}"
    return None if error.where and error.what and error.fix else f"{kind}: no fix: {error}"
