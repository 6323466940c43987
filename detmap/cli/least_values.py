"""``--fail-under``: the values that metrics must have at least; at most if lower is better."""

import argparse
import math
from typing import Any

from detmap.cli import streams
from detmap.core.base.suggestions import did_you_mean_value, same_name
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import METRICS
from detmap.core.tables import Truth
from detmap.errors import DetmapError

COUNTS = ("objects", "detections", "tp", "fp", "ignored", "missed")
"""What the rows of classes have beside metrics."""


def add(command: argparse.ArgumentParser) -> None:
    """--fail-under."""
    command.add_argument(
        "--fail-under",
        metavar="AP=V,...",
        help="Exit with 1 if a metric is below its value, a fraction: AP=.40,AP50/person=.6; or "
        "above it if lower is better: MR=.5.",
    )


def read(text: str | None) -> dict[str, float]:
    """``AP=.40,AP50/person=.6`` as a dict, empty for None; raises `DetmapError` for another form.

    An empty text is one of these: a variable without a value must not pass as no limit.
    """
    least: dict[str, float] = {}
    for part in () if text is None else text.split(","):
        name, _, number = part.strip().rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value <= _highest(name):
            what = f"{part[:40]!r} is not METRIC=V with V from 0 to 1"
            fix = "write METRIC=FRACTION, such as AP=.40 or mAP=.40, or METRIC/CLASS=FRACTION"
            if name and 1 < value <= 100:
                fix = f"write the fraction: {name}={value / 100:g}"
            raise DetmapError("--fail-under", what, fix)
        least[name] = value
    return least


def _highest(name: str) -> float:
    """The highest value of a metric."""
    counted = [m.name for m in METRICS if m.unit != "fraction"]
    return math.inf if name.startswith(tuple(counted)) else 1.0


def require_known(least: dict[str, float], truth: Truth, rules: Protocol) -> None:
    """Raises `DetmapError` for a metric or class that the result will not have, where the rules
    tell its metrics before the evaluation.
    """
    if rules.evaluation.rule != "matching" or rules.evaluation.extra:
        return
    metrics = [row.name for row in rules.rows()[0]]
    of_classes = {*COUNTS, *(name.removeprefix("m") for name in metrics)}
    classes = rules.classes.rename_table(truth).categories.names
    for name in least:
        metric, _, of = name.partition("/")
        if of:
            known = metric.removeprefix("m") in of_classes and of in classes
        else:
            known = metric in metrics
        if not known:
            raise _unknown(name, metrics, classes)


def _unknown(name: str, metrics: Any, classes: Any) -> DetmapError:
    fix = did_you_mean_value(name, metrics, classes)
    return DetmapError("--fail-under", f"there is no {name[:80]}", fix)


def judge(result: Any, least: dict[str, float]) -> bool:
    """Prints a line per metric; returns whether none is worse than its value.

    Raises
    ------
    DetmapError : a metric or class that the result does not have
    """
    passed = True
    for name, wanted in least.items():
        value = _value(result, name)
        lower = name.partition("/")[0] in result.lower_is_better
        good = value <= wanted if lower else value >= wanted  # an undefined metric fails
        passed &= good
        shown = "undefined" if math.isnan(value) else f"{value:.4f}"
        if not good and shown == f"{wanted:.4f}":
            shown = repr(value)
        side = ("above", "at most") if lower else ("below", "at least")
        why = " (lower is better)" if lower else ""
        verdict = f"{'PASS' if good else 'FAIL'}: {name} {shown} is {side[good]}"
        streams.say(f"detmap: {verdict} {wanted:g}{why}\n")
    return passed


def _value(result: Any, name: str) -> float:
    metric, _, of = name.partition("/")
    if not of and metric in result.metrics:
        return float(result.metrics[metric])
    key = metric.removeprefix("m")
    found = [float(row[key]) for row in result.per_class if of == row["name"] and key in row]
    if len(found) > 1:
        raise same_name("--fail-under", of, len(found))
    if found:
        return found[0]
    classes = [row["name"] for row in result.per_class]
    raise _unknown(name, result.metrics, classes)
