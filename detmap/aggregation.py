"""Scores + metric rows -> named numbers: means over classes, per-class tables, counts.

A metric row is addressed by labels (IoU, area name, detection limit), never by the number of a
slot, so a changed protocol yields right numbers under right names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap import memory
from detmap.curves import Scores
from detmap.errors import ProtocolError
from detmap.protocol import Protocol
from detmap.tables import Categories, Note

AREA_SUFFIX = {"all": "", "small": "s", "medium": "m", "large": "l"}


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One number of a result and where it is read.

    Parameters
    ----------
    name : AP, AP50, APs, AR100, mAP ...
    kind : "AP" or "AR"
    iou : the threshold; None for the mean over all of them
    area : name of the area range
    max_dets : detection limit per image and class; 0 for none
    """

    name: str
    kind: str
    iou: float | None
    area: str
    max_dets: int


def metric_rows(protocol: Protocol) -> tuple[list[MetricRow], list[Note]]:
    """The rows that a protocol's ``metrics`` stand for, and a note on those whose threshold is not
    evaluated.

    ``AP`` and ``AR`` are means over all thresholds, ``AP50`` is at IoU 0.5; both over the area
    named ``all`` (else the first) and the highest detection limit. ``AP@area`` is one row for each
    other area, ``AR@max_dets`` one for each limit. ``mAP`` is VOC's name at a single threshold;
    over several, ``AP``, ``AP50`` and ``AP75`` take its place.

    Raises
    ------
    ProtocolError : a metric name outside this language
    """
    rows: list[MetricRow] = []
    left_out: list[str] = []
    for text in _spelled_out(protocol):
        for row in _rows_of(text, protocol):
            if row.iou is not None and _threshold(protocol, row.iou) is None:
                left_out.append(row.name)
            elif row not in rows:
                rows.append(row)
    if not left_out:
        return rows, []
    text = f"metrics are not reported, their IoU is not among iou.thresholds: {', '.join(left_out)}"
    return rows, [Note("metric-left-out", text, len(left_out))]


def _spelled_out(protocol: Protocol) -> Iterator[str]:
    for text in protocol.metrics:
        if text == "mAP" and len(protocol.thresholds()) > 1:
            yield from ("AP", "AP50", "AP75")
        else:
            yield text


def _rows_of(text: str, protocol: Protocol) -> list[MetricRow]:
    found = re.fullmatch(
        r"(?P<kind>mAP|AP|AR)(?P<iou>\d+(?:\.\d+)?)?(?:@(?P<axis>area|max_dets))?", text
    )
    if not found or (found["kind"] == "mAP" and found["iou"]):
        raise ProtocolError(
            "metrics",
            f"no metric {text!r}",
            "legal: AP, AP50 (any IoU in percent), AR, mAP; with "
            "@area or @max_dets for one row each",
        )
    kind = found["kind"].removeprefix("m")
    iou = float(found["iou"]) / 100 if found["iou"] else None
    names = [area.name for area in protocol.areas]
    main = main_area(protocol)
    limits = protocol.limits.max_dets or (0,)
    stem = found["kind"] + (found["iou"] or "")
    if found["axis"] == "max_dets":
        return [
            MetricRow(stem + (str(limit) if limit else ""), kind, iou, main, limit)
            for limit in limits
        ]
    areas = [name for name in names if name != main] if found["axis"] == "area" else [main]
    return [MetricRow(stem + _suffix(area), kind, iou, area, limits[-1]) for area in areas]


def main_area(protocol: Protocol) -> str:
    """The area range of the unqualified metrics: the one named ``all``, else the first."""
    names = [area.name for area in protocol.areas]
    return "all" if "all" in names else names[0]


def _suffix(area: str) -> str:
    return AREA_SUFFIX.get(area, f"-{area}")


def _threshold(protocol: Protocol, iou: float) -> int | None:
    found = np.flatnonzero(np.abs(protocol.thresholds() - iou) < 1e-9)
    return int(found[0]) if found.size else None


