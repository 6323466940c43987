"""What changed from one detector to another, on the same truth."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.operating_sweep import found_from
from detmap.analysis.diagnosis.tide import ERRORS, MEANING
from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.numbers import Number, moved
from detmap.core.statistics.comparison import ClassPair, Maker, Pair
from detmap.errors import counted

ALPHA = 0.05


def pair_of(a: Run, b: Run, metric: str) -> Pair | None:
    """The tested difference of a metric; None where it cannot be tested."""
    return next((pair for pair in _compared(a, b)[0] if pair.metric == metric), None)


def difference(a: Run, b: Run, metric: str) -> Number:
    """B - A in points, with its interval and p-value where they are known."""
    pair = pair_of(a, b, metric)
    return moved(b.result.metrics[metric] - a.result.metrics[metric], pair)


def class_differences(a: Run, b: Run, metric: str) -> dict[int, ClassPair]:
    """The differences of a number of each class, by its id."""
    return {pair.id: pair for pair in _compared(a, b)[1] if pair.metric == metric}


@lru_cache(maxsize=4)
def _compared(a: Run, b: Run) -> tuple[list[Pair], list[ClassPair]]:
    """The tested differences, paired by image, of metrics and of classes; none where they cannot be
    tested.
    """
    if a.evaluated is None or b.evaluated is None:
        return [], []
    categories = a.result.matches.categories
    maker = Maker(("A", "B"), (a.evaluated, b.evaluated), categories, ALPHA, "holm")
    return maker.pairs(), maker.classes()


def changed(a: Run, b: Run) -> list[str]:
    """Describe the main changes in sentences: error kinds, classes, objects."""
    first = next(iter(a.result.metrics))
    before, after = (100 * run.result.metrics[first] for run in (a, b))
    if math.isnan(after - before):
        return [f"{first} is undefined: no class has a ground-truth object."]
    found = [*_errors(a, b), *_classes(a, b)]
    won, lost = (int(each.sum()) for each in one_only(a, b))
    if not found and after == before and not won + lost:
        return [f"No change: {first} is {before:.2f}, and both detectors match the same objects."]
    found.append(
        f"Objects matched by one detector only, at its highest F1: {lost:,} by A, {won:,} by B."
    )
    return found


def _errors(a: Run, b: Run) -> list[str]:
    """The kind of error that changed most. A detector that matches almost nothing has no other
    kind to compare than its missed objects.
    """
    weak = [each for each, run in zip("AB", (a, b), strict=True) if run.doubtful]
    missed_a, missed_b = (run.tide.counts["Miss"] for run in (a, b))
    if weak:
        if missed_a == missed_b:
            return []
        who = "Both detectors match" if len(weak) == 2 else f"{weak[0]} matches"
        return [
            f"{who} almost no object, so AP gains cannot be compared. Miss ({MEANING['Miss']}): "
            f"{counted(missed_a, 'case')} with A, {missed_b:,} with B."
        ]
    gained = {kind: b.tide.gain[kind] - a.tide.gain[kind] for kind in ERRORS}
    kind = max(gained, key=lambda name: abs(np.nan_to_num(gained[name])))
    if not abs(gained[kind]) >= 0.05:  # as it is printed
        return []
    return [
        f"Largest change of errors: {kind} ({MEANING[kind]}), AP gain if fixed "
        f"{a.tide.gain[kind]:.1f} with A, {b.tide.gain[kind]:.1f} with B."
    ]


def _classes(a: Run, b: Run) -> list[str]:
    """How many classes are better or worse, and the largest differences."""
    key = first_value(a)
    pairs = sorted(class_differences(a, b, key).values(), key=lambda pair: pair.difference)
    up = [pair for pair in pairs if pair.low > 0][::-1]
    down = [pair for pair in pairs if pair.high < 0]
    text = []
    for some, word in ((up, "better"), (down, "worse")):
        if some:
            shown = ", ".join(f"{pair.name} {100 * pair.difference:+.1f}" for pair in some[:3])
            more = f" and {len(some) - 3:,} more" if len(some) > 3 else ""
            text.append(
                f"{len(some):,} of {counted(len(pairs), 'class')} {word} (interval without 0): "
                f"{shown}{more}."
            )
    return text


def first_value(run: Run) -> str:
    """The first number of the table of classes; "" for none."""
    rows = run.result.per_class
    values = rows[0] if rows else {}
    return next(
        (key for key, value in values.items() if isinstance(value, float) and key != "objects"), ""
    )


def one_only(a: Run, b: Run) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(G,) objects that only B matches, and that only A matches, each at its highest F1."""
    found_a, found_b = (found_from(run.diagnosis, run.points[0].score) for run in (a, b))
    return found_b & ~found_a, found_a & ~found_b
