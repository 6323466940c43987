"""The first screen: one sentence that decides, and the few numbers behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detmap.analysis.diagnosis.operating_sweep import Point
from detmap.analysis.diagnosis.summary import ENOUGH
from detmap.analysis.diagnosis.tide import ERRORS
from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.numbers import NOTHING, between, digits, points, under
from detmap.analysis.html_report.what_changed import difference, one_only, pair_of
from detmap.core.statistics.refusals import LEAST_OF_TEST
from detmap.errors import counted

SHORT = {
    "Cls": "wrong class",
    "Loc": "poor location",
    "Both": "wrong class and location",
    "Dupe": "duplicates",
    "Bkg": "background",
    "Miss": "missed objects",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A number of the first screen: what it is, the number, what to know about it."""

    name: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first statement of the report.

    Parameters
    ----------
    sentence : with its interval
    more : where to run it
    style : ``a`` or ``b`` for the better detector, "" for none
    facts : three to five
    """

    sentence: str
    more: str
    style: str
    facts: tuple[Fact, ...]


def decide(runs: Sequence[Run]) -> Verdict:
    """Returns the verdict on one detector or two."""
    return _two(*runs) if len(runs) == 2 else _one(runs[0])


def better(runs: Sequence[Run]) -> Run:
    """The detector with the better first metric; the last of equals."""
    metric = next(iter(runs[0].result.metrics))
    sign = -1 if _is_rate(runs[0], metric) else 1
    return max(reversed(runs), key=lambda run: sign * np.nan_to_num(run.result.metrics[metric]))


def _one(run: Run) -> Verdict:
    metric = next(iter(run.result.metrics))
    value, known = run.metric(metric), _interval_text(run, metric)
    known_by = known or value.under.replace("±", "standard error")
    number = f"{metric} {value.text} ({f'{known_by}, ' if known_by else ''}{_images(run)})"
    kind = _largest(run)
    if math.isnan(run.tide.ap):
        sentence = f"{metric} is undefined: no class has a ground-truth object."
    elif run.doubtful:
        some = f"Almost nothing matches: AP{100 * run.tide.iou:g} is {run.tide.ap:.1f}."
        nothing = f"No detections: {metric} is {value.text}."
        sentence = (
            f"{some if len(run.diagnosis.detections) else nothing} Check the input files (detmap "
            "doctor) before the detector."
        )
    elif not kind:
        ap = f"AP{100 * run.tide.iou:g}"
        sentence = f"{number}. Fixing a single kind of error would not raise {ap}."
    else:
        sentence = f"{number}. The largest loss is {SHORT[kind]} ({kind}): {_gain(run, kind)}."
    facts = [
        Fact(metric, value.text, known or value.under),
        *_limit(run, ""),
        *_hardest(run, ""),
        _operating(run.points[0]),
    ]
    return Verdict(sentence, _run_at("it", run), "a", tuple(facts))


def _interval_text(run: Run, metric: str) -> str:
    """The interval of a metric; "" for none."""
    interval = None if run.intervals is None else run.intervals.metrics[metric]
    if interval is None or math.isnan(interval.low):
        return ""
    return f"95 % interval {under(interval)}"


def _two(a: Run, b: Run) -> Verdict:
    metric = next(iter(a.result.metrics))
    change, is_rate = b.result.metrics[metric] - a.result.metrics[metric], _is_rate(a, metric)
    pair, images = pair_of(a, b, metric), _images(a)
    apart = difference(a, b, metric)
    style, more = "", f"{_run_at('A', a)} {_run_at('B', b)}".strip()
    if math.isnan(change):
        sentence = f"{metric} is undefined: no class has a ground-truth object."
    elif pair is None or math.isnan(pair.low):
        why = pair.why_not if pair is not None else "the rules or the images give no interval"
        sentence = f"B - A is {apart.text} {metric}, without an interval: {why}."
    elif change == 0 and not pair.se > 0:
        sentence = f"No difference: {metric} is {a.metric(metric).text} for both, {images}."
    elif pair.low <= 0 <= pair.high:
        seen = f" A difference of {points(pair.mdd, 1)} would be detected (power 80 %)."
        sentence = (
            f"No difference can be seen: B - A is {apart.text} {metric}, 95 % interval "
            f"{between(pair, digits(pair), sign=True)}, {images}.{seen if pair.mdd > 0 else ''}"
        )
    else:
        style = "b" if (pair.difference > 0) != is_rate else "a"
        sign = 1 if style == "b" else -1
        n = digits(pair)
        low, high = sorted((sign * pair.low, sign * pair.high))
        own = points(sign * (b.result.metrics[metric] - a.result.metrics[metric]), n, sign=True)
        interval = f"95 % interval {points(low, n, sign=True)} to {points(high, n, sign=True)}"
        lower = " (lower is better)" if is_rate else ""
        sentence = f"{style.upper()} is better: {own} {metric}{lower}, {interval}, {images}."
        more = _run_at(style.upper(), b if style == "b" else a)
    has_interval = "interval" in sentence and "without an interval" not in sentence
    if has_interval and 0 < len(a.result.matches.image_ids) < LEAST_OF_TEST:
        more += f" Fewer than {LEAST_OF_TEST} images: the interval is approximate."
    sentence += _empty(a, b)
    winner, letter = (a, "A") if style == "a" else (b, "B")
    won, lost = (int(each.sum()) for each in one_only(a, b))
    facts = [
        Fact(
            f"{metric} (A | B)",
            f"{a.metric(metric).text} | {b.metric(metric).text}",
            f"B - A {apart}",
        ),
        *_limit(winner, f" {letter}"),
        *_hardest(winner, f" for {letter}"),
        Fact(
            "found only by A | found only by B",
            f"{lost:,} | {won:,}",
            "each at its best-F1 threshold",
        ),
    ]
    if pair is not None and pair.mdd > 0:
        note = f"{metric} of the same {images}, power 80 %"
        facts.append(Fact("minimum detectable difference", points(pair.mdd, 1), note))
    return Verdict(sentence, more.strip(), style, tuple(facts))


def _empty(a: Run, b: Run) -> str:
    """Which detector has no detections; "" if both have some."""
    empty = [
        each for each, run in zip("AB", (a, b), strict=True) if not len(run.diagnosis.detections)
    ]
    if not empty:
        return ""
    who = "Neither detector has" if len(empty) == 2 else f"{empty[0]} has no"
    some = "a detection" if len(empty) == 2 else "detections"
    return f" {who} {some}: check the input files (detmap doctor)."


def _is_rate(run: Run, metric: str) -> bool:
    """Whether a lower number is better."""
    rows = run.result.protocol.rows()[0]
    return any(row.name == metric and not row.metric.higher_is_better for row in rows)


def _images(run: Run) -> str:
    return counted(len(run.result.matches.image_ids), "image")


def _largest(run: Run) -> str:
    """The kind of error that costs most; "" for none."""
    gain = {kind: run.tide.gain[kind] for kind in ERRORS if run.tide.gain[kind] > 0}
    return max(gain, key=lambda kind: gain[kind]) if gain else ""


def _gain(run: Run, kind: str) -> str:
    ap = f"AP{100 * run.tide.iou:g}"
    cases = counted(run.tide.counts[kind], "case")
    return f"+{run.tide.gain[kind]:.1f} {ap} if all {cases} are fixed"


def _limit(run: Run, who: str) -> list[Fact]:
    kind = _largest(run)
    if not kind or run.doubtful:
        return []
    return [Fact(f"what limits{who or ' it'} most", SHORT[kind], f"{kind}: {_gain(run, kind)}")]


def _hardest(run: Run, who: str) -> list[Fact]:
    """The subset of enough objects with the lowest recall."""
    some = [
        each for each in run.slices if each.objects >= ENOUGH and each.by != "objects of the class"
    ]
    if not some or run.doubtful or not run.points[0].f1 > 0:
        return []
    worst = min(some, key=lambda each: each.recall)
    note = f"recall {worst.recall:.0%}, {worst.found:,} of {worst.objects:,} objects"
    return [Fact(f"hardest{who}: {worst.by}", worst.name, note.replace("%", " %"))]


def _operating(point: Point) -> Fact:
    if not point.f1 > 0:
        return Fact("score of highest F1", NOTHING, "no object is matched")
    note = f"precision {_percent(point.precision)}, recall {_percent(point.recall)}"
    return Fact("score of highest F1", f"{point.score:.2g}", note)


def _run_at(who: str, run: Run) -> str:
    """Where to run a detector; "" where it matches almost nothing."""
    point = run.points[0]
    if run.doubtful or not point.f1 > 0:
        return ""
    return (
        f"Use {who} with a confidence threshold of {point.score:.2g}: precision "
        f"{_percent(point.precision)}, recall {_percent(point.recall)}."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"
