"""Limits of detections in both engines: what they cut, and in which lists they count."""

from typing import Any

import pytest

import detmap
from detmap.core.base.last_values import LastValues
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from tests.protocol.test_keys import FAR, PLAIN, TWO, A, data

GENERAL = {"iou.least_union": 1e-9}  # uses the general engine, and changes no match here


def matched(tables: Any, name: str, rules: dict[str, Any]) -> Matches:
    return detmap.match(*tables, detmap.load_protocol(name).override(rules))


@pytest.mark.parametrize("engine", [{}, GENERAL], ids=["fast", "general"])
def test_excluded_detections_are_not_counted_as_beyond_the_limit(engine: dict[str, Any]) -> None:
    """Of image 1: one match row, one of a class not annotated, one beyond the limit of two."""
    tables = data([A], [A, A, FAR], label=[1, 2, 1], scope=[], **TWO)
    matches = matched(tables, "lvis", {"limits.max_dets": [2]} | engine)
    assert matches.position.tolist() == [0]
    assert (matches.beyond.tolist(), matches.unjudged.tolist()) == ([1], [1])


@pytest.mark.parametrize(("scope", "kept"), [("class", [0, 1]), ("image", [0])])
@pytest.mark.parametrize("order", ["class", "image", "ranking", "input"])
def test_a_limit_counts_in_its_own_lists(order: str, scope: str, kept: list[int]) -> None:
    """One detection of each of two classes: both are the first of their class."""
    tables = data([A], [A, FAR], label=[1, 2], **TWO)
    rules = {"matching.order": order, "limits.scope": scope, "limits.max_dets": [1]}
    matches = matched(tables, "coco-bbox", PLAIN | rules)
    assert sorted(matches.position.tolist()) == kept


def test_tied_scores_in_matching_order_are_those_within_the_limit() -> None:
    tables = data([A], [A, FAR, FAR], **TWO)
    rules = {"ranking.ties": "matched", "limits.max_dets": [1]}
    assert matched(tables, "coco-bbox", PLAIN | rules).position.tolist() == [0]


def test_protocols_that_share_values_keep_their_own_limits() -> None:
    tables, shared = data([A], [A, FAR, FAR]), LastValues()
    for limit in (3, 1, 2):
        rules = PLAIN | GENERAL | {"limits.max_dets": [limit]}
        protocol = detmap.load_protocol("coco-bbox").override(rules)
        matches = match(*tables, protocol, shared=shared)
        assert matches.position.tolist() == list(range(limit))


def test_scores_of_exactly_the_floor_may_have_been_rounded_to_it() -> None:
    """Ultralytics keeps what is above 0.001, and writes 0.0010049 as 0.001."""
    tables = data([A], [A, FAR], score=[0.9, 0.001])
    matches = matched(tables, "ultralytics-8.3", {})
    told = [str(note) for note in matches.notes if note.code == "at-floor"]
    assert len(told) == 1
    assert "use --set detections.above=[0.000999]" in told[0]
    assert len(matches) == 1
    assert len(matched(tables, "ultralytics-8.3", {"detections.above": [0.000999]})) == 2
    assert len(matched(data([A], [A, FAR], score=[0.9, 0.0009]), "ultralytics-8.3", {}).notes) == 1
