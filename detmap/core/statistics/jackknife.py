"""Delete-a-group jackknife: intervals for every number, by evaluating all but a part of the images.

It needs nothing but the evaluation, so it serves rules that influence functions do not know. The
images fall into G random parts of equal size. Leaving each out once gives G values of a metric, and

    se^2 = (G - 1) / G * sum over parts of (value - mean)^2.

AP of few images is too high. So the halves of random splits of the images are evaluated too, and
show the bias as in `detmap.core.statistics.bias`. The interval is that of the value less its bias,
with Student's quantile for G - 1 degrees of freedom, on the logit scale for numbers from 0 to 1.

Source: Kott 2001, The delete-a-group jackknife, J. Official Statistics 17(4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.bias import RATE_OF_AP, WIDER
from detmap.core.statistics.formulas.logit_interval import logit_interval
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.intervals import Interval, Intervals, check
from detmap.core.statistics.sampling_units import Units, units
from detmap.errors import DataError

PARTS, SPLITS = 25, 8
LEAST_UNITS = 10
ALONE = "the jackknife has only the standard error of a class"
JACKKNIFE = 0x6A61636B  # tag of the random numbers: 0 of the parts, then one per split


class Evaluated(Protocol):
    """What is read of a result."""

    @property
    def metrics(self) -> dict[str, float]:
        """Values by name."""
        ...

    @property
    def per_class(self) -> list[dict[str, Any]]:
        """One dict per class."""
        ...


class How(NamedTuple):
    """The options of intervals, as in `detmap.core.statistics.intervals.intervals`.

    `parts` is the number of parts, 2 or more (default: 25; at most the number of images or groups).
    """

    level: float = 0.95
    parts: int | None = None
    seed: int = 0
    groups: Mapping[Any, Any] | str | Path | None = None
    progress: drawing.Progress | None = None


def intervals(
    whole: Evaluated,
    image_ids: NDArray[Any],
    evaluate: Callable[[NDArray[Any]], Evaluated],
    how: How,
) -> Intervals:
    """The interval of every metric, and of every fraction of the per-class table.

    Parameters
    ----------
    whole : the result of all images
    image_ids : their ids
    evaluate : returns the result of some images, given by id

    Raises
    ------
    DataError : a level or number that is not valid; images without a group
    """
    level, parts, seed, groups, progress = how
    check(level)
    if parts is not None and (not isinstance(parts, int) or isinstance(parts, bool) or parts < 2):
        raise DataError("replicates", f"{parts!r} parts of a jackknife", "give 2 or more")
    drawing.check(1, seed)
    drawn = units(image_ids, groups)
    n_parts = min(parts or PARTS, drawn.n)
    subsets = _subsets(drawn, n_parts, seed) if drawn.n >= LEAST_UNITS else []
    tell, rows, found = progress or drawing.silent, _rows(whole), []
    cells = [(key, name) for key, row in rows.items() for name in row if row[name] == row[name]]
    of_cells = np.empty((len(subsets), len(cells)))  # results of many classes would be gigabytes
    for done, subset in enumerate(subsets):
        part = evaluate(image_ids[subset])
        found.append(part.metrics)
        its = _rows(part)
        of_cells[done] = [its.get(key, {}).get(name, math.nan) for key, name in cells]
        tell(done + 1, len(subsets))

    def one(value: float, values: NDArray[np.float64], unsupported: str = "") -> Interval:
        return _interval(value, values, n_parts, drawn, level, unsupported)

    why = ALONE if len(whole.per_class) > 1 else ""
    column = {cell: i for i, cell in enumerate(cells)}

    metrics = {
        name: one(value, np.array([each.get(name, math.nan) for each in found]))
        for name, value in whole.metrics.items()
    }
    undefined = one(math.nan, np.array([]))
    classes = {
        key: {
            name: one(value, of_cells[:, column[key, name]], why)
            if (key, name) in column
            else undefined
            for name, value in row.items()
        }
        for key, row in rows.items()
    }
    return Intervals(
        metrics,
        {name: of_class for (_, name), of_class in classes.items()},
        "jackknife",
        n_parts,
        seed,
        level,
        drawn,
        classes=tuple(classes.values()),
    )


def _subsets(drawn: Units, n_parts: int, seed: int) -> list[NDArray[np.bool_]]:
    """Images of each evaluation: all without one part, for each part; then halves of splits."""

    def dealt(n: int, b: int) -> NDArray[np.int64]:
        words = drawing.random_words(seed, JACKKNIFE, b, (1, drawn.n))[0]
        part = np.empty(drawn.n, dtype=np.int64)
        part[np.argsort(words, kind="stable")] = np.arange(drawn.n) % n
        return part[drawn.of_image]

    left_out = dealt(n_parts, 0)
    halves = [dealt(2, b) for b in range(1, SPLITS + 1)]
    return [left_out != g for g in range(n_parts)] + [of == h for of in halves for h in (0, 1)]


def _rows(result: Evaluated) -> dict[Any, dict[str, float]]:
    """The fractions of the per-class table, by id and name."""
    return {
        (row["id"], row["name"]): {
            name: value for name, value in row.items() if isinstance(value, float)
        }
        for row in result.per_class
    }


def _interval(
    value: float,
    values: NDArray[np.float64],
    n_parts: int,
    drawn: Units,
    level: float,
    unsupported: str,
) -> Interval:
    """One interval; `values` are those of `_subsets`, `unsupported` is why there is none."""

    def none(why: str, se: float = math.nan) -> Interval:
        return Interval(value, se, math.nan, math.nan, math.nan, level, why)

    if math.isnan(value):
        return none("undefined: no objects or no detections")
    if drawn.n < LEAST_UNITS:
        return none(f"fewer than {LEAST_UNITS} {drawn.noun}")
    undefined = int(np.isnan(values).sum())
    if undefined:
        return none(f"undefined on {undefined} of {len(values)} selections of the images")
    parts, halves = values[:n_parts].tolist(), values[n_parts:].tolist()
    mean = math.fsum(parts) / n_parts
    se = math.sqrt((n_parts - 1) / n_parts * math.fsum((each - mean) ** 2 for each in parts))
    if not se > support.ROUNDING * max(1.0, abs(value)):
        return none("no part changes the number: the standard error is 0", 0.0)
    if drawn.n < support.LEAST_OF_INTERVAL:
        unsupported = support.few_units(drawn)
    if unsupported:
        return none(unsupported, se)
    bias = (math.fsum(halves) / len(halves) - value) / (2**RATE_OF_AP - 1)
    q = student((1 + level) / 2, n_parts - 1)
    if all(0 <= each <= 1 for each in (value, *parts)):
        low, high = logit_interval(value, WIDER * se, bias, q)
        if why := support.too_wide(low, high, drawn):
            return replace(none(why, se), bias=bias)
    else:
        low, high = value - bias - q * WIDER * se, value - bias + q * WIDER * se
    return Interval(value, se, low, high, bias, level)
