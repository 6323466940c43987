"""What nobody can change once it is made: tables that the kernels follow without looking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Immutable:
    """A frozen dataclass that is its own copy, and is checked anew when it is unpickled.

    numpy's arrays are writable after `copy.deepcopy` and `pickle`, whatever they were before.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        columns = tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]
        return _rebuilt, (type(self), *columns)


def _rebuilt(kind: Any, *columns: Any) -> Any:
    """A table that was pickled; arrays that were sent on their own may come at any address."""
    return kind(*(_in_one_piece(column) for column in columns))


def _in_one_piece(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.require(value, requirements=["C", "ALIGNED"])
    if isinstance(value, Mapping):
        return {name: _in_one_piece(each) for name, each in value.items()}
    return value


def keep(table: Any, **columns: Any) -> None:
    """Let a frozen table hold its columns as the checks gave them back."""
    for name, value in columns.items():
        object.__setattr__(table, name, value)


def own(array: NDArray[Any]) -> NDArray[Any]:
    """The array if its numbers lie in `bytes`, else a copy whose numbers do.

    `bytes` alone are safe: of an array that owns its memory the flag can be set back, and what is
    behind another buffer may change in another's hands.
    """
    owner: Any = array
    while type(owner) is np.ndarray and not owner.flags.writeable:
        owner = owner.base
    if type(owner) is bytes:
        return array
    return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())
