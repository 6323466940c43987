"""Boundaries of masks: the pixels within some distance of the edge, and their overlaps.

A boundary is drawn as bits, one per pixel, column by column within the box around the mask. Words
begin at multiples of 64 rows of the image, so that those of two masks cover the same rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.pairs import Pairs
from detmap.kernels.runs import Runs, next_run
from detmap.kernels.scanning.words import count_bits

BITS = 64


class Bitmaps(NamedTuple):
    """The boundaries of n masks, as bits."""

    row: NDArray[np.int64]  # (n,) rows of the masks
    spans: NDArray[np.int64]  # (n, 4) first column, columns, first word of a column, words of it
    depth: NDArray[np.int64]  # (n,) width of the boundary in pixels
    off: NDArray[np.int64]  # (n + 1,) where the words of each begin
    words: NDArray[np.uint64]
    pixels: NDArray[np.int64]  # (n,) of the boundary


@kernel
def draw_boundaries(masks: Runs, maps: Bitmaps, inner: NDArray[np.uint64]) -> None:
    """Draw the boundaries of masks into `words`, and count their pixels.

    inner: space for the words of the largest mask. Source: mask_to_boundary of boundary-iou-api's
    boundary_utils.py: the mask without what `depth` erosions by 3 x 3 pixels leave of it, where
    nothing is around the image; this is one erosion by a square of 2 `depth` + 1 pixels.
    """
    for i in range(maps.row.size):
        first, size = maps.off[i], maps.off[i + 1] - maps.off[i]
        for at in range(size):
            maps.words[first + at], inner[at] = np.uint64(0), np.uint64(0)
        side = 2 * maps.depth[i] + 1
        n_columns, n_words = maps.spans[i, 1], maps.spans[i, 3]
        draw_columns(masks, maps, i, inner)
        reach = np.int64(1)  # columns that `inner` has joined: as many again, then the rest
        while reach < side:
            step = min(reach, side - reach)
            reach += step
            for at in range((n_columns - reach + 1) * n_words):
                inner[at] &= inner[at + step * n_words]
        shift = first + maps.depth[i] * n_words
        for at in range((n_columns - side + 1) * n_words):
            maps.words[shift + at] &= ~inner[at]
        n = np.int64(0)
        for at in range(first, first + size):
            n += count_bits(maps.words[at])
        maps.pixels[i] = n


@kernel
def draw_columns(masks: Runs, maps: Bitmaps, i: int, inner: NDArray[np.uint64]) -> None:
    """Draw the pixels of a mask, and into `inner` each column's runs without `depth` pixels at
    either end.

    Source: rleDecode of pycocotools' maskApi.c.
    """
    row, depth = maps.row[i], maps.depth[i]
    height, left, n_words = masks.size[row, 0], maps.spans[i, 0], maps.spans[i, 3]
    end, begin = np.int64(0), np.int64(-1)  # of pixels inside; -1 before the first
    at, last = masks.off[row], masks.off[row + 1]
    inside, more = True, True
    while more:
        more, n = at < last, np.int64(0)
        if more:
            n, at = next_run(masks.counts, at)
        inside = not inside
        if inside and n > 0 and begin < 0:
            begin = end
        if begin >= 0 and ((not inside and n > 0) or not more):
            column = begin // height
            top = begin - column * height
            rest = end - begin
            while rest > 0:
                below = min(top + rest, height)
                word = (column - left) * n_words - maps.spans[i, 2]
                fill(maps.words, maps.off[i] + word, top, below)
                fill(inner, word, top + depth, below - depth)
                rest -= below - top
                column, top = column + 1, np.int64(0)
            begin = np.int64(-1)
        end += n


@inline_kernel
def fill(words: NDArray[np.uint64], origin: int, top: int, below: int) -> None:
    """Set the bits of the rows from `top` on, up to before `below`; row 0 is in word `origin`.

    Source: none; sets bits.
    """
    if top >= below:
        return
    first, last = top // BITS, (below - 1) // BITS
    every = ~np.uint64(0)
    low = every << np.uint64(top - first * BITS)
    high = every >> np.uint64((last + 1) * BITS - below)
    if first == last:
        words[origin + first] |= low & high
        return
    words[origin + first] |= low
    for at in range(origin + first + 1, origin + last):
        words[at] = every
    words[origin + last] |= high


@kernel
def lower_overlaps(
    chosen: NDArray[np.int64],
    detection: NDArray[np.int64],
    object_: NDArray[np.int64],
    a: Bitmaps,
    b: Bitmaps,
    pairs: Pairs,
) -> None:
    """Lower the overlaps of some pairs to the IoU of their boundaries, if that is lower.

    chosen (m,): places of the pairs; detection, object_ (m,): their places in `a` and `b`.

    Source: computeBoundaryIoU of boundary-iou-api's cocoeval.py.
    """
    for k in range(chosen.size):
        i, j = detection[k], object_[k]
        left = max(a.spans[i, 0], b.spans[j, 0])
        right = min(a.spans[i, 0] + a.spans[i, 1], b.spans[j, 0] + b.spans[j, 1])
        top = max(a.spans[i, 2], b.spans[j, 2])
        below = min(a.spans[i, 2] + a.spans[i, 3], b.spans[j, 2] + b.spans[j, 3])
        shared = np.int64(0)
        for column in range(left, right):
            one = a.off[i] + (column - a.spans[i, 0]) * a.spans[i, 3] - a.spans[i, 2]
            other = b.off[j] + (column - b.spans[j, 0]) * b.spans[j, 3] - b.spans[j, 2]
            for word in range(top, below):
                shared += count_bits(a.words[one + word] & b.words[other + word])
        overlap = 0.0
        if shared > 0:
            overlap = shared / (a.pixels[i] + b.pixels[j] - shared)
        pairs.overlap[chosen[k]] = min(pairs.overlap[chosen[k]], overlap)
