"""Stable orders: rows grouped by a small key, rows ranked by score."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel


@kernel
def group(key: Any, rows: Any, grouped: Any, off: Any) -> None:
    """Rows in order of their key, by counting; rows of equal key keep their order.

    key (n,) int32 of each row in [0, n_keys); rows (n,) int32, the order to start from;
    out: grouped (n,) int32 rows; off (n_keys + 1,) int64 where each key's rows begin.
    """
    off[:] = 0
    for row in rows:
        off[key[row] + 1] += 1
    for k in range(off.size - 1):
        off[k + 1] += off[k]
    cursor = off[:-1].copy()
    for row in rows:
        k = key[row]
        grouped[cursor[k]] = row
        cursor[k] += 1


@kernel
def rank_by_score(score: Any, order: Any) -> None:
    """Sort `order` in place by descending score; rows of equal score keep their order.

    score (n,) float64 without NaN; order (n,) int32, positions in `score`, in the order that ties shall have.
    Radix sort of the bit patterns, least digit first: as stable as the merge sort of the references, and linear.
    """
    n = order.size
    sign = np.uint64(1) << np.uint64(63)
    keys = np.empty(n, np.uint64)
    bits = score.view(np.uint64)
    counts = np.zeros((8, 256), np.int64)
    for i in range(n):
        word = bits[order[i]]
        if word == sign:  # -0.0 equals 0.0
            word = np.uint64(0)
        ascending = ~word if word & sign else word | sign
        keys[i] = ~ascending
        for digit in range(8):
            counts[digit, (keys[i] >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    keys_out, order_out = np.empty_like(keys), np.empty_like(order)
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if n == 0 or counts[digit, (keys[0] >> shift) & np.uint64(255)] == n:
            continue  # all rows share this digit
        begin = 0
        for value in range(256):
            count = counts[digit, value]
            counts[digit, value] = begin
            begin += count
        for i in range(n):
            value = (keys[i] >> shift) & np.uint64(255)
            place = counts[digit, value]
            keys_out[place] = keys[i]
            order_out[place] = order[i]
            counts[digit, value] += 1
        keys[:] = keys_out
        order[:] = order_out


@kernel
def number_runs(image: Any, run: Any) -> int:
    """Which run of equal images each row belongs to, counted from 0.

    image (n,) int32, ascending; out: run (n,) int32. Returns the number of runs.
    """
    current = -1
    for i in range(image.size):
        if i == 0 or image[i] != image[i - 1]:
            current += 1
        run[i] = current
    return current + 1


@kernel
def rank_in_run(run: Any, n_runs: int, order: Any, rank: Any) -> None:
    """How many rows of its run come before each one.

    run (n,) int32; order (n,) int32, positions in `run`, best score first; out: rank (n,) int32, in the order of `order`.
    """
    seen = np.zeros(n_runs, np.int32)
    for i in range(order.size):
        r = run[order[i]]
        rank[i] = seen[r]
        seen[r] += 1


@kernel
def count_within(image: Any, limit: int) -> int:
    """Rows left when each run of equal images is cut to `limit` rows. image (n,) int32, grouped."""
    kept = 0
    length = 0
    for i in range(image.size):
        length = length + 1 if i > 0 and image[i] == image[i - 1] else 1
        if length <= limit:
            kept += 1
    return kept
