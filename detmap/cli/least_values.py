"""``--fail-under``: the least values that metrics must have."""

from __future__ import annotations

import argparse
import math
import re
from typing import Any

from detmap.cli import streams
from detmap.errors import DetmapError, few

LOWER_IS_BETTER = re.compile(r"^(MR|oLRP|LRP)", re.IGNORECASE)
"""Log-average miss rates and localization-recall-precision errors."""


def add(command: argparse.ArgumentParser) -> None:
    """--fail-under."""
    command.add_argument(
        "--fail-under",
        default="",
        metavar="AP=V,...",
        help="Exit with 1 if a metric is below its value, a fraction: AP=.40,AP50/person=.6.",
    )


def read(text: str) -> dict[str, float]:
    """``AP=.40,AP50/person=.6`` as a dict; raises `DetmapError` for another form."""
    least: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, number = part.strip().rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value <= 1:
            what = f"{part[:40]!r} is not METRIC=V with V from 0 to 1"
            fix = "write METRIC=FRACTION, such as AP=.40, or METRIC/CLASS=FRACTION"
            raise DetmapError("--fail-under", what, fix)
        least[name] = value
    return least


def judge(result: Any, least: dict[str, float]) -> bool:
    """Prints a line per metric; returns whether none is below its value.

    Raises
    ------
    DetmapError : a metric or class that the result does not have
    """
    passed = True
    for name, wanted in least.items():
        if LOWER_IS_BETTER.search(name):
            fix = "compare with a baseline, or judge the value of --format json"
            raise DetmapError("--fail-under", f"{name}: lower values are better", fix)
        value = _value(result, name)
        below = not value >= wanted  # an undefined metric fails
        passed &= not below
        shown = "undefined" if math.isnan(value) else f"{value:.4f}"
        verdict = f"FAIL: {name} {shown} is below" if below else f"PASS: {name} {shown} is at least"
        streams.say(f"detmap: {verdict} {wanted:g}\n")
    return passed


def _value(result: Any, name: str) -> float:
    metric, _, of = name.partition("/")
    if not of and metric in result.metrics:
        return float(result.metrics[metric])
    for row in result.per_class:
        if of == row["name"] and metric.removeprefix("m") in row:
            return float(row[metric.removeprefix("m")])
    known = ", ".join(result.metrics)
    classes = few([row["name"] for row in result.per_class])
    raise DetmapError(
        "--fail-under", f"there is no {name[:80]}", f"metrics: {known}; classes: {classes}"
    )
