"""Rows of the tables of formats: how to detect a format, its readers, and their options.

Rows name functions as places, ``module:function``, so that only the module of the chosen format is
imported.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from detmap.core.base import open_files
from detmap.core.tables import Detections, Truth

Place = Literal["a file", "a folder", "a file or a folder"]
Looks = Callable[[Path], int]
"""How well a path matches a format: 0 no, 1 possibly (COCO, for JSON that no other format claims),
2 it has a mark of the format, 3 its files have names or content of their own, 4 also if another
format reads one of its files, -1 only if the user names the format, -2 it has marks of another one,
so that not even its own protocol prefers it."""


class Format(NamedTuple):
    """A detection format: its ground truth and its detections.

    Parameters
    ----------
    truth_looks, detections_look : score how well a path matches the format
    read_truth : called with the path, and the options by name
    read_detections : called with the path, the ground truth, the ``policy`` about unknown images
        and classes, and the options by name
    options, detection_options : options of `read_truth` and `read_detections`
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


def lazy(place: str) -> Callable[..., Any]:
    """Returns a function that imports ``module:function`` when it is called."""
    module, _, text = place.partition(":")
    names, loaded = text.split("."), list[Any]()

    def call(*given: Any, **told: Any) -> Any:
        if not loaded:
            loaded.append(import_module(module))
        function = loaded[0]
        for name in names:
            function = getattr(function, name)
        return function(*given, **told)

    return call


def any_file(path: Path) -> int:
    """Matches any file."""
    return int(not open_files.is_folder(path))


def file_with(*suffixes: str) -> Looks:
    """Matches files with one of these suffixes, ignoring case."""
    return lambda path: 2 * (path.suffix.lower() in suffixes and not open_files.is_folder(path))


def begins_as_json(path: Path) -> bool:
    """Whether a regular file begins as JSON, whatever its name."""
    return open_files.is_file(path) and open_files.head(path, 64).lstrip()[:1] in (b"{", b"[")


def sheet_file(look: str, *suffixes: str) -> Looks:
    """Scores files by a function of their content; of JSON it is not asked, and of others that
    cannot be read twice the suffix decides.
    """

    def looks(path: Path) -> int:
        if not open_files.is_file(path):
            return file_with(*suffixes)(path)
        return 0 if begins_as_json(path) else int(lazy(look)(path, suffixes))

    return looks


def folder_or(file: Looks, folder: str) -> Looks:
    """Scores files by `file` and folders by the function of a place."""
    return lambda path: lazy(folder)(path) if open_files.is_folder(path) else file(path)


def folder_like(look: str) -> Looks:
    """Scores folders by the function of a place; matches no file."""
    return folder_or(nothing, look)


def nothing(_: Path) -> int:
    """Matches no path."""
    return 0


def row(
    name: str,
    place: Place,
    module: str,
    truth_looks: Looks,
    detections_look: Looks,
    what: str,
    options: tuple[str, ...] = (),
    detection_options: tuple[str, ...] = (),
) -> Format:
    """Returns the row of a format whose module has `read_truth` and `read_detections`.

    `module` may end with ``:name`` of a value that has these functions.
    """
    home = f"{module}." if ":" in module else f"{module}:"
    readers = (lazy(f"{home}read_truth"), lazy(f"{home}read_detections"))
    return Format(
        name, place, truth_looks, detections_look, *readers, options, detection_options, what
    )
