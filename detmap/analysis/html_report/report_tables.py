"""The tables of the page: headings and rows."""

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from detmap.analysis.diagnosis.diagnosis_intervals import Sampled, Uncertainty, differences, joined
from detmap.analysis.diagnosis.operating_sweep import OVERALL
from detmap.analysis.diagnosis.tide import ERRORS, MEANING, SPECIAL
from detmap.analysis.html_report.gather import Run, listed_classes
from detmap.analysis.html_report.image_files import named
from detmap.analysis.html_report.numbers import Number, known, moved, points
from detmap.analysis.html_report.what_changed import class_differences, difference
from detmap.core.statistics.estimates import Difference, Interval
from detmap.core.statistics.refusals import LEAST_OF_TEST
from detmap.errors import few

IMAGES_SHOWN = 25
MOST_PAIRS = 12  # of confused classes
F1 = 2  # place in precision, recall, F1
CHANGE, GAIN = "B - A", "AP gain if fixed"
SLICE = ("by", "name", "objects")
MEANINGS = {**MEANING, "FalsePos": "all false positives", "FalseNeg": "all missed objects"}


def _letters(runs: Sequence[Run]) -> list[str]:
    """How the columns of each detector begin."""
    return ["A ", "B "] if len(runs) == 2 else [""]


def _last_row(apart: Sequence[Number], *begin: str, ends: Sequence[str] = ()) -> list[list[Any]]:
    """The row of the differences in a table with one row per detector; none without any."""
    return [[CHANGE, *begin, *apart, *ends]] if apart else []


def metrics(runs: Sequence[Run]) -> dict[str, Any]:
    """Every metric of the protocol."""
    two = len(runs) == 2
    header = ["metric", *(("A", "B", CHANGE) if two else ("value",))]
    rows = []
    for name in runs[0].result.metrics:
        change = [difference(runs[0], runs[1], name)] if two else []
        rows.append([name, *(run.metric(name) for run in runs), *change])
    return {"header": header, "rows": rows}


def interval_text(runs: Sequence[Run]) -> str:
    """Describe the intervals."""
    intervals, drawn = runs[0].intervals, runs[0].uncertainty
    if intervals is None or drawn is None:
        return "No intervals: too few images, or the rules of a tool that intervals do not support."
    two = len(runs) == 2
    text = (
        "All intervals are 95 % confidence intervals from one method (jackknife). They cover image "
        "sampling, not training variance. The bias is shown if the interval excludes the number. "
        "A number after ± is a standard error, where an interval would not hold."
    )
    if two:
        text += (
            " Interval and p-value of a difference are of the same test of one number: without any "
            "difference, 1 of 20 intervals would exclude 0."
        )
    if two and drawn.units.n < LEAST_OF_TEST:
        text += f" No p-values: fewer than {LEAST_OF_TEST} images."
    return text


Part = Callable[[Uncertainty], Sampled | None]
"""Some numbers of a detector on subsets of the images."""
SLICE_PARTS: dict[str, Part] = {
    "recall": lambda drawn: drawn.slice_recall,
    "AP": lambda drawn: drawn.slice_ap,
}


def ranges(run: Run, part: Part) -> Iterable[Interval | None]:
    """The interval of each number of a part; None of each without replicates."""
    drawn = None if run.uncertainty is None else part(run.uncertainty)
    return itertools.repeat(None) if drawn is None else drawn.intervals


def sampled_differences(runs: Sequence[Run], part: Part) -> list[Difference]:
    """B - A of a part; none for one detector, or without replicates."""
    if len(runs) < 2:
        return []
    a, b = ((None if run.uncertainty is None else part(run.uncertainty)) for run in runs)
    return [] if a is None or b is None else differences(b, a)


def _numbers(run: Run, values: Iterable[float], part: Part) -> list[Number]:
    return [known(*each) for each in zip(values, ranges(run, part), strict=False)]


def _apart(runs: Sequence[Run], part: Part) -> list[Number]:
    """The differences of a part in points."""
    return [moved(each.value, each) for each in sampled_differences(runs, part)]


def all_gains(drawn: Uncertainty) -> Sampled:
    """The AP gain of fixing each kind of error, in the order of `ERRORS`, then `SPECIAL`."""
    return joined([drawn.gain[kind] for kind in (*ERRORS, *SPECIAL)])


def gains(runs: Sequence[Run]) -> list[list[Number]]:
    """These gains of each detector in points, and their differences where they are known."""
    columns = [
        _numbers(run, [each / 100 for each in run.tide.gain.values()], all_gains) for run in runs
    ]
    apart = _apart(runs, all_gains)
    return [*columns, apart] if apart else columns


