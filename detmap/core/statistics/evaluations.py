"""The numbers of a result on all images and on each subset of them.

Nothing is asked of a metric but its value on some images. Where match rows can be divided by
images, the subsets select rows, and nothing is matched again; other rules evaluate each subset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from detmap.core.tables import Truth
from detmap.core.tables.grouping import labels
from detmap.errors import DataError

Floats = NDArray[np.float64]
Key = tuple[tuple[int, str] | None, str]  # class, None for a metric, and name of a number
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
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate the metrics and the per-class table of match rows on each subset.

    Parameters
    ----------
    scores : of all images
    rows : of the metrics
    classes : whether to evaluate the rows of the per-class table
    threads : number of threads; each evaluates a subset
    """
    protocol, categories = matches.protocol, matches.categories
    of_class = aggregation.class_rows(protocol) if classes else ()
    places, bare = scores.judged, replace(matches, notes=())
    smooth = smooth_rule(protocol.ap)
    shown = replace(protocol, ap=smooth)

    def numbers(of: Scores, rules: Any) -> Floats:
        means = [aggregation.mean(of, row, rules, categories) for row in rows]
        cells = [aggregation.per_class(of, row, rules)[places] for row in of_class]
        return np.concatenate([means, *cells])

    def evaluate(keep: NDArray[np.bool_]) -> Floats:
        return numbers(curves.scores(Part.on(bare, keep), smooth, threads=1), shown)

    value = numbers(scores, protocol)
    by_area = smooth is not protocol.ap
    whole = numbers(curves.scores(matches, smooth, threads=threads), shown) if by_area else value
    parts = each_subset(evaluate, list(subsets.keep), len(value), threads, progress)
    listed = tuple(_rules(matches, scores, rows, of_class, subsets.units))
    cells = [(int(k), row.name) for row in of_class for k in places]
    estimates = Estimates(value, whole, parts, subsets, listed)
    return Evaluated(tuple(row.name for row in rows), tuple(cells), estimates)


def evaluate_result(
    whole: Any,
    image_ids: NDArray[Any],
    subsets: Subsets,
    n_units: Mapping[int, int],
    *,
    effective: float = math.inf,
    searched: Container[str] = (),
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate a result of any rule on each subset.

    Parameters
    ----------
    whole : its `metrics`, `per_class` and `select` are read
    n_units : units with an object, by id of the class
    effective : of `effective_units`, of all classes
    searched : names of the numbers of `at_best_score`
    """
    known, units = _numbers(whole), subsets.units
    place = {(row["id"], row["name"]): k for k, row in enumerate(whole.per_class)}

    def evaluate(ids: NDArray[Any]) -> Floats:
        try:
            its = _numbers(whole.select(ids))
        except DataError:  # such as equal scores that cannot be scaled: undefined on this subset
            its = {}
        return np.array([its.get(key, math.nan) for key in known])

    value = np.array([*known.values()], dtype=np.float64)
    parts = each_subset(evaluate, subsets.ids(image_ids), len(value), 1, progress)
    m = np.array([n_units.get(key, 0) for key, _ in place], dtype=np.int64)
    there = m[m > 0]
    mean = rule_of_ap(len(there))._replace(effective=effective)
    if len(there) == 1:
        mean = alone_rule(mean, int(there[0]), units)
    else:
        mean = mean.refused(refusals.refuse_mean(np.ones(len(m)), m, units))
    rules = []
    for of, name in known:
        rule = mean if of is None else alone_rule(rule_of_one(), int(m[place[of]]), units)
        rules.append(rule.refused(_search(name in searched, units)))
    cells = [(place[of], name) for of, name in known if of is not None]
    estimates = Estimates(value, value, parts, subsets, tuple(rules))
    return Evaluated(tuple(whole.metrics), tuple(cells), estimates)


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
    points = ap.points() if ap.integrator == "grid_envelope" else np.empty(0)
    if len(points) < MANY_POINTS:
        return ap
    even = np.allclose(points, np.linspace(0.0, 1.0, len(points)), rtol=0, atol=1e-6)
    return replace(ap, integrator="all_points") if even else ap


def step_of_points(ap: AveragePrecision) -> float:
    """Standard error of AP that subsets by `smooth_rule` do not show."""
    return 0.0 if smooth_rule(ap) is ap else 1 / (len(ap.points()) * OF_STEP)


def has_few_points(ap: AveragePrecision) -> bool:
    """Whether AP of a single class has no interval."""
    return bool(ap.rule.points) and len(ap.points()) < MANY_POINTS


def _rules(
    matches: Matches,
    scores: Scores,
    rows: Iterable[MetricRow],
    of_class: Iterable[MetricRow],
    units: Units,
) -> Iterator[Rule]:
    """The rules of the numbers of `evaluate_matches`."""
    protocol, categories, ap = matches.protocol, matches.categories, matches.protocol.ap
    m = units_of_classes(matches, units)
    few, step = has_few_points(ap), step_of_points(ap)
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
        rule = rule_of_ap(n, step_of(row, n) * (row.kind == "AP"))
        if row.kind in RATIOS:
            rule = _ratio(row, protocol)
        effective = effective_units(matches, subset, shares * (here > 0), units)
        rule = rule._replace(effective=effective)
        if n == 1 and protocol.mean.undefined == "skip":
            yield alone(row, rule, int(here.max()))
            continue
        why = refusals.refuse_mean(shares, here, units)
        if not why and n and row.kind == "AR":
            even = evenness(matches, subset, row.max_dets, units)
            why = refusals.refuse_uneven(float(even[here > 0].mean()), row.max_dets, units)
        yield rule.refused(why, _search(row.name in searched, units))
    for row in of_class:
        rule = _ratio(row, protocol)
        if row.kind in ("AP", "MR"):
            rule = rule_of_one(step_of(row, 1))
        for n in m[protocol.subset(row.subset)][scores.judged].tolist():
            yield alone(row, rule, n)


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
    cells = [_cells(label[some], unit[some], units.n)[0] for some in _in_recall(matches).T]
    return np.array([np.bincount(of, minlength=len(matches.categories)) for of in cells])


def _in_recall(matches: Matches) -> NDArray[np.bool_]:
    """(N, A) the objects in the denominator of recall."""
    return matches.counted | (matches.protocol.ap.recall_over != "counted")


def _cells(
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
    of, c = _cells(label, units.of_image[image], units.n)
    m, total, squares = (np.bincount(of, c.astype(np.float64) ** power, n) for power in range(3))
    of, c = _cells(label, image, matches.n_images)
    cut = np.bincount(of, 2 * c >= limit, n) > 0
    even: Floats = np.where(cut, total**2 / np.maximum(m * squares, 1.0), 1.0)
    return even


def units_of_truth(truth: Truth, units: Units) -> dict[int, int]:
    """Units with an object, by id of the class."""
    of, _ = _cells(truth.label, units.of_image[truth.image], units.n)
    m = np.bincount(of, minlength=len(truth.categories))
    return dict(zip(np.asarray(truth.categories.ids).tolist(), m.tolist(), strict=True))


def _numbers(result: Any) -> dict[Key, float]:
    """The metrics, then the fractions of the per-class table by id and name of the class."""
    found: dict[Key, float] = {(None, name): value for name, value in result.metrics.items()}
    for row in result.per_class:
        of = row["id"], row["name"]
        found |= {(of, name): value for name, value in row.items() if isinstance(value, float)}
    return found
