"""Curves with the true positives of each group of tied scores first, and last."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import each_batch
from detmap.core.curves import counts
from detmap.core.curves.scores import Scores
from detmap.core.curves.terms import Blocks, restricted
from detmap.core.matching.matches import Matches
from detmap.kernels import curves as curve_kernels
from detmap.kernels.resampling import tied as kernels


def extremes_of(
    matches: Matches, scores: Scores, threads: int | None = None
) -> tuple[Scores, Scores]:
    """Returns the lowest and the highest scores with fixed match results."""
    setting = Setting(matches, scores)
    low: Any
    high: Any
    if isinstance(scores.terms, Blocks):
        low, high = (_blocks(matches, scores.terms, setting, which, threads) for which in range(2))
    else:
        low, high = _extreme_terms(matches, scores.terms, setting, threads)
    return replace(scores, terms=low), replace(scores, terms=high)


def _blocks(
    matches: Matches, terms: Blocks, setting: Setting, which: int, threads: int | None
) -> Blocks:
    """The lowest (0) or highest (1) terms, computed on demand."""

    def make(a: int, thresholds: slice, some: slice) -> NDArray[np.float64]:
        part = setting.part(a, thresholds, some)
        base = terms.make(a, thresholds, some)[None]
        extreme: NDArray[np.float64] = _extreme_terms(matches, base, part, threads)[which][0]
        return extreme

    return Blocks(terms.shape, make)


def _extreme_terms(
    matches: Matches, terms: NDArray[np.float64], setting: Setting, threads: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest terms (A, T, R, J)."""
    low, high = (terms.transpose(3, 0, 1, 2).copy(order="C") for _ in range(2))

    def some(classes: NDArray[np.int32]) -> None:
        most = int(setting.most[classes].max())
        best, worst = (
            curve_kernels.empty_true_positives(terms.shape[0], terms.shape[1], most)
            for _ in range(2)
        )
        recall, precision = np.empty((2, most))
        kernels.score_extreme_orders(
            classes,
            setting.ranked,
            matches.score,
            setting.positives,
            setting.rule,
            best,
            worst,
            recall,
            precision,
            setting.place,
            low,
            high,
        )

    each_batch(some, np.diff(matches.off), threads)
    lowest, highest = (np.ascontiguousarray(each.transpose(1, 2, 3, 0)) for each in (low, high))
    return lowest, highest


class Setting:
    """The inputs of the kernels for tied scores."""

    def __init__(self, matches: Matches, scores: Scores) -> None:
        ap = matches.protocol.ap
        self.ranked = curve_kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
        self.rule = curve_kernels.Integrator(ap.rule.code(), ap.points(), ap.epsilon)
        self.positives = counts.positives(matches)
        self.most = np.minimum(np.diff(matches.off), np.diff(matches.obj_off))
        self.place = np.full(len(self.positives), -1)
        self.place[scores.judged] = np.arange(len(scores.judged))
        n_areas, n_thresholds, n_terms, n_judged = scores.terms.shape
        self.shape = n_judged, n_areas, n_thresholds, n_terms

    def part(self, a: int, thresholds: slice, some: slice) -> Setting:
        """Returns one area range, and some thresholds and classes."""
        part = copy.copy(self)
        part.ranked = restricted(self.ranked, a, thresholds)
        part.positives = np.ascontiguousarray(self.positives[:, a : a + 1])
        chosen = (self.place >= some.start) & (self.place < some.stop)
        part.place = np.where(chosen, self.place - some.start, -1)
        return part
