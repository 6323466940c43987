"""KITTI's matching: objects choose detections, in file order, at each sampled score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

ABSENT, VALID, IGNORED = -1, 0, 1  # roles of objects, states of detections

Floats = NDArray[np.float64]
Roles = NDArray[np.int8]


class Candidates(NamedTuple):
    """Pairs of objects and detections of one image that overlap enough, object by object.

    Parameters
    ----------
    off : (G + 1,) int64, where the pairs of each object begin
    detection : (P,) int64, ascending within an object
    overlap : (P,) float64
    similarity : (P,) float64, 1 for the same orientation, 0 for the opposite one
    role : (G,) int8 of each object
    state : (D,) int8 of each detection
    score : (D,) float64
    """

    off: NDArray[np.int64]
    detection: NDArray[np.int64]
    overlap: Floats
    similarity: Floats
    role: Roles
    state: Roles
    score: Floats


@kernel
def take_best_scores(pairs: Candidates, used: NDArray[np.bool_], scores: Floats) -> int:
    """Lets each object take its highest-scoring detection that is left, of equal ones the first.

    out: used (D,), false before; scores (G,), of the pairs in which both are valid. Returns how
    many these are.

    Source: computeStatistics of KITTI's evaluate_object_3d_offline.cpp, with compute_fp false.
    """
    n = 0
    for g in range(pairs.role.size):
        if pairs.role[g] == ABSENT:
            continue
        best = np.int64(-1)
        for p in range(pairs.off[g], pairs.off[g + 1]):
            d = pairs.detection[p]
            if pairs.state[d] == ABSENT or used[d]:
                continue
            if best < 0 or pairs.score[d] > pairs.score[best]:
                best = d
        if best < 0:
            continue
        used[best] = True
        if pairs.role[g] == VALID and pairs.state[best] == VALID:
            scores[n] = pairs.score[best]
            n += 1
    return n


@kernel
def count_true_positives(
    pairs: Candidates, threshold: float, used: NDArray[np.bool_], similar: Floats
) -> int:
    """Lets each object take the best detection that is left, of those that reach the threshold:
    the valid one with the largest overlap, of equal ones the first, else the first ignored one.

    out: used (D,), false before; similar (G,), the similarity of each true positive, 0 elsewhere.
    Returns the number of true positives.

    Source: computeStatistics of KITTI's evaluate_object_3d_offline.cpp, with compute_fp true.
    """
    n = 0
    for g in range(pairs.role.size):
        similar[g] = 0.0
        if pairs.role[g] == ABSENT:
            continue
        best = np.int64(-1)
        for p in range(pairs.off[g], pairs.off[g + 1]):
            d = pairs.detection[p]
            if pairs.state[d] == ABSENT or used[d] or pairs.score[d] < threshold:
                continue
            if best < 0 or (
                pairs.state[d] == VALID
                and (
                    pairs.state[pairs.detection[best]] == IGNORED
                    or pairs.overlap[p] > pairs.overlap[best]
                )
            ):
                best = np.int64(p)
        if best < 0:
            continue
        d = pairs.detection[best]
        used[d] = True
        if pairs.role[g] == VALID and pairs.state[d] == VALID:
            similar[g] = pairs.similarity[best]
            n += 1
    return n


@kernel
def count_false_positives(
    rows: NDArray[np.int64], score: Floats, threshold: float, used: NDArray[np.bool_]
) -> int:
    """The number of detections that reach the threshold and that no object took.

    rows (n,) int64, of detections outside of regions that are valid; score, used (D,).

    Source: computeStatistics of KITTI's evaluate_object_3d_offline.cpp, with compute_fp true.
    """
    n = 0
    for i in range(rows.size):
        d = rows[i]
        if not used[d] and score[d] >= threshold:
            n += 1
    return n
