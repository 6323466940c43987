"""The numbers of a result on all images and on each subset of them.

Nothing is asked of a metric but its value on some images. Where match rows can be divided by
images, the subsets select rows, and nothing is matched again; other rules evaluate each subset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import map_ordered
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.matching.part import Part
from detmap.core.protocol import AveragePrecision, Protocol
from detmap.core.protocol.metric_rows import POINT, MetricRow
from detmap.core.statistics import refusals
from detmap.core.statistics.estimates import (
    OF_STEP,
    RULE_OF_BEST,
    Estimates,
    Rule,
    rule_of_ap,
    rule_of_one,
)
from detmap.core.statistics.sampling_units import Units
from detmap.core.statistics.subsets import Progress, Subsets, silent
from detmap.core.tables.grouping import labels
from detmap.errors import DataError

Floats = NDArray[np.float64]
RATIOS = ("AR", *POINT)
MANY_POINTS = 101  # of recall: their AP is the area under the envelope but for a step


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """The estimates of a result: its Q metrics, then C numbers of each of k classes.

    Parameters
    ----------
    metrics : (Q,) names
    cells : (class, name) of each further number; classes by position
    estimates : (Q + C k) numbers
    """

    metrics: tuple[str, ...]
    cells: tuple[tuple[int, str], ...]
    estimates: Estimates


def evaluate_matches(
    matches: Matches,
    scores: Scores,
    subsets: Subsets,
    *,
    rows: Sequence[MetricRow],
    classes: bool = True,
    part: Callable[[NDArray[np.bool_]], Matches] | None = None,
    extra: Mapping[str, float] = MappingProxyType({}),
    extra_of: Callable[[NDArray[Any]], Mapping[str, float]] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate the metrics and the per-class table of match rows on each subset.

    Parameters
    ----------
    scores : of all images
    rows : of the metrics
    classes : whether to evaluate the rows of the per-class table
    part : matches the images where (I,) bool is true anew (default: their match rows are taken)
    extra, extra_of : further metrics, which are means over classes, and the function that returns
        them for some images, given by id
    threads : number of threads; each evaluates a subset
    """
    protocol, categories = matches.protocol, matches.categories
    of_class = aggregation.class_rows(protocol) if classes else ()
    places, bare = scores.judged, replace(matches, notes=())
    smooth = smooth_rule(protocol.ap)
    shown = replace(protocol, ap=smooth)

    def numbers(of: Scores, rules: Any, more: Mapping[str, float]) -> Floats:
        means = [aggregation.mean(of, row, rules, categories) for row in rows]
        cells = [aggregation.per_class(of, row, rules)[places] for row in of_class]
        return np.concatenate([means, [more[name] for name in extra], *cells])

    def evaluate(keep: NDArray[np.bool_]) -> Floats:
        try:
            some = part(keep) if part else Part.on(bare, keep)
            more = extra_of(matches.image_ids[keep]) if extra_of else {}
        except DataError:  # such as equal scores that cannot be scaled: undefined on this subset
            return np.full(len(value), np.nan)
        return numbers(curves.scores(some, smooth, threads=1), shown, more)

    value = whole = numbers(scores, protocol, extra)
    if smooth is not protocol.ap:
        by_area = curves.scores(matches, smooth, threads=threads)
        whole = numbers(by_area, shown, extra)
    threads = 1 if part or extra_of else threads
    parts = each_subset(evaluate, list(subsets.keep), len(value), threads, progress)
    listed = tuple(_rules(matches, scores, rows, extra, of_class, subsets.units))
    cells = [(int(k), row.name) for row in of_class for k in places]
    estimates = Estimates(value, whole, parts, subsets, listed)
    return Evaluated((*(row.name for row in rows), *extra), tuple(cells), estimates)


def each_subset(
    on: Callable[[Any], Floats],
    items: Sequence[Any],
    n: int,
    threads: int | None,
    progress: Progress | None,
) -> Floats:
    """(E, n) numbers of each subset."""
    found, told = np.empty((len(items), n)), progress or silent
    for done, numbers in enumerate(map_ordered(on, items, threads)):
        found[done] = numbers
        told(done + 1, len(items))
    return found


