"""Calls of the compiled curve kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import each_batch
from detmap.core.curves import terms
from detmap.core.matching.matches import Matches
from detmap.core.protocol import AveragePrecision
from detmap.core.tables.grouping import sizes


def empty_summary(
    n_objects: NDArray[Any], judged: NDArray[np.int64], sizes: tuple[int, int, int]
) -> Any:
    """Returns the kernels' output arrays for the classes `judged` of n_objects (K, A).

    `sizes` are the numbers of limits, thresholds and terms.
    """
    from detmap.kernels import curves as kernels

    (n_classes, n_areas), (n_limits, n_thresholds, n_terms) = n_objects.shape, sizes
    place = np.full(n_classes, -1)
    place[judged] = np.arange(len(judged))
    kind = n_objects.dtype
    return kernels.Summary(
        place,
        np.full((len(judged), n_areas, n_thresholds, n_terms), np.nan),
        np.empty((n_classes, n_areas, n_thresholds), dtype=kind),
        np.empty((n_classes, n_areas, n_thresholds), dtype=kind),
        np.empty((len(judged), n_limits, n_areas, n_thresholds), dtype=kind),
    )


def integrate(
    matches: Matches,
    ranked: Any,
    positives: NDArray[Any],
    limits: NDArray[np.int64],
    rule: Any,
    weight: NDArray[np.float64] | None,
    summary: Any,
    classes: NDArray[np.int32],
    threads: int | None,
) -> None:
    """Fills the summary for some classes."""
    from detmap.kernels import curves as kernels

    n_areas, n_thresholds = summary.n_tp.shape[1:]
    n_rows = sizes(matches.off)
    most = np.minimum(n_rows, sizes(matches.obj_off))

    def score_weighted(some: NDArray[np.int32]) -> None:
        from detmap.kernels.resampling import weighted

        scratch = weighted.empty_weighted(n_areas, n_thresholds, int(most[some].max()))
        recall, precision = np.empty((2, scratch.true_at.shape[2]))
        weighted.score_weighted_classes(
            some,
            ranked,
            matches.image,
            weight,
            positives,
            limits,
            rule,
            scratch,
            recall,
            precision,
            weighted.WeightedSummary(*summary),
        )

    def score_some(some: NDArray[np.int32]) -> None:
        scratch = kernels.empty_true_positives(n_areas, n_thresholds, int(most[some].max()))
        recall, precision = np.empty((2, scratch.false_before.shape[2]))
        kernels.score_classes(
            some, ranked, positives, limits, rule, scratch, recall, precision, summary
        )

    score = score_some if weight is None else score_weighted
    each_batch(lambda batch: score(classes[batch]), n_rows[classes], threads)


def block(
    matches: Matches,
    ranked: Any,
    positives: NDArray[Any],
    limits: NDArray[np.int64],
    ap: AveragePrecision,
    weight: NDArray[np.float64] | None,
    classes: NDArray[np.int64],
    a: int,
    thresholds: slice,
    threads: int | None,
) -> NDArray[np.float64]:
    """(T', R, J') the terms of some classes in one area range."""
    from detmap.kernels import curves as kernels

    points = ap.points()
    chosen = np.ascontiguousarray(positives[:, a : a + 1])
    n_thresholds = thresholds.stop - thresholds.start
    n_terms = len(points) if ap.rule.samples else 1
    summary = empty_summary(chosen, classes, (len(limits), n_thresholds, n_terms))
    part = terms.restricted(ranked, a, thresholds)
    rule = kernels.Integrator(ap.rule.kernel, points, ap.epsilon)
    some = classes.astype(np.int32)
    integrate(matches, part, chosen, limits, rule, weight, summary, some, threads)
    return np.ascontiguousarray(summary.terms[:, 0].transpose(1, 2, 0))
