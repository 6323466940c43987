"""The protocol class, and its interface for the rest of detmap."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.arguments import is_number
from detmap.core.base.grids import Grid
from detmap.core.base.immutable import Immutable, Value
from detmap.core.base.reprs import outline
from detmap.core.protocol import metric_rows as metrics
from detmap.core.protocol.averaging_rules import (
    AveragePrecision,
    Limits,
    Mean,
    OperatingPoint,
    Ranking,
    ScopeRules,
)
from detmap.core.protocol.benchmark_rules import CgF1Rule, Evaluation, Files, FrocRule, KittiRule
from detmap.core.protocol.class_rules import ClassRules
from detmap.core.protocol.key_checks import (
    GROUPS,
    LABELLED,
    METRICS,
    REGIONS,
    SUBSETS,
    TEXT,
    TITLE,
    VERSION,
    Group,
    Key,
    Subset,
)
from detmap.core.protocol.matching_rules import Boxes, DetectionRules, Iou, Matching
from detmap.core.protocol.metric_rows import NO_LIMIT, Axes, MetricRow
from detmap.core.protocol.miss_rate_rules import MissRate
from detmap.errors import ProtocolError

STOCK_ORDER: dict[str, tuple[Any, ...]] = {
    "boxes.extent": ("continuous", "inclusive"),
    "boxes.empty": ("keep", "drop"),
    "boxes.first_pixel": ("one",),
    "boxes.form": ("edges",),
    "boxes.precision": ("float64",),
    "boxes.object_shift": (0.0,),
    "iou.least_union": (0.0,),
    "iou.arithmetic": ("float64",),
    "iou.absorb": (">=",),
    "iou.absorb_from": ("boxes",),
    "matching.equal": ("last", "first"),
    "matching.flags": ("own",),
    "matching.prefer": ("overlap",),
    "matching.neutral_when": ("unmatched",),
    "matching.order": ("ranking",),
    "matching.sort": ("stable",),
    "detections.above": ((),),
    "detections.score_precision": ("float64",),
    "detections.score_decimals": (-1,),
    "detections.box_decimals": (-1,),
    "ranking.ties": ("image", "input"),
    "ranking.sort": ("stable",),
    "ranking.ignored": ("stay",),
    "ranking.of": ("class",),
}
"""Values that the fast matcher supports; others use `detmap.core.matching.general_engine`."""


@dataclass(slots=True, eq=False, repr=False)
class Protocol(Immutable, Value):
    """All rules of an evaluation.

    Parameters
    ----------
    changes : changed keys of the shipped protocol, as (dotted key, value as JSON)
    stock : False for a protocol that detmap does not ship

    Raises
    ------
    ProtocolError : an invalid value
    """

    name: Annotated[str, Key("its name", TITLE, "detmap")]
    version: Annotated[int, Key("rises with every change of the file", VERSION, "detmap")]
    summary: Annotated[str, Key("one line for people", TEXT, "detmap")]
    source: Annotated[str, Key("the reference that it restates", TEXT, "detmap")]
    boxes: Boxes
    iou: Iou
    matching: Matching
    detections: DetectionRules
    classes: ClassRules
    scope: ScopeRules
    limits: Limits
    ranking: Ranking
    ap: AveragePrecision
    mean: Mean
    operating: OperatingPoint
    miss_rate: MissRate
    files: Files
    evaluation: Evaluation
    kitti: KittiRule
    froc: FrocRule
    cgf1: CgF1Rule
    metrics: Annotated[
        tuple[str, ...], Key("the rows of the result", METRICS, "cocoeval.py, summarize")
    ]
    subsets: Annotated[
        tuple[Subset, ...],
        Key(
            "named subsets of objects: ranges of attributes, both ends included; an object must be"
            " in all ranges. Attributes: area, width, height, box_area (width times height, even "
            "if the ground truth gives another area), and those of the ground truth",
            SUBSETS,
            "cocoeval.py, Params.setDetParams; CityPersons eval_MR_multisetup.py",
        ),
    ]
    groups: Annotated[
        tuple[Group, ...],
        Key(
            f'named groups of classes: a list of class names, or "{LABELLED}" for the classes that '
            "the ground truth labels with the group's name (LVIS: frequency)",
            GROUPS,
            "lvis/eval.py, _prepare_freq_group",
            {},
        ),
    ]
    changes: tuple[tuple[str, str], ...] = ()
    stock: bool = True

    def __post_init__(self) -> None:
        from detmap.core.protocol.load_toml import check

        check(self)

    def __repr__(self) -> str:
        changes = [f"{key}={value}" for key, value in self.changes]
        state = () if self.stock else ("custom",)
        prose = () if changes else (self.summary,)
        return outline(self, f"{self.name}.{self.version}", *state, *changes, *prose)

    @property
    def title(self) -> str:
        """Name and summary; after changes name and changed keys, because the summary describes the
        original rules.
        """
        if not self.changes:
            return f"{self.name}: {self.summary}"
        return f"{self.name} with {', '.join(f'{key}={value}' for key, value in self.changes)}"

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain TOML values; `from_dict` of them gives an equal protocol."""
        tree = values_of(self)
        del tree["changes"], tree["stock"]
        return dict(tree)

    def override(self, settings: Mapping[str, Any]) -> "Protocol":
        """Copy the protocol with changed dotted keys, ``{"limits.max_dets": [1, 10, 300]}``.

        Values have TOML's types, or are text (``"[1,10,300]"``, ``"0.5:0.05:0.95"``).

        Raises
        ------
        ProtocolError : unknown key, or value out of range; the message lists valid values
        """
        from detmap.core.protocol.load_toml import override

        return override(self, settings)

    def uses_default_order(self) -> bool:
        """Whether matching uses only the order and types of the benchmarks: stable sorts, float64,
        detections in the ranking of their class.
        """
        return _uses_default_order(self)

    def image_by_image(self) -> bool:
        """Whether partial results can be merged: the order of all detections must not come from an
        unstable sort, nor from the first image of a class. The order within an image can come from
        any sort, because a part has all detections of its images.
        """
        return self.supports("merging")

    def supports(self, feature: str) -> bool:
        """Whether a feature of `detmap.core.protocol.features.FEATURES` supports this protocol."""
        from detmap.core.protocol.features import unsupported

        return not unsupported(self, feature)

    def require(self, feature: str) -> None:
        """Refuse a protocol that a feature of `detmap.core.protocol.features` does not support.

        Raises
        ------
        ProtocolError : the message names the keys, their values and metrics
        """
        from detmap.core.protocol.features import require

        require(self, feature)

    def thresholds(self) -> NDArray[np.float64]:
        """(T,) IoU thresholds."""
        return self.iou.thresholds.values()

    def max_dets(self) -> tuple[int, ...]:
        """The M detection limits, ascending; `NO_LIMIT` for none."""
        return self.limits.max_dets

    def lower_limits(self) -> tuple[int, ...]:
        """The limits below the highest one that a metric row of AP uses."""
        highest = self.limits.max_dets[-1]
        asked = {row.max_dets for row in self.rows()[0] if row.kind == "AP"}
        return tuple(sorted(asked - {highest}))

    def subset(self, name: str | None = None) -> int:
        """Index of a subset on the axis A; default: the main subset.

        Raises
        ------
        ProtocolError : unknown subset
        """
        wanted = self.axes().main if name is None else name
        names = [subset.name for subset in self.subsets]
        if not isinstance(wanted, str) or wanted not in names:
            raise ProtocolError(
                "subset", f"no subset {wanted!r}", f"the subsets are {', '.join(names)}"
            )
        return names.index(wanted)

    def threshold(self, iou: float, where: str = "iou") -> int:
        """Index of an IoU threshold on the axis T.

        Raises
        ------
        ProtocolError : not evaluated, or not a number
        """
        number = is_number(iou)
        finite = number and math.isfinite(iou)
        place = self.axes().threshold(float(iou)) if finite else None
        if place is None:
            shown = f"{iou:g}" if number else repr(iou)
            raise ProtocolError(
                where,
                f"{shown} is not among iou.thresholds",
                f"choose one of {self.iou.thresholds}, or set iou.thresholds",
            )
        return place

    def axes(self) -> Axes:
        """The axes of metric rows."""
        return Axes(
            tuple(self.thresholds().tolist()),
            tuple(subset.name for subset in self.subsets),
            tuple(group.name for group in self.groups),
            self.limits.max_dets,
        )

    def rows(self) -> tuple[list[MetricRow], list[str]]:
        """The metric rows of the result, and the names of rows that are not evaluated.

        Raises
        ------
        ProtocolError : the benchmark has a special evaluation rule with other metrics
        """
        rows, left_out = _metric_rows(self)
        return list(rows), list(left_out)


