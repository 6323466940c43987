"""Run lengths of masks, concatenated: selects and joins rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import blank
from detmap.core.base.parallel import map_ordered

Ragged = tuple[NDArray[np.int64], NDArray[np.uint16]]
"""Where each row's run lengths begin, (n + 1,), and their entries, as of `Runs`."""

Plain = tuple[NDArray[np.int64], NDArray[np.uint32]]
"""Where each row's run lengths begin, (n + 1,), and the run lengths."""

Made = TypeVar("Made")


def run_lengths(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Returns COCO's uncompressed run lengths: column by column, the first run is background."""
    pixels = np.concatenate([[False], mask.ravel(order="F")])
    turns = np.flatnonzero(pixels[1:] != pixels[:-1])
    counts = np.diff(np.concatenate([[0], turns, [mask.size]])).tolist()
    return {"size": list(mask.shape), "counts": counts}


def map_slices(work: Callable[[slice], Made], n_rows: int, at_once: int) -> Iterator[Made]:
    """Yields what `work` makes of slices of the rows, in several threads if there are many."""
    return map_ordered(
        work, [slice(at, min(at + at_once, n_rows)) for at in range(0, n_rows, at_once)]
    )


def offsets(rows: Sequence[Any]) -> NDArray[np.int64]:
    """Returns (n + 1,) where each of n sequences begins, concatenated."""
    return np.cumsum(np.fromiter(chain((0,), map(len, rows)), np.int64, len(rows) + 1))


def chained(parts: Iterable[Ragged], n: int, most: int) -> Ragged:
    """Returns the rows of parts, one after the other: n rows of at most so many entries."""
    off, counts, done = np.zeros(n + 1, dtype=np.int64), blank(most, np.uint16), 0
    for ends, some in parts:
        first, after = off[done], done + len(ends)
        off[done:after] = first + ends
        counts[first : off[after - 1]] = some
        done = after - 1
    return off, counts[: off[-1]]


def packed(plain: Plain) -> Ragged:
    """Returns run lengths as entries."""
    from detmap.kernels.runs import WIDE, WIDEST, pack_runs

    off, counts = plain
    n_wide = int(np.count_nonzero(counts >= WIDE))
    if not n_wide:
        return off, counts.astype(np.uint16)
    new_off = np.empty_like(off)
    entries = blank(len(counts) + (WIDEST - 1) * n_wide, np.uint16)
    pack_runs(off, counts, new_off, entries)
    return new_off, entries


def unpacked(off: NDArray[np.int64], entries: NDArray[np.uint16]) -> Plain:
    """Returns the run lengths of entries. Raises ValueError if the last run of a row is cut off."""
    from detmap.kernels.runs import unpack_runs

    plain_off, counts = np.empty_like(off), blank(len(entries), np.uint32)
    row = unpack_runs(off, entries, plain_off, counts)
    if row >= 0:
        raise ValueError(f"the last run of row {row} is cut off")
    return plain_off, counts[: plain_off[-1]]


def together(parts: Sequence[Ragged], rows: NDArray[np.int64]) -> Ragged:
    """Joins parts in the order of `rows`."""
    some = [part for part in parts if len(part[0]) > 1]
    if len(some) == 1:
        return some[0]
    order = np.argsort(rows)
    n_runs = np.concatenate([np.diff(off) for off, _ in parts])[order]
    off = np.concatenate([[0], np.cumsum(n_runs)]).astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum([len(part[0]) - 1 for part in parts])])
    part = np.searchsorted(firsts, order, "right") - 1
    place = order - firsts[part]
    begins = np.ones(len(order) + 1, dtype=bool)
    begins[1:-1] = (part[1:] != part[:-1]) | (place[1:] != place[:-1] + 1)
    ends = np.flatnonzero(begins).tolist()
    counts = blank(int(off[-1]), np.uint16)
    for first, after in pairwise(ends):  # rows that follow each other in a part
        its_off, its_counts = parts[part[first]]
        held = slice(its_off[place[first]], its_off[place[after - 1] + 1])
        counts[off[first] : off[after]] = its_counts[held]
    return off, counts


def gathered(ragged: Ragged, rows: NDArray[Any]) -> Ragged:
    """Returns the run lengths of some rows."""
    from detmap.kernels.runs import gather_runs

    off = np.concatenate([[0], np.cumsum(np.diff(ragged[0])[rows])]).astype(np.int64)
    counts = blank(int(off[-1]), np.uint16)
    gather_runs(*ragged, np.ascontiguousarray(rows, dtype=np.int64), off, counts)
    return off, counts
