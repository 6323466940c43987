"""What works together: the values of protocol keys that each feature does not support."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from detmap.core.protocol.keys import LATER
from detmap.core.protocol.metric_rows import POINT
from detmap.core.protocol.tree import Protocol, spelled
from detmap.errors import ProtocolError

GROUPED = (
    *("boxes", "iou", "matching", "detections", "ranking", "ap", "mean", "operating"),
    *("evaluation", "miss_rate", "kitti", "froc", "cgf1"),
)
"""Tables with keys that differ between tools."""
REFUSED: dict[str, tuple[Any, ...]] = {
    "boxes.extent": ("padded", "as_written"),
    "boxes.clip": ("crowdhuman",),
    "boxes.empty": ("detections",),
    "mean.undefined": ("no_mean", "detected"),
    "mean.weights": ("objects",),
    "ranking.ties": ("matched", "first_seen"),
    "limits.scope": ("dataset",),
    "scope.unknown": ("classes", "add"),
    "ap.recall_over": ("all",),
}
"""The refused values of a key. Of any other key, all values but the default are refused."""
DEFAULTS: dict[str, Any] = {**LATER, "iou.of": "boxes", "iou.epsilon": 0}
TOOLS = (
    *(key for key in LATER if key.split(".")[0] in GROUPED and key != "iou.dilation"),
    *("ap.integrator", "mean.undefined", "mean.weights", "boxes.empty", "boxes.extent"),
    *("ranking.ties", "metrics", "limits.scope"),
)
"""Keys for single tools and benchmarks: COCO, VOC and LVIS do not have the refused values."""
IMAGE_ORDER = ("ranking.sort", "ranking.ties=first_seen", "matching.neutral")
IMAGES = (*IMAGE_ORDER, "limits.scope", "detections.score_scale")
BOXES_ONLY = (
    *("boxes.extent", "boxes.clip", "boxes.first_pixel", "boxes.form", "boxes.precision"),
    *("boxes.object_shift", "boxes.aspect", "iou.epsilon", "iou.least_union", "iou.arithmetic"),
    *("iou.absorb_from", "detections.box_decimals", "matching.equal=sorted_own"),
)
PARTS = "evaluate all images at once, or set limits.scope to class or image"


def _tools(*supported: str) -> tuple[str, ...]:
    return tuple(key for key in TOOLS if key not in supported)


class Feature(NamedTuple):
    """A feature, and the keys that it does not support.

    Parameters
    ----------
    noun : with its verb, as messages begin; "" for a feature that no protocol key restricts
    keys : whose refused values it does not support, or ``KEY=VALUE``
    options : of `detmap eval` that need all match rows or tables in memory: not with ``--memory``
    fix : for messages; "" for the keys of another protocol
    """

    noun: str
    keys: tuple[str, ...]
    options: tuple[str, ...] = ()
    fix: str = ""


_TIES = _tools("boxes.area", "evaluation.extra")
_ORDER = "another order of tied scores is"
FEATURES: dict[str, Feature] = {
    "intervals": Feature("", (), ("ci",)),
    "order of ties": Feature(_ORDER, _TIES, ("ties",)),
    "note on ties": Feature(_ORDER, _tools("boxes.area", "evaluation.extra", "iou.absorb_from")),
    "diagnosis": Feature(
        "a diagnosis is",
        (
            *_tools(
                *("iou.absorb", "iou.absorb_from", "mean.undefined", "evaluation.extra"),
                *("limits.scope", "metrics"),
            ),
            "ap.recall_over",
        ),
        ("errors",),
    ),
    "bounded memory": Feature(
        "evaluation in bounded memory is",
        (
            *("evaluation.rule", "evaluation.extra", "iou.of", "ap.pool", "operating"),
            *("scope.unknown", *IMAGES),
        ),
        fix="evaluate without a bound of memory, on a larger machine if necessary",
    ),
    "merging": Feature("merging is", IMAGES, fix="match all images at once"),
    "image order": Feature("the order of one image is", IMAGE_ORDER),
    "Evaluator": Feature("Evaluator is", ("limits.scope",), fix=PARTS),
    "Dask": Feature("Dask is", ("limits.scope",), fix=PARTS),
    "assignments": Feature(
        "assignments are",
        ("boxes.aspect", "detections.margins"),
        fix="set boxes.aspect=0 and detections.margins={}",
    ),
    "masks, keypoints": Feature("masks and keypoints are", BOXES_ONLY),
    "slices": Feature("", (), ("slices",)),
    "a part of images or classes": Feature("", (), ("images", "classes")),
    "score thresholds": Feature("", (), ("confidence", "best_f1", "min_precision", "min_recall")),
    "values per image": Feature("", (), ("per_image",)),
    "plots": Feature("", (), ("plot",)),
    "receipts": Feature("", (), ("receipt",)),
    "other AP interpolations": Feature("", (), ("integrators",)),
    "input checks": Feature("", (), ("strict", "fix")),
}
SUPPORTED = {
    "boxes": "coco-bbox or voc2012",
    "masks": "coco-segm",
    "boundary": "coco-boundary",
    "keypoints": "coco-keypoints",
}
"""Protocols without special rules, by what they compare; of rotated boxes it is ``dota``."""


@lru_cache(maxsize=256)  # asked for each order of tied scores
def unsupported(protocol: Protocol, feature: str) -> dict[str, str]:
    """Returns the keys that a feature does not support, each as a message shows it."""
    found = {}
    for name in FEATURES[feature].keys:
        key, _, value = name.partition("=")
        text = SPECIAL[name](protocol) if name in SPECIAL else _refused(protocol, key, value)
        if text:
            found[key] = text
    return found


def _refused(protocol: Protocol, key: str, only: str) -> str:
    """Returns the key and its value if a feature refuses it, or refuses `only` this value."""
    table, _, name = key.partition(".")
    value = spelled(getattr(protocol, table), name)
    if only or key in REFUSED:
        refused = value in ((only,) if only else REFUSED[key])
    else:
        refused = value != DEFAULTS[key]
    text = f"{key}={value}" if isinstance(value, str | int | float) else key
    return text if refused else ""


def _own_integrator(protocol: Protocol) -> str:
    refused = protocol.ap.rule.kernel < 0
    return f"ap.integrator={protocol.ap.integrator}" if refused else ""


def _region_order(protocol: Protocol) -> str:
    """One that found a region anywhere puts all of a list in the order of images."""
    ranking, late = protocol.ranking, "region_to_find" in dict(protocol.matching.neutral).values()
    refused = late and ranking.ignored == "leave" and ranking.ties == "input"
    return "matching.neutral" if refused else ""


def _metrics(protocol: Protocol, *, points: bool = False) -> str:
    """The metrics that COCO and VOC lack, or those at one score threshold of all classes."""
    if protocol.evaluation.rule != "matching":
        return ""
    below = protocol.lower_limits()
    names = [
        row.name
        for row in protocol.rows()[0]
        if (
            row.kind in POINT
            if points
            else not row.metric.stock or (row.kind == "AP" and row.max_dets in below)
        )
    ]
    return f"the metric{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""


SPECIAL: dict[str, Callable[[Protocol], str]] = {
    "ap.integrator": _own_integrator,
    "matching.neutral": _region_order,
    "metrics": _metrics,
    "operating": lambda protocol: _metrics(protocol, points=True),
}
"""Conditions that are not a list of values."""


def require(protocol: Protocol, feature: str) -> None:
    """Does `Protocol.require`."""
    refused = unsupported(protocol, feature)
    if not refused:
        return
    noun, _, _, fix = FEATURES[feature]
    similar = SUPPORTED.get(protocol.iou.of, "dota")
    raise ProtocolError(
        f"protocol {protocol.name}: {', '.join(refused)}",
        f"{noun} not available with {', '.join(refused.values())}",
        fix
        or f"use {similar}, or set these keys and metrics to their values there "
        f"(`detmap show {similar.split()[0]}`)",
    )


def options_in_memory() -> tuple[str, ...]:
    """Returns the options of `detmap eval` that need all match rows or tables in memory."""
    return tuple(option for feature in FEATURES.values() for option in feature.options)
