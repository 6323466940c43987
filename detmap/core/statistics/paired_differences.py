"""Paired differences of detectors on the same images: standard errors from differences of the
influence functions, bias from shared replicates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from detmap.core.curves import aggregation
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.protocol.metric_rows import MetricRow
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.bias import Bias, bias, total_error
from detmap.core.statistics.class_terms import Plan, occurring, plan
from detmap.core.statistics.influence import Mixer, each_batch, variance
from detmap.core.statistics.intervals import spread
from detmap.core.statistics.sampling_units import Units
from detmap.errors import DataError, few

MOST_KEPT = 1 << 21  # replicates of classes: those of 16,000 classes take 100 MB
LEAST_DRAWN = 48  # replicates for standard errors without any interval


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """m detectors on the same units, and the differences of their P pairs, later minus earlier.

    Parameters
    ----------
    plans : of the detectors, on the K classes that occur; units : the sampling units
    pairs : (first, second) positions of detectors
    values : (m, Q) the metrics; class_values : (m, C, K)
    moved : (m, Q, U) influence on the metrics, with the leverage correction
    se, bias : (P, Q); class_se, class_bias : (P, C, K); se is that of the difference minus its bias
    draws : (B, P, Q) the differences in the replicates, as far apart as `se` says;
        class_draws : (B, P, C, k), of k of the classes; B is lower than asked for where nothing has
        an interval and the classes are many
    drawn : (k,) their positions among the K: all, or those with an interval
    why_not : (Q,) why the differences of a metric have no interval, "" if they have one;
        class_why_not : (C, K)
    """

    plans: list[Plan]
    units: Units
    pairs: list[tuple[int, int]]
    values: NDArray[np.float64]
    class_values: NDArray[np.float64]
    moved: NDArray[np.float64]
    se: NDArray[np.float64]
    bias: NDArray[np.float64]
    class_se: NDArray[np.float64]
    class_bias: NDArray[np.float64]
    draws: NDArray[np.float64]
    class_draws: NDArray[np.float64]
    drawn: NDArray[np.int64]
    why_not: list[str]
    class_why_not: list[list[str]]


def require_comparable(names: Sequence[str], matches: Sequence[Matches]) -> None:
    """Raise `DataError` if protocol, classes, images or ground truth differ, and name which."""
    first = matches[0]
    for name, other in zip(names[1:], matches[1:], strict=True):
        both = f"{names[0]} and {name}"
        if protocol_digest(first.protocol) != protocol_digest(other.protocol):
            own, its = first.protocol.to_dict(), other.protocol.to_dict()
            keys = [key for key in own if own[key] != its[key]]
            raise DataError(
                "compare: protocol",
                f"{both} differ in {few(keys)}",
                "match both under one protocol",
            )
        if first.categories != other.categories:
            strange = sorted(set(first.categories.names) ^ set(other.categories.names))
            raise DataError(
                "compare: classes", f"{both} differ: {few(strange)}", "match both on one truth"
            )
        if not np.array_equal(first.image_ids, other.image_ids):
            strange = sorted(set(first.image_ids.tolist()) ^ set(other.image_ids.tolist()))
            raise DataError(
                "compare: images", f"{both} differ: {few(strange)}", "match both on the same images"
            )
        other_truth = (first.digest[:, 0] != other.digest[:, 0]).nonzero()[0]
        if len(other_truth):
            where = few(first.image_ids[other_truth].tolist())
            raise DataError(
                "compare: truth", f"{both} have other objects on {where}", "match both on one truth"
            )


def pair_up(
    results: Sequence[tuple[Matches, Scores]],
    units: Units,
    n: int,
    seed: int,
    *,
    threads: int | None = None,
    progress: drawing.Progress = drawing.silent,
) -> Paired:
    """Compute the metrics of all detectors and the differences of all pairs.

    Parameters
    ----------
    results : of the same images and protocol
    units : the sampling units; n, seed : number and seed of the replicates
    """
    # Over 60 lines: metrics and classes take the same steps, on arrays of one axis more.
    protocol = results[0][0].protocol
    rows, of_class = protocol.rows()[0], aggregation.class_rows(protocol)
    values, class_values = _values(results, rows, of_class)
    plans = occurring([plan(matches, rows, of_class) for matches, _ in results])
    first = plans[0]  # all have the same rows and classes
    class_values = class_values[:, :, first.places]
    pairs = list(combinations(range(len(plans)), 2))
    moved, class_se, n_units = _influence(plans, units, pairs, threads)
    se = np.array([[math.sqrt(variance(each)) for each in moved[b] - moved[a]] for a, b in pairs])
    why_not = [
        support.refuse_rule(protocol, row.kind) or _why_not(first, q, n_units, units)
        for q, row in enumerate(rows)
    ]
    rules = [support.refuse_rule(protocol, row.kind) for row in of_class]
    class_why_not = [
        [rule or support.refuse_class(m, units) for m in n_units[s].tolist()]
        for rule, s in zip(rules, first.of_class, strict=True)
    ]
    drawn = _drawn_classes(rules, class_why_not, n * len(pairs))
    undefined = ~first.has_objects().any(axis=1)
    if all(undefined | np.array(list(map(bool, why_not)))) and all(map(all, class_why_not)):
        n = drawing.affordable(n, len(first.places), LEAST_DRAWN)
    sampled, off = _resample(plans, units, n_units, n, seed, threads, progress, drawn)
    draws = np.stack([sampled[b].metrics - sampled[a].metrics for a, b in pairs], axis=1)
    class_draws = np.stack([sampled[b].classes - sampled[a].classes for a, b in pairs], axis=1)
    of_bias = np.array([off[b].errors_of_difference(off[a]) for a, b in pairs])
    class_bias = np.array([off[b].classes - off[a].classes for a, b in pairs])
    differ, class_differ = (
        np.array([each[b] - each[a] for a, b in pairs]) for each in (values, class_values)
    )
    for q, (row, why) in enumerate(zip(rows, why_not, strict=True)):
        if why:  # the replicates include the variation of which classes a sample has
            se[:, q] = _spreads(draws[:, :, q])
        else:
            _widen(se[:, q], of_bias[:, q], differ[:, q], draws[:, :, q], row)
    for c, (row, s, rule) in enumerate(zip(of_class, first.of_class, rules, strict=True)):
        if rule:
            class_se[:, c] = [_spreads(class_draws[:, p, c]) for p in range(len(pairs))]
        class_se[:, c, n_units[s] < 2] = np.nan  # one unit has no variance
        for i, k in enumerate(drawn.tolist()):
            if not class_why_not[c][k]:
                own, apart = class_se[:, c, k], class_differ[:, c, k]
                _widen(own, np.abs(class_bias[:, c, k]), apart, class_draws[:, :, c, i], row)
    return Paired(
        plans,
        units,
        pairs,
        values,
        class_values,
        moved,
        se,
        np.array([off[b].metrics - off[a].metrics for a, b in pairs]),
        class_se,
        class_bias,
        draws,
        class_draws,
        drawn,
        why_not,
        class_why_not,
    )


def _resample(
    plans: Sequence[Plan],
    units: Units,
    n_units: NDArray[np.int64],
    n: int,
    seed: int,
    threads: int | None,
    progress: drawing.Progress,
    drawn: NDArray[np.int64],
) -> tuple[list[drawing.Replicates], list[Bias]]:
    """Return the replicates and the bias of each detector; both read its rows once."""
    sampled, off = [], []
    for i, each in enumerate(plans):

        def told(done: int, of: int, i: int = i) -> None:
            progress(i * of + done, len(plans) * of)

        read = drawing.reader(each)
        sampled.append(
            drawing.replicates(
                each, units, n, seed, threads=threads, progress=told, read=read, kept=drawn
            )
        )
        off.append(bias(each, units, n_units, n, seed, threads, read))
    return sampled, off


def _drawn_classes(
    rules: Sequence[str], class_why_not: Sequence[Sequence[str]], n: int
) -> NDArray[np.int64]:
    """The classes whose n replicates are kept: of many, those with an interval; but all, if a
    rule's standard errors are the spread of replicates.
    """
    refused = np.array([[bool(why) for why in of_row] for of_row in class_why_not])
    if any(rules) or n * refused.size <= MOST_KEPT:
        return np.arange(refused.shape[1])
    return np.flatnonzero(~refused.all(axis=0))


def _values(
    results: Sequence[tuple[Matches, Scores]],
    rows: Sequence[MetricRow],
    of_class: Sequence[MetricRow],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(detectors, metrics), and (detectors, class metrics, K)."""
    means = [
        [aggregation.mean(scores, row, matches.protocol, matches.categories) for row in rows]
        for matches, scores in results
    ]
    classes = [
        [aggregation.per_class(scores, row, matches.protocol) for row in of_class]
        for matches, scores in results
    ]
    return np.array(means), np.array(classes)


