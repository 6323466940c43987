"""The numbers of a ranking on all samples and on subsets of them, for confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import AveragePrecision
from detmap.core.statistics import evaluations, refusals
from detmap.core.statistics.estimates import (
    OF_ONE,
    RULE_OF_BEST,
    WIDER,
    Estimates,
    Rule,
    rule_of_ap,
    rule_of_one,
)
from detmap.core.statistics.evaluations import Evaluated, alone_rule
from detmap.core.statistics.sampling_units import Units
from detmap.core.statistics.subsets import Progress, Subsets

if TYPE_CHECKING:
    from detmap.ranking.ranking_result import RankingResult

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Cells = Sequence[NDArray[np.bool_]]
OF_CLASS = ("AP", "AUC", "best_f1", "accuracy", "precision", "recall", "f1")
"""The columns of the per-class table that are fractions."""

RULE_OF_RANKS = Rule(wider=WIDER)
"""Of AUC and of AP without an envelope."""

RULE_OF_PRECISIONS = Rule(wider=1.2, of_bias=OF_ONE)
"""Of a mean over classes of which some are seldom predicted."""


def evaluate_ranking(
    whole: RankingResult,
    subsets: Subsets,
    *,
    classes: bool = True,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate a ranking on each subset.

    Parameters
    ----------
    subsets : of the samples in ascending order of their ids, so that the order of the rows of the
        files does not matter
    classes : whether to evaluate the per-class table
    """
    place = np.argsort(np.argsort(np.array(whole.table.ids)))  # of each row
    units = replace(subsets.units, of_image=subsets.units.of_image[place])
    rules = replace(whole.rules, ap=evaluations.smooth_rule(whole.rules.ap))
    columns = [name for name in OF_CLASS if classes and name in whole.per_class[0]]

    def numbers(of: RankingResult) -> Floats:
        cells = [row[name] for name in columns for row in of.per_class]
        return np.array([*of.metrics.values(), *cells], dtype=np.float64)

    smooth, value = replace(whole, rules=rules), numbers(whole)
    parts = evaluations.each_subset(
        lambda keep: numbers(smooth.part(keep[place])), [*subsets.keep], len(value), 1, progress
    )
    why = [_lacking(name, whole.per_class) for name in whole.metrics]
    why += [_lacking(name, [row]) for name in columns for row in whole.per_class]
    rules_of_numbers = zip(_rules(whole, columns, units), why, strict=True)
    listed = tuple(rule._replace(undefined=each) for rule, each in rules_of_numbers)
    estimates = Estimates(value, numbers(smooth), parts, subsets, listed)
    cells = [(k, name) for name in columns for k in range(len(whole.table.classes))]
    return Evaluated(tuple(whole.metrics), tuple(cells), estimates)


def _lacking(name: str, classes: Sequence[Mapping[str, Any]]) -> str:
    """Why a number of these rows of the per-class table is undefined, if it is."""
    kind = name.partition("@")[0].removeprefix("m")
    lacking = (row for row in classes if math.isnan(row.get(kind, math.nan)))
    reasons = dict.fromkeys(
        "no positive sample"
        if not row["positives"] and kind != "precision"
        else "no negative sample"
        if kind == "AUC" and row["positives"] == row["samples"]
        else "no prediction"
        for row in lacking
    )
    return " or ".join(reasons) or "no prediction"


def _rules(whole: RankingResult, columns: Sequence[str], units: Units) -> Iterator[Rule]:
    """The rules of the metrics, then of the numbers of each class."""
    positive, ap = whole.positive, whole.rules.ap
    called = whole.counted & (whole.table.score >= (whole.threshold or 0.0))
    needed = {
        "AUC": (positive, whole.counted & ~positive),
        "accuracy": (whole.counted,),
        "precision": (positive, called),
    }
    few = ""
    if evaluations.has_few_points(ap):
        few = refusals.reason("points", units, option="--integrator")
    for name, average, _ in whole.averages:
        kind = name.partition("@")[0].removeprefix("m") if average != "queries" else ""
        of: Cells = needed.get(kind, (positive,))
        if average in ("macro", "weighted"):
            shares = whole.positives if average == "weighted" else np.ones(len(whole.positives))
            yield _mean_rule(whole, kind, shares, _units_with(of, units), units, few)
            continue
        some = [np.asarray(each.any(axis=1, keepdims=True)) for each in of]
        m = int(_units_with(some, units)[0])
        why = refusals.refuse_class(m, units, "cases")
        rule = Rule()
        if average == "micro":
            rule = _one_rule(ap, kind, units).refused(few * (kind == "AP"))
        yield rule.refused(why)._replace(alone=m)
    for name in columns:
        counts = _units_with(needed.get(name, (positive,)), units).tolist()
        for m, row in zip(counts, whole.per_class, strict=True):
            nearly = name == "best_f1" and 0 < (1 - row[name]) * m < refusals.LEAST_MISSED
            why = refusals.reason("missed", units) if nearly else few * (name == "AP")
            yield alone_rule(_one_rule(ap, name, units), m, units, why)


def _mean_rule(
    whole: RankingResult, kind: str, shares: Floats, m: Counts, units: Units, few: str
) -> Rule:
    """The rule of a mean over classes, which have cases on m units."""
    n, ap = int((m > 0).sum()), whole.rules.ap
    if n == 1 and whole.rules.undefined == "skip":
        return alone_rule(_one_rule(ap, kind, units), int(m.max()), units, few * (kind == "AP"))
    rule = _one_rule(ap, kind, units)
    if kind == "AP" and ap.integrator != "step":
        step = rule.step / math.sqrt(max(1, n))
        rule = rule_of_ap(n, step)._replace(nearly=rule.nearly)
    elif kind == "precision":
        rule = RULE_OF_PRECISIONS
    return rule.refused(refusals.refuse_mean(shares, m, units))


def _one_rule(ap: AveragePrecision, kind: str, units: Units) -> Rule:
    """The rule of a number of one list."""
    if kind == "AP" and ap.integrator != "step":
        nearly = evaluations.nearly_perfect(ap, units, "--integrator")
        return rule_of_one(evaluations.step_of_points(ap))._replace(nearly=nearly)
    if kind in ("AP", "AUC"):
        return RULE_OF_RANKS
    return RULE_OF_BEST if kind == "best_f1" else Rule()


def _units_with(of: Cells, units: Units) -> Counts:
    """(K,) units with a sample of each kind, of (N, K) cells; the lowest number of all kinds."""
    counts = [
        [np.count_nonzero(np.bincount(units.of_image[column])) for column in cells.T]
        for cells in of
    ]
    least: Counts = np.array(counts, dtype=np.int64).min(axis=0)
    return least
