"""Classes of columns whose values may be ids or names.

`detmap.core.tables.join_keys` chooses the key: one for all values.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import CodedNames, coded
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.tables import Categories, Note, Truth
from detmap.core.tables.grouping import positions
from detmap.core.tables.join_keys import Column, Key, choose
from detmap.errors import DataError

IDS = ("classid", "categoryid", "labelid", "classidx", "catid")
NAMES = ("classname", "categoryname", "labelname", "name")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_NO_ID = -(2**63)
TWO_MEANINGS = "class-two-meanings"


class Found(NamedTuple):
    """The classes of n values.

    Parameters
    ----------
    label : (n,) positions, -1 if unknown
    given : n values, whole numbers if all are ids
    notes : on values with two meanings
    """

    label: NDArray[np.int32]
    given: Sequence[Any]
    notes: tuple[Note, ...] = ()


def described(categories: Categories, place: int) -> str:
    """Describes a class, for messages."""
    return f"class {int(categories.ids[place])} ({categories.names[place]})"


def column_of(
    categories: Categories, where: str, key: Key | None = None, header: str | None = None
) -> Column:
    """Returns the column of classes at a place; see `image_keys.column_of`."""
    own: Key | None = "id" if header in IDS else "name" if header in NAMES else None
    return Column("class", where, lambda i: described(categories, i), own or key, own is not None)


def find(
    truth: Truth,
    given: Sequence[Any] | NDArray[Any],
    where: str,
    policy: Policy,
    header: str | None = None,
) -> Found:
    """Finds the classes of whole numbers or texts, by id or by name.

    Parameters
    ----------
    given : n values; whole numbers as texts are numbers, unless one has leading zeros
    where : the place of the column
    header : the normalized name of the column

    Raises `DataError` if both keys are possible, and for ids or names without a meaning.
    """
    rows = _coded(given)
    texts = [str(each) for each in rows.names]
    numbers = np.array([_number(text) for text in texts], dtype=np.int64)
    whole = len(numbers) > 0 and bool((numbers != _NO_ID).all())
    values: Sequence[Any] = numbers.tolist() if whole else texts
    nothing = np.full(len(texts), -1, dtype=np.int32)
    if policy.class_names is not None:
        read: Any = _find_ids if whole else _find_names
        found = read(truth, numbers if whole else texts, where, policy)
        return Found(found[rows.code], CodedNames(values, rows.code))
    errors: dict[Key, DataError] = {}
    places: dict[Key, NDArray[np.int32]] = {"id": nothing, "name": nothing}
    try:
        places["id"] = _find_ids(truth, numbers, where, policy)
    except DataError as error:
        errors["id"] = error
    try:
        places["name"] = _find_names(truth, texts, where, policy)
    except DataError as error:
        errors["name"] = error
    column = column_of(truth.categories, where, policy.class_key, header)
    key, doubt = choose(column, values, places["id"], places["name"], policy.evidence("class"))
    if not whole and key == "id" and (places["id"] < 0).all():
        key = "name"  # neither key finds a text
    if key in errors:
        raise errors[key]
    notes = _two_meanings(places, rows, key, where) if doubt is not None else ()
    shown = values if key == "id" else texts
    return Found(places[key][rows.code], CodedNames(shown, rows.code), notes)


def _number(text: str) -> int:
    """A whole number of 64 bits; `_NO_ID` for other texts."""
    number = int(text) if _WHOLE.fullmatch(text) else _NO_ID
    return number if _NO_ID < number < 2**63 else _NO_ID


def refuse_ids(truth: Truth, names: Sequence[str], where: str) -> None:
    """Raises `DataError` for a name that is the id of another class, as a text."""
    by_name = {name: i for i, name in enumerate(truth.categories.names)}
    by_id = {str(each): i for i, each in enumerate(truth.categories.ids.tolist())}
    for name in dict.fromkeys(names):
        if by_name.get(name) != by_id.get(name, by_name.get(name)) and name in by_name:
            one, other = (described(truth.categories, of[name]) for of in (by_id, by_name))
            what = f"{name!r:.60} is {one} by id and {other} by name"
            raise DataError(where, what, "write ids as numbers, or names into category_name")


def find_declared(
    categories: Categories, given: Sequence[Any] | NDArray[Any], where: str, header: str
) -> NDArray[np.int32]:
    """Returns (n,) positions of the classes of a ground truth whose classes are declared, -1 if
    unknown. Raises `DataError` if values may be ids or names of other classes.
    """
    rows = _coded(given)
    by_id = {str(each): i for i, each in enumerate(categories.ids.tolist())}
    by_name = {name: i for i, name in enumerate(categories.names)}
    texts = list(map(str, rows.names))
    ids, names = (
        np.array([of.get(text, -1) for text in texts], dtype=np.int32) for of in (by_id, by_name)
    )
    column = column_of(categories, where, None, header)
    column = replace(column, fix="name the column category_id or class_name")
    key, doubt = choose(column, rows.names, ids, names)
    if doubt is not None:
        raise doubt
    found: NDArray[np.int32] = (ids if key == "id" else names)[rows.code]
    return found


def _coded(given: Sequence[Any] | NDArray[Any]) -> CodedNames:
    if isinstance(given, np.ndarray) and given.dtype.kind == "i":
        values, code = np.unique(given, return_inverse=True)
        return CodedNames(values.tolist(), code.ravel())
    return coded(given)


def _find_ids(
    truth: Truth, numbers: NDArray[np.int64], where: str, policy: Policy
) -> NDArray[np.int32]:
    ids, labels = policy.class_ids(truth, where)
    place = positions(ids, numbers)
    return place if labels is None else np.append(labels, np.int32(-1))[place]


def _find_names(
    truth: Truth, names: Sequence[str], where: str, policy: Policy
) -> NDArray[np.int32]:
    table = policy.positions_by_name(truth, where)
    return np.array([table.get(name, -1) for name in names], dtype=np.int32)


def _two_meanings(
    places: dict[Key, NDArray[np.int32]], rows: CodedNames, key: Key, where: str
) -> tuple[Note, ...]:
    """Returns the note on values that are the id of one class and the name of another."""
    by_id, by_name = places["id"], places["name"]
    count = int(((by_id >= 0) & (by_name >= 0) & (by_id != by_name))[rows.code].sum())
    text = "detections name their class by the id of one class and the name of another: joined by "
    text += f"{key}, since the column has others that are no {'name' if key == 'id' else 'id'}; "
    text += "--class-key chooses"
    return (Note(TWO_MEANINGS, text, count, where),) * bool(count)
