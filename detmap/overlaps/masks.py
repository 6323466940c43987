"""Masks: intersection over union of pixels, by kernels that follow run lengths.

Polygons become run lengths by pycocotools' own routines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError, DetmapError
from detmap.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs
    from detmap.kernels.runs import Runs

MOST_PIXELS = 2**31 - 1
LONGEST_OUTLINE = 1e7
"""Pixels around a polygon: its outline is drawn point by point."""

BUFFER = 1 << 15
"""Pairs that are made before they are judged, see `detmap.overlaps.boxes`."""

FIX = (
    "a mask is a list of polygons [x1, y1, x2, y2, ...], or run lengths with their size and counts"
)
Place = Callable[[int], str]
Ragged = tuple[NDArray[np.int64], NDArray[np.uint32]]
"""Where each row's run lengths begin, (n + 1,), and the run lengths."""


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """The masks of n objects or detections.

    Parameters
    ----------
    runs : their run lengths, and what follows from them
    area : (n,) float64, what subsets by area look at: pixels, as a rule
    """

    runs: Runs
    area: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.area)

    def take(self, rows: NDArray[Any]) -> Masks:
        """Some of the rows."""
        chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
        off, counts = _gathered((self.runs.off, self.runs.counts), chosen)
        runs = self.runs._replace(
            size=self.runs.size[chosen],
            off=off,
            counts=counts,
            boxes=self.runs.boxes[chosen],
            pixels=self.runs.pixels[chosen],
            hollow=self.runs.hollow[chosen],
        )
        return Masks(runs, self.area[chosen])

    def digest(self) -> NDArray[np.uint64]:
        """(n,) a fingerprint a row."""
        from detmap.kernels.runs import fold_runs

        digest = np.empty(len(self), dtype=np.uint64)
        fold_runs(self.runs, digest)
        return digest ^ (self.area + 0.0).view(np.uint64)


