"""Aggregation: scores and metric rows to means over classes, per-class tables and counts.

A metric row uses labels (IoU, subset, detection limit, class group), not array positions.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.curves import own_terms, terms
from detmap.core.curves import scores as class_scores
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.protocol.integrators import AT_TRUE_POSITIVES
from detmap.core.protocol.metric_rows import POINT, MetricRow
from detmap.core.tables import Categories, Note
from detmap.errors import ProtocolError, few

COUNTS = ("objects", "detections", "tp", "fp", "ignored", "missed")
"""Counts of images, classes and results."""


def mean(scores: Scores, row: MetricRow, protocol: Protocol, categories: Categories) -> float:
    """Returns the row's mean over classes, thresholds and terms; NaN if undefined.

    The terms are summed in the order threshold, recall point, class, as in pycocotools.
    """
    if row.kind in POINT:
        return float(scores.points[protocol.threshold(row.iou or 0.0)][POINT.index(row.kind), 0])
    if row.metric.module:
        return float(own_terms.final(row.metric, _mean(scores, row, protocol, categories)))
    return _mean(_within_limit(scores, row), row, protocol, categories)


def _mean(scores: Scores, row: MetricRow, protocol: Protocol, categories: Categories) -> float:
    """Does `mean` for the terms of a row: those of the miss rate are logarithms."""
    if row.kind == "AP" and scores.pooled is not None and not row.group:
        pooled = _select_threshold(scores.pooled[protocol.subset(row.subset)], row, protocol)
        return _averaged(iter([pooled.ravel()]), pooled.size)
    blocks = _blocks(scores, row, protocol)
    chosen = partial(_chosen, scores, row, protocol, categories)
    first = chosen(blocks[0]())
    if first is None:
        return math.nan
    cells, classes = first
    defined = ~np.isnan(cells)  # the same at every threshold
    n = int(np.count_nonzero(defined))
    more = (chosen(block()) for block in blocks[1:])
    numbers = cells[defined] if n < cells.size else cells.reshape(-1)
    parts = chain([numbers], (part[0][defined] for part in more if part))
    n *= len(blocks)
    del first, numbers
    if protocol.mean.weights != "equal":
        of_class = (
            scores.n_images
            if protocol.mean.weights == "images"
            else scores.n_objects[:, protocol.subset(row.subset)]
        )
        weights = np.broadcast_to(of_class[classes].astype(np.float64), cells.shape)[defined]
        if not weights.any():
            return math.nan
        share = terms.total((part * weights for part in parts), n)
        return float(share / terms.total(repeat(weights, len(blocks)), n))
    return _averaged(parts, n, protocol.mean.precision)


def _chosen(
    scores: Scores,
    row: MetricRow,
    protocol: Protocol,
    categories: Categories,
    cells: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """The averaged cells (..., C) and their classes (C,); None for no mean."""
    filling = protocol.mean.undefined != "skip" or protocol.mean.undetected
    filling = filling and not row.metric.module
    if not row.group and not filling:
        return cells, scores.judged
    everyone = np.arange(len(categories))
    members = classes_of(row.group, protocol, categories) if row.group else everyone
    if filling:
        filled = _with_undefined(scores, row, protocol, cells, members)
        return None if filled is None else (filled, members)
    wanted = np.isin(scores.judged, members)
    return cells[..., wanted], scores.judged[wanted]


def under_integrators(
    matches: Matches, weights: NDArray[np.float64] | None
) -> dict[str, dict[str, float]]:
    """Returns AP, AP50 and AP75 under each AP interpolation, by its title."""
    table, protocol = {}, matches.protocol
    for rule in AT_TRUE_POSITIVES:
        ap = replace(protocol.ap, integrator=rule.name)
        scores = class_scores.scores(matches, ap, weights=weights)
        shown = replace(protocol, ap=ap, metrics=("AP", "AP50", "AP75"))
        table[rule.title] = {
            row.name: mean(scores, row, shown, matches.categories) for row in shown.rows()[0]
        }
    return table


def _with_undefined(
    scores: Scores,
    row: MetricRow,
    protocol: Protocol,
    cells: NDArray[np.float64],
    members: NDArray[np.int64],
) -> NDArray[np.float64] | None:
    """(..., n) the row's classes with values for undefined cells; None for no mean."""
    a = protocol.subset(row.subset)
    seen = _seen(scores, a)[members]
    cells = _expand_classes(scores, cells, np.nan)[..., members]
    rule = protocol.mean.undefined
    none = np.isnan(cells)
    if rule == "no_mean" and (none & seen).any():
        return None
    value = np.full(len(seen), {"one": 1.0, "skip": np.nan}.get(rule, 0.0))
    if rule == "detected":  # an ignored detection is no point of a curve: TIDE, ap.py, is_empty
        counts = _select_threshold(scores.n_tp[a] + scores.n_fp[a], row, protocol)
        listed = np.asarray(counts.any(axis=0))
        value[~listed[members]] = np.nan
    if protocol.mean.undetected and row.kind == "AP":
        value[~seen] = protocol.mean.undetected
    return np.where(none, value, cells)