def _why_not(first: Plan, q: int, n_units: NDArray[np.int64], units: Units) -> str:
    """Why the differences of a metric have no interval."""
    here = n_units[first.of_metric[q]]
    alone = np.flatnonzero(first.has_objects()[q])
    if len(alone) == 1 and first.protocol.mean.undefined == "skip":
        return support.refuse_class(int(here[alone[0]]), units)
    return support.refuse_mean(first.shares()[q], here, units)


def _influence(
    plans: list[Plan], units: Units, pairs: list[tuple[int, int]], threads: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(m, Q, U) influence on metrics, (P, C, K) standard errors of the differences of classes, and
    (S, K) units with an object to find.
    """
    first = plans[0]
    n_metrics, n_classes = len(first.metrics), len(first.positives)
    moved = np.zeros((len(plans), n_metrics, units.n))
    class_se = np.empty((len(pairs), len(first.of_class), n_classes))
    n_units = np.zeros((len(first.readings.area), n_classes), np.int64)
    mixers = [Mixer(each) for each in plans]
    streams = zip(*(each_batch(each, units, threads) for each in plans), strict=True)
    for each in streams:
        for i, mixer in enumerate(mixers):
            mixer.add(each[i], [(moved[i], each[i].corrected)])
        batch = each[0]  # all have the same classes and objects
        mine = slice(batch.classes.start, batch.classes.stop)
        n_units[:, mine] = batch.n_units
        for p, (a, b) in enumerate(pairs):
            apart = each[b].variances_of_difference(each[a], units.n)
            class_se[p, :, mine] = np.sqrt(apart[list(first.of_class)])
    for i, mixer in enumerate(mixers):
        mixer.finish([moved[i]])
    return moved, class_se, n_units


def _widen(
    se: NDArray[np.float64],
    of_bias: NDArray[np.float64],
    differ: NDArray[np.float64],
    draws: NDArray[np.float64],
    row: MetricRow,
) -> None:
    """Add the error of the bias to (P,) standard errors and to the spread of (B, P) replicates, in
    place; not to a standard error that is rounding.
    """
    for p in np.flatnonzero(se > support.ROUNDING).tolist():
        error = total_error(float(se[p]), float(of_bias[p]), row.kind == "AP")
        draws[:, p] = differ[p] + (draws[:, p] - differ[p]) * (error / se[p])
        se[p] = error


def _spreads(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) standard deviations of (B, m) differences, undefined ones left out."""
    return np.array([spread(column[~np.isnan(column)]) for column in draws.T])
