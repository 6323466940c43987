"""What changed from one detector to another, on the same truth."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from detmap.compare import compare
from detmap.diagnosis.operating_sweep import found_from
from detmap.diagnosis.tide import ERRORS
from detmap.errors import DetmapError, counted
from detmap.html_report.gather import Run
from detmap.html_report.numbers import Number, moved
from detmap.statistics.comparison import LEAST_UNITS, ClassPair, Comparison, Pair

AnyPair = TypeVar("AnyPair", bound=Pair)


def difference(a: Run, b: Run, metric: str) -> Number:
    """B less A in points, with its interval and p-value where they are known."""
    found = _compared(a, b)
    value = b.result.metrics[metric] - a.result.metrics[metric]
    if found is None:
        return moved(value, None)
    pair = next((pair for pair in found.pairs if pair.metric == metric), None)
    return moved(value, pair and _tested(pair, pair.p, found))


def class_differences(a: Run, b: Run, metric: str) -> dict[int, ClassPair]:
    """The differences of a number of each class, by its place; p-values adjusted for all."""
    found = _compared(a, b)
    if found is None:
        return {}
    of_metric = [pair for pair in found.classes if pair.metric == metric]
    return {pair.place: _tested(pair, pair.p_adjusted, found) for pair in of_metric}


def _tested(pair: AnyPair, p: float, found: Comparison) -> AnyPair:
    """The pair with this p-value; with none on too few images, even where nothing differs."""
    return replace(pair, p=p if found.units.n >= LEAST_UNITS else math.nan)


@lru_cache(maxsize=4)
def _compared(a: Run, b: Run) -> Comparison | None:
    """The detectors, paired by image; None where they cannot be tested."""
    replicates = min(each.intervals.replicates if each.intervals else 0 for each in (a, b))
    if not replicates:
        return None
    try:
        return compare(a.result, b.result, names=("A", "B"), replicates=replicates)
    except DetmapError:
        return None


def changed(a: Run, b: Run) -> list[str]:
    """Describe the main changes in sentences: first metric, error kinds, classes, objects."""
    first = next(iter(a.result.metrics))
    before, after = (100 * run.result.metrics[first] for run in (a, b))
    if math.isnan(after - before):
        return [f"{first} is undefined: no class has a ground-truth object."]
    found = [f"{first}: {before:.2f} to {after:.2f} ({after - before:+.2f})."]
    gained = {kind: b.tide.gain[kind] - a.tide.gain[kind] for kind in ERRORS}
    kind = max(gained, key=lambda name: abs(np.nan_to_num(gained[name])))
    if abs(gained[kind]) >= 0.005:  # as it is printed
        found.append(
            f"AP gain if fixed: largest change for {kind}, {a.tide.gain[kind]:.2f} to "
            f"{b.tide.gain[kind]:.2f} points."
        )
    found += _classes(a, b)
    won, lost = _objects(a, b)
    if len(found) == 1 and after == before and not won + lost:
        return [f"No change: {first} is {before:.2f}, and both detectors match the same objects."]
    found.append(
        f"Objects matched by one detector only, at its highest F1: {won} by B, {lost} by A."
    )
    return found


def _classes(a: Run, b: Run) -> list[str]:
    key = next((key for key in a.result.per_class[0] if key.startswith("AP")), None)
    if key is None:
        return []
    both = [
        (100 * (y[key] - x[key]), x["name"])
        for x, y in zip(a.result.per_class, b.result.per_class, strict=True)
        if not math.isnan(x[key]) and not math.isnan(y[key])
    ]
    both.sort(key=lambda each: each[0])
    text = []
    worse, better = [each for each in both if each[0] < 0], [each for each in both if each[0] > 0]
    if better:
        shown = ", ".join(f"{name} {value:+.1f}" for value, name in better[::-1][:3])
        text.append(f"{counted(len(better), 'class')} better, led by {shown}.")
    if worse:
        shown = ", ".join(f"{name} {value:+.1f}" for value, name in worse[:3])
        text.append(f"{counted(len(worse), 'class')} worse, led by {shown}.")
    return text


def _objects(a: Run, b: Run) -> tuple[int, int]:
    found_a, found_b = (found_from(run.diagnosis, run.points[0].score) for run in (a, b))
    return int((found_b & ~found_a).sum()), int((found_a & ~found_b).sum())