def _seen(scores: Scores, a: int) -> NDArray[np.bool_]:
    """(K,) whether a class has evaluated detections."""
    counts = scores.n_tp[a] + scores.n_fp[a] + scores.n_ignored[a]
    return np.asarray(counts.any(axis=0))


def _averaged(parts: Iterator[NDArray[np.float64]], n: int, precision: str = "float64") -> float:
    """`np.mean` of n numbers in the protocol's precision; NaN if empty."""
    if not n:
        return math.nan
    if precision == "float32":
        total = terms.total((part.astype(np.float32) for part in parts), n)
        return float(np.float32(total / np.intp(n)))
    mean = terms.total(parts, n) / np.intp(n)
    return float(np.float32(mean) if precision == "rounded" else mean)


def classes_of(group: str, protocol: Protocol, categories: Categories) -> NDArray[np.int64]:
    """Returns the positions of a group's classes, ascending.

    Raises
    ------
    ProtocolError : the group has an unknown class, and is not that of a stock protocol, whose data
        set may be a part
    """
    (wanted,) = (known for known in protocol.groups if known.name == group)
    if wanted.classes:
        unknown = [name for name in wanted.classes if name not in categories.names]
        if unknown and (len(unknown) == len(wanted.classes) or not has_stock_groups(protocol)):
            fix = """use these names, or metrics without groups: --set 'metrics=["AP"]'"""
            raise ProtocolError(f"groups.{group}", f"no ground-truth class {few(unknown)}", fix)
        chosen = [name in wanted.classes for name in categories.names]
    else:
        chosen = [label == group for label in categories.groups]
    return np.flatnonzero(chosen)


def has_stock_groups(protocol: Protocol) -> bool:
    """Whether the groups of classes are those of a protocol that detmap ships."""
    return protocol.stock and not any(key.startswith("groups") for key, _ in protocol.changes)


def per_class(scores: Scores, row: MetricRow, protocol: Protocol) -> NDArray[np.float64]:
    """(K,) the row's value of each class; NaN without objects."""
    if row.kind in POINT:
        of_class = scores.points[protocol.threshold(row.iou or 0.0)][POINT.index(row.kind), 1:]
        return _expand_classes(scores, of_class, np.nan)
    scores = _within_limit(scores, row)
    means = np.concatenate([_class_means(cells) for cells in _class_blocks(scores, row, protocol)])
    if protocol.mean.precision == "rounded":
        means = means.astype(np.float32).astype(np.float64)
    values = _expand_classes(scores, means, np.nan)
    if row.metric.module:
        values = own_terms.final(row.metric, values)
    if row.kind == "AP":
        none = scores.n_objects[:, protocol.subset(row.subset)] == 0
        if protocol.ap.no_objects == "zero":
            values[none] = 0.0
        elif protocol.mean.undefined == "no_mean":
            values[none & ~_seen(scores, protocol.subset(row.subset))] = 0.0
        if protocol.mean.undetected:
            values[none & ~_seen(scores, protocol.subset(row.subset))] = protocol.mean.undetected
    return values


def _within_limit(scores: Scores, row: MetricRow) -> Scores:
    """The scores at the limit of a row; those of AR hold all limits."""
    return scores.lower.get(row.max_dets, scores) if row.kind == "AP" else scores


def class_rows(protocol: Protocol) -> tuple[MetricRow, ...]:
    """Returns the rows of the per-class table: main subset, every AP, and one AR."""
    highest, main = protocol.max_dets()[-1], protocol.axes().main
    rows = [
        replace(row, name=row.name.removeprefix("m"))
        for row in protocol.rows()[0]
        if row.subset == main and not row.group and (row.max_dets == highest or row.kind == "AP")
    ]
    if not any(row.kind == "AR" for row in rows):
        rows.append(MetricRow("AR", "AR", None, main, "", highest))
    return tuple(rows)