def costs(runs: Sequence[Run]) -> dict[str, Any]:
    """Kinds of errors: cases and points."""
    header = ["error", "meaning"]
    header += [f"{letter}{name}" for letter in _letters(runs) for name in ("cases", GAIN)]
    columns = gains(runs)
    header += [CHANGE] * (len(columns) > len(runs))
    rows = []
    for (kind, text), numbers in zip(MEANINGS.items(), zip(*columns, strict=True), strict=True):
        row: list[Any] = [kind, text]
        for run, number in zip(runs, numbers, strict=False):
            row += [run.tide.counts.get(kind), number]
        rows.append([*row, *numbers[len(runs) :]])
    return {"header": header, "rows": rows}


def classes(runs: Sequence[Run]) -> dict[str, Any]:
    """One row per class."""
    per_class = [run.result.per_class for run in runs]
    some = per_class[0][0] if per_class[0] else {}
    values = [key for key in some if key not in ("name", "id", "objects")]
    values = [key for key in values if isinstance(some[key], float)]
    two = len(runs) == 2
    letters = _letters(runs)
    header = ["class", "objects"]
    header += [f"{letter}{name}" for name in values for letter in letters]
    tested = two and values
    apart = class_differences(runs[0], runs[1], values[0]) if tested else {}
    header += [f"{values[0]} {CHANGE}"] if apart else []
    header += [f"{letter}{name}" for name in ("F1", "score") for letter in letters]
    header += [] if two else ["precision", "recall", "FP", "missed"]
    rows = []
    for k in listed_classes(runs[0].diagnosis.truth).tolist():
        first = per_class[0][k]
        row: list[Any] = [first["name"], first["objects"]]
        row += [
            known(each[k][value], _class_interval(run, k, value))
            for value in values
            for run, each in zip(runs, per_class, strict=True)
        ]
        if apart:
            pair = apart.get(first["id"])
            row.append(moved(per_class[1][k][values[0]] - first[values[0]], pair))
        rates = [_rates(run, k) for run in runs]
        row += [each[F1] for each in rates]
        points = [run.points[len(OVERALL) + k] for run in runs]
        row += [f"{point.score:.4g}" if point.score == point.score else None for point in points]
        if not two:
            row += [*rates[0][:F1], points[0].fp, points[0].missed]
        rows.append(row)
    return {"header": header, "rows": rows}


def unlisted_classes(runs: Sequence[Run]) -> str:
    """A line on classes that are not listed; "" if all are."""
    truth = runs[0].diagnosis.truth
    n, of = len(listed_classes(truth)), len(truth.categories)
    if n == of:
        return ""
    return (
        f"The page lists the {n:,} classes with the most objects of {of:,}. "
        "`detmap eval --table classes -o classes.csv` writes all."
    )


def undefined_classes(runs: Sequence[Run]) -> str:
    """A line on classes whose AP is undefined but counts in the mean; "" for none."""
    protocol = runs[0].result.protocol
    counts_as = {"zero": 0, "detected": 0, "one": 1}.get(protocol.mean.undefined)
    if counts_as is None:
        return ""
    names = []
    for rows in zip(*(run.result.per_class for run in runs), strict=True):
        detected = any(row.get("detections", 1) for row in rows)
        if not rows[0]["objects"] and (detected or protocol.mean.undefined != "detected"):
            names.append(rows[0]["name"])
    if not names:
        return ""
    return f"Classes without objects count as {counts_as} in the mean: {few(names)}."


def _rates(run: Run, k: int) -> list[Number]:
    """Precision, recall and F1 of a class at its best score."""
    point, drawn = run.points[len(OVERALL) + k], run.uncertainty
    values = (point.precision, point.recall, point.f1)
    if drawn is None:
        return [known(value, None) for value in values]
    intervals = [drawn.classes.intervals[q] for q in drawn.rates(k)]
    return list(map(known, values, intervals))


def _class_interval(run: Run, k: int, value: str) -> Interval | None:
    """The interval of a class's number."""
    if run.intervals is None:
        return None
    return run.intervals.classes[k].get(value)


def lrp(runs: Sequence[Run]) -> dict[str, Any]:
    """OLRP and its parts, and the mean overlap."""
    header = ["detector", "oLRP", "localization", "false positives", "missed"]
    header.append(f"mean {runs[0].diagnosis.overlap_name}")

    def part(drawn: Uncertainty) -> Sampled:
        return joined([drawn.olrp, drawn.overlap])

    rows = []
    for run in runs:
        whole = run.olrp[""]
        values = (whole.olrp, whole.loc, whole.fp, whole.fn, run.overlap)
        rows.append([run.name, *_numbers(run, values, part)])
    return {"header": header, "rows": [*rows, *_last_row(_apart(runs, part))]}


def calibrated(runs: Sequence[Run]) -> dict[str, Any]:
    """How far scores are from precision; no rows where they are no probabilities."""
    header = ["detector", "ECE", "largest deviation", "mean deviation", "D-ECE"]

    def part(drawn: Uncertainty) -> Sampled | None:
        return drawn.calibration

    rows = [
        [run.name, *_numbers(run, (own.ece, own.mce, own.ace, own.d_ece), part)]
        for run in runs
        if (own := run.calibration) is not None
    ]
    return {"header": header, "rows": [*rows, *_last_row(_apart(runs, part))]}