def smooth_rule(ap: AveragePrecision) -> AveragePrecision:
    """The rule for the subsets: AP at many evenly spaced points of recall steps where the last
    point is lost, and the subsets do not show how often; the area under the same envelope does.
    """
    at_points = ap.integrator in ("grid_envelope", "eleven_point")
    points = ap.points() if at_points else np.empty(0)
    if len(points) < MANY_POINTS:
        return ap
    even = np.allclose(points, np.linspace(0.0, 1.0, len(points)), rtol=0, atol=1e-6)
    return replace(ap, integrator="all_points") if even else ap


def step_of_points(ap: AveragePrecision) -> float:
    """Standard error of AP that subsets by `smooth_rule` do not show."""
    return 0.0 if smooth_rule(ap) is ap else 1 / (len(ap.points()) * OF_STEP)


def nearly_perfect(ap: AveragePrecision, units: Units, option: str) -> tuple[float, str]:
    """`Rule.nearly` of AP by this rule, which an option changes."""
    if smooth_rule(ap) is ap:
        return 0.0, ""
    step = 1 / len(ap.points())
    return refusals.LEAST_STEPS * step, refusals.reason("steps", units, step=step, option=option)


def has_few_points(ap: AveragePrecision) -> bool:
    """Whether AP of a single class has no interval."""
    return bool(ap.rule.points) and len(ap.points()) < MANY_POINTS


def _rules(
    matches: Matches,
    scores: Scores,
    rows: Iterable[MetricRow],
    extra: Iterable[str],
    of_class: Iterable[MetricRow],
    units: Units,
) -> Iterator[Rule]:
    """The rules of the numbers of `evaluate_matches`."""
    protocol, categories, ap = matches.protocol, matches.categories, matches.protocol.ap
    m = units_of_classes(matches, units)
    few, step = has_few_points(ap), step_of_points(ap)
    nearly = nearly_perfect(ap, units, "--set ap.integrator")
    shares = np.ones(len(categories))
    if protocol.mean.weights == "images":
        shares = scores.n_images.astype(np.float64)

    def step_of(row: MetricRow, n: int) -> float:  # of a mean over thresholds and n classes
        return step / math.sqrt(max(1, n) * (1 if row.iou else len(protocol.thresholds())))

    def alone(row: MetricRow, rule: Rule, n: int) -> Rule:
        why = ""
        if few and row.kind == "AP":
            why = refusals.reason("points", units, option="--set ap.integrator")
        return alone_rule(rule, n, units, why, _search(row.name in searched, units))

    searched = at_best_score(protocol)
    for row in rows:
        subset = protocol.subset(row.subset)
        here = m[subset].copy()
        if row.group:
            members = aggregation.classes_of(row.group, protocol, categories)
            here[np.setdiff1d(np.arange(len(here)), members)] = 0
        n = int((here > 0).sum())
        rule = _ratio(row, protocol) if row.kind in RATIOS else rule_of_ap(n)
        if row.kind == "AP":
            rule = rule._replace(step=step_of(row, n), nearly=nearly)
        effective = effective_units(matches, subset, shares * (here > 0), units)
        rule = rule._replace(effective=effective)
        if n == 1 and (protocol.mean.undefined == "skip" or len(categories) == 1):
            yield alone(row, rule, int(here.max()))
            continue
        why = refusals.refuse_mean(shares, here, units)
        if not why and n and row.kind == "AR":
            even = evenness(matches, subset, row.max_dets, units)
            why = refusals.refuse_uneven(float(even[here > 0].mean()), row.max_dets, units)
        yield rule.refused(why, _search(row.name in searched, units))
    yield from _rules_of_extra(matches, extra, m[protocol.subset()], shares, units)
    for row in of_class:
        subset = protocol.subset(row.subset)
        here = m[subset] > 0
        lone = np.count_nonzero(here) == 1  # so the metric is the same number
        rule = _ratio(row, protocol)
        if row.kind in ("AP", "MR"):
            rule = (rule_of_ap(1) if lone else rule_of_one())._replace(step=step_of(row, 1))
        if row.kind == "AP":
            rule = rule._replace(nearly=nearly)
        if lone:
            rule = rule._replace(effective=effective_units(matches, subset, shares * here, units))
        for n in m[subset][scores.judged].tolist():
            yield alone(row, rule, n)


