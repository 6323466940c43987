"""Immutable tables: kernels use them without checks."""

import math
import mmap
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind")

FEW = 1 << 12  # numbers: to copy them takes less time than to hand them over
LARGE_PAGE = 2 << 20
MOST_IN_LARGE_PAGES = 48 << 20  # for more, the system moves other memory while we wait


class Frozen:
    """A dataclass that is frozen as if `dataclass` generated these methods: it compiles them for
    each class. Declare it with ``slots=True``; not for classes that have `__getattr__`, which is
    asked for each field.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__match_args__ or hasattr(self, name):  # `__init__` sets each once
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


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


class Value(Frozen):
    """A frozen dataclass that is compared, hashed and printed as if `dataclass` generated these
    methods too, which takes 0.4 ms of 0.5. Declare it with ``slots=True, eq=False, repr=False``.
    """

    __slots__ = ("_hash",)  # of the values, which are immutable too; once it was asked for
    _hash: int

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(self._values()))
            return self._hash

    def __repr__(self) -> str:
        pairs = zip(self.__match_args__, self._values(), strict=True)
        return f"{type(self).__qualname__}({', '.join(f'{name}={x!r}' for name, x in pairs)})"


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
    own_columns = {
        name: own(value) if isinstance(value, np.ndarray) else value
        for name, value in columns.items()
    }
    return view(kind, **own_columns)


def view(kind: type[Kind], **columns: Any) -> Kind:
    """Creates a table of the given fields alone, without checks and with the arrays as they are;
    for one look inside of a function, which owns the arrays.
    """
    table = object.__new__(kind)
    for name, value in columns.items():
        object.__setattr__(table, name, value)
    return table


class Pages(mmap.mmap):
    """Memory of its own for a large array; only read-only views of it are handed out."""


def _zeros(size: int) -> bytes | memoryview:
    """Read-only zeros: `bytes`, or for 2 to 48 MB large pages of the system where it has them.

    A kernel that reads rows in the order of another column waits for the address of each small
    page; and large pages are returned to the system with the array.
    """
    if not LARGE_PAGE <= size <= MOST_IN_LARGE_PAGES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return bytes(size)
    whole = size // LARGE_PAGE * LARGE_PAGE
    try:
        # As many bytes as whole large pages have: the system then aligns them.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        pages = Pages(-1, whole + (size > whole) * LARGE_PAGE, flags=private)
        pages.madvise(mmap.MADV_HUGEPAGE, 0, whole)  # the rest in small ones: none is half used
    except OSError:  # none are there, or no memory: `bytes` raise the error for it
        return bytes(size)
    return memoryview(pages).toreadonly()


class _Blank:
    """Zeros that numpy may write to, though their owner is read-only.

    CPython itself fills new `bytes` (PyBytes_FromStringAndSize without a string).
    """

    __slots__ = ("__array_interface__", "content")

    def __init__(self, size: int) -> None:
        self.content = _zeros(size)
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (_address(np.frombuffer(self.content, np.uint8)), False),
        }


def blank(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Returns zeros to overwrite. `own` then takes their memory, without a copy if they are many,
    and the caller must not use them again.

    Memory that is never written is never allocated by the system.
    """
    n = shape if isinstance(shape, int) else math.prod(shape)
    if n < FEW:
        return np.zeros(shape, dtype)
    memory = _Blank(n * np.dtype(dtype).itemsize)
    array: NDArray[Any] = np.asarray(memory).view(dtype).reshape(shape)
    return array


def own(array: NDArray[Any]) -> NDArray[Any]:
    """Returns the array if `bytes` or `Pages` hold its numbers, else a copy that they hold.

    Only these are safe: the write flag of an array can be set again, and other buffers can change.
    """
    if array.base is None and array.nbytes < LARGE_PAGE:
        return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())
    owner: Any = array
    while type(owner) is np.ndarray:
        owner = owner.base
    if _is_safe(owner) and not array.flags.writeable:
        return array
    if type(owner) is _Blank and array.flags.c_contiguous and array.size:
        at = _address(array) - _address(np.frombuffer(owner.content, np.uint8))
        if type(owner.content) is bytes:
            return np.ndarray(array.shape, array.dtype, owner.content, at)
        # `ndarray` would pass over the read-only view and keep what it views.
        return np.frombuffer(owner.content, array.dtype, array.size, at).reshape(array.shape)
    if array.nbytes < LARGE_PAGE:
        return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())
    copied = blank(array.shape, array.dtype)
    copied[...] = array
    return own(copied)


def _is_safe(owner: Any) -> bool:
    """Checks that nothing can write to the owner of an array."""
    return type(owner) is bytes or (
        type(owner) is memoryview and owner.readonly and type(owner.obj) is Pages
    )


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
