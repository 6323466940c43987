"""The classes, subsets and kinds of errors as rows of dots and bars."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from detmap.analysis.diagnosis.summary import ENOUGH
from detmap.analysis.diagnosis.tide import ERRORS
from detmap.analysis.html_report.figures import BROWSER
from detmap.analysis.html_report.gather import Run, listed_classes
from detmap.analysis.html_report.numbers import Number, known, moved
from detmap.analysis.html_report.report_tables import (
    GAIN,
    MEANINGS,
    SLICE_PARTS,
    Part,
    all_gains,
    ranges,
    sampled_differences,
)
from detmap.analysis.html_report.row_plots import Mark, Panel, Row, axis, plot
from detmap.analysis.html_report.what_changed import class_differences, first_value
from detmap.core.statistics.comparison import Pair
from detmap.core.statistics.estimates import Difference, Interval

ENDS = 20  # rows at each end that are shown of many classes


def class_rows(runs: Sequence[Run], linked: bool = False) -> tuple[str, list[Row]]:
    """The name of the number and the classes, by difference, or by AP of one detector."""
    key = first_value(runs[0])
    if not key:
        return "", []
    apart = class_differences(runs[0], runs[1], key) if len(runs) == 2 else {}
    per_class = [run.result.per_class for run in runs]
    rows = []
    for k in listed_classes(runs[0].diagnosis.truth).tolist():
        first = per_class[0][k]
        values = [each[k][key] for each in per_class]
        known = [run.intervals for run in runs]
        ranges = [None if each is None else each.classes[k].get(key) for each in known]
        if not all(map(math.isnan, values)):
            objects = first["objects"]
            row = _row(first["name"], f"{objects:,}", values, ranges, apart.get(first["id"]))
            href = f"{BROWSER}#view=cases&class={k}" if linked else ""
            rows.append(replace(row, objects=objects, href=href))

    def order(row: Row) -> float:
        value = row.marks[-1][0].value
        return math.inf if math.isnan(value) else -value

    return f"{key}, points", sorted(rows, key=order)


def classes(runs: Sequence[Run], linked: bool = False) -> list[tuple[int, Markup, str]]:
    """Number of rows, table, and what it shows of many classes; the second has the rest."""
    key, rows = class_rows(runs, linked)
    parts, note = _ends(rows)
    captions = ("Classes", "The other classes")
    tables = [(caption, [("", some)]) for caption, some in zip(captions, parts, strict=False)]
    drawn = _plots(runs, key, "dots", "class, objects", tables)
    return list(zip(map(len, parts), drawn, (note, ""), strict=False))


def _ends(rows: list[Row]) -> tuple[list[list[Row]], str]:
    """The highest and the lowest of many classes, the others, and which these are. Classes of few
    objects are among the others where there are enough classes, because chance decides their order.
    """
    if len(rows) <= 2 * ENDS:
        return [rows] if rows else [], ""
    large = [k for k, row in enumerate(rows) if row.objects >= ENOUGH]
    some, of = large, f" with {ENOUGH} objects or more"
    if len(large) <= 2 * ENDS:
        some, of = list(range(len(rows))), ""
    shown = {*some[:ENDS], *some[-ENDS:]}
    parts = [[row for k, row in enumerate(rows) if (k in shown) == own] for own in (True, False)]
    return parts, f"The {ENDS} highest and {ENDS} lowest of {len(some):,} classes{of}."


def slices(runs: Sequence[Run]) -> dict[str, Markup]:
    """A forest plot of recall and of AP of the subsets."""
    found = {}
    some = runs[0].slices
    for name, part in SLICE_PARTS.items():
        values = [[getattr(each, name.lower()) for each in run.slices] for run in runs]
        words = [(each.name, f"{each.objects:,}") for each in some]
        rows = zip(some, _rows(runs, words, values, part), strict=True)
        groups = [
            (by, [row for _, row in mine])
            for by, mine in itertools.groupby(rows, lambda each: each[0].by)
        ]
        table = (f"{name} of subsets", groups)
        (found[name],) = _plots(runs, f"{name}, points", "dots", "subset, objects", [table])
    return found


def costs(runs: Sequence[Run], linked: bool = False) -> Markup:
    """The AP gain of fixing each kind of error."""
    values = [[each / 100 for each in run.tide.gain.values()] for run in runs]
    rows = [
        replace(row, href=_kind_link(row.name, runs) if linked else "")
        for row in _rows(runs, list(MEANINGS.items()), values, all_gains)
    ]
    groups = [("one kind of error", rows[: len(ERRORS)]), ("all errors", rows[len(ERRORS) :])]
    (drawn,) = _plots(runs, f"{GAIN}, points", "bars", "error", [(GAIN, groups)])
    return drawn


def _kind_link(kind: str, runs: Sequence[Run]) -> str:
    """The page of all images with the cases of a kind of error at every score, as the gains count
    them.
    """
    lowest = [run.diagnosis.detections.score.min(initial=math.inf) for run in runs]
    scores = "".join(
        f"&{letter}={score!r}"
        for letter, score in zip("ab", map(float, lowest), strict=False)
        if math.isfinite(score)
    )
    some = {"FalsePos": "Cls-Loc-Both-Dupe-Bkg", "FalseNeg": "Miss"}.get(kind, kind)
    return f"{BROWSER}#view=cases&kind={some}{scores}"


Groups = Sequence[tuple[str, Sequence[Row]]]


def _plots(
    runs: Sequence[Run], title: str, kind: Any, name: str, tables: Sequence[tuple[str, Groups]]
) -> list[Markup]:
    """Tables, each a caption with its groups of rows, over the same axes."""
    two = len(runs) == 2
    panels = [Panel(title, kind), *([Panel("B - A, points", "change")] if two else [])]
    rows = [row for _, groups in tables for _, some in groups for row in some]
    axes = [axis(panel, rows, place) for place, panel in enumerate(panels)]
    heading = "B - A, 95 % interval" if two else "95 % interval"
    return [plot(caption, panels, groups, axes, heading, name=name) for caption, groups in tables]


def _rows(
    runs: Sequence[Run],
    words: Sequence[tuple[str, str]],
    values: Sequence[Sequence[float]],
    part: Part,
) -> list[Row]:
    """Rows of a name and a note each, with the values of each detector that are a part of its
    uncertainty.
    """
    apart = sampled_differences(runs, part) or itertools.repeat(None)
    intervals = zip(*(ranges(run, part) for run in runs), strict=False)
    each = zip(words, zip(*values, strict=True), intervals, apart, strict=False)
    return [_row(*named, own, known, change) for named, own, known, change in each]


def _row(
    name: str,
    note: str,
    values: Sequence[float],
    ranges: Sequence[Interval | None],
    difference: Difference | Pair | None,
) -> Row:
    """A row of one detector, or of two with their difference."""
    numbers = [known(value, one) for value, one in zip(values, ranges, strict=True)]
    marks = tuple(_mark(value, one) for value, one in zip(values, ranges, strict=True))
    if len(values) == 1:
        return Row(name, note, (marks,), numbers[0], f"{name}: {numbers[0]}")
    change = values[1] - values[0]
    apart = moved(change, difference)
    text = f"{name}: A {numbers[0]}, B {numbers[1]}, B - A {apart}"
    value = Number(apart.text, apart.under.split(", ")[0])
    return Row(name, note, (marks, (_mark(change, difference),)), value, text)


def _mark(value: float, known: Interval | Difference | Pair | None) -> Mark:
    if known is None:
        return Mark(100 * value)
    if math.isnan(known.low) and known.se > 0:
        ends = (100 * (value - known.se), 100 * (value + known.se))
        return Mark(100 * value, *ends, rough=True)
    return Mark(100 * value, 100 * known.low, 100 * known.high)
