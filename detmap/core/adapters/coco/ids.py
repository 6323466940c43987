"""Ids in COCO JSON: 64-bit integers or strings."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import record_errors
from detmap.core.base.column_checks import MAX_ID
from detmap.errors import DataError

Id = int | float | str
Ids = NDArray[np.int64] | list[str]


def read(path: Path, group: str, field: str, values: list[Any]) -> Ids:
    """Returns ids as int64 (including integral floats) or as a list of strings.

    An array of strings would be as wide as the longest.
    """
    kinds = set(map(type, values))
    if kinds == {str}:
        return values
    if str in kinds:
        first = next(i for i, value in enumerate(values) if type(value) is not type(values[0]))
        raise DataError(
            f"{record_errors.place(path, group, first)}.{field}",
            f"{_short(values[first])}, while record 0 has {_short(values[0])}",
            "use either integers or strings for all",
        )
    return integers(path, group, field, values)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def integers(path: Path, group: str, field: str, values: list[Any]) -> NDArray[np.int64]:
    """Returns whole numbers as int64."""
    for i, value in enumerate(values) if float in set(map(type, values)) else ():
        if isinstance(value, float):
            if not value.is_integer():
                raise DataError(
                    f"{record_errors.place(path, group, i)}.{field}",
                    f"{value!r} is not a whole number",
                    "ids are integers",
                )
            if abs(value) > 2**53:  # it may have been another number in the file
                what = "does not fit 64 bits" if abs(value) >= 2**63 else "is too large to be exact"
                raise DataError(
                    f"{record_errors.place(path, group, i)}.{field}",
                    f"{value!r} {what}",
                    "use smaller ids, or write whole numbers",
                )
            values[i] = int(value)
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        first = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        raise DataError(
            f"{record_errors.place(path, group, first)}.{field}",
            f"{record_errors.short(values[first])} does not fit 64 bits",
            "use smaller ids",
        ) from None


def check_stored(path: Path, ids: list[str]) -> None:
    """Rejects ids that an array of strings cannot hold."""
    for i, each in enumerate(ids):
        where = f"{record_errors.place(path, 'images', i)}.id"
        if len(each) > MAX_ID:
            raise DataError(where, f"a string of {len(each)} characters", f"use at most {MAX_ID}")
        if "\0" in each:
            raise DataError(
                where, f"{record_errors.short(each)} holds a NUL", "use visible characters"
            )


def refuse_twice(path: Path, group: str, ids: NDArray[Any]) -> None:
    """Raises `DataError` if two records have the same id."""
    ordered = np.sort(ids)
    if (ordered[1:] == ordered[:-1]).any():
        unique, count = np.unique(ids, return_counts=True)
        twice = unique[count > 1]
        first, second = np.flatnonzero(ids == twice[0])[:2].tolist()
        raise DataError(
            f"{record_errors.place(path, group, second)}.id",
            f"{twice[0].item()!r} is the id of {group}[{first}] already",
            f"every id must be unique; {len(twice)} of {len(unique)} are not",
        )