@lru_cache(maxsize=64)
def _uses_default_order(protocol: Protocol) -> bool:
    """`Protocol.uses_default_order`."""
    known = all(attrgetter(key)(protocol) in values for key, values in STOCK_ORDER.items())
    what = set(dict(protocol.matching.neutral).values())
    return known and not what & {"absent", *REGIONS}


@lru_cache(maxsize=64)  # an evaluation asks for the rows of its protocol dozens of times
def _metric_rows(protocol: Protocol) -> tuple[list[MetricRow], list[str]]:
    """`Protocol.rows`."""
    if protocol.evaluation.rule != "matching":
        raise ProtocolError(
            f"protocol {protocol.name}",
            f"evaluation.rule {protocol.evaluation.rule} has no matches at IoU thresholds",
            "use `detmap.evaluate` or `detmap eval`, or a protocol with the rule matching",
        )
    texts = protocol.metrics
    if any(key.startswith("miss_rate.references") for key, _ in protocol.changes):
        # a name such as MR-2 tells the references of the stock protocol
        texts = tuple(metrics.RENAMED_MISS_RATE.sub("", text) for text in texts)
    return metrics.metric_rows(texts, protocol.axes())


def values_of(value: Any) -> Any:
    """A node or value of the tree as TOML values."""
    if type(value) in (str, int, float, bool):  # most are; the other questions take time
        return value
    if isinstance(value, Grid):
        return list(value.recipe) if isinstance(value.recipe, tuple) else value.recipe
    if isinstance(value, Subset):
        return {r.attribute: [r.low, "inf" if r.high == math.inf else r.high] for r in value.ranges}
    if isinstance(value, Group):
        return list(value.classes) or LABELLED
    if is_dataclass(value):
        return {f.name: spelled(value, f.name) for f in fields(value)}
    if isinstance(value, tuple):
        return [values_of(x) for x in value]
    return value


TABLES = (
    (Matching, "neutral"),
    (Iou, "classes"),
    (KittiRule, "neighbors"),
    (DetectionRules, "margins"),
    (ClassRules, "renamed"),
    (ClassRules, "ignored_as"),
)
"""Keys whose values are tables by name."""


def spelled(node: Any, name: str) -> Any:
    """One value of a table as a TOML value."""
    value = getattr(node, name)
    if isinstance(node, Limits) and value == (NO_LIMIT,):
        return []
    if (type(node), name) in TABLES:
        return dict(value)
    if isinstance(node, Protocol) and name in ("subsets", "groups"):
        return {each.name: values_of(each) for each in value}
    return values_of(value)
