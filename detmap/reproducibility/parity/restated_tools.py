"""The numbers of named tools for the same files, and their differences from a protocol's.

>>> import detmap
>>> import detmap.reproducibility.parity.restated_tools
>>> from detmap.core.base.resources import folder
>>> sample = folder("datasets") / "shapes"
>>> truth = detmap.read_truth(sample)
>>> found = detmap.read_detections(sample / "detections" / "contours", truth)
>>> numbers = detmap.reproducibility.parity.restated_tools.numbers
>>> rows = numbers(truth, found, detmap.load_protocol("voc2012"))
>>> {row.tool: round(row.value, 4) for row in rows if row.tool.startswith("ultralytics")}
{'ultralytics-8.3': 0.6187, 'ultralytics-8.4': 0.6038}
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from detmap.core.adapters.truth_by_protocol import TruthByProtocol
from detmap.core.base.last_values import LastValues
from detmap.core.base.pair_limits import limit_compared
from detmap.core.curves.aggregation import classes_without_truth
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.matching.prepare import prepared_by
from detmap.core.protocol import Protocol, load, tools
from detmap.core.protocol.metric_rows import MetricRow
from detmap.core.results import result_notes
from detmap.core.results.result import Result
from detmap.core.results.result_tables import overlaps
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.grouping import cell_bounds
from detmap.core.tables.notes import summed
from detmap.errors import CrowdedError, DataError, OverlapError
from detmap.evaluate import summarize

SHAPED = {("pycocotools", "masks"): "coco-segm", ("pycocotools", "keypoints"): "coco-keypoints"}
"""Protocols of tools for masks and keypoints."""
BOXES_ALONE = Note(
    "tool-boxes", "detmap implements this tool for boxes only, not for masks and keypoints", 1
)
EVALUATIONS = 16
"""Evaluations that compare every pair of an image and class: the other rules have limits."""
REMARKS = {"order-undecided": "ties", "choice-undecided": "ties", "reference-stops": "stops"}
"""Notes on the reliability of a tool's number, with one word each."""
NOTHING = {
    BOXES_ALONE.code: "boxes",
    "class-without-truth": "undefined",
    "overlap-undefined": "undefined",
    "too-crowded": "crowded",
}
"""Notes on missing numbers."""


WORDS = {
    "ties": "ties: NumPy's unstable sort ordered tied scores; the number holds for this NumPy and "
    "processor; FiftyOne breaks ties by its internal order",
    "boxes": "boxes: detmap implements this tool for boxes only",
    "crowded": "crowded: more boxes overlap than detmap lists for the rules of this tool",
    "stops": "stops: the tool itself fails on such input",
}
"""Explanations of the words."""


@dataclass(frozen=True, slots=True)
class ToolNumber:
    """The number of a tool.

    Parameters
    ----------
    tool : the name of its protocol
    metric : the tool's name of its first number
    iou : its thresholds, ``0.50`` or ``0.50:0.95``
    value : a fraction; NaN if undefined
    difference : from the same quantity of the compared protocol; NaN if it has none
    against : the name of that quantity; "" for none
    notes : unstable sorts, errors of the tool, or why there is no number
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
    """The name and value of a result's first metric."""
    return next(iter(result.metrics.items()), ("", float("nan")))


def numbers(
    truth: Truth | TruthByProtocol,
    detections: Detections,
    stock: Protocol,
    names: Iterable[str] | None = None,
    *,
    threads: int | None = None,
) -> list[ToolNumber]:
    """The number of each tool, sorted by name.

    Tools with the same matching rules are matched once. If `stock` compares masks or keypoints,
    tools for boxes have no number. Neither has a tool in whose number type an IoU is 0/0 or
    inf/inf, or for whose rules too many boxes overlap.

    Parameters
    ----------
    truth, detections : tables with boxes. All tools share the roles of a `Truth`: one that was read
        for VOC's rules has the ``difficult`` of COCO JSON for COCO's tools too. Give a
        `TruthByProtocol` for the numbers of `detmap.evaluate` with the file
    stock : the protocol to compare with
    names : of tools; default: all
    threads : default: all processors

    Raises
    ------
    DataError : not tables; boxes with an IoU of 0/0 or inf/inf under `stock`
    ProtocolError : an unknown name
    """
    if not isinstance(truth, Truth | TruthByProtocol) or not isinstance(detections, Detections):
        raise DataError(
            "tools", "tables are required", "pass the results of read_truth and read_detections"
        )
    return compare_tools(MatchedLast(truth, detections, threads), stock, names)


def compare_tools(
    known: MatchedOnce, stock: Protocol, names: Iterable[str] | None = None
) -> list[ToolNumber]:
    """Does `numbers` with matches that may be known.

    Tools with similar rules follow each other, because matching shares the last orders and lists.
    """
    limit_crowds("tools", known.truths.first, known.detections)
    base = quantities(known.result(stock))
    wanted = [(name, _restated(name, stock)) for name in (tools() if names is None else names)]
    own = matching_rules(stock)

    def turn(place: int) -> tuple[Any, ...]:
        rules = wanted[place][1]
        key = "" if rules is None else matching_rules(rules)
        return (key != own, () if rules is None else _order_rules(rules), key)

    found: dict[int, ToolNumber] = {}
    for place in sorted(range(len(wanted)), key=turn):
        found[place] = _tool_number(known, *wanted[place], base)
    return [found[place] for place in range(len(wanted))]


