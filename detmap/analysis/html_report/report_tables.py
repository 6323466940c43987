"""The tables of the page: headings and rows."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from detmap.analysis.diagnosis.diagnosis_intervals import Sampled, Uncertainty, differences, joined
from detmap.analysis.diagnosis.operating_sweep import OVERALL
from detmap.analysis.diagnosis.tide import MEANING
from detmap.analysis.html_report.gather import Run, listed_classes
from detmap.analysis.html_report.image_files import named
from detmap.analysis.html_report.numbers import Number, interval_at, known, moved, points
from detmap.analysis.html_report.what_changed import class_differences, difference
from detmap.core.statistics.estimates import Difference, Interval
from detmap.core.statistics.refusals import LEAST_OF_TEST
from detmap.errors import few

IMAGES_SHOWN = 25
MOST_PAIRS = 12  # of confused classes
F1 = 2  # place in precision, recall, F1
CHANGE = "B - A"


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


def best_points(runs: Sequence[Run]) -> tuple[list[list[Number]], list[Number]]:
    """Precision, recall and F1 of each detector at its best score, and their differences."""
    each = []
    for run in runs:
        point, drawn = run.points[0], run.uncertainty
        best = None if drawn is None else drawn.best
        values = (point.precision, point.recall, point.f1)
        each.append([known(value, interval_at(best, q)) for q, value in enumerate(values)])
    return each, _apart(runs, lambda drawn: drawn.best)


def sampled_differences(
    runs: Sequence[Run], part: Callable[[Uncertainty], Sampled | None]
) -> list[Difference]:
    """B - A of a part; None for one detector, or without replicates."""
    if len(runs) < 2:
        return []
    a, b = ((None if run.uncertainty is None else part(run.uncertainty)) for run in runs)
    return [] if a is None or b is None else differences(b, a)


def _apart(runs: Sequence[Run], part: Callable[[Uncertainty], Sampled | None]) -> list[Number]:
    """The same, as numbers in points."""
    return [moved(each.value, each) for each in sampled_differences(runs, part)]


def gain(run: Run, kind: str) -> Number:
    """Return the AP gain of fixing a kind of error, in points."""
    drawn = run.uncertainty
    interval = None if drawn is None else drawn.gain[kind].intervals[0]
    return known(run.tide.gain[kind] / 100, interval)


def gains_apart(runs: Sequence[Run]) -> dict[str, list[Number]]:
    """B - A of every gain."""
    kinds = list(runs[0].tide.gain)
    apart = _apart(runs, lambda drawn: joined([drawn.gain[kind] for kind in kinds]))
    return {kind: [each] for kind, each in zip(kinds, apart, strict=False)}


def costs(runs: Sequence[Run]) -> dict[str, Any]:
    """Kinds of errors: cases and points."""
    letters = _letters(runs)
    header = ["error", "meaning"]
    header += [f"{letter}{name}" for letter in letters for name in ("cases", "AP gain if fixed")]
    apart = gains_apart(runs)
    header += [CHANGE] if apart else []
    meaning = {**MEANING, "FalsePos": "all false positives", "FalseNeg": "all missed objects"}
    rows = []
    for kind, text in meaning.items():
        row: list[Any] = [kind, text]
        for run in runs:
            row += [run.tide.counts.get(kind), gain(run, kind)]
        row += apart.get(kind, [])
        rows.append(row)
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
    places = drawn.rates(k)
    return [
        known(value, interval_at(drawn.classes, q)) for value, q in zip(values, places, strict=True)
    ]


def _class_interval(run: Run, k: int, value: str) -> Interval | None:
    """The interval of a class's number."""
    if run.intervals is None:
        return None
    return run.intervals.classes[k].get(value)


def lrp(runs: Sequence[Run]) -> dict[str, Any]:
    """OLRP and its parts, and the mean overlap."""
    header = ["detector", "oLRP", "localization", "false positives", "missed"]
    header.append(f"mean {runs[0].diagnosis.overlap_name}")
    rows = []
    for run in runs:
        whole, drawn = run.olrp[""], run.uncertainty
        values = (whole.olrp, whole.loc, whole.fp, whole.fn)
        row: list[Any] = [run.name]
        row += [
            known(value, None if drawn is None else drawn.olrp.intervals[q])
            for q, value in enumerate(values)
        ]
        rows.append([*row, known(run.overlap, interval_at(drawn.overlap, 0) if drawn else None)])
    apart = _apart(runs, lambda drawn: joined([drawn.olrp, drawn.overlap]))
    return {"header": header, "rows": [*rows, *_last_row(apart)]}


def calibrated(runs: Sequence[Run]) -> dict[str, Any]:
    """How far scores are from precision; no rows where they are no probabilities."""
    header = ["detector", "ECE", "largest deviation", "mean deviation", "D-ECE"]
    rows: list[list[Any]] = []
    for run in runs:
        own, drawn = run.calibration, run.uncertainty
        if own is None:
            continue
        values = (own.ece, own.mce, own.ace, own.d_ece)
        of = None if drawn is None else drawn.calibration
        rows.append(
            [run.name, *(known(value, interval_at(of, q)) for q, value in enumerate(values))]
        )
    apart = _apart(runs, lambda drawn: drawn.calibration)
    return {"header": header, "rows": [*rows, *_last_row(apart)]}


def best(runs: Sequence[Run]) -> dict[str, Any]:
    """Precision, recall and F1 at the score of the best F1."""
    each, apart = best_points(runs)
    header = ["detector", "score", "precision", "recall", "F1", "FP", "missed"]
    rows: list[list[Any]] = []
    for run, rates in zip(runs, each, strict=True):
        point = run.points[0]
        score = f"{point.score:.4g}" if point.score == point.score else None
        rows.append([run.name, score, *rates, point.fp, point.missed])
    return {"header": header, "rows": [*rows, *_last_row(apart, "", ends=["", ""])]}


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
    letters = _letters(runs)
    header = ["by", "range", "objects"]
    apart = [
        _apart(runs, lambda drawn: drawn.slice_recall),
        _apart(runs, lambda drawn: drawn.slice_ap),
    ]
    for name, change in zip(("recall", "AP"), apart, strict=True):
        header += [f"{letter}{name}" for letter in letters]
        header += [f"{name} {CHANGE}"] if change else []
    rows = []
    for q, each in enumerate(zip(*(run.slices for run in runs), strict=True)):
        row: list[Any] = [each[0].by, each[0].name, each[0].objects]
        for name, change in zip(("recall", "ap"), apart, strict=True):
            for run, part in zip(runs, each, strict=True):
                drawn = run.uncertainty
                of = None if drawn is None else getattr(drawn, f"slice_{name}")
                row.append(known(getattr(part, name), interval_at(of, q)))
            row += change[q : q + 1]
        rows.append(row)
    return {"header": header, "rows": rows}


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
