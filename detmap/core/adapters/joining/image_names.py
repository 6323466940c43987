"""Image ids for formats that name files: the file stem, as in VOC."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.tables import Images
from detmap.errors import DataError

SUFFIXES: tuple[str, ...] = (
    *(".avif", ".bmp", ".dng", ".gif", ".heic", ".heif", ".jfif", ".jp2", ".jpe", ".jpeg"),
    *(".jpg", ".mpo", ".pfm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"),
)
_PLAIN = r"0|[1-9][0-9]{0,17}"
_RENAMED = r"(?s)[0-9a-f]{8}-(.+)|(.+)_[A-Za-z0-9]{2,4}\.rf\.[0-9a-f]{32}"
"""Label Studio puts eight digits and a dash before the name of an upload; Roboflow puts the suffix
into the stem, and 32 digits after it."""


def is_image(name: str) -> bool:
    """Checks if a file name has an image suffix."""
    return name.lower().endswith(SUFFIXES)


def require_visible(names: Iterable[str | None], place: Callable[[int], str]) -> None:
    """Raises `DataError` for names of images or classes that are blank or have a NUL."""
    for i, name in enumerate(names):
        if name is not None and (not name.strip() or "\0" in name):
            raise DataError(place(i), f"{name!r:.60} is not a name", "use visible characters")


def stem(name: str) -> str:
    """Returns the file stem of a stem, a file name or a path of any system."""
    last = re.split(r"[/\\]", name)[-1]
    return os.path.splitext(last)[0] if is_image(last) else last


def before_upload(stem: str) -> str:
    """Returns the file stem of an image before Label Studio or Roboflow renamed it."""
    match = re.fullmatch(_RENAMED, stem)
    return stem if match is None else match[1] or match[2]


def spellings(stem: str) -> tuple[str, ...]:
    """Returns a file stem, and its decoded form if it is written as in a URL."""
    return tuple(dict.fromkeys((stem, unquote(stem))))


def matches_before_upload(
    known: Sequence[str], given: Iterable[str], originals: Sequence[str] = ()
) -> dict[str, int]:
    """Returns the positions of names among known stems that differ by what a tool put around them.

    One of the two has to be the plain name. A name that fits two images, or an image that two names
    fit, is left out.

    Parameters
    ----------
    originals : the plain name of each known stem, if a file defines it
    """
    plain = list(originals or map(before_upload, known))
    by_plain: dict[str, list[int]] = {}
    by_stem: dict[str, list[int]] = {}
    for i, stem in enumerate(known):
        for name in spellings(plain[i]) if plain[i] != stem else ():
            by_plain.setdefault(name, []).append(i)
        by_stem.setdefault(stem, []).append(i)
    found: dict[str, int] = {}
    for name in given:
        was = before_upload(name)
        table = by_plain if was == name else by_stem
        places = next((table[each] for each in spellings(was) if each in table), [])
        if len(places) == 1:
            found[name] = places[0]
    uses = Counter(found.values())
    return {name: i for name, i in found.items() if uses[i] == 1}


def plain_numbers(names: Sequence[str]) -> NDArray[Any] | None:
    """Returns names as whole numbers; None unless each is spelled like its number."""
    if names and all(map(re.compile(_PLAIN).fullmatch, names)):
        return np.array(list(map(int, names)), dtype=np.int64)
    return None


def table(
    where: str, paths: Sequence[str], sizes: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> tuple[Images, NDArray[np.int32]]:
    """Returns the image table for paths, names or stems, and each image's place in it.

    An id is the stem; a whole number if every stem is one without leading zeros; the path without
    suffix if two images in different folders share a stem. Raises `DataError` for repeated images
    and too long names.
    """
    stems = [stem(path) for path in paths]
    names = stems
    if len(set(stems)) < len(stems):
        names = [
            str(PurePath(path).with_suffix("")) if PurePath(path).name else path for path in paths
        ]
        seen: dict[str, str] = {}
        for path, name in zip(paths, names, strict=True):
            if name in seen:
                what = f"two images have the name {name!r}: {seen[name]} and {path}"
                raise DataError(where, what, "give each image a unique stem")
            seen[name] = path
    ids = plain_numbers(names)
    if ids is None:
        ids = (
            column_checks.id_array(f"{where}: images", names)
            if names
            else np.zeros(0, dtype=np.int64)
        )
    return ordered(ids, stems, sizes)


def ordered(
    ids: NDArray[Any],
    stems: Sequence[str],
    sizes: tuple[NDArray[np.float64], NDArray[np.float64]],
    files: Sequence[str] = (),
) -> tuple[Images, NDArray[np.int32]]:
    """Returns the image table by ascending id, and each image's place in it."""
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    width, height = (np.ascontiguousarray(side[order]) for side in sizes)
    texts = [tuple(each[i] for i in order.tolist()) if each else () for each in (stems, files)]
    return Images(ids[order], texts[0], width, height, texts[1]), place
