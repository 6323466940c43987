"""The key by which a column, a list or the files of a folder name images or classes: id or name.

Both keys are tried on every value, and one decision holds for all of them:

1. If no value has two meanings, the key that finds all that the other finds.
2. Else the preferred key (of the header, an option or the format), if it finds all that the other
   finds.
3. Else, without a preferred key, the only key that finds every value.
4. Else it is an error that names both.

More values never change what the others mean, they can only make it an error: a key that is chosen
for all values finds the same for some of them as the key that is chosen for those alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import Frozen
from detmap.errors import DataError

Key = Literal["id", "name"]
KEYS: tuple[Key, Key] = ("id", "name")
Kind = Literal["image", "class"]

OPTIONS = {
    "image": "choose: --image-key id or --image-key name (in Python image_key=)",
    "class": "choose: --class-key id or --class-key name (in Python class_key=)",
}
COLUMNS: dict[Kind, dict[Key, str]] = {
    "image": {"id": "image_id", "name": "file_name"},
    "class": {"id": "category_id", "name": "class_name"},
}


ID_COLUMNS = ("imageid", "imgid", "id", "imageids")
FILE_COLUMNS = ("filename", "imagepath", "file", "path", "stem", "filestem")
"""Normalized names of columns whose images are ids, or names."""


class Choice(NamedTuple):
    """The key of a column.

    Parameters
    ----------
    key : of all values
    doubt : the error for those who accept no value with two meanings; None if no value has them,
        or the key was preferred
    """

    key: Key
    doubt: DataError | None = None


@dataclass(slots=True, eq=False, repr=False)
class Evidence:
    """What the values of a column, or of its first pieces, say about its key.

    Parameters
    ----------
    unknown : the first value that a key does not find
    missed : the first one that the other key finds, and this one does not
    apart : the first one that both find at different positions, and these
    """

    unknown: dict[Key, Any] = field(default_factory=dict)
    missed: dict[Key, Any] = field(default_factory=dict)
    apart: tuple[Any, int, int] | None = None

    def add(self, values: Sequence[Any], by_id: NDArray[Any], by_name: NDArray[Any]) -> None:
        """Adds different values and their positions (n,) by both keys, -1 for unknown ones."""
        found = {"id": by_id >= 0, "name": by_name >= 0}
        for key, other in (KEYS, KEYS[::-1]):
            for kept, rows in (
                (self.unknown, ~found[key]),
                (self.missed, ~found[key] & found[other]),
            ):
                if key not in kept and rows.any():
                    kept[key] = values[int(np.argmax(rows))]
        differ = found["id"] & found["name"] & (by_id != by_name)
        if self.apart is None and differ.any():
            i = int(np.argmax(differ))
            self.apart = values[i], int(by_id[i]), int(by_name[i])

    def choose(self, preferred: Key | None) -> tuple[Key | None, bool]:
        """Returns the key of all values, None if there is none; and whether no value speaks for
        the other key.
        """
        covering = [key for key in KEYS if key not in self.missed]
        if preferred in covering:
            return preferred, True
        if self.apart is None:
            return (covering[0] if covering else None), True
        total = [key for key in KEYS if key not in self.unknown]
        return (total[0] if preferred is None and len(total) == 1 else None), False


@dataclass(slots=True, eq=False, repr=False)
class Earlier(Frozen):
    """What the pieces of a file that were read before say about its columns.

    Parameters
    ----------
    evidence : by column
    pairs : what a class name or id occurred with
    """

    evidence: dict[str, Evidence] = field(default_factory=dict)
    pairs: dict[tuple[Key, Any], Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Column(Frozen):
    """A column, a list or a folder, for its messages.

    Parameters
    ----------
    kind : what it names
    where : its place
    thing : describes the image or class at a position
    preferred : key of the header, an option or the format; None if these leave it open
    named : whether its header is what prefers the key
    fix : how to choose; default: the option
    """

    kind: Kind
    where: str
    thing: Callable[[int], str]
    preferred: Key | None = None
    named: bool = False
    fix: str = ""


def choose(
    column: Column,
    values: Sequence[Any],
    by_id: NDArray[Any],
    by_name: NDArray[Any],
    evidence: Evidence | None = None,
) -> Choice:
    """Chooses the key of a column.

    Parameters
    ----------
    values : the different values of the column
    by_id, by_name : (n,) the position of each by id and by name, -1 if unknown
    evidence : of the pieces that were read before, if the column is read in pieces

    Raises `DataError` if both keys are possible and find different images or classes.
    """
    evidence = Evidence() if evidence is None else evidence
    evidence.add(values, by_id, by_name)
    key, certain = evidence.choose(column.preferred)
    if key is None:
        raise _two_meanings(column, evidence)
    return Choice(key, None if certain else _two_meanings(column, evidence))


def _two_meanings(column: Column, evidence: Evidence) -> DataError:
    """Returns the error for values that may be ids or names."""
    kind, option = column.kind, column.fix or OPTIONS[column.kind]
    both = f"ids and names of {'classes' if kind == 'class' else 'images'} are mixed: "
    if evidence.apart is not None:
        value, by_id, by_name = evidence.apart
        what = f"{_short(value)} is {column.thing(by_id)} by id and {column.thing(by_name)} by name"
        names = " or ".join(COLUMNS[kind].values())
        fix = option if column.fix else f"{option}, or name the column {names}"
        lacking = [
            f"no {kind} {_short(evidence.unknown[key])} by {key}"
            for key in KEYS
            if key in evidence.unknown
        ]
        what = "; ".join([what, *lacking])
    else:
        missed = [f"no {kind} {_short(evidence.missed[key])} by {key}" for key in KEYS]
        what = f"{both}{', '.join(missed)}"
        return DataError(column.where, what, "write ids in all rows, or names in all")
    if column.preferred is not None and column.preferred in evidence.missed:
        key = column.preferred
        fix = f"name every {kind} by {key}"
        other = COLUMNS[kind]["name" if key == "id" else "id"]
        fix += f", or rename the column to {other}" if column.named else f"; or {option}"
    return DataError(column.where, what, fix)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
