"""Steps from the number of one record to that of another.

The steps cover edits of the records, changed files, other read options, and changed rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from detmap.core.adapters.truth_by_protocol import TruthByProtocol
from detmap.core.matching.engine import match
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError
from detmap.evaluate import summarize
from detmap.reproducibility.explaining import FIRST, explain
from detmap.reproducibility.explaining.records import Record
from detmap.reproducibility.explaining.steps import Explanation, Step, exact
from detmap.reproducibility.parity.restated_tools import headline


@dataclass(frozen=True, slots=True)
class Waypoint:
    """Tables between both ends, and the step to them.

    Parameters
    ----------
    title, detail : of the step, for users
    truth, detections : evaluated at this point
    truths : the ground truth as other protocols read it; None if all share the table
    """

    title: str
    detail: str
    truth: Truth
    detections: Detections
    truths: TruthByProtocol | None = None

    def table(self, rules: Protocol) -> Truth:
        """The ground truth as a protocol reads it."""
        return self.truth if self.truths is None else self.truths.table(rules)


def explained(
    one: Record, other: Record, waypoints: Sequence[Waypoint], reason: str, **how: Any
) -> Explanation:
    """The steps from one record's number to the other's.

    Parameters
    ----------
    one, other : records with known rules
    waypoints : at least one; the rules change on the tables of the last
    reason : why the number of a record differs from that of its waypoint
    how : shapley, seed and threads, as in `detmap.explain`

    Raises
    ------
    DataError : an undefined number; rules for boxes and rules for masks
    """
    if one.rules is None or other.rules is None:
        raise DataError("explain", "the rules of one result are unknown", "give a receipt")
    last = waypoints[-1]
    inputs = last.truths or last.truth, last.detections
    found = explain(*inputs, one.rules, other.rules, metric=FIRST, **how)
    start = found.before if len(waypoints) == 1 else _value(waypoints[0], one.rules)
    before = start if one.number is None else one.number
    after = found.after if other.number is None else other.number
    steps = _step("record", reason, one.name, before, start)
    for here, there in pairwise(waypoints):
        value = found.before if there is last else _value(there, one.rules)
        parts = _between(here, there, one.rules)
        if parts is None:
            steps += _step("files", there.title, there.detail, start, value)
        else:
            steps += parts.steps
            if not found.steps:  # what moved is the files' doing
                found = replace(found, classes=parts.classes, decided=parts.decided)
        start = value
    behind = _step("record", reason, other.name, found.after, after)
    if how.get("shapley"):  # these have one place in every order
        steps, behind = ([replace(s, shapley=s.change) for s in side] for side in (steps, behind))
    return replace(
        found,
        start=_end_name(one, other),
        end=_end_name(other, one),
        before=before,
        after=after,
        steps=(*steps, *found.steps, *behind),
    )


def _end_name(record: Record, other: Record) -> str:
    """A record and its rules; the title explains an unknown number."""
    rules = "" if record.rules is None else record.rules.name
    same = record.content["data"] == other.content["data"] and "metrics" in other.content
    if "metrics" in record.content or same:
        return f"{record.name}, {rules}"
    return f"{record.name}: its number is unknown; {rules} on these files"


def _value(waypoint: Waypoint, rules: Protocol) -> float:
    return headline(summarize(match(waypoint.table(rules), waypoint.detections, rules)))[1]


def _step(name: str, title: str, detail: str, before: float, after: float) -> list[Step]:
    """One step; none without a change."""
    change = exact(after) - exact(before)
    return [Step(name, title, detail, after, change)] if change else []


def _between(here: Waypoint, there: Waypoint, rules: Protocol) -> Explanation | None:
    """The differences between two waypoints; None if their images or classes differ."""
    other, found = there.table(rules), there.detections
    try:
        return explain(
            here.table(rules), here.detections, rules, other_truth=other, other_detections=found
        )
    except DataError:
        return None
