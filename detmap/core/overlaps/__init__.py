"""Overlaps of detections and objects as pairs: one module per kind of overlap.

A producer yields buffers of pairs whose overlap reaches the lowest threshold. Matching rules see
only pairs, no geometry. To add a kind of overlap, see `docs/add-an-overlap.md`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap import wings
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

if TYPE_CHECKING:
    from detmap.core.overlaps.shape_records import ShapeReader
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs


class Producer(typing.Protocol):
    """Produces pairs of detections and objects of cells."""

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields buffers of pairs, each with the number of its detections.

        A buffer may be changed by its reader and is refilled for the next one. Cells come in any
        order, detections of a cell by descending score.

        Parameters
        ----------
        cells : of which `n_cells` count; members are rows of the match results, objects are places
            in class and image order
        position : the row in the detections table of each row of the match results
        """
        ...


class Kind(NamedTuple):
    """A kind of overlap. It names functions and classes as text, ``module.name`` of this folder or
    ``module:name`` of a wing, so that only the modules of the compared kind are imported.

    Parameters
    ----------
    name : as in ``iou.of``
    producer_name : takes truth, detections, objects, protocol and the lowest overlap
    reader_name : the reader of the shapes that it compares; "" if it compares boxes
    """

    name: str
    producer_name: str
    reader_name: str = ""

    @property
    def producer(self) -> Callable[[Truth, Detections, ObjectColumns, Protocol, float], Producer]:
        """The function that creates the producer."""
        function: Callable[..., Producer] = _member(self.producer_name)
        return function

    @property
    def reader(self) -> ShapeReader | None:
        """The reader, one for all kinds with the same shapes; None if it compares boxes."""
        return _reader(self.reader_name) if self.reader_name else None


def _member(place: str) -> Any:
    if ":" in place:
        return wings.load(place)
    module, name = place.split(".")
    return getattr(import_module(f"detmap.core.overlaps.{module}"), name)


@cache
def _reader(place: str) -> ShapeReader:
    reader: ShapeReader = _member(place)()
    return reader


MASKS = "mask_reader.MaskReader"
ROTATED = "rotated_boxes.RotatedBoxReader"
WING = "detmap.benchmarks.overlaps"
KINDS: tuple[Kind, ...] = (
    Kind("boxes", "box_iou.producer"),
    Kind("masks", "masks.producer", MASKS),
    Kind("boundary", f"{WING}.boundary_iou:producer", MASKS),
    Kind("keypoints", "keypoints.producer", "keypoints.KeypointReader"),
    Kind("polygons", f"{WING}.rotated_pairs:polygons", ROTATED),
    Kind("rotated", f"{WING}.rotated_pairs:rectangles", ROTATED),
    Kind("probiou", f"{WING}.rotated_pairs:gaussians", ROTATED),
)


def kind_of(name: str) -> Kind:
    """Returns the kind of this name, or raises `DataError`."""
    for row in KINDS:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in KINDS)
    raise DataError("shapes", f"no kind {name!r}", f"the kinds are {known}")


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> Producer:
    """Creates the producer of a protocol, for overlaps of at least `lowest`.

    Raises `DataError` if a table lacks the required masks or keypoints.
    """
    kind = kind_of(protocol.iou.of)
    for table in (truth, detections):
        if kind.reader is not None and not isinstance(table.shapes, kind.reader.kind):
            name = next(row.name for row in KINDS if row.reader_name == kind.reader_name)
            raise DataError(
                table.source,
                f"has no {name}, which {protocol.name} compares",
                f'read the ground truth with read_truth(path, shapes="{name}"), and the '
                "detections with it",
            )
    return kind.producer(truth, detections, objects, protocol, lowest)
