"""Stable orders: rows grouped by a small key, rows ranked by score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel


@kernel
def group(key: Any, rows: Any, grouped: Any, off: Any) -> None:
    """Rows in order of their key, by counting; rows of equal key keep their order.

    key (n,) int32 of each row in [0, n_keys); rows (m,) int32, the order to start from;
    out: grouped (m,) int32 rows; off (n_keys + 1,) int64 where each key's rows begin.
    """
    off[:] = 0
    for i in range(rows.size):
        off[key[rows[i]] + 1] += 1
    for k in range(off.size - 1):
        off[k + 1] += off[k]
    for i in range(rows.size):
        k = key[rows[i]]
        grouped[off[k]] = rows[i]
        off[k] += 1
    for k in range(off.size - 1, 0, -1):  # each key's end is where the next one begins
        off[k] = off[k - 1]
    off[0] = 0


SHORT = 64  # rows


class Sorter(NamedTuple):
    """Room to sort up to n rows in: keys and their next order, rows in their next order, counts
    of digits.
    """

    keys: NDArray[np.uint64]
    next_keys: NDArray[np.uint64]
    next_order: NDArray[np.int32]
    counts: NDArray[np.int64]


def sorter(n: int) -> Sorter:
    """Room for `rank_by_score` of up to n rows."""
    return Sorter(
        np.empty(n, np.uint64),
        np.empty(n, np.uint64),
        np.empty(n, np.int32),
        np.empty((8, 256), np.int64),
    )


@kernel
def rank_by_score(bits: Any, order: Any, room: Any) -> None:
    """Sort `order` in place by descending score; rows of equal score keep their order.

    bits (N,) uint64, the scores' bit patterns, none of them NaN; order (n,) int32, rows, in the
    order that ties shall have; room: `sorter` of n or more. Radix sort, least digit first: as
    stable as the merge sort of the references, and linear; insertion sort where the counting of
    digits would take longer.
    """
    n = order.size
    sign = np.uint64(1) << np.uint64(63)
    for i in range(n):
        word = bits[order[i]]
        if word == sign:  # -0.0 equals 0.0
            word = np.uint64(0)
        room.keys[i] = word if word & sign else ~(word | sign)  # larger scores get smaller keys
    if n <= SHORT:
        for i in range(1, n):
            key, row, place = room.keys[i], order[i], i
            while place > 0 and room.keys[place - 1] > key:
                room.keys[place], order[place] = room.keys[place - 1], order[place - 1]
                place -= 1
            room.keys[place], order[place] = key, row
        return
    room.counts[:] = 0
    for i in range(n):
        key = room.keys[i]
        for digit in range(8):
            room.counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if room.counts[digit, (room.keys[0] >> shift) & np.uint64(255)] == n:
            continue  # all rows share this digit
        begin = 0
        for value in range(256):
            count = room.counts[digit, value]
            room.counts[digit, value] = begin
            begin += count
        for i in range(n):
            value = (room.keys[i] >> shift) & np.uint64(255)
            place = room.counts[digit, value]
            room.next_keys[place] = room.keys[i]
            room.next_order[place] = order[i]
            room.counts[digit, value] = place + 1
        for i in range(n):
            room.keys[i] = room.next_keys[i]
            order[i] = room.next_order[i]


@kernel
def count_within(key: Any, rows: Any, off: Any, limit: int, seen: Any, kept: Any) -> None:
    """Rows of each class that are left when the rows of each image are cut to `limit`.

    key (N,) int32, the image of each row; rows (n,) int32, grouped by class; off (K + 1,) int64;
    seen (I,) int32, room; out: kept (K,) int64.
    """
    seen[:] = 0
    for k in range(kept.size):
        kept[k] = 0
        for i in range(off[k], off[k + 1]):
            image = key[rows[i]]
            seen[image] += 1
            if seen[image] <= limit:
                kept[k] += 1
        for i in range(off[k], off[k + 1]):
            seen[key[rows[i]]] = 0
