"""Checks the columns of tables once, when a table is created.

A checked column is read-only. It is a copy unless it was read-only already.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.base.immutable import own
from detmap.errors import DataError

MAX_ROWS = 2**31 - 1
MAX_PIXEL = 1e100
"""No coordinate or side may be larger, so that no area overflows."""
MAX_ID = 1000
"""Characters of an image id: arrays of strings are as wide as the longest."""

_FIX = "create the table with an adapter, or give it the documented columns"


def refuse(where: str, what: str, fix: str = _FIX) -> NoReturn:
    """Raises the `DataError` for a column."""
    raise DataError(where, what, fix)


def column(where: str, array: Any, dtype: Any, *shape: int) -> NDArray[Any]:
    """Returns an owned array of exactly this dtype and shape.

    Raises `DataError` for anything else: a list, a masked array, another byte order, a strided
    view.
    """
    if type(array) is not np.ndarray:
        refuse(where, f"a {type(array).__name__} where a numpy array is needed")
    if array.dtype != dtype:
        refuse(where, f"dtype {array.dtype.str} where {np.dtype(dtype)} is needed")
    if array.shape != shape:
        refuse(where, f"shape {array.shape} where {shape} is needed")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        refuse(where, "not C-contiguous", "give np.ascontiguousarray(...) of it")
    return own(array)


def n_rows(array: Any) -> int:
    """Returns the number of rows, 0 if it is not an array (`column` then rejects it)."""
    return len(array) if type(array) is np.ndarray and array.ndim else 0


def positions_in(where: str, array: Any, length: int, n: int) -> NDArray[np.int32]:
    """Returns (length,) int32 positions from 0 to n - 1."""
    owned = column(where, array, np.int32, length)
    if length and owned.view(np.uint32).max() >= n:
        row = int(np.argmax(owned.view(np.uint32) >= n))
        refuse(f"{where}[{row}]", f"position {owned[row]} where there are {n}")
    return owned


def offsets_of(where: str, array: Any, n_groups: int, length: int) -> NDArray[np.int64]:
    """Returns (n_groups + 1,) int64 offsets, ascending from 0 to the number of rows."""
    owned = column(where, array, np.int64, n_groups + 1)
    if owned[0] != 0 or owned[-1] != length:
        refuse(where, f"from {owned[0]} to {owned[-1]} where 0 to {length} is needed")
    if (owned[1:] < owned[:-1]).any():
        refuse(where, "does not ascend")
    return owned


def finite(where: str, array: NDArray[np.float64], most: float = np.inf) -> None:
    """Raises `DataError` for the first number that is NaN, infinite, or beyond `most`.

    The sum of squares tests all numbers in one pass.
    """
    flat = array.reshape(-1)
    if np.einsum("i,i", flat, flat) <= min(most * most, 1e300):  # which never warns
        return
    with np.errstate(all="ignore"):
        bad = ~(np.isfinite(flat) & (np.abs(flat) <= most))
    if bad.any():
        place = np.unravel_index(int(np.argmax(bad)), array.shape)
        row = "".join(f"[{i}]" for i in place)
        refuse(f"{where}{row}", f"{array[place]} is not a finite number of reasonable size")


def no_nan(where: str, array: NDArray[np.float64]) -> None:
    """Raises `DataError` for the first NaN."""
    if not np.isnan(np.einsum("i,i", array, array)):
        return
    row = int(np.argmax(np.isnan(array)))
    refuse(f"{where}[{row}]", "is NaN")


def ascending(where: str, ids: NDArray[Any]) -> None:
    """Raises `DataError` unless ids are ascending and unique."""
    bad = ids[1:] <= ids[:-1]
    if bad.any():
        row = int(np.argmax(bad)) + 1
        what = f"{ids[row].item()!r} comes after {ids[row - 1].item()!r}"
        refuse(f"{where}[{row}]", what, "ids must be ascending and unique")


def image_ids(where: str, ids: Any) -> NDArray[Any]:
    """Returns (I,) ascending unique ids: int64, or strings of at most `MAX_ID` characters."""
    kind = ids.dtype.kind if type(ids) is np.ndarray else ""
    if kind == "U" and not ids.dtype.isnative:
        refuse(where, f"dtype {ids.dtype.str}", "give strings in native byte order")
    if kind == "U" and ids.dtype.itemsize > 4 * MAX_ID:
        longest = ids.dtype.itemsize // 4
        refuse(where, f"ids of up to {longest} characters", f"an image id has at most {MAX_ID}")
    owned = column(where, ids, ids.dtype if kind == "U" else np.int64, n_rows(ids))
    if kind == "U":
        _unicode(where, owned)
    ascending(where, owned)
    return owned


def _unicode(where: str, ids: NDArray[np.str_]) -> None:
    """Rejects ids with invalid code points. Surrogate escapes U+DC80 to U+DCFF are valid."""
    points = np.frombuffer(ids.tobytes(), np.uint32)
    byte = (points >= 0xDC80) & (points <= 0xDCFF)
    bad = (points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF) & ~byte)
    if bad.any():
        row = int(np.argmax(bad)) // (ids.dtype.itemsize // 4)
        refuse(f"{where}[{row}]", f"a character {points[bad][0]:#x}, which is not valid Unicode")


def id_array(where: str, values: Sequence[str]) -> NDArray[np.str_]:
    """Returns (n,) strings as an array, which is as wide as the longest.

    Raises `DataError` for ids of more than `MAX_ID` characters, ids that end in NUL (numpy drops
    it), and too little memory.
    """
    longest = max(map(len, values), default=0)
    if longest > MAX_ID:
        row = next(i for i, value in enumerate(values) if len(value) > MAX_ID)
        what = f"{values[row][:20]!r}... has {len(values[row])} characters"
        refuse(f"{where}[{row}]", what, f"an image id has at most {MAX_ID}")
    for row, value in enumerate(values):
        if value.endswith("\0"):
            refuse(f"{where}[{row}]", f"{value!r} ends in NUL", "remove the NUL")
    memory.require(4 * longest * len(values), where, f"{len(values)} ids")
    return np.array(values, dtype=str).reshape(len(values))


def texts(where: str, values: Any, n: int | None = None) -> tuple[str, ...]:
    """Returns a tuple of n strings, or of any number if n is None."""
    if not isinstance(values, tuple) or not all(
        issubclass(kind, str) for kind in {*map(type, values)}
    ):
        refuse(where, "not a tuple of strings")
    if n is not None and len(values) != n:
        refuse(where, f"{len(values)} strings where {n} are needed")
    return values


def notes(where: str, values: Any, kind: type) -> None:
    """Raises `DataError` unless `value` is a tuple of notes."""
    if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
        refuse(where, "not a tuple of notes")
