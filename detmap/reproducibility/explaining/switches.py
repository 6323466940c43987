"""Switches: groups of protocol keys that change together, in a fixed order."""

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from detmap.core.protocol import Protocol, from_dict
from detmap.core.protocol.load_toml import canonical


@dataclass(frozen=True, slots=True)
class Switch:
    """Keys that change together.

    Parameters
    ----------
    name : for users and tests
    title : what it decides
    keys : dotted keys of a protocol, or whole tables
    """

    name: str
    title: str
    keys: tuple[str, ...]


SWITCHES = (
    Switch(
        "headline",
        "metric",
        (
            *("metrics", "iou.thresholds", "subsets", "groups", "iou.sigmas"),
            "detections.margins",  # by subset
            *("evaluation.rule", "evaluation.extra"),
            *("iou.classes", "kitti.height", "kitti.neighbors", "cgf1.score"),
            *("froc.rates", "froc.mean_up_to", "froc.lookup", "froc.most_marks"),
            *("operating.rule", "operating.score", "operating.samples", "operating.smooth"),
            *("miss_rate.references", "miss_rate.lookup", "miss_rate.before"),
        ),
    ),
    Switch("classes", "names of classes", ("classes.renamed", "classes.ignored_as")),
    Switch("overlap", "kind of overlap", ("iou.of", "iou.dilation")),
    Switch("extent", "box convention", ("boxes.extent", "boxes.clip", "boxes.area")),
    Switch(
        "shift",
        "offset and width of objects",
        ("boxes.object_shift", "boxes.aspect", "boxes.aspect_of"),
    ),
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
    Switch(
        "text", "rounding in text files", ("detections.score_decimals", "detections.box_decimals")
    ),
    Switch(
        "comparison",
        "IoU at the threshold",
        ("iou.comparison", "iou.cap", "iou.absorb", "iou.absorb_from"),
    ),
    Switch("union", "constants in the IoU", ("iou.epsilon", "iou.least_union", "iou.tolerance")),
    Switch(
        "neutral",
        "ignored objects",
        (
            *("matching.neutral", "matching.neutral_when", "matching.flags"),
            *("matching.outside", "ap.recall_over"),
        ),
    ),
    Switch("flat", "boxes with zero area", ("boxes.empty", "boxes.reversed")),
    Switch("floor", "minimum score", ("detections.above",)),
    Switch(
        "scores", "scale and order of scores", ("detections.score_scale", "detections.score_order")
    ),
    Switch("limit", "detection limit", ("limits.max_dets", "limits.scope", "limits.order")),
    Switch(
        "scope",
        "evaluated classes and images",
        (
            *("scope.unlisted", "scope.not_exhaustive", "scope.unknown"),
            *("detections.outside", "detections.margin"),
        ),
    ),
    Switch(
        "order",
        "order of tied scores",
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
        "AP interpolation",
        (
            "ap.integrator",
            "ap.grid",
            "ap.eleven",
            "ap.epsilon",
            "ap.tail",
            "ap.samples",
            "ap.arithmetic",
            "ap.sum",
            "ap.stored",
        ),
    ),
    Switch("matching", "matching rule", ("matching.rule", "matching.equal", "matching.prefer")),
    Switch(
        "mean",
        "mean over classes",
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
    """The switches in which two protocols differ, in order."""
    a, b = start.to_dict(), end.to_dict()
    found = []
    for switch in SWITCHES:
        pairs = [each for key in switch.keys for each in _parts(key, _get(a, key), _get(b, key))]
        differ = tuple((key, canonical(x), canonical(y)) for key, x, y in pairs if x != y)
        if differ:
            found.append(Changed(switch, differ))
    return found


def _parts(key: str, a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """A key with both values; for tables one entry per key, null where missing."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [(f"{key}.{name}", a.get(name), b.get(name)) for name in {**a, **b}]
    return [(key, a, b)]


def between(start: Protocol, end: Protocol, taken: Collection[str]) -> Protocol:
    """The first protocol with the values of the second for some switches, given by name."""
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
