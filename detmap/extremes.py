"""Every curve with the true positives of each group of equal scores first, and last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.base.parallel import each_batch
from detmap.curves import counts as counting
from detmap.curves.scores import Scores
from detmap.kernels import curves as curve_kernels
from detmap.kernels.resampling import tied as kernels
from detmap.matching.matches import Matches


def extremes_of(
    matches: Matches, scores: Scores, threads: int | None = None
) -> tuple[Scores, Scores]:
    """The scores with every cell at its lowest, and at its highest, while verdicts stay."""
    setting = Setting(matches, scores)
    low, high = (scores.terms.transpose(3, 0, 1, 2).copy(order="C") for _ in range(2))

    def some(classes: NDArray[np.int32]) -> None:
        most = int(setting.most[classes].max())
        best, worst = (
            curve_kernels.empty_true_positives(*setting.shape[1:3], most) for _ in range(2)
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
    lowest, highest = (
        replace(scores, terms=np.ascontiguousarray(terms.transpose(1, 2, 3, 0)))
        for terms in (low, high)
    )
    return lowest, highest


class Setting:
    """What the kernels of tied scores take."""

    def __init__(self, matches: Matches, scores: Scores) -> None:
        ap = matches.protocol.ap
        self.ranked = curve_kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
        self.rule = curve_kernels.Integrator(ap.rule.kernel, ap.points(), ap.epsilon)
        self.positives = counting.positives(matches)
        self.most = np.minimum(np.diff(matches.off), np.diff(matches.obj_off))
        self.place = np.full(len(self.positives), -1)
        self.place[scores.judged] = np.arange(len(scores.judged))
        n_areas, n_thresholds, n_terms, n_judged = scores.terms.shape
        self.shape = n_judged, n_areas, n_thresholds, n_terms
