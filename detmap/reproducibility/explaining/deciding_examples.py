"""The classes, detections and objects with the largest differences between two evaluations."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.curves.aggregation import per_class
from detmap.core.matching.matches import Matches
from detmap.core.matching.scope import objects_that_take_part
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import group, labels
from detmap.errors import DataError
from detmap.reproducibility.explaining.input_changes import Alignment
from detmap.reproducibility.explaining.steps import ClassMove, Decided
from detmap.reproducibility.parity.restated_tools import NOTHING, headline

MOST_CLASSES = 5
MOST_DECIDED = 5
ABSENT = "not evaluated"  # beyond a limit, below a floor, not part of the rules
GONE = "missing"  # a row of the other input alone

Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Side:
    """An evaluation with its input and `Matches.taken`."""

    truth: Truth
    detections: Detections
    result: Result


class RowResults(NamedTuple):
    """The (n,) match results and (n,) IoUs of table rows; NaN for no IoU."""

    verdict: Texts
    overlap: NDArray[np.float64]


def number(result: Result) -> float:
    """The headline of a result.

    Raises
    ------
    DataError : the headline is undefined; the message gives the reason
    """
    value = headline(result)[1]
    if math.isnan(value):
        why = [str(note) for note in result.notes if note.code in NOTHING]
        raise DataError(
            "explain",
            f"{result.protocol.name} has no number for this input: "
            f"{'; '.join(why) or 'no ground-truth objects'}",
            "give rules and files with a defined number",
        )
    return value


def classes_moved(before: Result, after: Result) -> tuple[ClassMove, ...]:
    """The classes with the largest changes of AP, largest first; by id, because a protocol may
    merge classes.
    """
    ids, others = (result.verdicts.categories.ids.tolist() for result in (before, after))
    names, values = before.verdicts.categories.names, _headline_of_classes(before)
    later = dict(zip(others, _headline_of_classes(after), strict=True))
    moves = [
        ClassMove(k, names[k], values[k], later.get(ids[k], math.nan)) for k in range(len(ids))
    ]
    moved = sorted((each for each in moves if each.change), key=lambda each: -abs(each.change))
    return tuple(moved[:MOST_CLASSES])


def _headline_of_classes(result: Result) -> list[float]:
    """The value of each class in the first row of a result."""
    values: list[float] = per_class(result.scores, result.rows[0], result.protocol).tolist()
    return values


def decided(
    before: Side,
    after: Side,
    moves: tuple[ClassMove, ...],
    objects: Alignment | None = None,
    found: Alignment | None = None,
) -> tuple[Decided, ...]:
    """Finds up to five detections, then unmatched objects, whose match results differ.

    Order: classes by their change of AP, then descending score; at IoU 0.5 or the first threshold.

    objects, found : the same rows of both inputs; by default rows at the same position
    """
    size = {move.label: abs(move.change) for move in moves}
    rows = _changed(
        "detection",
        (before.detections, after.detections),
        (_detections(before), _detections(after)),
        found,
        size,
    )
    paired = objects is not None or len(before.truth) == len(after.truth)
    if len(rows) < MOST_DECIDED and paired:
        known = _objects(before), _objects(after)
        if known[0] is not None and known[1] is not None:
            both = (known[0], known[1])
            rows += _changed("object", (before.truth, after.truth), both, objects, size)
    return tuple(rows[:MOST_DECIDED])


def _changed(
    kind: str,
    tables: tuple[Truth | Detections, Truth | Detections],
    results: tuple[RowResults, RowResults],
    alignment: Alignment | None,
    size: dict[int, float],
) -> list[Decided]:
    """The first rows with different match results."""
    if alignment is None:
        same = np.arange(len(tables[0]))
        none = np.zeros(0, dtype=np.int64)
        alignment = Alignment(np.column_stack([same, same]), none, none)
    (a, b), removed, added = alignment.pairs.T, alignment.removed, alignment.added
    one, two = results
    n, gone = len(a), [np.full(len(each), GONE) for each in (added, removed)]
    match_results = (
        np.concatenate([one.verdict[a], one.verdict[removed], gone[0]]),
        np.concatenate([two.verdict[b], gone[1], two.verdict[added]]),
    )
    row = np.concatenate([a, removed, added])
    other = np.arange(len(row)) >= n + len(removed)  # whether the row is of the second table
    overlap = np.concatenate([two.overlap[b], one.overlap[removed], two.overlap[added]])
    overlap[:n] = np.where(np.isnan(overlap[:n]), one.overlap[a], overlap[:n])
    score = _score(tables, row, other)
    names = tables[0].categories.names
    of_class = np.array([size.get(k, 0.0) for k in range(len(names))])
    label = np.where(other, _row_values(tables[1].label, row), _row_values(tables[0].label, row))
    changed = match_results[0] != match_results[1]
    if kind == "object":  # of one that was taken the detection tells
        changed &= np.isnan(overlap)
    which = np.flatnonzero(changed)
    order = np.lexsort((row[which], other[which], -score[which], -of_class[label[which]]))
    found = []
    for i in which[order[:MOST_DECIDED]].tolist():
        table = tables[int(other[i])]
        found.append(
            Decided(
                kind,
                table.source,
                int(row[i]),
                table.images.ids[table.image[row[i]]].item(),
                names[label[i]],
                float(score[i]),
                float(overlap[i]),
                str(match_results[0][i]),
                str(match_results[1][i]),
            )
        )
    return found


def _row_values(column: NDArray[Any], row: NDArray[np.int64]) -> NDArray[Any]:
    """The values of rows; rows of the other table give any value."""
    return column[np.minimum(row, max(0, len(column) - 1))] if len(column) else row


def _score(
    tables: tuple[Truth | Detections, Truth | Detections],
    row: NDArray[np.int64],
    other: NDArray[np.bool_],
) -> NDArray[np.float64]:
    one, two = tables
    if isinstance(one, Truth) or isinstance(two, Truth):
        return np.full(len(row), np.nan)
    return np.where(other, _row_values(two.score, row), _row_values(one.score, row)).astype(
        np.float64
    )


def _bit(matches: Matches) -> np.unsignedinteger[Any]:
    t = matches.protocol.axes().threshold(0.5) or 0
    return matches.tp.dtype.type(1 << t)


def _detections(side: Side) -> RowResults:
    """The match result of each detection, and its IoU with the assigned object."""
    matches, n = side.result.matches, len(side.detections)
    found, overlap = np.full(n, ABSENT, dtype="U16"), np.full(n, np.nan)
    a, bit = matches.protocol.subset(), _bit(matches)
    true, excused = matches.tp[:, a] & bit != 0, matches.ignored[:, a] & bit != 0
    found[matches.position] = np.where(true, "TP", np.where(excused, "IGNORED", "FP"))
    if matches.taken is not None:
        mine = matches.taken.words[:, a] & bit != 0
        rows = matches.taken.detection()[mine]
        overlap[matches.position[rows]] = matches.taken.overlap[mine]
    return RowResults(found, overlap)


def _objects(side: Side) -> RowResults | None:
    """The match result of each object; None if the rules remove or create objects."""
    matches, truth = side.result.matches, side.truth
    rows, _ = group(
        truth.image,
        truth.label,
        len(truth.images),
        len(truth.categories),
        objects_that_take_part(truth, matches.protocol),
    )
    taken_out = "absent" in dict(matches.protocol.matching.neutral).values()
    if matches.taken is None or taken_out or len(rows) != len(matches.counted):
        return None
    verdict, overlap = np.full(len(truth), ABSENT, dtype="U16"), np.full(len(truth), np.nan)
    a, bit = matches.protocol.subset(), _bit(matches)
    verdict[rows] = np.where(matches.counted[:, a], "missed", "ignored")
    mine = matches.taken.words[:, a] & bit != 0
    by = matches.taken.detection()[mine]
    cell = labels(matches.off)[by].astype(np.int64) * len(truth.images) + matches.image[by]
    rows, _ = group(truth.image, truth.label, len(truth.images), len(truth.categories))
    key = truth.label[rows].astype(np.int64) * len(truth.images) + truth.image[rows]
    took = rows[np.searchsorted(key, cell) + matches.taken.object[mine]]
    overlap[took] = matches.taken.overlap[mine]
    verdict[took] = np.where(verdict[took] == "missed", "found", verdict[took])
    return RowResults(verdict, overlap)
