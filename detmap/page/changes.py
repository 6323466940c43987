"""What changed from one detector to another, on the same truth."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np

from detmap.comparing import compare
from detmap.diagnosis.tide import ERRORS
from detmap.errors import DetmapError, counted
from detmap.page.cells import Number, moved
from detmap.page.content import Run
from detmap.statistics.comparison import ClassPair, Comparison


def difference(a: Run, b: Run, metric: str) -> Number:
    """B less A in points, with its interval and p-value where they are known."""
    found = _compared(a, b)
    pairs = {} if found is None else {pair.metric: pair for pair in found.pairs}
    return moved(b.result.metrics[metric] - a.result.metrics[metric], pairs.get(metric))


def of_classes(a: Run, b: Run, metric: str) -> dict[str, ClassPair]:
    """The differences of a number of each class, by its name; p-values adjusted for all classes.
    A name that several classes share tells none of them, and is not there.
    """
    found = _compared(a, b)
    every = () if found is None else found.classes
    every = tuple(pair for pair in every if pair.metric == metric)
    counts = Counter(pair.name for pair in every)
    return {pair.name: replace(pair, p=pair.p_adjusted) for pair in every if counts[pair.name] == 1}


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
    """Headline, error kinds, classes and objects that moved most, in sentences."""
    first = next(iter(a.result.metrics))
    before, after = (100 * run.result.metrics[first] for run in (a, b))
    found = [f"{first}: {before:.2f} to {after:.2f} ({after - before:+.2f})."]
    gained = {kind: b.tide.gain[kind] - a.tide.gain[kind] for kind in ERRORS}
    kind = max(gained, key=lambda name: abs(np.nan_to_num(gained[name])))
    if gained[kind] == gained[kind]:
        found.append(
            f"Cost of errors: {kind} changed most, {a.tide.gain[kind]:.2f} to "
            f"{b.tide.gain[kind]:.2f} points."
        )
    found += _classes(a, b)
    won, lost = _objects(a, b)
    found.append(f"Objects: {won} found by B alone, {lost} by A alone.")
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
        text.append(f"{counted(len(better), 'class')} better, most: {shown}.")
    if worse:
        shown = ", ".join(f"{name} {value:+.1f}" for value, name in worse[:3])
        text.append(f"{counted(len(worse), 'class')} worse, most: {shown}.")
    return text


def _objects(a: Run, b: Run) -> tuple[int, int]:
    found_a, found_b = ((run.diagnosis.by >= 0) & run.diagnosis.to_find for run in (a, b))
    return int((found_b & ~found_a).sum()), int((found_a & ~found_b).sum())
