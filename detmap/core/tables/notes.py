"""Notes: counted warnings, which add up as the images that they are about do.

A note holds what its sentence needs (counts and names), not the finished sentence. `merged` joins
the notes of parts to those of one run over all of them, in any order and grouping. What a single
part would not report is in its notes all the same, because the whole may report it: `summed` leaves
it out where notes are shown.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import total_ordering
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from detmap.core.base.immutable import Value
from detmap.core.base.printable import shown
from detmap.core.base.sums import add_integers
from detmap.errors import few, singular

Adding = Literal["rows", "names", "missing", "repeats", "once"]

FIXED = "fixed-"
"""Begins the code of a note on a repair of the detections; the name of the repair follows."""

DROPPED = ("class-unknown", "image-unknown")
"""Codes of notes about detections that were left out because the ground truth lacks what they
name.
"""

ODD = 0.05
"""Share of boxes that contradict their format from which on a note says so."""

SUSPECT = 8
"""Boxes that all look like corners from which on a note says so."""

CONDITIONS: Mapping[str, Callable[[Note], bool]] = {
    "": lambda note: True,
    "most": lambda note: 2 * note.count > note.numbers[0],
    "odd": lambda note: note.count > ODD * note.numbers[0],
    "all": lambda note: note.count == note.numbers[0] >= SUSPECT,
    "some-listed": lambda note: note.numbers[1] > 0 or note.numbers[0] == 0,
}
"""When a note is shown, besides its count: the count against a total, or what lists have."""

NUMBERS = {"": 0, "most": 1, "odd": 1, "all": 1, "some-listed": 2}
"""How many numbers a condition reads."""


@total_ordering
@dataclass(slots=True, eq=False, repr=False)
class Note(Value):
    """A warning about the input or the result.

    Parameters
    ----------
    code : stable name of the kind of note (``area-missing``)
    template : what follows the count in a sentence; ``{names}``, ``{0}`` and ``{1}`` stand for
        `names` and `numbers`
    count : number of records concerned
    source : the input; "" for the whole evaluation
    names : what the sentence lists, sorted (see `listed_names`)
    numbers : further counts; those of parts add up
    adding : how `count` adds up: ``rows``, the sum; ``names``, the different names; ``missing``,
        the names that every part lacks; ``repeats``, ``numbers[0]`` minus the different names;
        ``once``, the highest, for a choice that is made for a whole file
    condition : when the note is shown, a key of `CONDITIONS`
    table : digest of the table that the note is about, if only some of its images are evaluated:
        parts of one table state the same note, which counts once
    """

    code: str
    template: str
    count: int
    source: str = ""
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    adding: Adding = "rows"
    condition: str = ""
    table: str = ""

    @property
    def text(self) -> str:
        """What follows the count in a sentence."""
        text = self.template
        if self.names:
            text = text.replace("{names}", few(self.names), 1)
        for place, number in enumerate(self.numbers):
            text = text.replace(f"{{{place}}}", f"{number:,}", 1)
        return text

    @property
    def is_shown(self) -> bool:
        """Whether there is something to report."""
        return self.count > 0 and CONDITIONS[self.condition](self)

    def to_dict(self) -> dict[str, str | int]:
        """What the JSON output says of it."""
        return {"code": self.code, "count": self.count, "text": self.text, "source": self.source}

    def __lt__(self, other: Note) -> bool:
        if type(other) is not Note:
            return NotImplemented
        return self._values() < other._values()

    def __repr__(self) -> str:
        return f"Note({self.code!r}, {self.text!r}, {self.count})"

    def __str__(self) -> str:
        text = singular(self.text) if self.count == 1 else self.text
        return f"{self.count} {shown(text)}"


def listed_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Returns different names as a note lists them: numbers by size, then texts."""
    return tuple(sorted({str(name) for name in names}, key=_size_key))