def _rules_of_extra(
    matches: Matches, extra: Iterable[str], m: NDArray[np.int64], shares: Floats, units: Units
) -> Iterator[Rule]:
    """The rules of the metrics of ``evaluation.extra``; m (K,) units with an object."""
    main, here = matches.protocol.subset(), m > 0
    n, why = int(here.sum()), refusals.refuse_mean(shares, m, units)
    effective = effective_units(matches, main, shares * here, units)
    for name in extra:
        rule, limit = rule_of_ap(n), name.removeprefix("AR")
        if limit.isdigit() and n:
            even = float(evenness(matches, main, int(limit), units)[here].mean())
            rule = Rule().refused(why, refusals.refuse_uneven(even, int(limit), units))
        elif name.startswith("oLRP"):
            rule = RULE_OF_BEST
        rule = rule._replace(effective=effective)
        yield alone_rule(rule, int(m.max()), units) if n == 1 else rule.refused(why)


def _ratio(row: MetricRow, protocol: Protocol) -> Rule:
    """The rule of recall, and of precision and F1 at a score."""
    best = row.kind == "F1" and protocol.operating.rule != "above"
    return RULE_OF_BEST if best else Rule()


def at_best_score(protocol: Protocol) -> set[str]:
    """The rows of precision and recall at the score of the best F1."""
    searched = protocol.operating.rule != "above"
    return {row.name for row in protocol.rows()[0] if searched and row.kind in ("P", "R")}


def _search(searched: bool, units: Units) -> str:
    """Why a number has no interval if it is one of `at_best_score`."""
    return refusals.reason("search", units) if searched else ""


def alone_rule(rule: Rule, m: int, units: Units, *reasons: str) -> Rule:
    """The rule of a number of a single class that has objects on m units."""
    return rule.refused(refusals.refuse_class(m, units), *reasons)._replace(alone=m)


def units_of_classes(matches: Matches, units: Units) -> NDArray[np.int64]:
    """(A, K) units with an object of each class, of those in the denominator of recall."""
    label, unit = labels(matches.obj_off), units.of_image[matches.obj_image]
    cells = [count_cells(label[some], unit[some], units.n)[0] for some in _in_recall(matches).T]
    return np.array([np.bincount(of, minlength=len(matches.categories)) for of in cells])


def _in_recall(matches: Matches) -> NDArray[np.bool_]:
    """(N, A) the objects in the denominator of recall."""
    return matches.counted | (matches.protocol.ap.recall_over != "counted")


def count_cells(
    label: NDArray[Any], place: NDArray[Any], n_places: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The class of each pair of a class and a place, and how many objects it has."""
    cell, count = np.unique(label.astype(np.int64) * n_places + place, return_counts=True)
    return cell // max(1, n_places), count


def effective_units(matches: Matches, subset: int, shares: Floats, units: Units) -> float:
    """(sum w)^2 / sum w^2 of the shares w of the units in a mean over classes; a unit's share in a
    class is that of the objects.

    Parameters
    ----------
    shares : (K,) weight of each class in the mean

    Source: Kish 1965, Survey Sampling: the effective sample size.
    """
    counted = _in_recall(matches)[:, subset]
    label, image = labels(matches.obj_off)[counted], matches.obj_image[counted]
    n = np.bincount(label, minlength=len(shares))
    w = np.bincount(units.of_image[image], (shares / np.maximum(n, 1))[label], units.n)
    return float(w.sum() ** 2 / np.square(w).sum()) if w.any() else math.inf


def evenness(matches: Matches, subset: int, limit: int, units: Units) -> Floats:
    """(K,) how evenly the units have the objects of a class, (sum c)^2 / (m sum c^2) of c objects
    on each of m units; 1 where no image has half as many objects as the detection limit.

    Source: Kish 1965, Survey Sampling: the effective sample size.
    """
    counted, n = matches.counted[:, subset], len(matches.categories)
    label, image = labels(matches.obj_off)[counted], matches.obj_image[counted]
    of, c = count_cells(label, units.of_image[image], units.n)
    m, total, squares = (np.bincount(of, c.astype(np.float64) ** power, n) for power in range(3))
    of, c = count_cells(label, image, matches.n_images)
    cut = np.bincount(of, 2 * c >= limit, n) > 0
    even: Floats = np.where(cut, total**2 / np.maximum(m * squares, 1.0), 1.0)
    return even
