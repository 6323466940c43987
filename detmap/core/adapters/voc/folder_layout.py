"""Finds VOC annotations in a folder, and their images.

- the devkit: ``Annotations`` and lists in ``ImageSets/Main``; ``test`` if present, else ``val``,
  else the only list (CVAT writes ``default``); without lists every annotation
- ``Annotations`` of such a folder, which is read as its parent
- a folder of XML, beside the images or not (LabelImg): every annotation
- ``train``, ``valid`` and ``test``, folders of XML beside the images (Roboflow)

Notes report automatic choices.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from detmap.core.adapters import folder_files, text_fields
from detmap.core.base.open_files import shown
from detmap.core.tables import Note
from detmap.errors import DataError

SPLITS = ("test", "val", "valid", "train")
"""Folders that Roboflow makes, in the order in which one is chosen."""
XML, LIST = ".xml", ".txt"
PICTURES = ("JPEGImages", "images")  # of the devkit, of Label Studio
_QUOTED, _FLAGGED = re.compile(r'"([^"]*)"'), re.compile(r"(.*?)[ \t]+(?:-1|0|1)")
LONGEST = 255  # bytes of a file name


@dataclass(frozen=True, slots=True)
class Layout:
    """The images of a split and their annotation files.

    Parameters
    ----------
    root : the folder, for messages
    split : its name; "" if there are no lists
    stems : of the images, ascending
    files : the annotation file of each; None for an image without objects
    classes : classes that have lists
    notes : what was chosen
    """

    root: Path
    split: str
    stems: list[str]
    files: list[Path | None]
    classes: set[str]
    notes: tuple[Note, ...] = ()


def looks(path: Path) -> int:
    """Scores how well a folder looks like VOC annotations: 1 a folder, 2 it holds XML in the
    expected place.
    """
    devkit = any((folder / "Annotations").is_dir() for folder in (path, *path.glob("VOC*")))
    return 1 + (devkit or folder_files.has(path, XML) or bool(_split_folders(path)))


def find(path: Path, split: str | None) -> Layout:
    """Returns the layout of a folder and the requested split.

    Raises `DataError` if annotations or the split are missing, or the choice is ambiguous.
    """
    if path.name == "Annotations" and _lists(path.parent):
        layout = _listed(path.parent, split)
        text = "folder Annotations was given: its parent folder and the lists there are used"
        note = Note("folder-above", text, 1, shown(path), adding="once")
        return replace(layout, notes=(*layout.notes, note))
    devkit = any((folder / "Annotations").is_dir() for folder in (path, *path.iterdir()))
    if devkit:
        root = folder_with(path, "Annotations")
        if _lists(root) or split is not None:
            return _listed(root, split)
        return _every(root, root / "Annotations", "")
    if folder_files.has(path, XML):
        if split is not None:
            what = f"split {split!r} given for a folder of XML files without lists"
            raise DataError(shown(path), what, "leave it out, or give the folder of the split")
        return _every(path, path, "")
    folders = _split_folders(path)
    if not folders:
        for inner in ("ground-truth", "groundtruths"):  # Cartucho's, rafaelpadilla's
            if (path / inner).is_dir():
                folder_with(path, "Annotations", f"name {shown(path / inner)}")
        folder_with(path, "Annotations")
    if split is None:
        split = next((name for name in SPLITS[:3] if name in folders), None)
        split = next(iter(folders)) if split is None and len(folders) == 1 else split
    named = {"val": "valid", "valid": "val"}.get(split or "", split)
    chosen = split if split in folders else named
    if chosen not in folders:
        what = f"no folder {split}" if split else "neither test nor valid"
        raise DataError(shown(path), what, f"choose a split: {', '.join(folders)}")
    return _every(path, path / str(chosen), str(chosen))


def _every(root: Path, folder: Path, split: str) -> Layout:
    """Uses every annotation file of a folder, including subfolders."""
    files = folder_files.nested(folder, XML)
    if not files:
        raise DataError(shown(folder), "no XML file", "give the folder that holds the annotations")
    of = {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
    text = "annotation files are used, all in the folder: it has no list of images"
    notes = [Note("images-unlisted", text, len(of), shown(folder))]
    places = (root / name for name in PICTURES)
    pictures = next((place for place in places if place.is_dir()), folder)
    images = {
        file.relative_to(pictures).with_suffix("").as_posix()
        for file in folder_files.images(pictures, nested=True)
    }
    bare = images - of.keys()
    if bare:
        text = "images have no annotation file: images without objects"
        notes.append(Note("images-unannotated", text, len(bare), shown(pictures)))
    stems = sorted(of.keys() | bare)
    return Layout(root, split, stems, [of.get(stem) for stem in stems], set(), tuple(notes))


def _listed(root: Path, split: str | None) -> Layout:
    """Uses the images of a list in ``ImageSets/Main``."""
    lists = _lists(root)
    notes: tuple[Note, ...] = ()
    if split is None:
        split = next((name for name in ("test", "val") if name in lists), None)
        if split is None and len(lists) == 1:
            split = lists[0]
            text = f"list of images, {split}, is the only one and is used"
            notes = (Note("split-only", text, 1, shown(root), adding="once"),)
    if split is None:
        raise DataError(
            str(root / "ImageSets" / "Main"),
            "neither test.txt nor val.txt",
            f"choose a split: {', '.join(lists) or 'no lists at all'}",
        )
    stems = _stems(root, split, lists)
    named = [root / "Annotations" / f"{stem}.xml" for stem in stems]
    files = folder_files.existing(named)
    missing = files.count(None)
    if missing == len(files):
        raise DataError(
            shown(named[0]),
            f"missing, as are the files of all {len(files)} images in the list of the split",
            f"give the folder whose Annotations belong to the list {split}",
        )
    if missing:
        text = f"images in the list {split} have no annotation file: images without objects"
        notes = (*notes, Note("images-unannotated", text, missing, shown(root)))
    return Layout(root, split, stems, files, _listed_classes(root, split), notes)


def _split_folders(path: Path) -> list[str]:
    """Returns folders of splits that hold XML."""
    return [name for name in SPLITS if folder_files.has(path / name, XML)]


def folder_with(
    path: Path, content: str, fix: str = "name a VOC folder such as VOCdevkit/VOC2007"
) -> Path:
    """Returns the folder that holds `content`: the given one, or the only year inside a VOCdevkit
    folder.
    """
    if (path / content).is_dir():
        return path
    years = sorted(inner for inner in path.iterdir() if (inner / content).is_dir())
    if len(years) == 1:
        return years[0]
    if years:
        raise DataError(
            str(path),
            f"holds {len(years)} data sets: {', '.join(inner.name for inner in years)}",
            f"name one, such as {years[0]}",
        )
    raise DataError(str(path), f"no folder {content}", fix)


def _lists(root: Path) -> list[str]:
    """Returns the image lists; with an underscore only if there is no other."""
    files = folder_files.names(root / "ImageSets" / "Main", LIST)
    names = sorted(name[: -len(LIST)] for name in files)
    splits = [name for name in names if "_" not in name]
    return splits or (names if len(names) == 1 else [])


def _stems(root: Path, split: str, lists: list[str]) -> list[str]:
    """Returns the split's image stems, ascending."""
    named = root / "ImageSets" / "Main" / f"{split}{LIST}"
    (file,) = folder_files.existing([named])
    if file is None:
        fix = f"there are {', '.join(lists) or 'no lists at all'}"
        raise DataError(str(named), "no such split", fix)
    line_of: dict[str, int] = {}
    for line, name in _named(file, root / "Annotations"):
        if not _is_inside(name):
            raise DataError(
                f"{file}: line {line}",
                f"image {name!r} is not the name of a file in Annotations",
                "name images by file stem, such as 000001",
            )
        if name in line_of:
            raise DataError(
                f"{file}: line {line}",
                f"image {name} is listed twice, first in line {line_of[name]}",
                "list every image once",
            )
        line_of[name] = line
    if not line_of:
        raise DataError(str(file), "lists no image", "a split has one file stem per line")
    return sorted(line_of)


