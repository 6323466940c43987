"""The table of formats: how to detect a format, its readers, and their options.

To add a format: one module that reads it, and one row here (`docs/add-a-format.md`). Rows name
functions as text, so that only the module of the chosen format is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from detmap.base.open_files import shown
from detmap.errors import DataError
from detmap.tables import Detections, Truth

Place = Literal["a file", "a folder", "a file or a folder"]
Looks = Callable[[Path], int]
"""How sure one is that a path is of a format: 0 no, 1 it may be, 2 it shows a mark of it, 3 its
files have names of its own; -1 it is, but only for a protocol that names the format."""


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


@dataclass(frozen=True, slots=True)
class Format:
    """A detection format: its ground truth and its detections.

    Parameters
    ----------
    name : of the format
    place : whether it is a file or a folder
    truth_looks, detections_look : score how well a path matches the format
    read_truth : called with the path, and the options by name
    read_detections : called with the path, the truth, the ``policy`` about unknown images and
        classes, and the options by name
    options, detection_options : options of `read_truth` and `read_detections`
    what : description
    """

    name: str
    place: Place
    truth_looks: Looks
    detections_look: Looks
    read_truth: Callable[..., Truth]
    read_detections: Callable[..., Detections]
    options: tuple[str, ...] = ()
    detection_options: tuple[str, ...] = ()
    what: str = ""


def _lazy(place: str) -> Callable[..., Any]:
    """Returns a function that imports ``module.function`` of this folder when it is called."""
    module, *names = place.split(".")

    def call(*given: Any, **told: Any) -> Any:
        function: Any = import_module("detmap.adapters." + module.replace("/", "."))
        for name in names:
            function = getattr(function, name)
        return function(*given, **told)

    return call


def _file(path: Path) -> int:
    return int(not path.is_dir())


def _file_with(*suffixes: str) -> Looks:
    """Matches files with one of these suffixes, ignoring case."""
    return lambda path: 2 * (not path.is_dir() and path.suffix.lower() in suffixes)


def _predictions(path: Path) -> int:
    """Matches file names of Ultralytics' predictions."""
    return 2 * (path.name.lower() == "predictions.json")


def _folder_or(file: Looks, folder: str) -> Looks:
    """Scores files by `file` and folders by the named function."""
    return lambda path: _lazy(folder)(path) if path.is_dir() else file(path)


def _nothing(path: Path) -> int:
    del path
    return 0


