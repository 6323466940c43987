"""A temporary file of array columns, which the system deletes when the process ends."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.base.immutable import blank
from detmap.core.bounded.memory_plan import MORE_SPACE
from detmap.errors import DataError


class Column(NamedTuple):
    """A column in the file: where it begins, its dtype, and the shape of a row."""

    begin: int
    dtype: np.dtype[Any]
    row: tuple[int, ...]


class Spill:
    """Columns that are appended piece by piece, and read back by part.

    The rows of a piece are sorted by part, so that a part is a slice of each piece. The file has no
    name (or is deleted on closing, on Windows), so a killed process leaves nothing.

    Parameters
    ----------
    folder : on whose disk the file is
    n_parts : number of parts, P: blocks of images, or groups of classes

    Raises
    ------
    DataError : the file cannot be created, or the disk or quota is full
    """

    def __init__(self, folder: Path, n_parts: int) -> None:
        import tempfile  # an evaluation that fits does not need it

        self.folder, self.size = folder, 0
        self.pieces: list[tuple[list[Column], NDArray[np.int64]]] = []
        self.sizes = np.zeros(n_parts, dtype=np.int64)  # rows of each part
        try:
            self.file: Any = tempfile.TemporaryFile(prefix="detmap-", dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failed(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def append(self, columns: Sequence[NDArray[Any]], off: NDArray[np.int64]) -> None:
        """Writes the rows of a piece; (P + 1,) `off` has the begin of each part."""
        written = []
        for column in columns:
            written.append(Column(self.size, column.dtype, column.shape[1:]))
            self._move(self.file.write, self.size, np.ascontiguousarray(column))
            self.size += column.nbytes
        self.pieces.append((written, off))
        self.sizes += np.diff(off)

    def read(self, which: int, begin: int, end: int) -> NDArray[Any]:
        """Reads column number `which` of the parts from `begin` up to `end`, piece after piece."""
        out, done = self.zeros(which, int(self.sizes[begin:end].sum())), 0
        for columns, off in self.pieces:
            n, row = int(off[end] - off[begin]), out[:1].nbytes
            place = columns[which].begin + int(off[begin]) * row
            self._move(self.file.readinto, place, out[done : done + n])
            done += n
        return out

    def zeros(self, which: int, n_rows: int) -> NDArray[Any]:
        """Returns rows of zeros like those of a column, of which at least a piece was appended."""
        column = self.pieces[0][0][which]
        return blank((n_rows, *column.row), column.dtype)

    def _move(self, move: Callable[[Any], int], place: int, rows: NDArray[Any]) -> None:
        """Reads or writes contiguous rows at a place of the file; a call may move some bytes."""
        flat: Any = rows.reshape(-1).view(np.uint8)
        data, done = memoryview(flat), 0
        try:
            self.file.seek(place)
            while done < len(data):
                if not (moved := move(data[done:])):
                    raise OSError(5, "the temporary file is shorter than what was written")
                done += moved
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> DataError:
        what = f"temporary file of {memory.shown(self.size)}: {error.strerror or error}"
        return DataError(str(self.folder), what, MORE_SPACE)


def grouped(sizes: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Returns ranges of consecutive parts with at most `most` rows each, or of one part."""
    ranges, begin, total = [], 0, 0
    for i, size in enumerate(sizes.tolist()):
        if i > begin and total + size > most:
            ranges.append((begin, i))
            begin, total = i, 0
        total += size
    return [*ranges, (begin, len(sizes))]
