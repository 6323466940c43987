"""Overlaps of detections and objects, as pairs: a module a kind.

A producer is called with cells, and yields buffers of pairs whose overlap reaches the lowest
threshold; the rules that judge them know no geometry. To add a kind of overlap, write a producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells
    from detmap.kernels.pairs import Pairs


class Producer(Protocol):
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
