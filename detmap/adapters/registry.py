"""The formats, a row each: how a path of one looks, who reads it, what it can be told.

Whoever asks what a path is asks `choose`. To add a format: one module that reads it, and one row
here (`docs/add-a-format.md`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from detmap.adapters import coco_shapes, columns, old_text, voc, voc_layout, yolo
from detmap.errors import DataError
from detmap.opening import shown
from detmap.tables import Detections, Truth

Place = Literal["a file", "a folder", "a file or a folder"]
Looks = Callable[[Path], int]
"""How sure one is that a path is of a format: 0 no, 1 it may be, 2 it shows a mark of it, 3 its
files have names of its own."""


class Row(Protocol):
    """What every row has."""

    @property
    def name(self) -> str:
        """By which a user chooses it."""

    @property
    def place(self) -> Place:
        """Where it is kept."""

    @property
    def options(self) -> tuple[str, ...]:
        """What a reader can be told."""


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of detection: its truth and its detections.

    Parameters
    ----------
    name : by which a user chooses it
    place : whether it is kept in a file or in a folder
    truth_looks, detections_look : how a path of it looks
    read_truth : takes the path, and the options by name
    read_detections : takes the path, the truth, the ``policy`` about what the truth lacks,
        and the options by name
    options, detection_options : what `read_truth` and `read_detections` can be told
    """

    name: str
    place: Place
    truth_looks: Looks
    detections_look: Looks
    read_truth: Callable[..., Truth]
    read_detections: Callable[..., Detections]
    options: tuple[str, ...] = ()
    detection_options: tuple[str, ...] = ()


def _file(path: Path) -> int:
    return int(not path.is_dir())


def _folder(path: Path) -> int:
    return int(path.is_dir())


def _voc_text(path: Path) -> int:
    """A folder; surely where a file is called as the devkit calls it, whatever is in it."""
    named = path.is_dir() and any(voc.DETECTION_FILE.fullmatch(f.name) for f in path.glob("*.txt"))
    return 3 if named else _folder(path)


FORMATS: tuple[Format, ...] = (
    Format(
        "coco",
        "a file",
        _file,
        _file,
        coco_shapes.read_truth,
        coco_shapes.read_detections,
        options=("shapes", "roles", "attributes"),
    ),
    Format(
        "voc",
        "a folder",
        voc_layout.looks,
        _voc_text,
        voc.read_truth,
        voc.read_detections,
        options=("split",),
    ),
    Format(
        "yolo",
        "a file or a folder",
        yolo.truth_looks,
        yolo.detections_look,
        yolo.read_truth,
        yolo.read_detections,
        options=("split", "image_sizes"),
    ),
    Format(
        "csv",
        "a file",
        columns.csv_looks,
        columns.csv_looks,
        columns.read_csv_truth,
        columns.read_csv_detections,
        options=("box_format", "image_sizes"),
        detection_options=("box_format",),
    ),
    Format(
        "parquet",
        "a file",
        columns.parquet_looks,
        columns.parquet_looks,
        columns.read_parquet_truth,
        columns.read_parquet_detections,
        options=("box_format", "image_sizes"),
        detection_options=("box_format",),
    ),
    *(
        Format(
            tool.name,
            "a folder",
            tool.truth_looks,
            tool.detections_look,
            tool.read_truth,
            tool.read_detections,
            options=("box_format", "image_sizes"),
            detection_options=("box_format",),
        )
        for tool in (old_text.CARTUCHO, old_text.RAFAELPADILLA)
    ),
)


def as_path(path: Any) -> Path:
    """What a caller gave as a path, which exists.

    Raises
    ------
    DataError : not a path, or nothing is there
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError("path", f"{path!r} is not a path", "give a string or a pathlib.Path")
    found = Path(path)
    try:
        os.stat(found)
    except FileNotFoundError:
        raise DataError(shown(found), "no such file or folder", "check the path") from None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise DataError(
            shown(found), f"cannot be read: {what}", "check the path and its permissions"
        ) from None
    return found


def choose(
    rows: Sequence[AnyRow], path: Path, looks: Callable[[AnyRow], Looks], wanted: str | None = None
) -> AnyRow:
    """The row of a path: the wanted one, or the one that it looks most like.

    Raises
    ------
    DataError : no such format; the path is not of the wanted one, of none, or of several
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
                f"give {row.place}, or leave the format out",
            )
        return row
    sure = [looks(row)(path) for row in rows]
    best = [row for row, each in zip(rows, sure, strict=True) if each and each == max(sure)]
    if len(best) != 1:
        like = " and ".join(row.name for row in best)
        raise DataError(
            shown(path),
            f"looks like {like} alike" if best else "looks like no known format",
            f"name the format: {', '.join(names)}",
        )
    return best[0]


def told(name: str, known: Sequence[str], path: Path, **options: Any) -> dict[str, Any]:
    """The options that were given, of those that a format can be told.

    Parameters
    ----------
    name : of the format
    known : the options that it has
    path : for the message
    options : by name; None where not given

    Raises
    ------
    DataError : it cannot be told one of them
    """
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in known:
            raise DataError(
                shown(path),
                f"{option} {str(value)!r} given for a {name.upper()} file",
                f"a {name.upper()} file has no choice of {option}; leave it out",
            )
    return given
