"""Chooses the format of a path from the table of formats (`detmap.core.adapters.formats`)."""

import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from detmap.core.adapters.formats import FORMATS as FORMATS
from detmap.core.adapters.formats import Format as Format
from detmap.core.adapters.formats import Looks as Looks
from detmap.core.adapters.formats import Place as Place
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.base.suggestions import suggestions
from detmap.core.tables import Note
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError

MOST_NAMES = 10_000  # of a folder, among which a similar one is looked for
MARKED, FOREIGN = 2, -2  # of `Looks`: marks of the format, and marks of another one


class Row(Protocol):
    """The common interface of formats."""

    @property
    def name(self) -> str:
        """The name of the format."""

    @property
    def place(self) -> Place:
        """Whether it is a file or a folder."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of its reader."""


AnyRow = TypeVar("AnyRow", bound=Row)


IN_MEMORY = (
    "give a path, a COCO dict, a list of COCO results, a list of one dict per image, or a data "
    "frame (docs/formats.md)"
)


def checked_path(path: Any) -> Path:
    """Returns an existing path, or raises `DataError`."""
    if not isinstance(path, str | os.PathLike):
        raise not_a_path(path)
    if path == "":
        raise DataError("path", "is an empty string", "give the path of a file or folder")
    place = Path(path)
    try:
        os.stat(place)
    except FileNotFoundError:
        fix = f"{_similar(place)}check the path"
        raise DataError(shown(place), "no such file or folder", fix) from None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise DataError(
            shown(place), f"cannot be read: {what}", "check the path and its permissions"
        ) from None
    return place


def _similar(place: Path) -> str:
    """A proposal of what is there instead of a path that is not; "" if nothing is similar."""
    folder = next((each for each in place.parents if each.is_dir()), None)
    if folder is None:
        return ""
    wanted = place.parts[len(folder.parts)] if folder != Path() else place.parts[0]
    try:
        with os.scandir(folder) as found:
            names = sorted(each.name for each in islice(found, MOST_NAMES))
    except OSError:
        return ""
    near = suggestions("path", wanted, names)[:1] or [
        each for each in names if Path(each).stem == Path(wanted).stem
    ]
    return f"did you mean {shown(folder / near[0])}? " if near else ""


def not_a_path(thing: Any) -> DataError:
    """Returns the error for an object that is neither a path nor data."""
    from detmap.core.adapters import recognition

    seen = recognition.recognized(thing)
    if seen is not None:
        return DataError("path", f"{seen.name}, where a path is needed", seen.fix)
    if isinstance(thing, list | tuple | dict):
        return DataError("path", f"a {type(thing).__name__} where a path is needed", IN_MEMORY)
    return DataError("path", f"{thing!r:.60} is not a path", "give a string or a pathlib.Path")


def choose_noted(
    rows: Sequence[AnyRow],
    path: Path,
    looks: Callable[[AnyRow], Looks],
    wanted: str | None = None,
    preferred: str | None = None,
) -> tuple[AnyRow, tuple[Note, ...]]:
    """Returns the row of the requested format, or of the one that matches the path best, and a note
    if a folder shows marks of other formats, unless the user or the protocol names the format.

    `preferred` is the format of the protocol's benchmark: it is used if it matches at all, or
    if no other format has marks.
    Raises `DataError` if the format is unknown, ambiguous, or does not fit the path.
    """
    names = [row.name for row in rows]
    if wanted is not None:
        if wanted not in names:
            raise DataError(
                "format", f"no format {wanted!r}", f"the formats are {', '.join(names)}"
            )
        row = rows[names.index(wanted)]
        here = "a folder" if path.is_dir() else "a file"
        if here not in row.place:
            raise DataError(
                shown(path),
                f"format {wanted} is {row.place}, this is {here}",
                f"give {row.place}, or remove the format",
            )
        return row, ()
    with open_files.looking():
        is_folder = open_files.is_folder(path)
        asked = (is_folder or row.place != "a folder" for row in rows)
        sure = [looks(row)(path) if ask else 0 for row, ask in zip(rows, asked, strict=True)]
    here, most = "a folder" if is_folder else "a file", max(sure)
    for row, each in zip(rows, sure, strict=True):
        fits = each or (most <= 1 and here in row.place)
        if row.name == preferred and fits and each != FOREIGN:
            return row, ()
    alone = is_folder or path.suffix.lower() == ".txt"  # one label file is no JSON
    for row in rows if alone and most < MARKED else ():
        if row.name == preferred:  # and it is a file, or for one label file a folder
            what = f"{here}, but the benchmark's format {row.name} is {row.place}"
            files = {each.name: each.what for each in FORMATS}[row.name]
            other = "for other files, name the format: --truth-format or --detections-format"
            raise DataError(shown(path), what, f"give {row.place} ({files}); {other}")
    best = [row for row, each in zip(rows, sure, strict=True) if each and each == most]
    if len(best) != 1:
        like = [row.name for row in best]
        protocols = [f"-p {name}" for name in _protocols_of(like)]
        also = f", or the benchmark: {', '.join(protocols)}" if protocols else ""
        if path.name.startswith(("comp3_det_", "comp4_det_")):  # one class of VOC
            also += "; for VOC, give the folder that holds the class files"
        raise DataError(
            shown(path),
            f"the format is ambiguous: {' and '.join(like)}" if best else "the format is unknown",
            f"choose the format: {', '.join(like or names)}{also}",
        )
    others = [
        row.name
        for row, each in zip(rows, sure, strict=True)
        if is_folder and row != best[0] and each >= MARKED
    ]
    return best[0], () if preferred else _rivals(best[0].name, others, path)


def _protocols_of(formats: Sequence[str]) -> list[str]:
    """Returns the shipped protocols whose files are of one of these formats."""
    from detmap.core import protocol  # only an error needs it

    files = {name: protocol.load(name).files for name in protocol.names()}
    return [name for name, of in files.items() if {of.truth, of.detections} & set(formats)]


def _rivals(chosen: str, others: Sequence[str], path: Path) -> tuple[Note, ...]:
    """Returns a note if there are other formats than the chosen one."""
    if not others:
        return ()
    text = (
        f"formats have files in the folder too, which is read as {chosen}: "
        "{names} (--truth-format, --detections-format)"
    )
    names = listed_names(others)
    return (Note("format-chosen", text, len(others), shown(path), names, adding="names"),)


SHAPES = {
    "masks": "masks",
    "boundary": "masks",
    "keypoints": "keypoints",
    "polygons": "rotated boxes",
} | dict.fromkeys(("rotated", "probiou"), "rotated boxes")
"""What the option `shapes` reads, in words."""


def told(name: str, known: Sequence[str], path: Path, **options: Any) -> dict[str, Any]:
    """Returns the options that were given.

    Parameters
    ----------
    name : of the format
    known : the options it supports
    path : for the message
    options : by name; None if not given

    Raises `DataError` for unsupported options.
    """
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option == "shapes" and option not in known:
            able = ", ".join(row.name for row in FORMATS if option in row.options)
            raise DataError(
                shown(path),
                f"no {SHAPES.get(value, value)} are read from {name.upper()} files",
                f"give one of the formats {able}, or choose a protocol for boxes",
            )
        if option not in known:
            raise DataError(
                shown(path),
                f"{option} {str(value)!r} is not an option of {name.upper()} files",
                f"remove {option}",
            )
    return given
