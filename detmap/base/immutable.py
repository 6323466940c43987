"""Immutable tables: kernels use them without checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind")


class Immutable:
    """A frozen dataclass that is its own copy and is checked again when unpickled.

    numpy arrays are writable after `copy.deepcopy` and `pickle`.
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
    """Rebuilds an unpickled table. Arrays pickled out of band may be unaligned."""
    return kind(*(_contiguous(column) for column in columns))


def _contiguous(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.require(value, requirements=["C", "ALIGNED"])
    if isinstance(value, Mapping):
        return {name: _contiguous(each) for name, each in value.items()}
    return value


def keep(table: Any, **columns: Any) -> None:
    """Sets fields of a frozen table."""
    for name, value in columns.items():
        object.__setattr__(table, name, value)


def vouched(kind: type[Kind], **columns: Any) -> Kind:
    """Creates a table without checks. All fields are required, and the caller guarantees them."""
    table = object.__new__(kind)
    for name, value in columns.items():
        object.__setattr__(table, name, own(value) if isinstance(value, np.ndarray) else value)
    return table


class _Blank:
    """Uninitialized memory in `bytes` that numpy may write to.

    It calls PyBytes_FromStringAndSize without a string, as CPython does.
    """

    __slots__ = ("__array_interface__", "content")

    def __init__(self, size: int) -> None:
        self.content = bytes(size)
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (_address(np.frombuffer(self.content, np.uint8)), False),
        }


def blank(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Returns zeros to overwrite. `own` then takes their memory without a copy, and the caller must
    not use them again.

    Memory that is never written is never allocated by the system.
    """
    shape = (shape,) if isinstance(shape, int) else shape
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = _Blank(max(size, 64))  # the bytes of length 0 and 1 are Python's own
    array: NDArray[Any] = np.asarray(memory)[:size].view(dtype).reshape(shape)
    return array


def own(array: NDArray[Any]) -> NDArray[Any]:
    """Returns the array if `bytes` hold its numbers, else a copy whose numbers they hold.

    Only `bytes` are safe: the write flag of an array can be set again, and other buffers can
    change.
    """
    owner: Any = array
    while type(owner) is np.ndarray:
        owner = owner.base
    if type(owner) is bytes and not array.flags.writeable:
        return array
    if type(owner) is _Blank and array.flags.c_contiguous and array.size:
        at = _address(array) - _address(np.frombuffer(owner.content, np.uint8))
        return np.ndarray(array.shape, array.dtype, owner.content, at)
    return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
