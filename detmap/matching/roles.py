"""What a protocol makes of every row: the one place where its rules on objects and detections are
read, and the plain arrays that the kernels get instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError, few
from detmap.matching.scope import look, objects_that_take_part
from detmap.matching.subsets import detection_words, object_words
from detmap.protocol import Protocol
from detmap.tables import FLAGS, Detections, Note, Truth, reversed_boxes


@dataclass(frozen=True, slots=True, eq=False)
class Roles:
    """What the protocol makes of each row; words have bit a for subset a.

    Parameters
    ----------
    n_subsets : A
    objects, detections : (n,) int32, the rows that take part, ascending; None for all
    find : (G,) uint64, where the object is one to find
    absorb : (G,) uint64, where it absorbs: it takes any number of detections, by the overlap over
        their own area; all ones where it does in every subset
    enough : (G,) float64, the overlap that is a match with the object at any threshold, inf for
        none
    outside : (D,) uint8 or uint64, where the detection is IGNORED rather than false if it takes
        nothing
    dropped : (D,) uint64, where it takes nothing; (0,) where none is
    rank : (D,) int32, what the limit counts; (0,) where that is the place in image and class
    unjudged : (I,) int32, detections within the limit that do not take part
    """

    n_subsets: int
    objects: NDArray[np.int32] | None
    detections: NDArray[np.int32] | None
    find: NDArray[np.uint64]
    absorb: NDArray[np.uint64]
    enough: NDArray[np.float64]
    outside: NDArray[np.unsignedinteger[Any]]
    dropped: NDArray[np.uint64]
    rank: NDArray[np.int32]
    unjudged: NDArray[np.int32]


def read_roles(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    threads: int | None = None,
    rank: NDArray[np.int32] | None = None,
) -> Roles:
    """The protocol applied to both tables; `rank` is what the limit counts, where that is known.

    Raises
    ------
    DataError : an attribute that a subset asks for and the truth lacks; a reversed box where the
        protocol refuses it
    """
    if protocol.boxes.reversed == "refuse":
        _refuse_reversed(detections, protocol)
    objects = objects_that_take_part(truth, protocol)
    looked = look(truth, objects, detections, protocol, threads, rank)
    of_objects = object_words(truth, protocol)
    of_detections = detection_words(detections, protocol, truth.box_format, threads)
    if len(looked.lenient):
        of_detections.outside[looked.lenient] = np.iinfo(of_detections.outside.dtype).max
    return Roles(
        len(protocol.subsets),
        objects,
        looked.rows,
        of_objects.find,
        of_objects.absorb,
        of_objects.enough,
        of_detections.outside,
        of_detections.dropped,
        looked.rank,
        looked.unjudged,
    )


def _refuse_reversed(detections: Detections, protocol: Protocol) -> None:
    rows = np.flatnonzero(reversed_boxes(detections.boxes, detections.box_format))
    if len(rows):
        raise DataError(
            detections.source,
            f"{len(rows)} boxes end before they begin, the first is "
            f"{few(detections.boxes[rows[0]].tolist())}; {protocol.name} refuses such boxes",
            "exchange their corners (--fix boxes-reversed), or set boxes.reversed=no_overlap",
        )


def missing_roles(truth: Truth, protocol: Protocol) -> list[Note]:
    """A note of each role that the protocol gives a meaning and the truth lacks altogether.

    Stock protocols name the flags of other formats besides; of ``crowd`` and ``difficult``, COCO's
    and VOC's names of one flag, either will do.
    """
    changed = {key for key, _ in protocol.changes}
    either = {"crowd", "difficult"} if truth.roles.keys() & {"crowd", "difficult"} else set()
    either -= {role for role in either if f"matching.neutral.{role}" in changed}
    notes = []
    for role, what in protocol.matching.neutral:
        stock = protocol.stock and f"matching.neutral.{role}" not in changed
        if what == "count" or role in truth.roles or role in either or (stock and role in FLAGS):
            continue
        text = f"objects are without the role {role!r}, which {protocol.name} gives a meaning"
        if role not in FLAGS:
            text += "; where the truth has it under that name (COCO JSON, CSV, Parquet, a frame), "
            text += f"read it with roles=[{role!r}]"
        notes.append(Note("role-missing", text, len(truth), truth.source))
    return notes
