"""Names of rows as different names and a code for each row.

A file of a million rows names some thousand images and some classes: each is looked up once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class CodedNames(Sequence[Any]):
    """The names of n rows.

    Parameters
    ----------
    names : the names, usually each once
    code : (n,) position of each row's name among them
    """

    def __init__(self, names: Sequence[Any], code: NDArray[Any]) -> None:
        self.names, self.code = names, code

    def __len__(self) -> int:
        return len(self.code)

    @overload
    def __getitem__(self, row: int) -> Any: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Any]: ...
    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return CodedNames(self.names, self.code[row])
        return self.names[self.code[row]]

    def __iter__(self) -> Iterator[Any]:
        return map(self.names.__getitem__, self.code.tolist())

    def positions(self, table: Mapping[Any, int]) -> NDArray[np.int32]:
        """Returns (n,) the entry of each row's name in a table, -1 for names that it lacks."""
        return self._each([table.get(name, -1) for name in self.names], np.int32)

    def whole_numbers(self) -> NDArray[np.int64]:
        """Returns (n,) the names as whole numbers, which they have to be."""
        return self._each(list(map(int, self.names)), np.int64)

    def _each(self, values: list[int], dtype: Any) -> NDArray[Any]:
        found: NDArray[Any] = np.array(values, dtype=dtype)[self.code]
        return found


def coded(values: Sequence[Any] | NDArray[Any]) -> CodedNames:
    """Returns the values of rows with each different one listed once, in order of appearance."""
    if isinstance(values, CodedNames):
        return values
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    names = list(dict.fromkeys(listed))
    place = {name: i for i, name in enumerate(names)}
    return CodedNames(names, np.fromiter(map(place.__getitem__, listed), np.int32, len(listed)))
