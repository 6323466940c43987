"""From the number of one record to that of another, over what can be computed on the way: the files
that the record was made from, the files at hand as the record read them, as they are read now, and
the rules one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from detmap.errors import DataError
from detmap.evaluate import summarize
from detmap.explaining import explain
from detmap.explaining.record_changes import Record
from detmap.explaining.steps import Explanation, Step, exact
from detmap.matching.engine import match
from detmap.parity.restated_tools import headline
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth


@dataclass(frozen=True, slots=True)
class Station:
    """Tables on the way, and what the step to them is.

    Parameters
    ----------
    title, detail : of the step, for people
    truth, detections : what is evaluated there
    """

    title: str
    detail: str
    truth: Truth
    detections: Detections


def explained(
    one: Record, other: Record, stations: Sequence[Station], reason: str, **how: Any
) -> Explanation:
    """The steps from one record's number to the other's.

    Parameters
    ----------
    one, other : whose rules are known
    stations : at least one; under the tables of the last the rules are changed
    reason : why a record's own number is another than the one that its station gives
    how : shapley, seed and threads, as in `detmap.explain`

    Raises
    ------
    DataError : a number on the way is not defined; rules of boxes and of masks
    """
    if one.rules is None or other.rules is None:
        raise DataError("explain", "the rules of one of the two are not known", "give a receipt")
    last = stations[-1]
    found = explain(last.truth, last.detections, one.rules, other.rules, **how)
    start = found.before if len(stations) == 1 else _value(stations[0], one.rules)
    before = start if one.number is None else one.number
    after = found.after if other.number is None else other.number
    steps = _step("record", reason, one.name, before, start)
    for here, there in pairwise(stations):
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
        start=_told(one, other),
        end=_told(other, one),
        before=before,
        after=after,
        steps=(*steps, *found.steps, *behind),
    )


def _told(record: Record, other: Record) -> str:
    """A record and its rules; where its number is not known, whose number stands for it."""
    rules = "" if record.rules is None else record.rules.name
    same = record.content["data"] == other.content["data"] and "metrics" in other.content
    if "metrics" in record.content or same:
        return f"{record.name}, {rules}"
    return f"{record.name}: its number is unknown; {rules} on these files"


def _value(station: Station, rules: Protocol) -> float:
    return headline(summarize(match(station.truth, station.detections, rules)))[1]


def _step(name: str, title: str, detail: str, before: float, after: float) -> list[Step]:
    """One step; none where nothing moves."""
    change = exact(after) - exact(before)
    return [Step(name, title, detail, after, change)] if change else []


def _between(here: Station, there: Station, rules: Protocol) -> Explanation | None:
    """What differs from one station to the next, part by part; None where they are not of the same
    images and classes.
    """
    other, found = there.truth, there.detections
    try:
        return explain(
            here.truth, here.detections, rules, other_truth=other, other_detections=found
        )
    except DataError:
        return None