def limit_crowds(
    where: str, truth: Truth, detections: Detections, evaluations: int = EVALUATIONS
) -> None:
    """Raises `CrowdedError` if images are too crowded to be matched under so many rules."""
    n_rows = len(truth) + len(detections)
    limit_compared(where, count_pairs(truth, detections), n_rows, evaluations)


def count_pairs(truth: Truth, detections: Detections) -> int:
    """Counts the pairs of a detection and an object of the same image and class."""
    n_images = len(truth.images)
    objects, own = (
        table.label.astype(np.int64) * n_images + table.image for table in (truth, detections)
    )
    first, last = cell_bounds(np.sort(objects), own, n_images * len(truth.categories))
    return int((last - first).sum())


def _restated(name: str, stock: Protocol) -> Protocol | None:
    """A tool's protocol for the boxes, masks or keypoints of `stock`; None without one."""
    rules = load(name)
    if rules.iou.of == stock.iou.of:
        return rules
    return load(SHAPED[name, stock.iou.of]) if (name, stock.iou.of) in SHAPED else None


def _order_rules(protocol: Protocol) -> tuple[str, ...]:
    """Sorts protocols with the same scores and orders together."""
    limits = (protocol.limits.scope, protocol.limits.max_dets)
    order = (protocol.matching.order, protocol.matching.sort, protocol.ranking.precision)
    parts = protocol.uses_default_order(), prepared_by(protocol), order, protocol.ranking, limits
    return tuple(map(repr, parts))


def _tool_number(
    known: MatchedOnce,
    name: str,
    rules: Protocol | None,
    base: dict[tuple[Any, ...], tuple[str, float]],
) -> ToolNumber:
    """The number of a tool; `base` has the quantities to compare with."""
    nothing = float("nan")
    if rules is None:
        return ToolNumber(name, "", "", nothing, nothing, "", (BOXES_ALONE,))
    try:
        result = known.result(rules)
    except CrowdedError as error:
        note = Note("too-crowded", f"image is too crowded for these rules: {error}", 1)
        return ToolNumber(name, "", "", nothing, nothing, "", (note,))
    except OverlapError as error:
        note = Note("overlap-undefined", f"pair of boxes has no IoU: {error}", 1)
        return ToolNumber(name, "", "", nothing, nothing, "", (note,))
    metric, value = headline(result)
    kept = {*REMARKS, *(NOTHING if math.isnan(value) else ())}
    notes = tuple(note for note in _few_notes(result) if note.code in kept)
    own = quantity(result, result.rows[0])
    against, number = base.get(own, ("", math.nan))
    iou = overlaps(result.protocol, result.rows[0])
    return ToolNumber(name, metric, iou, value, value - number, against, notes)


def _few_notes(result: Result) -> list[Note]:
    """The notes of a result that `REMARKS` and `NOTHING` may keep: others take longer."""
    categories = result.matches.categories
    return [
        *summed(result.matches.notes),
        *classes_without_truth(result.scores, categories, result.protocol),
        *result_notes.stops(result.overview),
    ]


def quantity(result: Result, row: MetricRow) -> tuple[Any, ...]:
    """Identifies a metric by kind, thresholds (float32 in some tools), subset and group."""
    rules = result.protocol
    thresholds = rules.thresholds().tolist() if row.iou is None else [row.iou]
    subset = "" if row.subset == rules.axes().main else row.subset
    return row.kind, tuple(round(each, 6) for each in thresholds), subset, row.group


def quantities(result: Result) -> dict[tuple[Any, ...], tuple[str, float]]:
    """The name and value of each quantity of a result; the first of several recalls."""
    found: dict[tuple[Any, ...], tuple[str, float]] = {}
    for row in result.rows:
        found.setdefault(quantity(result, row), (row.name, result.metrics[row.name]))
    return found


class MatchedOnce:
    """Results under many protocols; protocols with the same matching rules share matches.

    Parameters
    ----------
    truth : one table for all protocols, or the table of each
    """

    def __init__(
        self, truth: Truth | TruthByProtocol, detections: Detections, threads: int | None = None
    ) -> None:
        self.truths = TruthByProtocol(truth) if isinstance(truth, Truth) else truth
        self.detections, self.threads = detections, threads
        self._matches: dict[tuple[int, str], tuple[Truth, Matches]] = {}
        self._shared = LastValues()

    def result(self, protocol: Protocol) -> Result:
        """The result under a protocol."""
        return summarize(self.matches(protocol), threads=self.threads)

    def matches(self, protocol: Protocol) -> Matches:
        """The match results under a protocol."""
        truth = self.truths.table(protocol)
        key = id(truth), matching_rules(protocol)
        if key not in self._matches:
            self._forget()
            self._matches[key] = (
                truth,
                match(truth, self.detections, protocol, threads=self.threads, shared=self._shared),
            )
        found = self._matches[key][1]
        return found if found.protocol == protocol else replace(found, protocol=protocol)

    def _forget(self) -> None:
        """Called before matching."""


class MatchedLast(MatchedOnce):
    """Same as `MatchedOnce`, but keeps only the last matches."""

    def _forget(self) -> None:
        self._matches.clear()


AFTER_MATCHING = ("name", "version", "summary", "source", "metrics", "ap", "mean", "groups")
"""Protocol tables that matching does not read."""


def matching_rules(protocol: Protocol) -> str:
    """A key that is equal for protocols with equal match results."""
    tree = protocol.to_dict()
    for part in AFTER_MATCHING:
        del tree[part]
    for key in ("equal", "stops_at"):
        del tree["ranking"][key]
    return repr(tree)
