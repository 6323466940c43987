"""Misspelt keys of a batch, such as ``is_crowd``, which would be read as missing."""

import re
from collections.abc import Sequence, Set
from functools import lru_cache

from detmap.core.adapters.in_memory.batches import Fields
from detmap.errors import DataError

NEAR = 0.85  # similarity of keys, of difflib: "image_ids" is near, "image_name" is not


def require_known(where: str, images: Sequence[Fields], known: frozenset[str]) -> None:
    """Raises `DataError` for a key that is near a known one which the image lacks. Other keys are
    the caller's own.
    """
    for i, image in enumerate(images):
        if known.issuperset(image):
            continue
        for key in image.keys() - known:
            meant = _near(key, known) if isinstance(key, str) else ""
            if meant and meant not in image:
                fix = f"write {meant!r}, or rename the key if it is something else"
                raise DataError(f"{where}[{i}]", f"unknown key {key!r}", fix)


@lru_cache(1000)
def _near(key: str, known: Set[str]) -> str:
    """The known key with a similar spelling; "" for none."""
    import difflib  # for unknown keys alone

    plain = {_plain(each): each for each in sorted(known)}
    found = difflib.get_close_matches(_plain(key)[:200], plain, n=1, cutoff=NEAR)
    return plain[found[0]] if found else ""


def _plain(key: str) -> str:
    plain = key.casefold().replace("_", "").replace("-", "")
    return re.sub("b?box(es)?", "boxes", re.sub("^(is|gt|pred)", "", plain))