def _named(file: Path, folder: Path) -> Iterator[tuple[int, str]]:
    """Yields number and image of each line: all of it, or what is quoted (CVAT).

    A list of a class has a flag 1, 0 or -1 after the name. A file with such a name comes first.
    """
    texts = [each.strip(text_fields.SPACE) for each in text_fields.split(text_fields.decoded(file))]
    flagged = [match[1] if (match := _FLAGGED.fullmatch(text)) else text for text in texts]
    odd = [text for text, name in zip(texts, flagged, strict=True) if text != name]
    there = folder_files.existing(folder / f"{text}{XML}" for text in odd)
    whole = {text for text, found in zip(odd, there, strict=True) if found}
    for line, (text, name) in enumerate(zip(texts, flagged, strict=True), start=1):
        quoted = _QUOTED.match(text)
        if text:
            yield line, quoted[1] if quoted else text if text in whole else name


def _is_inside(stem: str) -> bool:
    """Checks that a stem names a file in its folder or below, on every system."""
    paths = PurePosixPath(stem), PureWindowsPath(stem)
    named = all(not path.anchor and ".." not in path.parts for path in paths)
    named = named and max(map(len, stem.encode().split(b"/"))) <= LONGEST
    return named and all(character >= " " and character != "\x7f" for character in stem)


def _listed_classes(root: Path, split: str) -> set[str]:
    ending = f"_{split}{LIST}"
    files = folder_files.listed(root / "ImageSets" / "Main", ending.lower())
    return {readable(file).name[: -len(ending)] for file in files}


def readable(file: Path) -> Path:
    """Checks the encoding of a file name that holds a class name."""
    if shown(file.name) != file.name:
        raise DataError(shown(file), "a class name that is not UTF-8", "rename the file")
    return file


def year_of(root: Path, folder: str) -> int:
    """Returns the year in the folder's name, or in the annotations' folder field; 0 if unknown."""
    for name in (root.absolute().name, root.resolve().name, folder):
        match = re.fullmatch(r"VOC([0-9]{4})", name)
        if match:
            return int(match.group(1))
    return 0
