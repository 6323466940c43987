"""Intersection over union of masks, computed by kernels on run lengths.

`detmap.core.overlaps.polygons` converts polygons to run lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.base.flat_rows import first_true
from detmap.core.base.immutable import Immutable, blank, keep, own, vouched
from detmap.core.base.sums import add_integers
from detmap.core.overlaps import mask_errors
from detmap.core.overlaps.polygons import FIX, Corners, corners, draw
from detmap.core.overlaps.ragged_runs import (
    Ragged,
    chained,
    gathered,
    map_slices,
    offsets,
    packed,
    together,
    unpacked,
)
from detmap.core.overlaps.shape_records import Place
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs
    from detmap.kernels.runs import Runs

MOST_PIXELS = 2**31 - 1
BUFFER = 1 << 15
"""Pairs that are made before they are judged, see `detmap.core.overlaps.box_iou`."""

AT_ONCE = 4096
"""Masks that a thread reads at a time."""

DERIVED = slice(3, None)
"""Columns of `Runs` that follow from sizes and entries."""


@dataclass(frozen=True, slots=True, eq=False)
class Masks(Immutable):
    """Masks of n objects or detections.

    Parameters
    ----------
    runs : run lengths and derived data
    area : (n,) float64, used by area ranges; usually the pixel count
    """

    runs: Runs
    area: NDArray[np.float64]

    def __post_init__(self) -> None:
        area = column_checks.column(
            "Masks.area", self.area, np.float64, column_checks.n_rows(self.area)
        )
        column_checks.no_nan("Masks.area", area)
        keep(self, runs=_checked(self.runs, len(area)), area=area)

    def __len__(self) -> int:
        return len(self.area)

    def take(self, rows: NDArray[Any]) -> Masks:
        """Selects rows."""
        chosen = np.arange(len(self))[rows]  # the kernel knows no negative position
        runs = self.runs
        off, counts = gathered((runs.off, runs.counts), chosen)
        columns = (each[chosen] for each in runs[DERIVED])
        return _owned(type(runs)(runs.size[chosen], off, counts, *columns), self.area[chosen])

    def digest(self) -> NDArray[np.uint64]:
        """Returns (n,) one hash per row."""
        from detmap.kernels.runs import fold_runs

        digest = np.empty(len(self), dtype=np.uint64)
        fold_runs(self.runs, digest)
        return digest ^ (self.area + 0.0).view(np.uint64)


class MaskPairs:
    """Produces pairs of masks.

    Parameters
    ----------
    truth, detections : tables with `Masks` as their shapes
    objects : the ground truth in the kernels' layout
    lowest : lowest overlap that can match
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
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`."""
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


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> MaskPairs:
    """Creates the producer of a protocol that compares masks."""
    return MaskPairs(truth, detections, objects, lowest=lowest)


# --- reading --------------------------------------------------------------------------------------


def read(segmentations: Sequence[Any], sizes: NDArray[np.float64], place: Place) -> Masks:
    """Reads segmentations from JSON values, on images of these sizes (n, 2), height and width.

    Source: COCO.annToRLE of pycocotools' coco.py. Input that would crash its routines is rejected
    first. Raises `DataError` for invalid segmentations; `place` names row i.
    """
    size = _whole(_with_own_sizes(segmentations, sizes), place)
    polygons, rings, others, objects = _parted(range(len(size)), segmentations, list)
    drawn = draw(corners(rings, polygons, place), size[list(polygons)], polygons, place)
    counts = _counts(objects, size, others, place)
    texts, strings, lists, numbers = _parted(others, counts, str)
    if not "".join(strings).isascii():
        row = next(i for i, text in zip(texts, strings, strict=True) if not text.isascii())
        raise DataError(place(row), "the counts are neither a list nor ASCII text", FIX)
    parts = (
        _decompressed([each.encode() for each in strings], size, texts, place),
        drawn,
        _listed(numbers, size, lists, place),
    )
    rows = np.array([*texts, *polygons, *lists], dtype=np.int64)
    return measured(size, together(parts, rows), None)


def from_runs(
    size: NDArray[np.int64],
    ragged: Ragged,
    others: Mapping[int, Any],
    sizes: NDArray[np.float64],
    place: Place,
    outlined: tuple[NDArray[np.int64], Corners] | None = None,
    area: NDArray[np.float64] | None = None,
) -> Masks:
    """Creates masks from run lengths that fill their size (n, 2), from JSON values by row, and
    from legal polygons with their rows. An area of None is the pixel count.

    Source and errors as `read`; sizes (n, 2) are those of the images.
    """
    drawn = outlined[0] if outlined else np.zeros(0, dtype=np.int64)
    rows = np.array(list(others), dtype=np.int64)
    listed = np.ones(len(size), dtype=bool)
    listed[rows] = listed[drawn] = False
    sizes = np.where((listed & np.isnan(sizes).all(axis=1))[:, None], size, sizes)
    wanted = _whole(sizes, place)
    wrong = np.flatnonzero(listed & (size != wanted).any(axis=1)).tolist()
    if wrong:
        raise _another_size(place(wrong[0]), size[wrong[0]].tolist(), wanted[wrong[0]].tolist())
    if not listed.all():
        parts = [(np.append(ragged[0][:-1][listed], ragged[0][-1]), ragged[1])]
        if len(rows):
            converted = read(list(others.values()), sizes[rows], lambda i: place(int(rows[i]))).runs
            parts.append((converted.off, converted.counts))
        if outlined and len(drawn):
            parts.append(draw(outlined[1], wanted[drawn], drawn.tolist(), place))
        ragged = together(parts, np.concatenate([np.flatnonzero(listed), rows, drawn]))
    return measured(wanted, ragged, area)


def _parted(
    rows: Sequence[int], values: Sequence[Any], kind: type
) -> tuple[Sequence[int], Sequence[Any], Sequence[int], Sequence[Any]]:
    """Splits rows and values into one kind and the others."""
    same = [each is kind for each in map(type, values)]
    others = [not each for each in same]
    if all(same):
        return rows, values, [], []
    return (
        list(compress(rows, same)),
        list(compress(values, same)),
        list(compress(rows, others)),
        list(compress(values, others)),
    )


def from_texts(
    texts: Sequence[bytes], size: NDArray[np.int64], area: NDArray[np.float64], place: Place
) -> Masks:
    """Creates masks from COCO's compressed run lengths, with their sizes (n, 2) and areas (n,).

    Raises `DataError` if run lengths do not fill the size; `place` names row i.
    """
    _whole(size.astype(np.float64), place)
    runs = _decompressed(texts, size, range(len(texts)), place)
    return measured(size, runs, area)


def measured(size: NDArray[np.int64], ragged: Ragged, area: NDArray[np.float64] | None) -> Masks:
    """Creates masks from run lengths that fill their sizes (n, 2). An area of None is the pixel
    count.
    """
    from detmap.kernels.runs import Runs, measure_runs

    n = len(size)
    runs = Runs(
        np.ascontiguousarray(size),
        *ragged,
        blank((n, 4), float),
        blank(n, np.int64),
        blank(n, bool),
        blank(n, np.int64),
    )

    def measure_some(some: slice) -> None:
        made: Any = (each[some] for each in runs[DERIVED])
        off = runs.off[some.start : some.stop + 1]
        measure_runs(Runs(runs.size[some], off, runs.counts, *made))

    list(map_slices(measure_some, n, AT_ONCE))
    if area is None:
        area = runs.pixels.astype(np.float64)
    column_checks.no_nan("Masks.area", area)
    return _owned(runs, area)


def join(parts: Sequence[Masks]) -> Masks:
    """Returns the masks of several parts as one."""
    ends = np.concatenate([np.diff(part.runs.off) for part in parts])
    off = np.concatenate([[0], np.cumsum(ends)]).astype(np.int64)
    columns = zip(*(part.runs._replace(off=part.runs.off[:0]) for part in parts), strict=True)
    runs = type(parts[0].runs)(*map(np.concatenate, columns))._replace(off=off)
    return _owned(runs, np.concatenate([part.area for part in parts]))


def _owned(runs: Runs, area: NDArray[np.float64]) -> Masks:
    columns = [own(each) for each in runs if isinstance(each, np.ndarray)]
    return vouched(Masks, runs=type(runs)(*columns), area=area)


def _checked(runs: Any, n: int) -> Runs:
    """Checks the run lengths of n masks and copies them."""
    from detmap.kernels.runs import Runs

    where = "Masks.runs"
    if not isinstance(runs, Runs):
        column_checks.refuse(where, f"a {type(runs).__name__}")
    size = column_checks.column(f"{where}.size", runs.size, np.int64, n, 2)
    counts = column_checks.column(
        f"{where}.counts", runs.counts, np.uint16, column_checks.n_rows(runs.counts)
    )
    off = column_checks.offsets_of(f"{where}.off", runs.off, n, len(counts))
    try:
        plain_off, plain = unpacked(off, counts)
    except ValueError as cut:
        column_checks.refuse(f"{where}.counts", str(cut))
    total = np.concatenate([[0], np.cumsum(plain, dtype=np.int64)])
    height, width = np.maximum(size, 1).T
    bad = (size < 1).any(axis=1) | (height > MOST_PIXELS // width)
    bad |= np.diff(total[plain_off]) != height * width
    if (row := first_true(bad)) is not None:
        column_checks.refuse(
            f"{where}.counts", f"those of mask {row} do not fill {size[row].tolist()}"
        )
    again = measured(size, (off, counts), np.zeros(n)).runs
    for name in Runs._fields[DERIVED]:
        right = getattr(again, name)
        given = column_checks.column(
            f"{where}.{name}", getattr(runs, name), right.dtype, *right.shape
        )
        if not np.array_equal(given, right):
            column_checks.refuse(f"{where}.{name}", "not what follows from the run lengths")
    return again


def _whole(sizes: NDArray[np.float64], place: Place) -> NDArray[np.int64]:
    """Returns (n, 2) image heights and widths as whole numbers."""
    legal = (np.floor(sizes) == sizes) & (sizes >= 1) & np.isfinite(sizes)
    few = sizes[:, 0] <= MOST_PIXELS / np.maximum(sizes[:, 1], 1)
    wrong = np.flatnonzero(~(legal.all(axis=1) & few)).tolist()
    if wrong:
        height, width = sizes[wrong[0]].tolist()
        if not legal[wrong[0]].all():
            sides = ("unknown" if np.isnan(side) else f"{side:g}" for side in (height, width))
            what = "on an image of height {} and width {}".format(*sides)
            fix = "masks need the height and width of their images, whole numbers from 1"
            raise DataError(place(wrong[0]), what, fix)
        what = f"on an image of {height * width:g} pixels"
        raise DataError(place(wrong[0]), what, "use smaller images")
    return sizes.astype(np.int64)


def _with_own_sizes(
    segmentations: Sequence[Any], sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns sizes (n, 2) in which those of images without one are those of the run lengths."""
    unknown = np.flatnonzero(np.isnan(sizes).all(axis=1)).tolist()
    sizes = sizes.copy() if unknown else sizes
    for i in unknown:
        match segmentations[i]:
            case {"size": [int(height), int(width)]}:
                sizes[i] = min(height, MOST_PIXELS + 1), min(width, MOST_PIXELS + 1)
    return sizes


def _counts(
    given: Sequence[Any], size: NDArray[np.int64], rows: Sequence[int], place: Place
) -> list[Any]:
    """Returns the counts (lists or strings) of run lengths, and checks their sizes."""
    try:
        sides = [each["size"] for each in given]
        counts = [each["counts"] for each in given]
    except (TypeError, KeyError):
        for i, each in zip(rows, given, strict=True):
            if not isinstance(each, dict) or not each.keys() >= {"size", "counts"}:
                raise DataError(place(i), mask_errors.not_runs(each), FIX) from None
        raise
    wanted = size[list(rows)]
    if not _are(sides, wanted):
        for i, side, (height, width) in zip(rows, sides, wanted.tolist(), strict=True):
            if side != [height, width]:
                raise _another_size(place(i), side, [height, width])
    for i, kind in zip(rows, map(type, counts), strict=True):
        if kind is not str and kind is not list:
            raise DataError(place(i), "the counts are neither a list nor ASCII text", FIX)
    return counts


def _another_size(where: str, given: Any, wanted: list[int]) -> DataError:
    what = "size {!r:.40} on an image of height {} and width {}".format(given, *wanted)
    return DataError(where, what, "a mask has its image's size")


def _are(sides: list[Any], size: NDArray[np.int64]) -> bool:
    """Checks if all sides are the rows (n, 2), as lists of integers."""
    if set(map(type, sides)) != {list} or set(map(len, sides)) != {2}:
        return not sides
    numbers = list(chain.from_iterable(sides))
    if set(map(type, numbers)) != {int} or max(numbers) > MOST_PIXELS:
        return False
    return bool((np.array(numbers).reshape(-1, 2) == size).all())


def _unfilled(pixels: int) -> str:
    return f"the counts do not add up to {pixels} pixels"


def _decompressed(
    texts: Sequence[bytes], size: NDArray[np.int64], rows: Sequence[int], place: Place
) -> Ragged:
    """Decompresses COCO's run length strings."""
    from detmap.kernels.runs import WIDEST
    from detmap.kernels.scanning.mask_scan import read_texts

    quoted = [text.replace(b"\\", b"\\\\") + b'"' for text in texts]  # as in JSON
    off, pixels = offsets(quoted), size[list(rows)].prod(axis=1)
    characters = np.frombuffer(b"".join(quoted), dtype=np.uint8)

    def read_some(some: slice) -> Ragged:
        ends = off[some.start : some.stop + 1]
        counts = np.empty(WIDEST * int(ends[-1] - ends[0]), dtype=np.uint16)
        run_off = np.empty_like(ends)
        bad = read_texts(characters, ends, pixels[some], run_off, counts)
        if bad >= 0:
            bad += some.start
            what = mask_errors.text_of_bytes(texts[bad]) or _unfilled(pixels[bad])
            raise DataError(place(rows[bad]), what, FIX)
        return run_off, counts[: run_off[-1]]

    return chained(map_slices(read_some, len(texts), AT_ONCE), len(texts), WIDEST * int(off[-1]))


def _listed(
    given: Sequence[list[Any]], size: NDArray[np.int64], rows: Sequence[int], place: Place
) -> Ragged:
    """Returns the run lengths of lists."""
    for i, runs in zip(rows, given, strict=True):
        pixels = int(size[i].prod())
        legal = set(map(type, runs)) == {int} and min(runs) >= 0 and max(runs) <= MOST_PIXELS
        if not legal or add_integers(runs) != pixels:
            raise DataError(place(i), mask_errors.wrong_count(runs) or _unfilled(pixels), FIX)
    return packed((offsets(given), np.fromiter(chain.from_iterable(given), dtype=np.uint32)))
