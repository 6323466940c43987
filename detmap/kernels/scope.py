"""Detections by image: their rank in it, and whether their class is evaluated there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.grouping import Sorter, rank_by_score

UNLISTED, LENIENT = 1, 2  # bits of what `judge_pairs` finds
ABSENT, NOT_EXHAUSTIVE = 1, 2  # kinds of `detmap.core.tables.Scope`


class Ranking(NamedTuple):
    """Scratch arrays of `rank_in_images`, for n detections of an image and K classes."""

    order: NDArray[np.int32]  # (n,)
    sorter: Sorter
    seen: NDArray[np.int32]  # (K,) zeros, or (0,) where the place is that in the image


class Known(NamedTuple):
    """The annotation of pairs of image and class in the ground truth."""

    rows: NDArray[np.int32]  # (G',) objects by image
    off: NDArray[np.int64]  # (I + 1,)
    label: NDArray[np.int32]  # (G,) their classes
    scope_off: NDArray[np.int64]  # (I + 1,)
    scope_label: NDArray[np.int32]  # (P,)
    scope_kind: NDArray[np.uint8]  # (P,)


@kernel
def rank_in_images(
    images: NDArray[np.int32],
    rows: NDArray[np.int32],
    off: NDArray[np.int64],
    score_bits: NDArray[np.uint64],
    label: NDArray[np.int32],
    by_score: int,
    scratch: Ranking,
    rank: NDArray[np.int32],
) -> None:
    """The rank of each detection of some images, from 0: in the image or in its class there, by
    score or in input order.

    Source: lvis/results.py, limit_dets_per_image: the highest scores of an image over all classes,
    by a stable sort; VisDrone calcAccuracy.m: the first rows of an image.

    images (n,); rows (D,) by image, in input order; off (I + 1,); score_bits, label (D,); out: rank
    (D,).
    """
    for i in range(images.size):
        begin = off[images[i]]
        n = off[images[i] + 1] - begin
        for j in range(n):
            scratch.order[j] = rows[begin + j]
        if by_score:
            rank_by_score(score_bits, scratch.order[:n], scratch.sorter)
        for j in range(n):
            row = scratch.order[j]
            rank[row] = j
            if scratch.seen.size:
                rank[row] = scratch.seen[label[row]]
                scratch.seen[label[row]] += 1
        if scratch.seen.size:
            for j in range(n):
                scratch.seen[label[scratch.order[j]]] = 0


@kernel
def judge_pairs(
    images: NDArray[np.int32],
    rows: NDArray[np.int32],
    off: NDArray[np.int64],
    label: NDArray[np.int32],
    known: Known,
    stamps: NDArray[np.int32],
    kinds: NDArray[np.uint8],
) -> None:
    """Whether the class of each detection of some images is evaluated there, not listed, or not
    exhaustive.

    Source: lvis/eval.py, _prepare and evaluate_img: an image lists a class if it has an object of
    it, or names it as absent; if it names the class as not exhaustively annotated, unmatched
    detections are ignored.

    images (n,); rows (D,) by image; off (I + 1,); label (D,); stamps (2, K) -1; out: kinds (D,).
    """
    for i in range(images.size):
        image = images[i]
        for j in range(known.off[image], known.off[image + 1]):
            stamps[0, known.label[known.rows[j]]] = image
        for j in range(known.scope_off[image], known.scope_off[image + 1]):
            if known.scope_kind[j] == ABSENT:
                stamps[0, known.scope_label[j]] = image
            elif known.scope_kind[j] == NOT_EXHAUSTIVE:
                stamps[1, known.scope_label[j]] = image
        for j in range(off[image], off[image + 1]):
            row = rows[j]
            kinds[row] = 0
            if stamps[0, label[row]] != image:
                kinds[row] = UNLISTED
            if stamps[1, label[row]] == image:
                kinds[row] |= LENIENT
