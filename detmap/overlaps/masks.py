"""Masks: intersection over union by pycocotools' own routines, which count runs of pixels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError, DetmapError
from detmap.overlaps.dense import DensePairs
from detmap.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.kernels.cells import ObjectColumns

MOST_PIXELS = 2**31 - 1
LONGEST_OUTLINE = 1e7
"""Pixels around a polygon: its outline is drawn point by point."""

FEW = 60
FIX = (
    "a mask is a list of polygons [x1, y1, x2, y2, ...], or run lengths with their size and counts"
)


def routines() -> ModuleType:
    """pycocotools.mask.

    Raises
    ------
    DetmapError : it is not installed
    """
    try:
        from pycocotools import mask
    except ImportError:
        raise DetmapError(
            "masks", "pycocotools is not installed", "pip install 'detmap[all]'"
        ) from None
    module: ModuleType = mask
    return module


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """The masks of n objects or detections, as run lengths.

    Parameters
    ----------
    size : (n, 2) int64, height and width, pixels
    counts : n run lengths, packed as COCO packs them
    area : (n,) float64, what subsets by area look at: pixels, as a rule
    """

    size: NDArray[np.int64]
    counts: tuple[bytes, ...]
    area: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.counts)

    def take(self, rows: NDArray[Any]) -> Masks:
        """Some of the rows."""
        chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
        counts = tuple(self.counts[row] for row in chosen.tolist())
        return Masks(self.size[rows], counts, self.area[rows])

    def runs(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Some of the masks as pycocotools has them."""
        size = self.size[rows].tolist()
        return [
            {"size": size[i], "counts": self.counts[row]} for i, row in enumerate(rows.tolist())
        ]

    def boxes(self) -> NDArray[np.float64]:
        """(n, 4) x, y, width, height around each mask."""
        return np.concatenate([np.zeros((0, 4)), *self._each(routines().toBbox)])

    def pixels(self) -> NDArray[np.float64]:
        """(n,) how many pixels each mask has."""
        return np.concatenate([np.zeros(0), *self._each(routines().area)])

    def _each(self, routine: Callable[[Any], Any]) -> Iterator[NDArray[np.float64]]:
        """What a routine of pycocotools makes of the masks, few at a time: with NumPy 2 `area` and
        `toBbox` fail where the length of their outcome does not fit a byte.
        """
        for begin in range(0, len(self), FEW):
            rows = np.arange(begin, min(begin + FEW, len(self)))
            yield np.asarray(routine(self.runs(rows)), dtype=np.float64)

    def digest(self) -> NDArray[np.uint64]:
        """(n,) a fingerprint a row."""
        return np.array(
            [
                int.from_bytes(hashlib.blake2b(counts, digest_size=8, key=key).digest())
                for counts, key in zip(
                    self.counts, (f"{h} {w}".encode() for h, w in self.size.tolist()), strict=True
                )
            ],
            dtype=np.uint64,
        ) ^ (self.area + 0.0).view(np.uint64)


