"""The classes, subsets and kinds of errors as rows of dots and bars."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from detmap.analysis.diagnosis.diagnosis_intervals import joined
from detmap.analysis.diagnosis.summary import ENOUGH
from detmap.analysis.diagnosis.tide import ERRORS, MEANING, SPECIAL
from detmap.analysis.html_report.figures import BROWSER
from detmap.analysis.html_report.gather import Run, listed_classes
from detmap.analysis.html_report.numbers import Number, interval_at, known, moved
from detmap.analysis.html_report.report_tables import sampled_differences
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
    panels = _panels(key, "dots", runs)
    axes = [axis(panel, rows, place) for place, panel in enumerate(panels)]
    parts, note = _ends(rows)
    captions, heading = (("Classes", note), ("The other classes", "")), _heading(runs)
    return [
        (len(some), plot(caption, panels, [("", some)], axes, heading, name="class, objects"), text)
        for some, (caption, text) in zip(parts, captions, strict=False)
    ]


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
    for name, attribute in (("recall", "recall"), ("AP", "ap")):
        part = f"slice_{attribute}"
        apart = sampled_differences(runs, lambda drawn, part=part: getattr(drawn, part))  # type: ignore[misc]
        rows = []
        for q, each in enumerate(zip(*(run.slices for run in runs), strict=True)):
            values = [getattr(one, attribute) for one in each]
            drawn = [run.uncertainty for run in runs]
            ranges = [None if one is None else interval_at(getattr(one, part), q) for one in drawn]
            note = f"{each[0].objects:,}"
            change = apart[q] if apart else None
            rows.append((each[0].by, _row(each[0].name, note, values, ranges, change)))
        panels = _panels(f"{name}, points", "dots", runs)
        axes = [axis(panel, [row for _, row in rows], place) for place, panel in enumerate(panels)]
        groups = [
            (by, [row for _, row in some])
            for by, some in itertools.groupby(rows, lambda each: each[0])
        ]
        caption = f"{name} of subsets"
        found[name] = plot(caption, panels, groups, axes, _heading(runs), name="subset, objects")
    return found


def costs(runs: Sequence[Run], linked: bool = False) -> Markup:
    """The AP gain of fixing each kind of error."""
    kinds = [*ERRORS, *SPECIAL]
    apart = sampled_differences(runs, lambda drawn: joined([drawn.gain[kind] for kind in kinds]))
    meaning = {**MEANING, "FalsePos": "all false positives", "FalseNeg": "all missed objects"}
    rows = []
    for k, kind in enumerate(kinds):
        values = [run.tide.gain[kind] / 100 for run in runs]
        ranges = [
            None if run.uncertainty is None else run.uncertainty.gain[kind].intervals[0]
            for run in runs
        ]
        row = _row(kind, meaning[kind], values, ranges, apart[k] if apart else None)
        rows.append(replace(row, href=_kind_link(kind, runs) if linked else ""))
    panels = _panels("AP gain if fixed, points", "bars", runs)
    axes = [axis(panel, rows, place) for place, panel in enumerate(panels)]
    groups = [("one kind of error", rows[: len(ERRORS)]), ("all errors", rows[len(ERRORS) :])]
    return plot("AP gain if fixed", panels, groups, axes, _heading(runs), name="error")


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


def _heading(runs: Sequence[Run]) -> str:
    return "B - A, 95 % interval" if len(runs) == 2 else "95 % interval"


def _panels(title: str, kind: Any, runs: Sequence[Run]) -> list[Panel]:
    own = Panel(title, kind)
    return [own, Panel("B - A, points", "change")] if len(runs) == 2 else [own]


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
