"""Converts and checks arguments of the public API: ids, numbers, flags."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base import column_checks
from detmap.core.base.flat_rows import first_true
from detmap.errors import DataError

MOST_WEIGHT = 1e6  # of an image: a weight is a number of copies

MOST = 1e100
"""No number that is given as a threshold or a weight is larger, so that its square is a number."""


def ids(where: str, values: ArrayLike) -> NDArray[Any]:
    """Returns (n,) ids as int64 or str. Floats must be whole numbers.

    Raises `DataError` for other shapes and types, mixed types, and strings that numpy would
    shorten.
    """
    array = _array(where, values)
    if array.ndim != 1:
        raise DataError(where, f"shape {array.shape} where (n,) is needed", "give one id per row")
    if array.size == 0:
        return array.astype(np.int64) if array.dtype.kind in "iuf" else np.zeros(0, dtype=np.int64)
    listed = values if isinstance(values, list | tuple) else None
    if listed is None and array.dtype.kind == "O":
        listed = array.tolist()
    if listed is not None and any(isinstance(each, str) for each in listed):
        strange = next((i for i, each in enumerate(listed) if not isinstance(each, str)), None)
        if strange is not None:
            what = f"{listed[strange]!r} among strings"
            raise DataError(f"{where}[{strange}]", what, "use one kind of ids")
        return column_checks.id_array(where, listed)
    if array.dtype.kind == "U":
        if array.dtype.itemsize > 4 * column_checks.MAX_ID:
            what = f"ids of up to {array.dtype.itemsize // 4} characters"
            raise DataError(where, what, f"an id has at most {column_checks.MAX_ID}")
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind not in "iuf" or any(isinstance(each, bool) for each in listed or ()):
        raise DataError(where, f"dtype {array.dtype}", "ids are whole numbers or strings")
    if array.dtype.kind == "f":
        broken = np.logical_or(array != np.floor(array), ~np.isfinite(array))
        refuse_first(where, array, broken, "is not a whole number")
        apart = 2.0 ** (np.finfo(array.dtype).nmant + 1)  # beyond, two ids may be one number
        what = f"of {array.dtype} may stand for several whole numbers"
        fix = "give integers, or strings"
        refuse_first(where, array, np.abs(array) >= apart, what, fix)
    elif array.dtype.kind == "u":
        refuse_first(where, array, array >= 2**63, "is not a whole number of 64 bits with a sign")
    return array.astype(np.int64, copy=False)


def numbers(where: str, values: ArrayLike, flags: bool = True) -> NDArray[np.float64]:
    """Returns a float64 array of any shape. Rejects strings, complex and masked arrays, and
    booleans unless they may stand for 0 and 1 (`flags`).
    """
    if not flags and _holds_flags(values):
        raise DataError(where, "dtype bool", "give numbers")
    array = _array(where, values)
    if array.dtype.kind == "O" and not any(isinstance(each, str | bytes) for each in array.flat):
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(where, str(error), "give an array of numbers") from None
    if array.dtype.kind not in "fiub":
        raise DataError(where, f"could not convert {array.dtype} to numbers", "give numbers")
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


def _holds_flags(values: Any, depth: int = 2) -> bool:
    """Checks for booleans, of which NumPy makes 0 and 1 among other numbers."""
    if isinstance(values, list | tuple):
        inner = depth > 1
        return any(
            isinstance(each, bool) or (inner and _holds_flags(each, depth - 1)) for each in values
        )
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "O":
        return any(isinstance(each, bool | np.bool_) for each in np.asarray(values).flat)
    return kind == "b"


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or NumPy; a boolean is none."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool)


def number(
    where: str, value: Any, fix: str = "give a number", most: float = MOST, what: str = ""
) -> float:
    """Returns a real number with a magnitude of at most `most`, or raises `DataError`."""
    try:
        real_number = float(value) if is_number(value) else math.nan
    except OverflowError:
        real_number = math.nan
    if not abs(real_number) <= most:
        raise DataError(where, f"{value!r:.60}{what}", fix)
    return real_number


def fraction(where: str, value: Any) -> float:
    """Returns a number from 0 to 1, or raises `DataError`."""
    share = number(where, value)
    if not 0 <= share <= 1:
        raise DataError(where, f"{value!r}", "a fraction in [0, 1]")
    return share


def flags(where: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Returns a bool array from booleans or from 0 and 1."""
    array = _array(where, values)
    if array.dtype.kind not in "biuf":
        raise DataError(where, f"dtype {array.dtype}", "flags are booleans, or 0 and 1")
    bad = (array != 0) & (array != 1)
    if bad.any():
        refuse_first(where, array.ravel(), bad.ravel(), "is not a flag", "flags are 0 or 1")
    return array.astype(bool)


FLAG_FIX = "a flag is 0, 1, true or false"


def flag(value: Any) -> bool | None:
    """Returns a flag of a file, which is 0, 1, true or false; None for any other value."""
    return bool(value) if isinstance(value, bool | int | float) and value in (0, 1) else None


def positions(where: str, values: ArrayLike, n: int) -> NDArray[np.int64]:
    """Returns (m,) positions from 0 to n - 1, ascending and unique."""
    array = ids(where, values)
    good = array.dtype.kind == "i"
    if good and ((array < 0) | (array >= n)).any():
        what = f"unknown position {array[(array < 0) | (array >= n)][0]}"
        raise DataError(where, what, f"there are {n}, counted from 0")
    if not good or (array[1:] <= array[:-1]).any():
        raise DataError(where, "not ascending positions", "give whole numbers, without repetition")
    return array


def weights(where: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    """Returns (n,) float64 image weights from 0 to a million."""
    array = numbers(where, values)
    if array.shape != (n,):
        what = f"shape {array.shape} where ({n},) is needed"
        raise DataError(where, what, "give one weight per image, in the order of image_ids")
    bad = ~((array >= 0) & (array <= MOST_WEIGHT))
    refuse_first(where, array, bad, "is not a weight", f"weights are from 0 to {MOST_WEIGHT:.0e}")
    return array


def refuse_first(
    where: str,
    values: NDArray[Any],
    bad: NDArray[np.bool_],
    what: str,
    fix: str = "fix or remove the row",
) -> None:
    """Raises `DataError` for the first bad row, if any."""
    if (row := first_true(bad)) is not None:
        raise DataError(f"{where}[{row}]", f"{values[row].tolist()!r} {what}", fix)


def _array(where: str, values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(where, "is a masked array", "remove the masked rows")
    try:
        return np.asarray(values)
    except Exception as error:  # any error of an object that is converted to numbers
        raise DataError(where, str(error), "give an array with one row per box") from None
