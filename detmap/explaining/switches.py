"""Switches: the keys by which two protocols differ, bundled where one means nothing without the
other, in the order in which they are changed.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from detmap.protocol import Protocol, from_dict
from detmap.protocol.load_toml import canonical


@dataclass(frozen=True, slots=True)
class Switch:
    """Keys that change together.

    Parameters
    ----------
    name : for people and for tests
    title : what it decides
    keys : dotted keys of a protocol, or whole tables
    """

    name: str
    title: str
    keys: tuple[str, ...]


SWITCHES = (
    Switch(
        "headline",
        "which number is read",
        (
            *("metrics", "iou.thresholds", "subsets", "groups", "iou.of", "iou.sigmas"),
            *("operating.rule", "operating.score", "operating.samples", "operating.smooth"),
        ),
    ),
    Switch("extent", "how far a box reaches", ("boxes.extent", "boxes.clip")),
    Switch("shift", "objects moved against detections", ("boxes.object_shift",)),
    Switch(
        "numbers",
        "float32 or float64",
        (
            "boxes.first_pixel",
            "boxes.form",
            "boxes.precision",
            "iou.arithmetic",
            "detections.score_precision",
        ),
    ),
    Switch("text", "rounded to text", ("detections.score_decimals", "detections.box_decimals")),
    Switch("comparison", "overlap at the threshold", ("iou.comparison", "iou.cap", "iou.absorb")),
    Switch("union", "added to the union", ("iou.epsilon", "iou.least_union", "iou.tolerance")),
    Switch(
        "neutral",
        "difficult objects and crowds",
        (
            *("matching.neutral", "matching.neutral_when", "matching.flags"),
            *("matching.outside", "ap.recall_over"),
        ),
    ),
    Switch("flat", "boxes without an area", ("boxes.empty", "boxes.reversed")),
    Switch("floor", "the least score", ("detections.above",)),
    Switch("limit", "how many detections", ("limits.max_dets", "limits.scope", "limits.order")),
    Switch(
        "scope",
        "what is judged where",
        ("scope.unlisted", "scope.not_exhaustive", "detections.outside", "detections.margin"),
    ),
    Switch(
        "order",
        "the order of equal scores",
        (
            "matching.order",
            "matching.sort",
            "ranking.ties",
            "ranking.sort",
            "ranking.precision",
            "ranking.ignored",
            "ranking.of",
            "ranking.equal",
        ),
    ),
    Switch(
        "integration",
        "from the curve to AP",
        (
            "ap.integrator",
            "ap.grid",
            "ap.eleven",
            "ap.epsilon",
            "ap.tail",
            "ap.arithmetic",
            "ap.sum",
            "ap.stored",
        ),
    ),
    Switch("matching", "who takes what", ("matching.rule", "matching.equal", "matching.prefer")),
    Switch(
        "mean",
        "from classes to the mean",
        (
            "mean.undefined",
            "mean.undetected",
            "mean.weights",
            "mean.precision",
            "ap.pool",
            "ap.no_objects",
            "ranking.stops_at",
        ),
    ),
)
"""All of them, in the order in which they are changed."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A switch in which two protocols differ: each key with both values, as JSON."""

    switch: Switch
    keys: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return "; ".join(f"{key}: {_short(a)} -> {_short(b)}" for key, a, b in self.keys)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def changed(start: Protocol, end: Protocol) -> list[Changed]:
    """The switches in which two protocols differ, in their order."""
    a, b = start.to_dict(), end.to_dict()
    found = []
    for switch in SWITCHES:
        pairs = [each for key in switch.keys for each in _parts(key, _get(a, key), _get(b, key))]
        differ = tuple((key, canonical(x), canonical(y)) for key, x, y in pairs if x != y)
        if differ:
            found.append(Changed(switch, differ))
    return found


def _parts(key: str, a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """A key with both values; of tables each entry, null where one lacks it."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [(f"{key}.{name}", a.get(name), b.get(name)) for name in {**a, **b}]
    return [(key, a, b)]


def between(start: Protocol, end: Protocol, taken: Collection[str]) -> Protocol:
    """The first protocol with some switches, given by name, as the second has them; `start` and
    `end` themselves where that is none, or all that differ.
    """
    names = [each.switch.name for each in changed(start, end)]
    if not any(name in taken for name in names):
        return start
    if all(name in taken for name in names):
        return end
    tree, other = deepcopy(start.to_dict()), end.to_dict()
    for switch in SWITCHES:
        if switch.name in taken:
            for key in switch.keys:
                _put(tree, key, deepcopy(_get(other, key)))
    return from_dict(tree, where=f"between {start.name} and {end.name}")


def _get(tree: dict[str, Any], key: str) -> Any:
    table, _, name = key.partition(".")
    return tree[table][name] if name else tree[table]


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    table, _, name = key.partition(".")
    if name:
        tree[table][name] = value
    else:
        tree[table] = value
