"""The numbers that named tools give for the same files, and how far each is from a protocol's.

>>> import detmap
>>> from detmap.base.resources import folder
>>> sample = folder("datasets") / "shapes"
>>> truth = detmap.read_truth(sample)
>>> found = detmap.read_detections(sample / "detections" / "contours", truth)
>>> rows = detmap.parity.restated_tools.numbers(truth, found, detmap.load_protocol("voc2012"))
>>> {row.tool: round(row.value, 4) for row in rows if row.tool.startswith("ultralytics")}
{'ultralytics-8.3': 0.6187, 'ultralytics-8.4': 0.6038}
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from detmap.errors import DataError
from detmap.evaluate import summarize
from detmap.matching.engine import match
from detmap.matching.matches import Matches
from detmap.protocol import Protocol, load, tools
from detmap.protocol.metric_rows import MetricRow
from detmap.results.result import Result
from detmap.results.result_tables import overlaps
from detmap.tables import Detections, Note, Truth

SHAPED = {("pycocotools", "masks"): "coco-segm", ("pycocotools", "keypoints"): "coco-keypoints"}
"""Protocols that restate a tool where it compares something else than boxes."""
BOXES_ALONE = Note(
    "tool-boxes", "what this tool does with masks and keypoints is not restated: no number", 1
)
REMARKS = {"order-undecided": "ties", "choice-undecided": "ties", "reference-stops": "stops"}
"""Notes that say how far a tool's number can be had at all, in a word."""
NOTHING = {BOXES_ALONE.code: "boxes", "class-without-truth": "undefined"}
"""Notes that say why there is no number, where there is none."""


WORDS = {
    "ties": "ties: NumPy's sort, which is not stable, decided among equals, and the number is "
    "that of this NumPy on this processor; or (fiftyone) an index of the tool's own",
    "boxes": "boxes: what the tool does with masks and keypoints is not restated",
    "stops": "stops: the tool itself stops with an error on such input",
}
"""What the words mean, for people."""


@dataclass(frozen=True, slots=True)
class ToolNumber:
    """What a tool gives.

    Parameters
    ----------
    tool : the name of its protocol
    metric : of its first number, as the tool calls it
    iou : the thresholds of it, ``0.50`` or ``0.50:0.95``
    value : a fraction; NaN where it has none
    difference : from the number of the compared protocol that is the same quantity; NaN where it
        has none such
    against : that number's name; "" for none
    notes : that an unstable sort decided, that the tool itself would stop, why there is no number
    """

    tool: str
    metric: str
    iou: str
    value: float
    difference: float
    against: str
    notes: tuple[Note, ...]

    @property
    def remark(self) -> str:
        """The notes in a word or two; "" for none."""
        words = REMARKS if not math.isnan(self.value) else NOTHING
        return ", ".join(sorted({words[note.code] for note in self.notes if note.code in words}))


def headline(result: Result) -> tuple[str, float]:
    """The first metric of a result: its name and value."""
    return next(iter(result.metrics.items()), ("", float("nan")))


def numbers(
    truth: Truth,
    detections: Detections,
    stock: Protocol,
    names: Iterable[str] | None = None,
    *,
    threads: int | None = None,
) -> list[ToolNumber]:
    """What each tool gives, in the order of their names.

    Where two tools match by the same rules, they are matched once. Where the stock protocol
    compares masks or keypoints, a tool that is restated for boxes alone has no number.

    Parameters
    ----------
    truth, detections : tables with boxes
    stock : the protocol that all are compared with
    names : of tools; all when left out
    threads : how many to use; all processors when left out

    Raises
    ------
    DataError : no tables
    ProtocolError : an unknown name
    """
    if not isinstance(truth, Truth) or not isinstance(detections, Detections):
        raise DataError("tools", "needs tables", "give what read_truth and read_detections return")
    known = MatchedOnce(truth, detections, threads)
    base = quantities(known.result(stock))
    found = []
    for name in tools() if names is None else names:
        rules = load(name)
        if rules.iou.of != stock.iou.of:
            if (name, stock.iou.of) not in SHAPED:
                nothing = float("nan")
                found.append(ToolNumber(name, "", "", nothing, nothing, "", (BOXES_ALONE,)))
                continue
            rules = load(SHAPED[name, stock.iou.of])
        result = known.result(rules)
        metric, value = headline(result)
        kept = {*REMARKS, *(NOTHING if math.isnan(value) else ())}
        notes = tuple(note for note in result.notes if note.code in kept)
        own = quantity(result, result.rows[0])
        against, number = base.get(own, ("", math.nan))
        iou = overlaps(result.protocol, result.rows[0])
        found.append(ToolNumber(name, metric, iou, value, value - number, against, notes))
    return found


def quantity(result: Result, row: MetricRow) -> tuple[Any, ...]:
    """What a metric is the number of, whatever its name and the rules behind it: AP or another
    kind, at which thresholds (some tools hold them in float32), of which objects and classes.
    """
    rules = result.protocol
    thresholds = rules.thresholds().tolist() if row.iou is None else [row.iou]
    subset = "" if row.subset == rules.axes().main else row.subset
    return row.kind, tuple(round(each, 6) for each in thresholds), subset, row.group


def quantities(result: Result) -> dict[tuple[Any, ...], tuple[str, float]]:
    """The name and value of each quantity that a result has; of recalls the first."""
    found: dict[tuple[Any, ...], tuple[str, float]] = {}
    for row in result.rows:
        found.setdefault(quantity(result, row), (row.name, result.metrics[row.name]))
    return found


class MatchedOnce:
    """Results of the same tables under many protocols; those that match alike share the matches."""

    def __init__(self, truth: Truth, detections: Detections, threads: int | None = None) -> None:
        self.truth, self.detections, self.threads = truth, detections, threads
        self._matches: dict[str, Matches] = {}

    def result(self, protocol: Protocol) -> Result:
        """The result under a protocol."""
        return summarize(self.matches(protocol), threads=self.threads)

    def matches(self, protocol: Protocol) -> Matches:
        """The verdicts under a protocol."""
        key = matching_rules(protocol)
        if key not in self._matches:
            self._matches[key] = match(self.truth, self.detections, protocol, threads=self.threads)
        found = self._matches[key]
        return found if found.protocol == protocol else replace(found, protocol=protocol)


AFTER_MATCHING = ("name", "version", "summary", "source", "metrics", "ap", "mean", "groups")
"""Parts of a protocol that matching does not read."""


def matching_rules(protocol: Protocol) -> str:
    """What two protocols have to share for their verdicts to be the same."""
    tree = protocol.to_dict()
    for part in AFTER_MATCHING:
        del tree[part]
    for key in ("equal", "stops_at"):
        del tree["ranking"][key]
    return repr(tree)
