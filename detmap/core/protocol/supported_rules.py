"""Keys and metrics of a protocol that only functions for any rule support."""

from functools import lru_cache

from detmap.core.protocol.keys import LATER
from detmap.core.protocol.tree import Protocol

GROUPED = (
    *("boxes", "iou", "matching", "detections", "ranking", "ap", "mean", "operating"),
    *("evaluation", "miss_rate", "kitti", "froc", "cgf1"),
)
"""Tables with keys that differ between tools."""


@lru_cache(maxsize=64)  # asked for each order of tied scores
def differences(protocol: Protocol) -> tuple[list[str], list[str]]:
    """Returns the keys and the names of the metrics that COCO, VOC and LVIS do not have."""
    tree = protocol.to_dict()
    own = {f"{table}.{key}": v for table in GROUPED for key, v in tree[table].items()}
    other = [key for key, default in LATER.items() if own.get(key, default) != default]
    if protocol.ap.rule.kernel < 0:
        other.append("ap.integrator")
    new = {"mean.undefined": ("no_mean", "detected"), "mean.weights": ("objects",)}
    new |= {"boxes.empty": ("detections",)}
    new |= {"boxes.extent": ("padded", "as_written"), "ranking.ties": ("matched", "first_seen")}
    other += [key for key, values in new.items() if own[key] in values]
    below = protocol.lower_limits()
    names = [
        row.name
        for row in protocol.rows()[0]
        if not row.metric.influence or (row.kind == "AP" and row.max_dets in below)
    ]
    if protocol.limits.scope == "dataset":
        other.append("limits.scope")
    return other, names
