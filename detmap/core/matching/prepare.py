"""Preparation of the tables before matching: score precision, score floors, excluded rows."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching.scope import find_absent
from detmap.core.overlaps.box_edges import written
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note, Truth, boxes_as


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The tables after preparation.

    Parameters
    ----------
    truth, detections : without excluded rows
    objects, rows : (n,) int32, original rows of both tables; None for all
    notes : what was excluded
    """

    truth: Truth
    detections: Detections
    objects: NDArray[np.int32] | None
    rows: NDArray[np.int32] | None
    notes: tuple[Note, ...]


def prepared_by(protocol: Protocol) -> tuple[object, ...]:
    """The rules that `prepare` reads."""
    detections, empty = protocol.detections, protocol.boxes.empty == "detections"
    return (
        tuple(role for role, what in protocol.matching.neutral if what == "absent"),
        (detections.score_decimals, detections.score_precision, tuple(detections.above)),
        protocol.boxes.precision if empty else None,
    )


def prepare(truth: Truth, detections: Detections, protocol: Protocol) -> Prepared:
    """Applies the protocol's rules on scores, score floors, empty boxes and absent roles."""
    absent = find_absent(truth, protocol)
    notes = []
    objects = None
    if absent.any():
        objects = np.flatnonzero(~absent).astype(np.int32)
        truth = truth.take(objects)
        text = "ground-truth objects are excluded by their role (absent)"
        notes.append(Note("object-absent", text, int(absent.sum())))
    score = detections.score
    if protocol.detections.score_decimals >= 0:
        score = written(score, protocol.detections.score_decimals)
    if protocol.detections.score_precision == "float32":
        with np.errstate(over="ignore"):  # too large for float32: infinite
            score = score.astype(np.float32).astype(np.float64)
    keep = np.ones(len(detections), dtype=bool)
    for floor in protocol.detections.above:
        single = protocol.detections.score_precision == "float32"
        least = float(np.float32(floor)) if single else floor
        keep = score > least
        if not keep.all():
            text = f"detections have a score of {floor:g} or less and are excluded"
            notes.append(Note("below-floor", text, int((~keep).sum())))
        if (score == least).any():  # Ultralytics keeps what is above, and writes five decimals
            text = (
                f"detections have a score of exactly {floor:g}; if scores were rounded, use --set "
            )
            text += f"detections.above=[{0.999 * floor:g}]"
            notes.append(Note("at-floor", text, int((score == least).sum())))
    if protocol.boxes.empty == "detections":
        boxes = boxes_as(detections.boxes, detections.box_format, truth.box_format)
        first, last = boxes[:, :2], boxes[:, 2:]
        if truth.box_format != "voc":
            last = first + last
        number = np.float32 if protocol.boxes.precision == "float32" else np.float64
        flat = (first.astype(number) >= last.astype(number)).any(axis=1)
        if flat.any():
            text = "detections have no width or height and are excluded"
            notes.append(Note("box-flat", text, int(flat.sum())))
        keep &= ~flat
    if score is not detections.score:
        detections = replace(detections, score=score)
    if keep.all():
        return Prepared(truth, detections, objects, None, tuple(notes))
    rows = np.flatnonzero(keep).astype(np.int32)
    return Prepared(truth, detections.take(rows), objects, rows, tuple(notes))
