"""Protocols with one or two commonly changed rules."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from detmap.core.protocol import Protocol
from detmap.errors import ProtocolError
from detmap.reproducibility.parity.restated_tools import matching_rules

Settings = Mapping[str, Any]

SWITCHES: tuple[tuple[str, tuple[Settings, ...]], ...] = (
    (
        "AP interpolation",
        tuple(
            {"ap.integrator": name}
            for name in ("eleven_point", "all_points", "grid_envelope", "step")
        ),
    ),
    ("box convention", ({"boxes.extent": "continuous"}, {"boxes.extent": "inclusive"})),
    ("matching rule", ({"matching.rule": "best_free"}, {"matching.rule": "best_any"})),
    ("IoU comparison", ({"iou.comparison": ">="}, {"iou.comparison": ">"})),
    (
        "difficult objects",
        tuple({"matching.neutral.difficult": role} for role in ("ignore", "absorb", "count")),
    ),
    (
        "detection limit",
        ({"limits.max_dets": []}, {"limits.max_dets": [100]}, {"limits.max_dets": [300]}),
    ),
    (
        "IoU thresholds",
        tuple(
            {"iou.thresholds": value} for value in ("0.5:0.05:0.95", [0.5], [0.6], [0.7], [0.75])
        ),
    ),
    ("tied scores", ({"ranking.ties": "image"}, {"ranking.ties": "input"})),
    ("classes without objects", ({"mean.undefined": "skip"}, {"mean.undefined": "zero"})),
    ("scores as text", ({"detections.score_decimals": 3}, {"detections.score_decimals": 2})),
    ("boxes as text", ({"detections.box_decimals": 0}, {"detections.box_decimals": 1})),
    ("mean", ({"mean.weights": "objects"}, {"ap.pool": "all"})),
)
"""Commonly changed rules with their values; the search tries them."""


def different(rules: Iterable[Protocol]) -> list[Protocol]:
    """Removes protocols that differ only in their names and texts."""
    found: dict[str, Protocol] = {}
    for each in rules:
        tree = each.to_dict()
        for key in ("name", "version", "summary", "source"):
            del tree[key]
        found.setdefault(repr(tree), each)
    return list(found.values())


def ordered(rules: Any) -> Iterator[Protocol]:
    """Groups protocols with the same matching rules, so that each group is matched once."""
    groups: dict[str, list[Protocol]] = {}
    for each in rules:
        groups.setdefault(matching_rules(each), []).append(each)
    for group in groups.values():
        yield from group


def changed(rules: Protocol, n: int) -> Iterator[Protocol]:
    """The protocol with n changed switches, where the combination is valid."""
    for switches in itertools.combinations(SWITCHES, n):
        for values in itertools.product(*(options for _, options in switches)):
            settings = {key: value for each in values for key, value in each.items()}
            try:
                changed = rules.override(settings)
            except ProtocolError:
                continue
            if len(changed.changes) >= n:
                yield changed
