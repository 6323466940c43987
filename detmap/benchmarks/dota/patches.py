"""Merges detections on patches of large images.

A patch has the name ``IMAGE__RATE__X___Y``: its image was scaled by the rate and cut at x, y. Of
the detections of an image and class, those that overlap a kept one of higher score by more than
`OVERLAP` are dropped.

Source: DOTA_devkit ResultMerge.py, mergebase and py_cpu_nms_poly (9938855).
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.overlaps import polygon_iou
from detmap.core.adapters import text_fields
from detmap.core.tables import Note, Truth
from detmap.errors import DataError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

OVERLAP = 0.3
AT_ONCE = 1 << 18
"""Pairs of detections of an image and class that are compared at a time."""
NAME = re.compile(r"(?P<image>.+?)__(?P<rate>[0-9.]+)__(?P<x>[0-9]+)___(?P<y>[0-9]+)")


class Patches(NamedTuple):
    """The patches of n detections.

    Parameters
    ----------
    names : n names of whole images
    rate : (n,) scales
    begin : (n, 2) x and y of the first corner
    """

    names: list[str]
    rate: Floats
    begin: Floats

    def whole(self, corners: Floats) -> Floats:
        """Returns (n, 8) corners in the whole images."""
        return (corners + np.tile(self.begin, (1, 4))) / self.rate[:, None]


def find(names: Sequence[str], truth: Truth, place: Callable[[int], str]) -> Patches | None:
    """Returns the patches of detections; None if they are on images of the ground truth.

    Raises `DataError` if only some are on patches.
    """
    known = set(truth.images.stems)
    parts = {name: NAME.fullmatch(name) for name in set(names) if name not in known}
    if not any(parts.values()):
        return None
    whole = next((i for i, name in enumerate(names) if not parts.get(name)), None)
    if whole is not None:
        raise DataError(
            place(whole),
            f"{text_fields.short(names[whole])} is no patch, and other lines name patches",
            "merge all patches, or give all of them as IMAGE__RATE__X___Y",
        )
    matched: list[Any] = [parts[name] for name in names]
    rate = np.array([text_fields.number(each["rate"]) or 0 for each in matched], dtype=np.float64)
    if not rate.all():
        row = int(np.argmin(rate))
        what = f"patch {text_fields.short(names[row])} has no rate above 0"
        raise DataError(place(row), what, "a patch is IMAGE__RATE__X___Y")
    begin = np.array([[float(each[axis]) for axis in "xy"] for each in matched])
    return Patches([each["image"] for each in matched], rate, begin)


def kept(names: Sequence[str], label: NDArray[np.int32], score: Floats, corners: Floats) -> Rows:
    """Returns the rows that remain, ascending. Of equal scores the earlier comes first.

    Raises `CrowdedError` if too many detections of an image meet.
    """
    image_of = {name: i for i, name in enumerate(dict.fromkeys(names))}
    image = np.array([image_of[name] for name in names], dtype=np.int64)
    polygons = polygon_iou.Polygons(corners.reshape(-1, 4, 2))
    order = np.lexsort((-score, label, image))
    cell = image[order] * (int(label.max(initial=0)) + 1) + label[order]
    cells = np.split(order, np.flatnonzero(np.diff(cell)) + 1)
    n_pairs = 0

    def count(where: str, n_more: int) -> None:
        nonlocal n_pairs
        n_pairs += n_more
        polygon_iou.limit_polygons(where, n_pairs, len(names))

    counts = (partial(count, f"image {names[rows[0]]!r}") for rows in cells if len(rows))
    cells = [_kept(polygons, rows, each) for rows, each in zip(cells, counts, strict=True)]
    return np.sort(np.concatenate(cells))


def _kept(polygons: polygon_iou.Polygons, rows: Rows, count: Callable[[int], None]) -> Rows:
    """The rows of an image and class, by descending score, that remain."""
    found = []
    while len(rows):
        alive = np.ones(len(rows), dtype=bool)
        first = rows[: max(1, AT_ONCE // len(rows))]
        meet = np.ones((len(first), len(rows)), dtype=bool)
        for axis in (0, 1):
            low, high = polygons.low[:, axis], polygons.high[:, axis]
            meet &= low[first, None] < high[None, rows]
            meet &= low[None, rows] < high[first, None]
        i, j = np.nonzero(np.triu(meet, 1))
        needed, absorbing = np.full(len(i), OVERLAP), np.zeros(len(i), dtype=bool)
        pairs = rows[i], rows[j]
        overlap = polygon_iou.overlaps(polygons, polygons, pairs, absorbing, needed, count)
        i, j = i[overlap > OVERLAP], j[overlap > OVERLAP]
        off = np.searchsorted(i, np.arange(len(first) + 1))
        for one in np.unique(i).tolist():
            if alive[one]:
                alive[j[off[one] : off[one + 1]]] = False
        found.append(first[alive[: len(first)]])
        rows = rows[len(first) :][alive[len(first) :]]
    return np.concatenate(found)


def note(before: int, after: int, source: str) -> Note:
    """Returns the note on merged detections."""
    text = (
        f"detections on patches were merged to {{0}} on whole images: dropped if their polygon "
        f"overlaps one of higher score by more than {OVERLAP}, as in DOTA_devkit"
    )
    return Note("patches-merged", text, before, source, numbers=(after,))
