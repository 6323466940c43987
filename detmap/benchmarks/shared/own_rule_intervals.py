"""The numbers of a result by a rule of its own on subsets of the images."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.statistics import refusals
from detmap.core.statistics.estimates import Estimates, rule_of_ap, rule_of_one
from detmap.core.statistics.evaluations import (
    MANY_POINTS,
    Evaluated,
    alone_rule,
    count_cells,
    each_subset,
)
from detmap.core.statistics.sampling_units import Units
from detmap.core.statistics.subsets import Progress, Subsets
from detmap.core.tables import Truth
from detmap.errors import DataError

Floats = NDArray[np.float64]
Key = tuple[tuple[int, str] | None, str]  # class, None for a metric, and name of a number


def evaluate_result(
    whole: Any,
    image_ids: NDArray[Any],
    subsets: Subsets,
    n_units: Mapping[int, int],
    n_points: int,
    single: Mapping[str, int],
    *,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate a result of any rule on each subset.

    Parameters
    ----------
    whole : its `metrics`, `per_class` and `select` are read
    n_units : units with an object, by id of the class
    n_points : recall points of its AP; 0 for numbers without
    single : id of the class of each metric that is of one class
    """
    known, units = _numbers(whole), subsets.units
    place = {(row["id"], row["name"]): k for k, row in enumerate(whole.per_class)}

    def evaluate(ids: NDArray[Any]) -> Floats:
        try:
            its = _numbers(whole.select(ids))
        except DataError:  # undefined on this subset
            its = {}
        return np.array([its.get(key, math.nan) for key in known])

    value = np.array([*known.values()], dtype=np.float64)
    parts = each_subset(evaluate, subsets.ids(image_ids), len(value), 1, progress)
    m = np.array([n_units.get(key, 0) for key, _ in place], dtype=np.int64)
    there = m[m > 0]
    mean = rule_of_ap(len(there))
    if len(there) == 1:
        mean = alone_rule(mean, int(there[0]), units)
    else:
        mean = mean.refused(refusals.refuse_mean(np.ones(len(m)), m, units))
    few = refusals.reason("own points", units) if 0 < n_points < MANY_POINTS else ""
    own = rule_of_ap(1) if len(there) == 1 else rule_of_one()
    rules = []
    for of, name in known:
        one = single.get(name) if of is None else of[0]
        rule = mean if one is None else alone_rule(own, n_units.get(one, 0), units, few)
        rules.append(rule)
    cells = [(place[of], name) for of, name in known if of is not None]
    estimates = Estimates(value, value, parts, subsets, tuple(rules))
    return Evaluated(tuple(whole.metrics), tuple(cells), estimates)


def units_of_truth(truth: Truth, units: Units) -> dict[int, int]:
    """Units with an object, by id of the class."""
    of, _ = count_cells(truth.label, units.of_image[truth.image], units.n)
    m = np.bincount(of, minlength=len(truth.categories))
    return dict(zip(np.asarray(truth.categories.ids).tolist(), m.tolist(), strict=True))


def _numbers(result: Any) -> dict[Key, float]:
    """The metrics, then the fractions of the per-class table by id and name of the class."""
    found: dict[Key, float] = {(None, name): value for name, value in result.metrics.items()}
    for row in result.per_class:
        of = row["id"], row["name"]
        found |= {(of, name): value for name, value in row.items() if isinstance(value, float)}
    return found
