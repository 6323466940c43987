"""Stable orders: rows grouped by a small key, rows ranked by score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel


@kernel
def group(
    key: NDArray[np.int32],
    rows: NDArray[np.int32],
    grouped: NDArray[np.int32],
    off: NDArray[np.int64],
) -> None:
    """Rows in order of their key, by counting; rows of equal key keep their order.

    key (n,) int32 of each row in [0, n_keys); rows (m,) int32, the order to start from;
    out: grouped (m,) int32 rows; off (n_keys + 1,) int64 where each key's rows begin.
    Source: none; a counting sort.
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
    """Scratch arrays to sort up to n rows in: keys and their next order, rows in their next
    order, counts of digits.
    """

    keys: NDArray[np.uint64]
    next_keys: NDArray[np.uint64]
    next_order: NDArray[np.int32]
    counts: NDArray[np.int64]


def sorter(n: int) -> Sorter:
    """Scratch arrays for `rank_by_score` of up to n rows."""
    return Sorter(
        np.empty(n, np.uint64),
        np.empty(n, np.uint64),
        np.empty(n, np.int32),
        np.empty((8, 256), np.int64),
    )


@kernel
def rank_by_score(bits: NDArray[np.uint64], order: NDArray[np.int32], scratch: Sorter) -> None:
    """Sort `order` in place by descending score; rows of equal score keep their order.

    bits (N,) uint64, the scores' bit patterns, none of them NaN; order (n,) int32, rows, in the
    order that ties shall have; scratch: `sorter` of n or more. Radix sort, least digit first: as
    stable as the merge sort of the references, and linear; insertion sort where the counting of
    digits would take longer. Source: COCOeval.accumulate, ``argsort(-dtScores,
    kind='mergesort')``.
    """
    n = order.size
    sign = np.uint64(1) << np.uint64(63)
    for i in range(n):
        word = bits[order[i]]
        if word == sign:  # -0.0 equals 0.0
            word = np.uint64(0)
        scratch.keys[i] = word if word & sign else ~(word | sign)  # larger scores get smaller keys
    if n <= SHORT:
        for i in range(1, n):
            key, row, place = scratch.keys[i], order[i], i
            while place > 0 and scratch.keys[place - 1] > key:
                scratch.keys[place], order[place] = scratch.keys[place - 1], order[place - 1]
                place -= 1
            scratch.keys[place], order[place] = key, row
        return
    scratch.counts[:] = 0
    for i in range(n):
        key = scratch.keys[i]
        for digit in range(8):
            scratch.counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if scratch.counts[digit, (scratch.keys[0] >> shift) & np.uint64(255)] == n:
            continue  # all rows share this digit
        begin = 0
        for value in range(256):
            count = scratch.counts[digit, value]
            scratch.counts[digit, value] = begin
            begin += count
        for i in range(n):
            value = (scratch.keys[i] >> shift) & np.uint64(255)
            place = scratch.counts[digit, value]
            scratch.next_keys[place] = scratch.keys[i]
            scratch.next_order[place] = order[i]
            scratch.counts[digit, value] = place + 1
        for i in range(n):
            scratch.keys[i] = scratch.next_keys[i]
            order[i] = scratch.next_order[i]
