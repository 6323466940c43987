"""Protocols in which one or two rules are what people set otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from detmap.errors import ProtocolError
from detmap.parity.restated_tools import matching_rules
from detmap.protocol import Protocol

Settings = Mapping[str, Any]

SWITCHES: tuple[tuple[str, tuple[Settings, ...]], ...] = (
    (
        "integrator",
        tuple(
            {"ap.integrator": name}
            for name in ("eleven_point", "all_points", "grid_envelope", "step")
        ),
    ),
    ("extent of a box", ({"boxes.extent": "continuous"}, {"boxes.extent": "inclusive"})),
    ("who takes an object", ({"matching.rule": "best_free"}, {"matching.rule": "best_any"})),
    ("comparison", ({"iou.comparison": ">="}, {"iou.comparison": ">"})),
    (
        "difficult objects",
        tuple({"matching.neutral.difficult": role} for role in ("ignore", "absorb", "count")),
    ),
    ("limit", ({"limits.max_dets": []}, {"limits.max_dets": [100]}, {"limits.max_dets": [300]})),
    (
        "IoU thresholds",
        tuple(
            {"iou.thresholds": value} for value in ("0.5:0.05:0.95", [0.5], [0.6], [0.7], [0.75])
        ),
    ),
    ("equal scores", ({"ranking.ties": "image"}, {"ranking.ties": "input"})),
    ("classes without objects", ({"mean.undefined": "skip"}, {"mean.undefined": "zero"})),
    ("scores as text", ({"detections.score_decimals": 3}, {"detections.score_decimals": 2})),
    ("boxes as text", ({"detections.box_decimals": 0}, {"detections.box_decimals": 1})),
    ("mean", ({"mean.weights": "objects"}, {"ap.pool": "all"})),
)
"""What people set otherwise, each with its values: what is changed in the search."""


def different(rules: Iterable[Protocol]) -> list[Protocol]:
    """Those that differ in more than their name and prose: the first of each."""
    found: dict[str, Protocol] = {}
    for each in rules:
        tree = each.to_dict()
        for key in ("name", "version", "summary", "source"):
            del tree[key]
        found.setdefault(repr(tree), each)
    return list(found.values())


def ordered(rules: Any) -> Iterator[Protocol]:
    """Those that match alike one after the other, so that they are matched once."""
    groups: dict[str, list[Protocol]] = {}
    for each in rules:
        groups.setdefault(matching_rules(each), []).append(each)
    for group in groups.values():
        yield from group


def changed(rules: Protocol, n: int) -> Iterator[Protocol]:
    """The protocol with n switches changed, where the language allows it."""
    for switches in itertools.combinations(SWITCHES, n):
        for values in itertools.product(*(options for _, options in switches)):
            settings = {key: value for each in values for key, value in each.items()}
            try:
                changed = rules.override(settings)
            except ProtocolError:
                continue
            if len(changed.changes) >= n:
                yield changed
