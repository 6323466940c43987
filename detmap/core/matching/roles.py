"""Roles: the protocol's rules on objects and detections as arrays for the kernels."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching.scope import look, objects_that_take_part
from detmap.core.matching.subsets import detection_words, object_words
from detmap.core.protocol import Protocol
from detmap.core.tables import FLAGS, Detections, Note, Truth, reversed_boxes
from detmap.errors import DataError, counted, few


class Roles(NamedTuple):
    """The role of each row; words have bit a for subset a.

    Parameters
    ----------
    n_subsets : A
    objects, detections : (n,) int32, the evaluated rows, ascending; None for all
    find, absorb, enough : see `ObjectWords`
    outside, dropped : see `DetectionWords`
    rank : (D,) int32, rank for the detection limit; (0,) if it is the rank in image and class
    unjudged : (I,) int32, excluded detections within the limit
    beyond : (I,) int32, detections beyond the limit; 0 if it is per image and class
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
    beyond: NDArray[np.int32]


def read_roles(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    threads: int | None = None,
    rank: NDArray[np.int32] | None = None,
) -> Roles:
    """Applies the protocol to both tables; `rank` is the rank for the limit, if known.

    Raises
    ------
    DataError : a missing attribute; a reversed box if the protocol refuses it
    """
    if protocol.boxes.reversed == "refuse":
        _refuse_reversed(detections, protocol)
    objects = objects_that_take_part(truth, protocol)
    looked = look(truth, objects, detections, protocol, threads, rank)
    of_objects = object_words(truth, protocol)
    of_detections = detection_words(detections, protocol, truth.box_format)
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
        looked.beyond,
    )


def _refuse_reversed(detections: Detections, protocol: Protocol) -> None:
    rows = np.flatnonzero(reversed_boxes(detections.boxes, detections.box_format))
    if len(rows):
        verb = "has" if len(rows) == 1 else "have"
        raise DataError(
            detections.source,
            f"{counted(len(rows), 'box')} {verb} reversed corners, the first is "
            f"{few(detections.boxes[rows[0]].tolist())}; {protocol.name} refuses such boxes",
            "swap the corners (--fix boxes-reversed), or set boxes.reversed=no_overlap",
        )


def missing_roles(truth: Truth, protocol: Protocol) -> list[Note]:
    """Returns a note per role that the protocol uses and the ground truth does not have.

    Bundled protocols also list the flags of other formats. One of ``crowd`` (COCO) and
    ``difficult`` (VOC) is enough: they are the same flag.
    """
    changed = {key for key, _ in protocol.changes}
    either = {"crowd", "difficult"} if truth.roles.keys() & {"crowd", "difficult"} else set()
    either -= {role for role in either if f"matching.neutral.{role}" in changed}
    notes = []
    flags = [role for role, what in protocol.matching.neutral if what != "count" and role in FLAGS]
    lacking = flags[:1] == ["ignore"] and not truth.roles.keys() & set(flags)
    if lacking and protocol.stock and protocol.files.truth == "coco":
        text = f"objects do not have the flag ignore, which {protocol.name} uses: read as 0"
        notes.append(Note("role-missing", text, len(truth), truth.source))
    for role, what in protocol.matching.neutral:
        stock = protocol.stock and f"matching.neutral.{role}" not in changed
        if what == "count" or role in truth.roles or role in either or (stock and role in FLAGS):
            continue
        text = f"objects do not have the role {role!r}, which {protocol.name} uses"
        if role not in FLAGS:
            text += f"; if the file has it (COCO JSON, CSV, Parquet, a frame), use roles=[{role!r}]"
        notes.append(Note("role-missing", text, len(truth), truth.source))
    return notes