def best(runs: Sequence[Run]) -> dict[str, Any]:
    """Precision, recall and F1 at the score of the best F1."""
    header = ["detector", "score", "precision", "recall", "F1", "FP", "missed"]

    def part(drawn: Uncertainty) -> Sampled:
        return drawn.best

    rows: list[list[Any]] = []
    for run in runs:
        point = run.points[0]
        score = f"{point.score:.4g}" if point.score == point.score else None
        rates = _numbers(run, (point.precision, point.recall, point.f1), part)
        rows.append([run.name, score, *rates, point.fp, point.missed])
    return {"header": header, "rows": [*rows, *_last_row(_apart(runs, part), "", ends=["", ""])]}


def confused(runs: Sequence[Run]) -> dict[str, Any]:
    """The pairs of classes that a detector confuses most, with their share of the true class,
    without an interval: the pairs are chosen for their many cases, which makes shares too high.
    """
    two = len(runs) == 2
    header = [*(["detector"] if two else []), "true", "predicted", "count", "% of true class"]
    rows = []
    for letter, run in zip("AB", runs, strict=False):
        n_objects = np.bincount(run.confusion.cases[0], minlength=len(run.confusion.classes))
        place = {name: k for k, name in enumerate(run.confusion.classes)}
        for true, taken, n in run.confusion.confused(MOST_PAIRS // len(runs)):
            share = points(n / int(n_objects[place[true]]))
            rows.append([*([letter] if two else []), true, taken, n, share])
    return {"header": header, "rows": rows}


def sliced(runs: Sequence[Run]) -> dict[str, Any]:
    """One row per slice."""
    header = ["by", "range", "objects"]
    columns: list[list[Any]] = [[getattr(each, key) for each in runs[0].slices] for key in SLICE]
    for name, part in SLICE_PARTS.items():
        for letter, run in zip(_letters(runs), runs, strict=True):
            header.append(f"{letter}{name}")
            values = [getattr(each, name.lower()) for each in run.slices]
            columns.append(_numbers(run, values, part))
        if apart := _apart(runs, part):
            header.append(f"{name} {CHANGE}")
            columns.append(apart)
    return {"header": header, "rows": [list(row) for row in zip(*columns, strict=True)]}


def images(runs: Sequence[Run]) -> dict[str, Any]:
    """The images with most errors; none without any."""
    letters = _letters(runs)
    header = ["image", "objects"]
    header += [f"{letter}{name}" for letter in letters for name in ("TP", "FP", "missed")]
    others = [{each.image: each for each in run.images} for run in runs]
    names = named(runs[-1].diagnosis.truth.images)
    rows = []
    for each in runs[-1].images[:IMAGES_SHOWN]:
        own = [by_image[each.image] for by_image in others]
        if any(one.fp or one.missed for one in own):
            row: list[Any] = [names[each.image], each.objects]
            rows.append(row + [n for one in own for n in (one.tp, one.fp, one.missed)])
    return {"header": header, "rows": rows}


def method(
    runs: Sequence[Run], inputs: Sequence[tuple[str, str]], receipts: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Inputs, rules and versions of the numbers."""
    rules, drawn = runs[0].result.protocol, runs[0].uncertainty
    overlap = runs[0].diagnosis.overlap_name
    found = [*inputs, ("protocol", f"{rules.name}, version {rules.version}: {rules.source}")]
    found += [(f"signature, {run.name}", run.result.signature) for run in runs]
    if runs[0].intervals is not None:
        found.append(("intervals", runs[0].intervals.signature))
    if drawn is not None:
        text = "score thresholds of operating points do not change; those of oLRP are chosen again"
        found.append(("subsets of the images", text))
    found += [
        ("errors", "kinds and order of tidecv 1.0.1; AP, mean and ties by the protocol"),
        (f"{overlap}, background", f"{runs[0].diagnosis.iou:g}, {runs[0].diagnosis.background:g}"),
        ("confusion", f"one to one, same class first, then by {overlap}; no ignored detections"),
        ("oLRP", "at the best of all scores"),
    ]
    for name, each in receipts.items():
        known = each.content
        found += [
            (f"receipt, {name}", str(known["short"])),
            *((f"SHA-256 of {role}", one["sha256"]) for role, one in known["inputs"].items()),
        ]
    found = list(dict.fromkeys(found))  # both are of one truth
    if receipts:
        known = next(iter(receipts.values())).content
        found.append(("command", " ".join(shlex.quote(word) for word in known["command"])))
        versions = known["environment"].items()
        found.append(("versions", ", ".join(f"{name} {value}" for name, value in versions)))
        found.append(
            (
                "to verify",
                "save the receipt below as run.json, then: detmap verify run.json --truth TRUTH "
                "--detections DETECTIONS",
            )
        )
    return found


def notes(runs: Sequence[Run]) -> list[Any]:
    """Distinct notes of all results."""
    return list(dict.fromkeys(str(note) for run in runs for note in run.result.notes))
