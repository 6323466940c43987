"""A temporary file of array columns, which the system deletes when the process ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.errors import DataError

MORE_SPACE = "make room, raise the quota, or set TMPDIR to a folder on a larger disk"


class Column(NamedTuple):
    """A column in the file: where it begins, its dtype, and the shape of a row."""

    begin: int
    dtype: np.dtype[Any]
    row: tuple[int, ...]


class Spill:
    """Columns that are appended, and read back by rows.

    The file has no name (or is deleted on closing, on Windows), so a killed process leaves nothing.

    Parameters
    ----------
    folder : on whose disk the file is

    Raises
    ------
    DataError : the file cannot be created, or the disk or quota is full
    """

    def __init__(self, folder: Path) -> None:
        import tempfile  # an evaluation that fits does not need it

        self.folder, self.size = folder, 0
        try:
            self.file: Any = tempfile.TemporaryFile(prefix="detmap-", dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failed(error) from None

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()

    def append(self, columns: Sequence[NDArray[Any]]) -> tuple[Column, ...]:
        """Writes columns at the end of the file."""
        written = []
        for column in columns:
            written.append(Column(self.size, column.dtype, column.shape[1:]))
            data = _bytes_of(np.ascontiguousarray(column))
            try:
                self.file.seek(self.size)
                done = 0
                while done < len(data):
                    done += self.file.write(data[done:])
            except OSError as error:
                raise self._failed(error) from None
            self.size += len(data)
        return tuple(written)

    def read_into(self, out: NDArray[Any], column: Column, begin: int) -> None:
        """Fills `out`, contiguous rows, with the rows of a column from `begin` on."""
        data = _bytes_of(out)
        row = column.dtype.itemsize * int(np.prod(column.row, dtype=np.int64))
        try:
            self.file.seek(column.begin + begin * row)
            done = 0
            while done < len(data):
                read = self.file.readinto(data[done:])
                if not read:
                    raise OSError(5, "the temporary file is shorter than what was written")
                done += read
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> DataError:
        what = f"temporary file of {memory.shown(self.size)}: {error.strerror or error}"
        return DataError(str(self.folder), what, MORE_SPACE)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of contiguous rows."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
