"""Overlaps of detections and objects, as pairs: a module a kind.

A producer is called with cells, and yields buffers of pairs whose overlap reaches the lowest
threshold; the rules that judge them know no geometry. To add a kind of overlap, write a producer
and name it in `producer`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError
from detmap.overlaps.boxes import BoxPairs
from detmap.overlaps.keypoints import KeypointPairs, Keypoints
from detmap.overlaps.masks import MaskPairs, Masks
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


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> Producer:
    """The producer that the protocol asks for, of overlaps from `lowest` on.

    Raises
    ------
    DataError : tables without the masks or keypoints that it needs
    """
    of = protocol.iou.of
    if of == "boxes":
        return BoxPairs(
            truth,
            detections,
            objects,
            extent=protocol.boxes.extent,
            lowest=lowest,
            epsilon=protocol.iou.epsilon,
        )
    for table in (truth, detections):
        if not isinstance(table.shapes, Masks if of == "masks" else Keypoints):
            raise DataError(
                table.source,
                f"has no {of}, which {protocol.name} compares",
                f'read the truth with read_truth(path, shapes="{of}"), and the detections with it',
            )
    if of == "masks":
        return MaskPairs(truth, detections, objects, lowest=lowest)
    n_sigmas = len(protocol.iou.sigmas)
    for table in (truth, detections):
        assert isinstance(table.shapes, Keypoints)
        n_points = table.shapes.points.shape[1]
        if len(table) and n_points != n_sigmas:
            raise DataError(
                "iou.sigmas",
                f"{n_sigmas} numbers, where {table.source or 'a table'} has {n_points} keypoints",
                "give a number for each keypoint",
            )
    return KeypointPairs(truth, detections, objects, lowest=lowest, sigmas=protocol.iou.sigmas)
