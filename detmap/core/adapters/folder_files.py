"""Lists the files of a folder by suffix, in upper case or lower case."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from detmap.core.adapters.joining import image_names
from detmap.core.base.open_files import is_folder, shown, unreadable_folder
from detmap.core.tables import Note
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, few

MOST_LOOKED_AT = 100_000  # files in sub-folders


def has(folder: Path, *suffixes: str) -> bool:
    """Checks if a folder has a file with one of these suffixes."""
    return next(names(folder, *suffixes), None) is not None


def first(folder: Path, *suffixes: str) -> Path | None:
    """Returns the first file of a folder with one of these suffixes; None if there is none."""
    name = min(names(folder, *suffixes), default=None)
    return None if name is None else folder / name


def inside(folder: Path, *names: str) -> Path:
    """Returns the first of these folders that a data set has, else its own folder."""
    return next((folder / name for name in names if (folder / name).is_dir()), folder)


def names(folder: Path, *suffixes: str) -> Iterator[str]:
    """Yields the names of files with one of these suffixes, in no order; none without a folder.

    Raises `DataError` for a folder that may not be read, as all functions here do.
    """
    yield from (name for name in _entries(folder) if _fits(name, suffixes))


def listed(folder: Path, *suffixes: str) -> list[Path]:
    """Returns the files of a folder with one of these suffixes by stem, without hidden ones.

    Raises `DataError` for names that are not UTF-8, and if two files have the same stem.
    """
    return unique((folder / name for name in names(folder, *suffixes)), folder)


def required(folder: Path, suffix: str, fix: str) -> list[Path]:
    """Returns the files of a folder as `listed` does. Raises `DataError` if there are none."""
    files = listed(folder, suffix)
    if not files:
        raise DataError(shown(folder), f"no {suffix} files", fix)
    return files


def nested(folder: Path, *suffixes: str) -> list[Path]:
    """Returns the files of a folder and its sub-folders; see `listed`."""
    places = (Path(place, name) for place, name in _walk(folder, suffixes))
    return unique(places, folder)


def images(folder: Path, *, nested: bool = False) -> list[Path]:
    """Returns the image files of a folder, or of its sub-folders too, by path, without hidden ones.

    Raises `DataError` for names that are not UTF-8.
    """
    found = sorted(Path(place, name) for place, name in _walk(folder, image_names.SUFFIXES, nested))
    for file in found:
        _require_text(file)
    return found


def pictures(folders: Iterable[Path], stems: set[str]) -> dict[str, Path]:
    """Returns the image files, by stem, of the first folder that has one of these stems."""
    for folder in filter(is_folder, folders):
        found = {file.stem: file for file in images(folder)}
        if found.keys() & stems:
            return found
    return {}


def unique(files: Iterable[Path], folder: Path) -> list[Path]:
    """Returns files by stem. Raises `DataError` for broken names and for two of the same stem."""
    by_stem: dict[Path, Path] = {}
    for file in files:
        _require_text(file)
        other = by_stem.setdefault(file.with_suffix(""), file)
        if other != file:
            names = few(sorted((other.name, file.name)))
            raise DataError(shown(folder), f"two files of the same stem: {names}", "remove one")
    return [by_stem[stem] for stem in sorted(by_stem, key=lambda stem: (stem.name, stem))]


def _require_text(file: Path) -> None:
    """Raises `DataError` for a name that is not UTF-8."""
    if shown(file.name) != file.name:
        raise DataError(shown(file), "a name that is not UTF-8", "rename the file")


def unread(folder: Path, *suffixes: str) -> tuple[Note, ...]:
    """Returns notes on files that `listed` leaves out: in sub-folders, and those whose names begin
    with a dot, except for the copies ``._name`` of macOS.
    """
    count = 0
    for place, _ in _walk(folder, suffixes):
        count += place != str(folder)
        if count == MOST_LOOKED_AT:
            break
    text = f"{suffixes[0]} files are in sub-folders of the folder and are not read"
    nested = Note("sub-folders-unread", text, count, shown(folder))
    return (*((nested,) if count else ()), *hidden(folder, suffixes[0], *suffixes))


def hidden(folder: Path, kind: str, *suffixes: str) -> tuple[Note, ...]:
    """Returns a note on the files of a folder whose names begin with a dot, except for the copies
    ``._name`` of macOS.
    """
    entries = _entries(folder)
    own = [each[1:] for each in entries if each[:1] == "." and each[1:2] not in ("", ".", "_")]
    names = sorted(f".{each}" for each in own if _fits(each, suffixes))
    text = f"{kind} files begin with a dot and are not read: {{names}}"
    note = Note("hidden-unread", text, len(names), shown(folder), listed_names(names))
    return (note,) if names else ()


def existing(files: Iterable[Path]) -> list[Path | None]:
    """Returns each file as it is on disk: its suffix may be in another case, its name in another
    Unicode form. None for missing files.
    """
    spellings: dict[Path, dict[str, Path]] = {}

    def find(file: Path) -> Path | None:
        if os.path.lexists(file):
            return file
        if (known := spellings.get(file.parent)) is None:
            names = sorted(_entries(file.parent))
            known = {_spelled(name): file.parent / name for name in names}
            spellings[file.parent] = known
        return known.get(_spelled(file.name))

    return [find(file) for file in files]


def there(files: Sequence[Path]) -> list[Path]:
    """Returns each file as it is on disk; see `existing`. Missing files are unchanged."""
    return [found or file for file, found in zip(files, existing(files), strict=True)]


def _spelled(name: str) -> str:
    import unicodedata  # only names that are not found as they are need it

    stem, suffix = os.path.splitext(unicodedata.normalize("NFC", name))
    return stem + suffix.lower()


def _fits(name: str, suffixes: tuple[str, ...]) -> bool:
    return name.lower().endswith(suffixes) and not name.startswith(".")


def _entries(folder: Path) -> Iterator[str]:
    """Yields the names in a folder, in no order; none without a folder."""
    try:
        if is_folder(folder):
            with os.scandir(folder) as entries:
                yield from (entry.name for entry in entries)
    except OSError as error:
        raise unreadable_folder(folder, error) from None


def _refuse(error: OSError) -> None:
    """Raises `DataError` unless there is no such folder."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise unreadable_folder(error.filename, error)


def _walk(
    folder: Path, suffixes: tuple[str, ...], nested: bool = True
) -> Iterator[tuple[str, str]]:
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if nested and not name.startswith("."))
        yield from ((place, name) for name in sorted(names) if _fits(name, suffixes))
