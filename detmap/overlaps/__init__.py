"""Overlaps of detections and objects, as pairs: a module a kind.

A producer is called with cells, and yields buffers of pairs whose overlap reaches the lowest
threshold; the rules that judge them know no geometry. To add a kind of overlap: one module with its
producer, one row in `KINDS`, one word in ``iou.of`` of `detmap.protocol.matching_rules`
(`docs/add-an-overlap.md`).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError
from detmap.overlaps import box_iou as boxes
from detmap.overlaps import keypoints, masks
from detmap.overlaps.mask_reader import MaskReader
from detmap.overlaps.shape_records import ShapeReader
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs


class Producer(typing.Protocol):
    """Makes pairs of the detections and objects of cells."""

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Buffers of pairs, each with the number of its detections, until all cells are done.

        A buffer may be changed by its reader, and is filled anew when the next is asked for. The
        cells come in any order, the detections of a cell best score first.

        Parameters
        ----------
        cells : with `n_cells` that count; members are rows of the verdicts, objects are places in
            their order by class and image
        position : the row of the detections table of each row of the verdicts
        """
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of overlap.

    Parameters
    ----------
    name : as in ``iou.of``
    producer : takes truth, detections, objects, protocol and the lowest overlap
    reader : of the shapes that it compares, which tables hold beside their boxes; None where boxes
        are all that it looks at
    """

    name: str
    producer: Callable[[Truth, Detections, ObjectColumns, Protocol, float], Producer]
    reader: ShapeReader | None = None


KINDS: tuple[Kind, ...] = (
    Kind("boxes", boxes.producer),
    Kind("masks", masks.producer, MaskReader()),
    Kind("keypoints", keypoints.producer, keypoints.KeypointReader()),
)


def kind_of(name: str) -> Kind:
    """The row of a kind of overlap.

    Raises
    ------
    DataError : there is no such kind
    """
    for row in KINDS:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in KINDS)
    raise DataError("shapes", f"no kind {name!r}", f"the kinds are {known}")


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> Producer:
    """The producer that the protocol asks for, of overlaps from `lowest` on.

    Raises
    ------
    DataError : tables without the masks or keypoints that it needs
    """
    kind = kind_of(protocol.iou.of)
    for table in (truth, detections):
        if kind.reader is not None and not isinstance(table.shapes, kind.reader.kind):
            raise DataError(
                table.source,
                f"has no {kind.name}, which {protocol.name} compares",
                f'read the truth with read_truth(path, shapes="{kind.name}"), and the detections '
                "with it",
            )
    return kind.producer(truth, detections, objects, protocol, lowest)
