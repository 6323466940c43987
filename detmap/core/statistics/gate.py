"""Gates for continuous integration: fail on a significant drop of a metric, or require proof that
there is none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from detmap.core.base.suggestions import did_you_mean_value, same_name
from detmap.core.statistics.comparison import Comparison, Pair
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.verdict import lower_is_better
from detmap.errors import DataError

KINDS = ("fail-if-drop", "require-within")


@dataclass(frozen=True, slots=True)
class Gate:
    """A requirement on a metric, or on a metric of one class.

    Parameters
    ----------
    kind : ``fail-if-drop``: fail if the metric dropped by significantly more than `points`;
        ``require-within``: pass only if a drop of `points` or more is excluded. Of a metric of
        which a lower value is better, a rise counts as a drop
    points : percentage points of the metric: 0.5 is from 42.3 to 41.8
    metric : name; "" for the first metric of the protocol
    name : class; "" for the mean over classes
    place : of the gate in errors; default the option of the command line
    """

    kind: str
    points: float
    metric: str = ""
    name: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a gate passed, and one line with the reason."""

    passed: bool
    line: str


def read(kind: str, text: str, place: str = "") -> Gate:
    """Parse a gate: ``.005``, ``AP50=.005`` or ``AP50/person=.01``, in fractions.

    Raises
    ------
    DataError : the value is not a number from 0 to below 1, which would allow every drop; 0 for
        ``require-within``: no drop is smaller
    """
    of, equals, number = text.rpartition("=")
    metric, _, name = of.partition("/")
    where = place or f"--{kind}"
    try:
        limit = Decimal(number.strip())
    except InvalidOperation:
        limit = Decimal("nan")
    if not limit.is_finite() or not 0 <= limit < 1:
        fix = "give a fraction from 0 to 1: .005, AP50=.005 or AP50/person=.01"
        if limit.is_finite() and 1 <= limit <= 100:
            noun = "point is" if limit == 1 else "points are"
            fix = f"{limit} {noun} {of}{equals}{(limit / 100).normalize():f}"
        raise DataError(where, f"{text[:80]!r} is not a fraction", fix)
    if not limit and kind == "require-within":
        what = "a drop cannot be smaller than 0"
        fix = "give the largest drop to accept; --fail-if-drop 0 fails on a significant one"
        raise DataError(where, f"{text[:80]!r}: {what}", fix)
    return Gate(kind, float(100 * limit), metric, name, place)


def judge(comparison: Comparison, gate: Gate, alpha: float) -> Verdict:
    """Test the first pair, baseline and new detector.

    Raises
    ------
    DataError : unknown metric or class
    """
    pair = _pair(comparison, gate)
    of = f"{pair.metric} of {gate.name}" if gate.name else pair.metric
    drop = gate.points / 100
    sign, worse = (-1, "rise") if lower_is_better([pair.metric]) else (1, "drop")
    drops = gate.kind == "fail-if-drop"
    asked = "allowed" if drops else f"to show: a {worse} smaller than"
    se = "unknown" if math.isnan(pair.se) else f"{pair.se:.4f}"
    told = f"{asked} {drop:g} (alpha {alpha:g}; standard error {se}; "
    if pair.why_not and math.isnan(pair.low):
        told += f"no test of it holds its level: {pair.why_not}"
    else:
        told += f"minimum detectable difference with {comparison.units.counted()}: {pair.mdd:.4f}"
    if pair.mdd > drop > 0:
        needed = f"{comparison.images_needed(pair, drop):,} {comparison.units.noun}"
        told += f"; to detect a {worse} of {drop:g} takes about {needed}"
    center = pair.difference if math.isnan(pair.low) else (pair.low + pair.high) / 2
    margin = sign * center + drop
    if math.isnan(margin):
        return Verdict(False, f"FAIL: {of} is undefined")
    bound = student(1 - alpha, pair.df) * pair.se
    lowest = 0.0 if math.isnan(bound) else -bound
    passed = margin >= lowest if drops else margin > bound
    verdict = "PASS" if passed else "FAIL"
    return Verdict(passed, f"{verdict}: {of} {_change(pair.difference)}, {told})")


def _change(difference: float) -> str:
    if difference == 0:
        return "did not change"
    moved = "dropped" if difference < 0 else "rose"
    return f"{moved} by {abs(difference):.4f}"


def _pair(comparison: Comparison, gate: Gate) -> Pair:
    metric = gate.metric or comparison.pairs[0].metric
    pairs: list[Pair] = [one for one in comparison.pairs if one.metric == metric]
    if gate.name:
        wanted = (metric.removeprefix("m"), gate.name)
        pairs = [one for one in comparison.classes if (one.metric, one.name) == wanted]
    if not pairs:
        known = dict.fromkeys(one.metric for one in comparison.pairs)
        raise _unknown(gate, metric, [*known], sorted({one.name for one in comparison.classes}))
    first = comparison.pairs[0]
    pair, *more = [one for one in pairs if (one.a, one.b) == (first.a, first.b)]
    if more:
        raise same_name(gate.place or f"--{gate.kind}", gate.name, 1 + len(more))
    return pair


def require_known(gate: Gate, metrics: Sequence[str], classes: Sequence[str]) -> None:
    """Raises `DataError` for a metric or class that a comparison of these will not have."""
    known = {name.removeprefix("m") for name in metrics} if gate.name else {*metrics}
    metric = gate.metric.removeprefix("m") if gate.name else gate.metric
    if (metric and metric not in known) or (gate.name and gate.name not in classes):
        raise _unknown(gate, gate.metric or metrics[0], metrics, classes)


def _unknown(gate: Gate, metric: str, metrics: Sequence[str], classes: Sequence[str]) -> DataError:
    of = f"{metric}/{gate.name}" if gate.name else metric
    fix = did_you_mean_value(of, metrics, classes)
    return DataError(gate.place or f"--{gate.kind}", f"there is no {of}", fix)
