"""Ranking metrics as their definitions read: every threshold, every pair, exact fractions where
weights allow.

Labels are 0 or 1; weights are 1 where none are given.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction


def counts(
    truth: Sequence[int], scores: Sequence[float], threshold: float
) -> tuple[int, int, int, int]:
    """TP, FP, TN, FN where a score of the threshold or more is a positive prediction."""
    pairs = [(score >= threshold, label == 1) for label, score in zip(truth, scores, strict=True)]
    return (
        pairs.count((True, True)),
        pairs.count((True, False)),
        pairs.count((False, False)),
        pairs.count((False, True)),
    )


def curve(truth: Sequence[int], scores: Sequence[float]) -> list[tuple[float, Fraction, Fraction]]:
    """Threshold, recall and precision at every distinct score, best first; there is at least one
    positive."""
    points = []
    for threshold in sorted(set(scores), reverse=True):
        tp, fp, _, fn = counts(truth, scores, threshold)
        points.append((threshold, Fraction(tp, tp + fn), Fraction(tp, tp + fp)))
    return points


def auc_by_pairs(truth: Sequence[int], scores: Sequence[float]) -> Fraction:
    """Share of (positive, negative) pairs that the positive wins, equal scores counting half
    (Mann-Whitney)."""
    positive = [score for label, score in zip(truth, scores, strict=True) if label]
    negative = [score for label, score in zip(truth, scores, strict=True) if not label]
    won = sum(Fraction(2 * (p > n) + (p == n), 2) for p in positive for n in negative)
    return Fraction(won, len(positive) * len(negative))


def auc_by_rank_sum(truth: Sequence[int], scores: Sequence[float]) -> Fraction:
    """(sum of the positives' ranks - P (P + 1) / 2) / (P N), equal scores sharing their mean
    rank."""
    rank = {
        score: Fraction(
            1 + sum(other < score for other in scores) + sum(other <= score for other in scores), 2
        )
        for score in scores
    }
    ranks = [rank[score] for label, score in zip(truth, scores, strict=True) if label]
    n_positive, n_negative = len(ranks), len(scores) - len(ranks)
    return (sum(ranks) - Fraction(n_positive * (n_positive + 1), 2)) / (n_positive * n_negative)


def voc_curve(flags: Sequence[int], scores: Sequence[float]) -> tuple[list[float], list[float]]:
    """Recall and precision at every rank, flags being 1, 0 (difficult) or -1. Source:
    VOCevalcls.m, line by line."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])  # stable, as MATLAB's sort
    tp = fp = 0
    recall, precision = [], []
    for i in order:
        tp += flags[i] > 0
        fp += flags[i] < 0
        recall.append(tp / flags.count(1))
        precision.append(tp / (tp + fp) if tp + fp else math.nan)
    return recall, precision


def at_k(truth: Sequence[int], scores: Sequence[float], k: int) -> tuple[float, float, float]:
    """Precision, recall and AP (over the possible hits) of one query's first k ranks; there is
    something relevant."""
    ranked = [truth[i] for i in sorted(range(len(scores)), key=lambda i: -scores[i])][:k]
    precisions = [sum(ranked[: i + 1]) / (i + 1) for i, hit in enumerate(ranked) if hit]
    return sum(ranked) / k, sum(ranked) / sum(truth), sum(precisions) / min(k, sum(truth))


def best(
    truth: Sequence[int], scores: Sequence[float], value: Callable[[Fraction, Fraction], Fraction]
) -> tuple[float, Fraction]:
    """The highest threshold among those of the highest value(precision, recall), and that value."""
    points = curve(truth, scores)
    top = max(value(precision, recall) for _, recall, precision in points)
    return next(
        (threshold, top)
        for threshold, recall, precision in points
        if value(precision, recall) == top
    )
