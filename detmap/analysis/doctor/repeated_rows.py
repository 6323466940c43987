"""Detections that are in the file twice, bit for bit: a distributed sampler pads its last batch
with the first images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.repair import Repair
from detmap.core.tables import Truth
from detmap.errors import few

if TYPE_CHECKING:
    from detmap.analysis.doctor.raw_rows import Raw

LEAST_ROWS = 3  # of an image whose rows are all repeated, or at the end of a file
SHARE, LEAST = 0.05, 10  # of single rows: real detectors repeat up to 1 %
Some = slice | NDArray[np.int64]
ALL = slice(None)
TAIL, HEAD = 64, 4096  # rows that the quick check compares


def _hashes(raw: Raw, some: Some = ALL) -> NDArray[np.uint64]:
    return hashes(raw, [*raw.boxes[some].T, raw.score[some]], some)


def hashes(
    rows: Any, columns: Iterable[NDArray[np.float64]], some: Some = ALL
) -> NDArray[np.uint64]:
    """Returns (n,) hashes of image, class and columns of numbers, of all or some rows."""
    mixed: NDArray[np.uint64] = rows.image[some].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= rows.label[some].astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    for column in columns:
        mixed = (mixed ^ np.ascontiguousarray(column + 0.0).view(np.uint64)) * np.uint64(
            0xFF51AFD7ED558CCD
        )
        mixed ^= mixed >> np.uint64(32)
    return mixed


def repeated(raw: Raw, some: Some = ALL) -> NDArray[np.bool_]:
    """Returns (D,) which rows, or which of some, are equal to an earlier one."""
    mixed = _hashes(raw, some)
    order = np.argsort(mixed, kind="stable")
    again = np.zeros(len(mixed), dtype=bool)
    again[order[1:]] = mixed[order[1:]] == mixed[order[:-1]]
    return again


def tail_repeats(rows: Raw) -> bool:
    """Returns whether the last rows of a file are some of its first ones: quick."""
    if len(rows) < 2:
        return False
    tail = min(TAIL, len(rows) // 2)
    last = _hashes(rows, slice(len(rows) - tail, None))
    first = np.sort(_hashes(rows, slice(0, min(HEAD, len(rows) - tail))))
    place = np.minimum(np.searchsorted(first, last), len(first) - 1)  # np.isin imports numpy.ma
    return int((first[place] == last).sum()) >= LEAST_ROWS


def repairs(raw: Raw) -> Iterator[Repair]:
    """Removes repeated rows if all rows of an image are repeated, or many are."""
    again = repeated(raw)
    if not again.any():
        return
    n_rows = np.bincount(raw.image, minlength=len(raw.images))
    n_again = np.bincount(raw.image[again], minlength=len(raw.images))
    full = (n_again > 0) & (2 * n_again >= n_rows)
    at_end = again[-LEAST_ROWS:].all() and len(raw) > LEAST_ROWS
    # Where a detector repeats rows by itself, these are few in most of their images.
    whole = n_again[full].max(initial=0) >= LEAST_ROWS and 2 * n_again[full].sum() >= again.sum()
    if not (at_end or whole) and again.sum() < max(LEAST, SHARE * len(raw)):
        return
    names = few(repr(raw.images[i]) for i in np.flatnonzero(full).tolist())
    which = f"all of {full.sum():,} images: {names}" if full.any() else "of single objects"
    text = (
        f"{again.sum():,} of {len(raw):,} detections are repeated bit for bit, {which}; a "
        "distributed sampler pads its last batch with images, or files were joined twice"
    )
    yield Repair("rows-repeated", text, _once, 1, True)


def _once(raw: Raw, _: Truth) -> Raw:
    return raw.take(np.flatnonzero(~repeated(raw)))