class MaskPairs(DensePairs):
    """The producer of pairs of masks.

    Parameters
    ----------
    truth, detections : tables with `Masks` as their shapes
    """

    def __init__(
        self, truth: Truth, detections: Detections, objects: ObjectColumns, *, lowest: float
    ) -> None:
        super().__init__(objects, lowest)
        assert isinstance(truth.shapes, Masks)
        assert isinstance(detections.shapes, Masks)
        self.truth, self.found = truth.shapes, detections.shapes
        self.iou = routines().iou

    def overlaps(
        self, detections: NDArray[Any], objects: NDArray[Any], absorbing: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(d, g) overlaps of pixels. Source: rleIou of pycocotools' maskApi.c."""
        found, truth = self.found.runs(detections), self.truth.runs(objects)
        table: NDArray[np.float64] = self.iou(found, truth, absorbing.astype(np.uint8).tolist())
        return table


# --- reading --------------------------------------------------------------------------------------


def read(
    segmentations: Sequence[Any], sizes: NDArray[np.float64], place: Callable[[int], str]
) -> Masks:
    """Masks of segmentations as JSON has them, on images of these sizes (n, 2), height and width.

    Source: COCO.annToRLE of pycocotools' coco.py. What would make its routines crash, hang or read
    beyond a text is refused first.

    Raises
    ------
    DataError : neither polygons nor run lengths; sizes that differ from the image's; run lengths
        that do not fill it; `place` names row i
    """
    mask = routines()
    counts: list[bytes] = []
    packed: list[int] = []  # rows whose text is not of our own making
    for i, (given, (height, width)) in enumerate(zip(segmentations, sizes.tolist(), strict=True)):
        h, w = _size(place, i, height, width)
        if isinstance(given, list):
            wrong = _wrong_polygons(given)
            if wrong:
                raise DataError(place(i), wrong, FIX)
            rings = [[float(x) for x in ring] for ring in given]
            counts.append(mask.merge(mask.frPyObjects(rings, h, w))["counts"])
            continue
        if not isinstance(given, dict) or given.keys() < {"size", "counts"}:
            raise DataError(place(i), "neither polygons nor run lengths", FIX)
        if given["size"] != [h, w]:
            what = f"size {given['size']!r:.40} on an image of height {h} and width {w}"
            raise DataError(place(i), what, "a mask has its image's size")
        runs = given["counts"]
        if isinstance(runs, list):
            ints = all(type(run) is int and 0 <= run <= MOST_PIXELS for run in runs)
            if not ints or sum(runs) != h * w:
                raise DataError(place(i), f"counts that do not add up to {h * w} pixels", FIX)
            counts.append(mask.frPyObjects(given, h, w)["counts"])
        elif isinstance(runs, str) and runs.isascii():
            packed.append(i)
            counts.append(runs.encode())
        else:
            raise DataError(place(i), "counts that are neither a list nor ASCII text", FIX)
    pixels = sizes.prod(axis=1).astype(np.int64)
    _check_packed(counts, np.array(packed, dtype=np.int64), pixels, place)
    size = sizes.astype(np.int64)
    masks = Masks(size, tuple(counts), np.zeros(len(counts)))
    return replace(masks, area=masks.pixels())


def check_nothing() -> None:
    """Use the kernel that looks at run lengths, so that it is compiled."""
    from detmap.kernels.runs import find_bad_runs

    find_bad_runs(np.zeros(1, np.uint8), np.zeros(2, np.int64), np.zeros(1, np.int64))


def _size(place: Callable[[int], str], i: int, height: float, width: float) -> tuple[int, int]:
    """The height and width of a row's image, as whole numbers."""
    whole = math.isfinite(height) and math.isfinite(width)
    if not whole or height % 1 or width % 1 or min(height, width) < 1:
        what = f"on an image of height {height:g} and width {width:g}"
        raise DataError(place(i), what, "masks need the height and width of their images")
    if height * width > MOST_PIXELS:
        raise DataError(place(i), f"on an image of {height * width:g} pixels", "use smaller images")
    return int(height), int(width)


def _wrong_polygons(rings: list[Any]) -> str:
    """What is wrong with a list of polygons; "" for nothing.

    Four numbers are a box, where all have four: so reads frPyObjects.
    """
    if not rings or not all(isinstance(ring, list) for ring in rings):
        return "no polygon" if not rings else "a polygon that is no list"
    box = len(rings[0]) == 4
    length = 0.0
    for ring in rings:
        if (len(ring) != 4) if box else (len(ring) < 6 or len(ring) % 2):
            return f"a polygon of {len(ring)} numbers"
        if not all(type(x) in (int, float) for x in ring):
            return "a polygon of something else than numbers"
        try:
            points = np.array(ring, dtype=np.float64)
        except OverflowError:
            return "a number that is too large for pixels"
        if not np.isfinite(points).all() or (np.abs(points) > LONGEST_OUTLINE).any():
            return "a number that is too large for pixels, or not finite"
        sides = np.abs(points.reshape(-1, 2) - np.roll(points.reshape(-1, 2), 1, axis=0))
        length += float(points[2:].sum() if box else sides.max(axis=1).sum())
    return "" if length <= LONGEST_OUTLINE else "an outline that is too long for pixels"


def _check_packed(
    counts: list[bytes],
    rows: NDArray[np.int64],
    pixels: NDArray[np.int64],
    place: Callable[[int], str],
) -> None:
    """A `DataError` for the first text whose runs do not fill its mask."""
    from detmap.kernels.runs import find_bad_runs

    texts = [counts[row] for row in rows.tolist()]
    off = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    bad = find_bad_runs(
        np.frombuffer(b"".join(texts), dtype=np.uint8), off, np.ascontiguousarray(pixels[rows])
    )
    if bad >= 0:
        row = int(rows[bad])
        what = f"counts that do not add up to {pixels[row]} pixels"
        raise DataError(place(row), what, FIX)