def _size_key(name: str) -> tuple[int, int, str]:
    is_number = name.isascii() and name.isdigit()
    return (0, int(name), name) if is_number and len(name) < 20 else (1, 0, name)


def distinct(*notes: Iterable[Note]) -> tuple[Note, ...]:
    """Returns the notes of several sources on the same images, sorted and unique."""
    return tuple(sorted({note for source in notes for note in source}))


def merged(*parts: Iterable[Note]) -> tuple[Note, ...]:
    """Returns the notes of disjoint images as one run over all of them states them.

    The result does not depend on order or grouping. Notes of one kind add up over their sources.
    Notes on the same table, of which each part has some images, stay one note.
    """
    return _joined((note for part in parts for note in part), keep_tables=True)


def summed(notes: Iterable[Note]) -> list[Note]:
    """Returns the notes that are shown, one of each kind."""
    return [note for note in _joined(notes, keep_tables=False) if note.is_shown]


def keep_for_part(notes: tuple[Note, ...], *columns: NDArray[Any]) -> tuple[Note, ...]:
    """Returns the notes of a table with these columns for a part of it."""
    if all(note.table for note in notes):
        return notes
    digest = "".join(f"{zlib.crc32(column.tobytes()):08x}" for column in columns)
    return tuple(note if note.table else replace(note, table=digest) for note in notes)


def is_written(values: Mapping[str, Any]) -> bool:
    """Checks that a saved note has the fields of a note, of the right types."""
    blank = asdict(Note("", "", 0))
    lists = (("names", str), ("numbers", int))
    return (
        {name: type(value) for name, value in values.items()}
        == {name: list if type(value) is tuple else type(value) for name, value in blank.items()}
        and all(type(each) is kind for name, kind in lists for each in values[name])
        and values["adding"] in get_args(Adding)
        and len(values["numbers"]) >= NUMBERS.get(values["condition"], len(values["numbers"]) + 1)
    )


def from_dict(values: Mapping[str, Any]) -> Note:
    """Returns a saved note."""
    fields: dict[str, Any] = {
        name: tuple(value) if type(value) is list else value for name, value in values.items()
    }
    return Note(**fields)


def n_dropped(notes: Iterable[Note]) -> int:
    """Returns the number of detections that such notes count."""
    return add_integers(note.count for note in notes if note.code in DROPPED)


def fixes(notes: Iterable[Note], *, guesses: bool = False) -> tuple[str, ...]:
    """Returns the names of the fixes in notes, in order; with what was guessed for them."""
    made = [note for note in notes if note.code.startswith(FIXED)]
    return tuple(
        note.code.removeprefix(FIXED) + "".join(f" ({name})" for name in note.names if guesses)
        for note in made
    )


def _joined(notes: Iterable[Note], *, keep_tables: bool) -> tuple[Note, ...]:
    groups: dict[Any, list[Note]] = {}
    for note in notes:
        table = note.table if keep_tables else ""
        key = note.code, note.template, note.adding, note.condition, table
        groups.setdefault(key, []).append(note)
    return tuple(sorted(_add(group, key[-1]) for key, group in groups.items()))


def _add(group: list[Note], table: str) -> Note:
    """One note of several of a kind; those on one table state the same."""
    first = max(group)
    sources = {note.source for note in group}
    source = sources.pop() if len(sources) == 1 else ""
    if table or len(group) == 1:
        return replace(first, source=source, table=table)
    names = listed_names(name for note in group for name in note.names)
    numbers = tuple(map(add_integers, zip(*(note.numbers for note in group), strict=True)))
    if first.adding == "missing":
        names = listed_names(set(names).intersection(*(note.names for note in group)))
    count = {
        "rows": add_integers(note.count for note in group),
        "once": first.count,
        "repeats": add_integers(numbers[:1]) - len(names),
    }.get(first.adding, len(names))
    return replace(first, count=count, source=source, names=names, numbers=numbers, table=table)
