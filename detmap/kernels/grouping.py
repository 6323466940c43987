"""Stable sorts: rows grouped by a small key, rows ranked by score."""

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
    """Sort rows by key, by counting; rows with equal keys keep their order.

    key (n,) int32 of each row in [0, n_keys); rows (m,) int32, the initial order; out: grouped (m,)
    int32 rows; off (n_keys + 1,) int64, start of each key's rows.

    Source: none; a counting sort.
    """
    off[:] = 0
    before, sorted_already = 0, True
    for i in range(rows.size):
        k = key[rows[i]]
        off[k + 1] += 1
        sorted_already &= before <= k
        before = k
    for k in range(off.size - 1):
        off[k + 1] += off[k]
    if sorted_already:  # detectors write image by image
        for i in range(rows.size):
            grouped[i] = rows[i]
        return
    for i in range(rows.size):
        k = key[rows[i]]
        grouped[off[k]] = rows[i]
        off[k] += 1
    for k in range(off.size - 1, 0, -1):  # each key's end is the start of the next one
        off[k] = off[k - 1]
    off[0] = 0


@kernel
def look_up(
    wanted: NDArray[np.int64], low: int, table: NDArray[np.int32], place: NDArray[np.int32]
) -> None:
    """Look up integers in a table; -1 for those outside it.

    wanted (n,) int64; table (m,) int32, of the numbers from `low` on; out: place (n,) int32.

    Source: none; a table lookup.
    """
    for i in range(wanted.size):
        at = np.uint64(wanted[i] - low)  # a number below `low` wraps to a large one
        place[i] = table[at] if at < np.uint64(table.size) else -1


SHORT = 64  # rows


class Sorter(NamedTuple):
    """Scratch arrays to sort up to n rows: keys and rows with their next order, digit counts."""

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
        np.empty((4, 256), np.int64),
    )


@kernel
def rank_by_score(bits: NDArray[np.uint64], order: NDArray[np.int32], scratch: Sorter) -> None:
    """Sort `order` in place by descending score; rows of equal score keep their order.

    bits (N,) uint64, bit patterns of the scores, without NaN; order (n,) int32, rows in the order
    of ties; scratch: `sorter` of at least n. As stable as the merge sort of the references, in
    linear time. Source: COCOeval.accumulate, ``argsort(-dtScores, kind='mergesort')``.
    """
    n = order.size
    sign = np.uint64(1) << np.uint64(63)
    for i in range(n):
        word = bits[order[i]]
        if word == sign:  # -0.0 equals 0.0
            word = np.uint64(0)
        scratch.keys[i] = word if word & sign else ~(word | sign)  # larger scores get smaller keys
    if n <= SHORT:
        insert(0, n, order, scratch.keys)
        return
    # Most scores differ in their upper half; short runs, or a few long ones, remain.
    sort_half(4, 0, n, order, scratch)
    begin = 0
    while begin < n:
        end, ascends = begin + 1, True
        upper = scratch.keys[begin] >> np.uint64(32)
        while end < n and scratch.keys[end] >> np.uint64(32) == upper:
            ascends = ascends and scratch.keys[end - 1] <= scratch.keys[end]
            end += 1
        if not ascends:
            if end - begin <= SHORT:
                insert(begin, end, order, scratch.keys)
            else:
                sort_half(0, begin, end, order, scratch)
        begin = end


@kernel
def insert(begin: int, end: int, order: NDArray[np.int32], keys: NDArray[np.uint64]) -> None:
    """Sort a few rows by their keys, in place. Source: none; a stable insertion sort."""
    for i in range(begin + 1, end):
        key, row, place = keys[i], order[i], i
        while place > begin and keys[place - 1] > key:
            keys[place], order[place] = keys[place - 1], order[place - 1]
            place -= 1
        keys[place], order[place] = key, row


@kernel
def sort_half(first: int, begin: int, end: int, order: NDArray[np.int32], scratch: Sorter) -> None:
    """Sort rows by four bytes of their keys, starting at the `first` lowest byte, in place.

    Source: none; a stable radix sort, least significant digit first.
    """
    n = end - begin
    keys, other_keys = scratch.keys[begin:end], scratch.next_keys[begin:end]
    rows, other_rows = order[begin:end], scratch.next_order[begin:end]
    scratch.counts[:] = 0
    for i in range(n):
        key = keys[i] >> np.uint64(8 * first)
        for digit in range(4):
            scratch.counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    moved = False  # whether the rows are in the other arrays
    for digit in range(4):
        shift = np.uint64(8 * (first + digit))
        if scratch.counts[digit, (keys[0] >> shift) & np.uint64(255)] == n:
            continue  # all rows share this digit
        place = 0
        for value in range(256):
            count = scratch.counts[digit, value]
            scratch.counts[digit, value] = place
            place += count
        for i in range(n):
            value = (keys[i] >> shift) & np.uint64(255)
            place = scratch.counts[digit, value]
            other_keys[place], other_rows[place] = keys[i], rows[i]
            scratch.counts[digit, value] = place + 1
        keys, other_keys = other_keys, keys
        rows, other_rows = other_rows, rows
        moved = not moved
    if moved:
        for i in range(n):
            other_keys[i], other_rows[i] = keys[i], rows[i]