FORMATS: tuple[Format, ...] = (
    Format(
        "coco",
        "a file",
        _file,
        _file,
        _lazy("coco/shapes.read_truth"),
        _lazy("coco/shapes.read_detections"),
        options=("shapes", "roles", "attributes"),
        what="COCO JSON: instances, and results or annotations",
    ),
    Format(
        "voc",
        "a folder",
        _folder_or(_nothing, "voc/folder_layout.looks"),
        _folder_or(_nothing, "voc/result_files.looks"),
        _lazy("voc/devkit.read_truth"),
        _lazy("voc/devkit.read_detections"),
        options=("split",),
        what="VOC: Annotations/*.xml, and a text file a class",
    ),
    Format(
        "yolo",
        "a file or a folder",
        _folder_or(_file_with(".yaml", ".yml"), "text_per_image/yolo.truth_looks"),
        _folder_or(_predictions, "text_per_image/yolo.detections_look"),
        _lazy("text_per_image/yolo.read_truth"),
        _lazy("text_per_image/yolo.read_detections"),
        options=("split", "image_sizes"),
        what="YOLO: data.yaml or a folder of labels, and predictions",
    ),
    *(
        Format(
            name,
            "a file",
            _file_with(*endings),
            _file_with(*endings),
            _lazy(f"tabular/column_tables.read_{name}_truth"),
            _lazy(f"tabular/column_tables.read_{name}_detections"),
            options=("box_format", "image_sizes", "roles", "attributes"),
            detection_options=("box_format",),
            what=f"{name} with a row a box, in named columns",
        )
        for name, endings in (("csv", (".csv", ".tsv")), ("parquet", (".parquet", ".pq")))
    ),
    *(
        Format(
            name.lower(),
            "a folder",
            _folder_or(_nothing, f"text_per_image/cartucho_rafaelpadilla.{name}.truth_looks"),
            _folder_or(_nothing, f"text_per_image/cartucho_rafaelpadilla.{name}.detections_look"),
            _lazy(f"text_per_image/cartucho_rafaelpadilla.{name}.read_truth"),
            _lazy(f"text_per_image/cartucho_rafaelpadilla.{name}.read_detections"),
            options=("box_format", "image_sizes"),
            detection_options=("box_format",),
            what=f"text of {name.lower()}'s tool, a file an image",
        )
        for name in ("CARTUCHO", "RAFAELPADILLA")
    ),
    Format(
        "kitti",
        "a folder",
        _folder_or(_nothing, "text_per_image/kitti.truth_looks"),
        _folder_or(_nothing, "text_per_image/kitti.detections_look"),
        _lazy("text_per_image/kitti.read_truth"),
        _lazy("text_per_image/kitti.read_detections"),
        options=("image_sizes",),
        what="KITTI text: label_2 and results, a file an image",
    ),
    Format(
        "luna16",
        "a file",
        _lazy("tabular/luna16.truth_looks"),
        _lazy("tabular/luna16.detections_look"),
        _lazy("tabular/luna16.read_truth"),
        _lazy("tabular/luna16.read_detections"),
        what="LUNA16: annotations.csv and results.csv, spheres",
    ),
    Format(
        "sa-co",
        "a file",
        _lazy("coco/sa_co.truth_looks"),
        _lazy("coco/sa_co.detections_look"),
        _lazy("coco/sa_co.read_truth"),
        _lazy("coco/sa_co.read_detections"),
        what="SA-Co: COCO JSON of image and phrase, a file per annotator",
    ),
)


IN_MEMORY = (
    "write the records with json.dump and give the path, or pass arrays to "
    "`detmap.truth_from_arrays` and `detmap.detections_from_arrays`"
)


def checked_path(path: Any) -> Path:
    """Returns an existing path, or raises `DataError`."""
    if not isinstance(path, str | os.PathLike):
        if isinstance(path, list | tuple | dict):
            raise DataError("path", f"a {type(path).__name__} where a path is needed", IN_MEMORY)
        raise DataError("path", f"{path!r:.60} is not a path", "give a string or a pathlib.Path")
    place = Path(path)
    try:
        os.stat(place)
    except FileNotFoundError:
        raise DataError(shown(place), "no such file or folder", "check the path") from None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise DataError(
            shown(place), f"cannot be read: {what}", "check the path and its permissions"
        ) from None
    return place


def choose(
    rows: Sequence[AnyRow],
    path: Path,
    looks: Callable[[AnyRow], Looks],
    wanted: str | None = None,
    preferred: str | None = None,
) -> AnyRow:
    """Returns the row of the requested format, or of the one that matches the path best.

    `preferred` is the format of the protocol's benchmark: it is taken if it matches at all.
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
        return row
    for row in rows:
        if row.name == preferred and looks(row)(path):
            return row
    sure = [looks(row)(path) for row in rows]
    best = [row for row, each in zip(rows, sure, strict=True) if each and each == max(sure)]
    if len(best) != 1:
        like = " and ".join(row.name for row in best)
        raise DataError(
            shown(path),
            f"the format is ambiguous: {like}" if best else "the format is unknown",
            f"choose the format: {', '.join(names)}",
        )
    return best[0]


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
        if option not in known:
            raise DataError(
                shown(path),
                f"{option} {str(value)!r} is not an option of {name.upper()} files",
                f"remove {option}",
            )
    return given
