"""What changed from one detector to another, on the same truth."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from detmap.comparing import compare
from detmap.diagnosis.tide import ERRORS
from detmap.errors import DetmapError
from detmap.page.content import Run
from detmap.statistics.comparison import Pair


def difference(a: Run, b: Run, metric: str) -> str:
    """B less A in points, with its interval and p-value where they are known."""
    change = 100 * (b.result.metrics[metric] - a.result.metrics[metric])
    if math.isnan(change):
        return ""
    text, pair = f"B - A {change:+.2f}", _pairs(a, b).get(metric)
    if pair is None:
        return text
    if not math.isnan(pair.low):
        text += f" ({100 * pair.low:+.1f} to {100 * pair.high:+.1f})"
    if not math.isnan(pair.p):
        text += f", p {pair.p:.2g}" if pair.p >= 1e-4 else ", p < 0.0001"
    return text


@lru_cache(maxsize=4)
def _pairs(a: Run, b: Run) -> dict[str, Pair]:
    """The difference of every metric, paired by image; empty where it cannot be tested."""
    replicates = min(each.intervals.replicates if each.intervals else 0 for each in (a, b))
    if not replicates:
        return {}
    try:
        found = compare(a.result, b.result, names=("A", "B"), replicates=replicates)
    except DetmapError:
        return {}
    return {pair.metric: pair for pair in found.pairs}


def changed(a: Run, b: Run) -> list[str]:
    """Headline, error kinds, classes and objects that moved most, in sentences."""
    first = next(iter(a.result.metrics))
    before, after = (100 * run.result.metrics[first] for run in (a, b))
    found = [f"{first}: {before:.2f} to {after:.2f} ({after - before:+.2f})."]
    moved = {kind: b.tide.gain[kind] - a.tide.gain[kind] for kind in ERRORS}
    kind = max(moved, key=lambda name: abs(np.nan_to_num(moved[name])))
    if moved[kind] == moved[kind]:
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
        text.append(f"{len(better)} classes better, most: {shown}.")
    if worse:
        shown = ", ".join(f"{name} {value:+.1f}" for value, name in worse[:3])
        text.append(f"{len(worse)} classes worse, most: {shown}.")
    return text


def _objects(a: Run, b: Run) -> tuple[int, int]:
    found_a, found_b = ((run.diagnosis.by >= 0) & run.diagnosis.to_find for run in (a, b))
    return int((found_b & ~found_a).sum()), int((found_a & ~found_b).sum())