def mean(scores: Scores, row: MetricRow, protocol: Protocol) -> float:
    """The row's mean over classes (and thresholds, and terms of AP); NaN where nothing is defined.

    The terms are averaged in one sum in the order threshold, recall point, class, which is what
    makes COCO's numbers equal to pycocotools' in every bit.
    """
    cells = _cells(scores, row, protocol)
    if protocol.mean.undefined == "skip":
        defined = cells[~np.isnan(cells)]
    else:
        value = 1.0 if protocol.mean.undefined == "one" else 0.0
        defined = _of_every_class(scores, np.where(np.isnan(cells), value, cells), value).ravel()
    return float(np.mean(defined)) if defined.size else float("nan")


def per_class(scores: Scores, row: MetricRow, protocol: Protocol) -> NDArray[np.float64]:
    """(K,) the row's value of each class, NaN where the class has no object to find."""
    cells = _cells(scores, row, protocol)
    flat = np.moveaxis(cells, -1, 0).reshape(cells.shape[-1], math.prod(cells.shape[:-1]))
    means = np.array([np.mean(np.ascontiguousarray(values)) for values in flat])
    return _of_every_class(scores, means, np.nan)


def _of_every_class(
    scores: Scores, cells: NDArray[np.float64], value: float
) -> NDArray[np.float64]:
    """(..., K) from (..., J): `value` for the classes without an object to find."""
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


def _cells(scores: Scores, row: MetricRow, protocol: Protocol) -> NDArray[np.float64]:
    """The numbers that a row averages, classes that have an object last."""
    a = [area.name for area in protocol.areas].index(row.area)
    m = (protocol.limits.max_dets or (0,)).index(row.max_dets)
    cells: NDArray[np.float64] = scores.terms[a] if row.kind == "AP" else scores.recall[m, a]
    if row.iou is None:
        return cells
    t = _threshold(protocol, row.iou)
    if t is None:
        raise ProtocolError(
            row.name,
            f"IoU {row.iou:g} is not among iou.thresholds",
            f"they are {protocol.iou.thresholds}",
        )
    return cells[t : t + 1]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Verdicts at one IoU threshold, over the main area and the highest detection limit; each (K,)
    int64.

    Parameters
    ----------
    iou : the threshold
    objects : to find; tp : found; missed : the rest
    detections : looked at; fp, ignored : those that are not TP
    """

    iou: float
    objects: NDArray[np.int64]
    detections: NDArray[np.int64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    ignored: NDArray[np.int64]
    missed: NDArray[np.int64]


def count(scores: Scores, protocol: Protocol, iou: float | None = None) -> Counts:
    """Verdict counts of each class at one of the protocol's thresholds: `iou`, or else 0.5, or else
    the first.

    Raises
    ------
    ProtocolError : `iou` is not one of the thresholds
    """
    thresholds = protocol.thresholds()
    t = _threshold(protocol, 0.5 if iou is None else iou)
    if t is None:
        if iou is not None:
            raise ProtocolError(
                "iou",
                f"{iou:g} is not among iou.thresholds",
                f"choose one of {protocol.iou.thresholds}",
            )
        t = 0
    a = [area.name for area in protocol.areas].index(main_area(protocol))
    tp, fp, ignored = scores.n_tp[a, t], scores.n_fp[a, t], scores.n_ignored[a, t]
    objects = scores.n_objects[:, a]
    return Counts(float(thresholds[t]), objects, tp + fp + ignored, tp, fp, ignored, objects - tp)


def classes_without_truth(scores: Scores, categories: Categories, protocol: Protocol) -> list[Note]:
    """A note that names the classes without an object to find, and says what they do to the
    mean.
    """
    a = [area.name for area in protocol.areas].index(main_area(protocol))
    missing = [
        name for name, n in zip(categories.names, scores.n_objects[:, a], strict=True) if n == 0
    ]
    if not missing:
        return []
    effect = {"skip": "left out of the mean", "zero": "counted as 0", "one": "counted as 1"}[
        protocol.mean.undefined
    ]
    return [
        Note(
            "class-without-truth",
            f"classes have no object to find and are {effect}: {', '.join(missing)}",
            len(missing),
        )
    ]