def _expand_classes(
    scores: Scores, cells: NDArray[np.float64], value: float
) -> NDArray[np.float64]:
    """(..., K) from (..., J), with `value` for classes without objects."""
    shape = (*cells.shape[:-1], len(scores.n_objects))
    memory.require(
        8 * math.prod(shape),
        "mean.undefined",
        f"the terms of {shape[-1]} classes",
        "leave mean.undefined at skip",
    )
    everything = np.full(shape, value)
    everything[..., scores.judged] = cells
    return everything


def _class_means(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """(J,) from (..., J)."""
    flat = np.moveaxis(cells, -1, 0).reshape(cells.shape[-1], math.prod(cells.shape[:-1]))
    means: NDArray[np.float64] = np.ascontiguousarray(flat).mean(axis=1)  # each row is summed alone
    return means


def _class_blocks(
    scores: Scores, row: MetricRow, protocol: Protocol
) -> Iterable[NDArray[np.float64]]:
    """(..., J') the averaged numbers, by blocks of classes."""
    if row.kind == "AP" and isinstance(scores.terms, terms.Blocks):
        t = None if row.iou is None else protocol.threshold(row.iou, where=row.name)
        return scores.terms.class_blocks(protocol.subset(row.subset), t)
    return [block() for block in _blocks(scores, row, protocol)]


def _blocks(
    scores: Scores, row: MetricRow, protocol: Protocol
) -> list[Callable[[], NDArray[np.float64]]]:
    """Functions that give the averaged numbers, (T', ..., J), together or by threshold."""
    a = protocol.subset(row.subset)
    m = protocol.max_dets().index(row.max_dets)
    if row.kind == "AP" and isinstance(scores.terms, terms.Blocks):
        t = None if row.iou is None else protocol.threshold(row.iou, where=row.name)
        return scores.terms.threshold_blocks(a, t)
    if row.metric.module:
        cells = scores.own[row.kind][a]
    else:
        cells = scores.terms[a] if row.kind == "AP" else scores.recall[m, a]
    return [lambda: _select_threshold(cells, row, protocol)]


def _select_threshold(
    cells: NDArray[np.float64], row: MetricRow, protocol: Protocol
) -> NDArray[np.float64]:
    """(T, ...) or the row's IoU only."""
    if row.iou is None:
        return cells
    t = protocol.threshold(row.iou, where=row.name)
    return cells[t : t + 1]


class Counts(NamedTuple):
    """Counts at one IoU threshold, main subset and highest detection limit; each (K,) int64.

    `objects` are ground truth, `tp` matched, `missed` unmatched. `detections` are evaluated:
    `tp`, `fp` or `ignored`.
    """

    iou: float
    objects: NDArray[np.int64]
    detections: NDArray[np.int64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    ignored: NDArray[np.int64]
    missed: NDArray[np.int64]


def count(scores: Scores, protocol: Protocol, iou: float | None = None) -> Counts:
    """Returns counts per class at `iou` (default: as `threshold_of`).

    Raises
    ------
    ProtocolError : `iou` is not one of the thresholds
    """
    thresholds, t = protocol.thresholds(), threshold_of(protocol, iou)
    a = protocol.subset()
    tp, fp, ignored = scores.n_tp[a, t], scores.n_fp[a, t], scores.n_ignored[a, t]
    objects = scores.n_objects[:, a]
    return Counts(float(thresholds[t]), objects, tp + fp + ignored, tp, fp, ignored, objects - tp)


def threshold_of(protocol: Protocol, iou: float | None) -> int:
    """Returns the position of `iou`, or else of 0.5, or else 0."""
    return (protocol.axes().threshold(0.5) or 0) if iou is None else protocol.threshold(iou)


def classes_without_truth(scores: Scores, categories: Categories, protocol: Protocol) -> list[Note]:
    """Returns a note on classes without ground truth and their effect on the mean."""
    a = protocol.subset()
    missing = [
        name for name, n in zip(categories.names, scores.n_objects[:, a], strict=True) if n == 0
    ]
    if not missing:
        return []
    effect = {
        "skip": "which the mean excludes",
        "zero": "whose AP is 0",
        "one": "whose AP is 1",
        "no_mean": "which makes the mean undefined if they have detections, else AP is 0",
        "detected": "whose AP is 0 if they have detections; else the mean excludes them",
    }[protocol.mean.undefined]
    return [
        Note(
            "class-without-truth",
            f"classes without ground-truth objects, {effect}: {few(missing)}",
            len(missing),
        )
    ]