class MaskPairs:
    """The producer of pairs of masks.

    Parameters
    ----------
    truth, detections : tables with `Masks` as their shapes
    objects : the truth as the kernels read it
    lowest : the least overlap that is a match at some threshold
    """

    def __init__(
        self, truth: Truth, detections: Detections, objects: ObjectColumns, *, lowest: float
    ) -> None:
        assert isinstance(truth.shapes, Masks)
        assert isinstance(detections.shapes, Masks)
        self.truth, self.found = truth.shapes.runs, detections.shapes.runs
        self.objects, self.lowest = objects, float(lowest)

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Pairs of the cells; see `detmap.overlaps.Producer`."""
        from detmap.kernels import pairs as kernels
        from detmap.kernels.mask_pairs import pair_masks

        largest = int((cells.bounds[:n_cells, 3] - cells.bounds[:n_cells, 2]).max(initial=0))
        size = max(BUFFER, 2 * largest)
        pairs = kernels.buffer(min(size, len(cells.members)), size)
        cursor = np.zeros(2, dtype=np.int64)
        while cursor[kernels.CELL] < n_cells:
            n = pair_masks(
                n_cells,
                cells,
                self.found,
                self.truth,
                position,
                self.objects,
                self.lowest,
                cursor,
                pairs,
            )
            if n:
                yield n, pairs


# --- reading --------------------------------------------------------------------------------------


def read(segmentations: Sequence[Any], sizes: NDArray[np.float64], place: Place) -> Masks:
    """Masks of segmentations as JSON has them, on images of these sizes (n, 2), height and width.

    Source: COCO.annToRLE of pycocotools' coco.py. What would make its routines crash, hang or read
    beyond a text is refused first.

    Raises
    ------
    DataError : neither polygons nor run lengths; sizes that differ from the image's; run lengths
        that do not fill it; `place` names row i
    """
    size = _whole(sizes, place)
    polygons = [i for i, given in enumerate(segmentations) if isinstance(given, list)]
    others = [i for i, given in enumerate(segmentations) if not isinstance(given, list)]
    counts = _counts([segmentations[i] for i in others], size, others, place)
    texts = [i for i, given in zip(others, counts, strict=True) if isinstance(given, str)]
    lists = [i for i, given in zip(others, counts, strict=True) if isinstance(given, list)]
    drawn = _rasterised([segmentations[i] for i in polygons], size, polygons, place)
    strings = [given for given in counts if isinstance(given, str)]
    packed = "".join(strings)
    if not packed.isascii():
        row = next(i for i, text in zip(texts, strings, strict=True) if not text.isascii())
        raise DataError(place(row), "counts that are neither a list nor ASCII text", FIX)
    parts = (
        _unpacked(packed.encode(), strings, size, texts, place),
        _unpacked(b"".join(drawn), drawn, size, polygons, place),
        _listed([given for given in counts if isinstance(given, list)], size, lists, place),
    )
    masks = measured(size, _together(parts, np.array([*texts, *polygons, *lists], dtype=np.int64)))
    return replace(masks, area=masks.runs.pixels.astype(np.float64))


def from_texts(
    texts: Sequence[bytes], size: NDArray[np.int64], area: NDArray[np.float64], place: Place
) -> Masks:
    """Masks of run lengths as COCO packs them, with their sizes (n, 2) and areas (n,).

    Raises
    ------
    DataError : run lengths that do not fill the size; `place` names row i
    """
    _whole(size.astype(np.float64), place)
    runs = _unpacked(b"".join(texts), texts, size, range(len(texts)), place)
    return replace(measured(size, runs), area=area)


def measured(size: NDArray[np.int64], ragged: Ragged) -> Masks:
    """Masks of run lengths that fill their sizes (n, 2)."""
    from detmap.kernels.runs import Runs, measure_runs

    n = len(size)
    runs = Runs(
        np.ascontiguousarray(size),
        *ragged,
        np.empty((n, 4)),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.bool_),
    )
    measure_runs(runs)
    return Masks(runs, np.zeros(n))


def _whole(sizes: NDArray[np.float64], place: Place) -> NDArray[np.int64]:
    """(n, 2) heights and widths of images as whole numbers."""
    legal = (np.floor(sizes) == sizes) & (sizes >= 1) & np.isfinite(sizes)
    few = sizes[:, 0] <= MOST_PIXELS / np.maximum(sizes[:, 1], 1)
    wrong = np.flatnonzero(~(legal.all(axis=1) & few)).tolist()
    if wrong:
        height, width = sizes[wrong[0]].tolist()
        if not legal[wrong[0]].all():
            what = f"on an image of height {height:g} and width {width:g}"
            fix = "masks need the height and width of their images"
            raise DataError(place(wrong[0]), what, fix)
        what = f"on an image of {height * width:g} pixels"
        raise DataError(place(wrong[0]), what, "use smaller images")
    return sizes.astype(np.int64)


def _counts(
    given: Sequence[Any], size: NDArray[np.int64], rows: Sequence[int], place: Place
) -> list[Any]:
    """The counts of run lengths, lists or strings; their sizes are those of their images."""
    try:
        sides = [each["size"] for each in given]
        counts = [each["counts"] for each in given]
    except (TypeError, KeyError):
        for i, each in zip(rows, given, strict=True):
            if not isinstance(each, dict) or not each.keys() >= {"size", "counts"}:
                raise DataError(place(i), "neither polygons nor run lengths", FIX) from None
        raise
    wanted = size[rows].tolist()
    if sides != wanted:
        for i, side, (height, width) in zip(rows, sides, wanted, strict=True):
            if side != [height, width]:
                what = f"size {side!r:.40} on an image of height {height} and width {width}"
                raise DataError(place(i), what, "a mask has its image's size")
    for i, each in zip(rows, counts, strict=True):
        if not isinstance(each, str | list):
            raise DataError(place(i), "counts that are neither a list nor ASCII text", FIX)
    return counts


def _unfilled(pixels: int) -> str:
    return f"counts that do not add up to {pixels} pixels"


def _unpacked(
    joined: bytes,
    texts: Sequence[str | bytes],
    size: NDArray[np.int64],
    rows: Sequence[int],
    place: Place,
) -> Ragged:
    """The run lengths of texts as COCO packs them."""
    from detmap.kernels.runs import count_runs, read_runs

    off, run_off = _offsets(texts), np.empty(len(texts) + 1, dtype=np.int64)
    characters, pixels = np.frombuffer(joined, dtype=np.uint8), size[list(rows)].prod(axis=1)
    count_runs(characters, off, run_off)
    counts = np.empty(run_off[-1], dtype=np.uint32)
    bad = read_runs(characters, off, pixels, run_off, counts)
    if bad >= 0:
        raise DataError(place(rows[bad]), _unfilled(pixels[bad]), FIX)
    return run_off, counts


def _listed(
    given: list[list[Any]], size: NDArray[np.int64], rows: Sequence[int], place: Place
) -> Ragged:
    """The run lengths of lists."""
    for i, runs in zip(rows, given, strict=True):
        pixels = int(size[i].prod())
        legal = set(map(type, runs)) == {int} and min(runs) >= 0 and max(runs) <= MOST_PIXELS
        if not legal or sum(runs) != pixels:
            raise DataError(place(i), _unfilled(pixels), FIX)
    return _offsets(given), np.fromiter(chain.from_iterable(given), dtype=np.uint32)


def _offsets(rows: Sequence[Any]) -> NDArray[np.int64]:
    """(n + 1,) where each row begins."""
    return np.cumsum(np.fromiter(chain((0,), map(len, rows)), np.int64, len(rows) + 1))


def _together(parts: Sequence[Ragged], rows: NDArray[np.int64]) -> Ragged:
    """Parts as one, in the order of `rows`, which says what row each is."""
    some = [part for part in parts if len(part[0]) > 1]
    if len(some) == 1:
        return some[0]
    n_runs = np.concatenate([np.diff(off) for off, _ in parts])
    off = np.concatenate([[0], np.cumsum(n_runs)]).astype(np.int64)
    return _gathered((off, np.concatenate([counts for _, counts in parts])), np.argsort(rows))


def _gathered(ragged: Ragged, rows: NDArray[Any]) -> Ragged:
    """Some of the rows."""
    begin, n_runs = ragged[0][rows], np.diff(ragged[0])[rows]
    off = np.concatenate([[0], np.cumsum(n_runs)]).astype(np.int64)
    place = np.arange(off[-1]) + np.repeat(begin - off[:-1], n_runs)
    return off, ragged[1][place]


# --- polygons -------------------------------------------------------------------------------------


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


def _rasterised(
    given: Sequence[list[Any]], size: NDArray[np.int64], rows: Sequence[int], place: Place
) -> list[bytes]:
    """Packed run lengths of lists of polygons. Source: COCO.annToRLE of pycocotools' coco.py.

    Polygons of images of one size are drawn in one call.
    """
    if not given:
        return []
    _check_polygons(given, rows, place)
    mask = routines()
    like: dict[tuple[int, int, bool], list[int]] = {}
    for k, (height, width) in enumerate(size[rows].tolist()):
        like.setdefault((height, width, len(given[k][0]) == 4), []).append(k)
    drawn = [b""] * len(given)
    for (height, width, _), some in like.items():
        rings = [ring for k in some for ring in given[k]]
        pieces = iter(mask.frPyObjects(rings, height, width))
        for k in some:
            mine = [next(pieces) for _ in given[k]]
            drawn[k] = (mine[0] if len(mine) == 1 else mask.merge(mine))["counts"]
    return drawn


def _check_polygons(given: Sequence[list[Any]], rows: Sequence[int], place: Place) -> None:
    """A `DataError` for the first list of polygons that is none; most are found legal at once."""
    if _legal(given):
        return
    for i, each in zip(rows, given, strict=True):
        wrong = _wrong_polygons(each)
        if wrong:
            raise DataError(place(i), wrong, FIX)


def _legal(given: Sequence[list[Any]]) -> bool:
    """Whether all are lists of polygons with three corners or more, as `_wrong_polygons` has it."""
    rings = list(chain.from_iterable(given))
    if not all(given) or set(map(type, rings)) != {list}:
        return False
    length = np.fromiter(map(len, rings), np.int64, len(rings))
    if (length < 6).any() or (length % 2).any():
        return False
    if not set(map(type, chain.from_iterable(rings))) <= {int, float}:
        return False
    try:
        points = np.fromiter(chain.from_iterable(rings), np.float64, length.sum()).reshape(-1, 2)
    except OverflowError:
        return False
    if not (np.abs(points) <= LONGEST_OUTLINE).all():
        return False
    end = np.cumsum(length // 2)
    following = np.arange(1, len(points) + 1)
    following[end - 1] = end - length // 2
    sides = np.abs(points - points[following]).max(axis=1)
    first = (end - length // 2)[_offsets(given)[:-1]]  # corner of each list
    return bool((np.add.reduceat(sides, first) <= LONGEST_OUTLINE).all())


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
