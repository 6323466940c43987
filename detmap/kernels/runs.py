"""Run-length masks: their entries, areas, boxes and digests, and the overlaps of two masks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.digest import finalise

UINT = 0xFFFFFFFF  # maskApi.c has sides of boxes in 32 bits, without a sign
WIDE = 0xFFFF  # stands before a run of so many pixels or more, whose two halves follow
WIDEST = 3  # entries of a run, at most


class Runs(NamedTuple):
    """The run lengths of n masks: pixels column by column, alternately outside and inside.

    Nearly all runs are short, so an entry has 16 bits, and the few others have three entries.
    """

    size: NDArray[np.int64]  # (n, 2) height and width
    off: NDArray[np.int64]  # (n + 1,) where each mask's entries begin
    counts: NDArray[np.uint16]  # (r,) entries, see `next_run`; add up to height times width
    boxes: NDArray[np.float64]  # (n, 4) x, y, width, height
    pixels: NDArray[np.int64]  # (n,) inside
    hollow: NDArray[np.bool_]  # (n,) has a run of no pixels behind the first
    n_runs: NDArray[np.int64]  # (n,)


@inline_kernel
def next_run(counts: NDArray[np.uint16], at: int) -> tuple[np.int64, int]:
    """The run of an entry, and the entry of the next run.

    Source: none; our own layout.
    """
    n = np.int64(counts[at])
    if n == WIDE:
        return np.int64(counts[at + 1]) | np.int64(counts[at + 2]) << 16, at + 3
    return n, at + 1


@inline_kernel
def put_run(n: np.int64, counts: NDArray[np.uint16], at: int) -> int:
    """Write a run. Returns the entry of the next.

    Source: none; our own layout.
    """
    if n < WIDE:
        counts[at] = n
        return at + 1
    counts[at], counts[at + 1], counts[at + 2] = WIDE, n & 0xFFFF, n >> 16
    return at + 3


@kernel
def pack_runs(
    off: NDArray[np.int64],
    counts: NDArray[np.uint32],
    new_off: NDArray[np.int64],
    packed: NDArray[np.uint16],
) -> None:
    """Runs of n masks as entries.

    off, new_off (n + 1,): where those of each mask begin; out: new_off, packed.

    Source: none; our own layout.
    """
    new_off[0] = at = 0
    for i in range(off.size - 1):
        for j in range(off[i], off[i + 1]):
            at = put_run(np.int64(counts[j]), packed, at)
        new_off[i + 1] = at


@kernel
def unpack_runs(
    off: NDArray[np.int64],
    packed: NDArray[np.uint16],
    new_off: NDArray[np.int64],
    counts: NDArray[np.uint32],
) -> int:
    """The inverse of `pack_runs`. Returns the first mask whose last run is cut off, -1 for none.

    Out: new_off (n + 1,), counts, with space for as many runs as entries.

    Source: none; our own layout.
    """
    new_off[0] = at = 0
    for i in range(off.size - 1):
        entry, end = off[i], off[i + 1]
        while entry < end:
            if packed[entry] == WIDE and entry + 3 > end:
                return i
            n, entry = next_run(packed, entry)
            counts[at] = n
            at += 1
        new_off[i + 1] = at
    return -1


@kernel
def gather_runs(
    off: NDArray[np.int64],
    counts: NDArray[np.uint16],
    rows: NDArray[np.int64],
    new_off: NDArray[np.int64],
    gathered: NDArray[np.uint16],
) -> None:
    """Copy the entries of some masks, by row, to `new_off`.

    Source: none; a copy.
    """
    for k in range(rows.size):
        begin, shift = new_off[k], off[rows[k]] - new_off[k]
        for at in range(begin, new_off[k + 1]):
            gathered[at] = counts[at + shift]


@kernel
def measure_runs(masks: Runs) -> None:
    """Compute boxes, areas and numbers of runs of masks, and which have an empty run, from sizes
    and entries.

    Source: rleToBbox and rleArea of pycocotools' maskApi.c. A mask with a single run, which is
    outside, has a box of zeros. Other masks without pixels have a box that starts after the last
    column and row, with sides from a negative number in 32 bits.
    """
    for i in range(masks.pixels.size):
        height, width = masks.size[i, 0], masks.size[i, 1]
        at, end = masks.off[i], masks.off[i + 1]
        left, top, right, bottom = width, height, np.int64(0), np.int64(0)
        x, y = np.int64(0), np.int64(0)  # where the run begins
        inside, hollow, n_runs = np.int64(0), False, 0
        while at < end:
            n, at = next_run(masks.counts, at)
            hollow |= n == 0 and n_runs > 0
            n_runs += 1
            if n > 0 and n_runs % 2 == 0:
                inside += n
                left = min(left, x)
                last = y + n - 1
                if last >= height:  # it goes on in the next column
                    top, bottom = np.int64(0), height - 1
                    right = max(right, x + last // height)
                else:
                    top, bottom, right = min(top, y), max(bottom, last), max(right, x)
            y += n
            if y >= height:
                y -= height
                x += 1
            if y >= height:
                x += y // height
                y %= height
        if n_runs < 2:
            left, top, right, bottom = np.int64(0), np.int64(0), np.int64(-1), np.int64(-1)
        masks.boxes[i, 0], masks.boxes[i, 1] = left, top
        masks.boxes[i, 2] = (right - left + 1) & UINT
        masks.boxes[i, 3] = (bottom - top + 1) & UINT
        masks.pixels[i], masks.hollow[i], masks.n_runs[i] = inside, hollow, n_runs


@kernel
def fold_runs(masks: Runs, digest: NDArray[np.uint64]) -> None:
    """The digest of each of n masks: size and runs.

    Out: digest (n,). Two runs form a word. Source: none; our own digest, as `fold_rows`.
    """
    for i in range(digest.size):
        size = np.uint64(masks.size[i, 0]) << np.uint64(32) | np.uint64(masks.size[i, 1])
        at, end = masks.off[i], masks.off[i + 1]
        row, column = finalise(size), np.uint64(masks.n_runs[i])
        while at < end:
            first, at = next_run(masks.counts, at)
            word = np.uint64(first)
            if at < end:
                second, at = next_run(masks.counts, at)
                word |= np.uint64(second) << np.uint64(32)
            column += np.uint64(0x9E3779B97F4A7C15)
            row += finalise(word ^ column)
        digest[i] = finalise(row)


@kernel
def meet_runs(a: Runs, i: int, b: Runs, j: int) -> tuple[np.int64, np.int64]:
    """Pixels in the intersection and in the union of mask i of `a` and mask j of `b`, of the same
    size.

    Source: rleIou of pycocotools' maskApi.c.
    """
    if a.hollow[i] and b.hollow[j]:
        return meet_every_run(a, i, b, j)
    shared = share_runs(a.counts, a.off[i], a.off[i + 1], b.counts, b.off[j], b.off[j + 1])
    return shared, a.pixels[i] + b.pixels[j] - shared


@kernel
def share_runs(
    a: NDArray[np.uint16], at_a: int, end_a: int, b: NDArray[np.uint16], at_b: int, end_b: int
) -> np.int64:
    """Pixels in the intersection of two masks, whose entries begin and end at these places.

    Source: as `meet_runs`, with a step for two runs, one outside and one inside.
    """
    shared = np.int64(0)
    low_a, high_a = np.int64(0), np.int64(0)  # begin and end of the run inside
    low_b, high_b = np.int64(0), np.int64(0)
    while True:
        if high_a <= high_b:
            if at_a >= end_a:
                return shared
            n, at_a = next_run(a, at_a)
            low_a = high_a + n
            if at_a >= end_a:
                return shared
            n, at_a = next_run(a, at_a)
            high_a = low_a + n
        else:  # b has another run: what ends with its last one ends with the mask
            n, at_b = next_run(b, at_b)
            low_b = high_b + n
            if at_b >= end_b:
                return shared
            n, at_b = next_run(b, at_b)
            high_b = low_b + n
        shared += max(min(high_a, high_b) - max(low_a, low_b), np.int64(0))


@kernel
def meet_every_run(a: Runs, i: int, b: Runs, j: int) -> tuple[np.int64, np.int64]:
    """As `meet_runs`, if both masks have empty runs.

    Source: rleIou of pycocotools' maskApi.c. It stops where empty runs start in both masks at once,
    and so does this function.
    """
    end_a, end_b = a.off[i + 1], b.off[j + 1]
    rest_a, at_a = next_run(a.counts, a.off[i])
    rest_b, at_b = next_run(b.counts, b.off[j])
    inside_a, inside_b = False, False
    shared, either = np.int64(0), np.int64(0)
    while True:
        step = min(rest_a, rest_b)
        if inside_a or inside_b:
            either += step
        if inside_a and inside_b:
            shared += step
        rest_a -= step
        rest_b -= step
        if rest_a == 0 and at_a < end_a:
            rest_a, at_a = next_run(a.counts, at_a)
            inside_a = not inside_a
        if rest_b == 0 and at_b < end_b:
            rest_b, at_b = next_run(b.counts, at_b)
            inside_b = not inside_b
        if rest_a == 0 and rest_b == 0:
            return shared, either
