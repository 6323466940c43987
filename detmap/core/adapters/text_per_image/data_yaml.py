"""Finds the images, label files and class names of a YOLO split.

Source: Ultralytics' check_det_dataset and img2label_paths (ultralytics/data/utils.py), and
BaseDataset.get_img_files (ultralytics/data/base.py).
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.joining import image_sizes as sizes
from detmap.core.adapters.text_per_image import label_files, plain_yaml
from detmap.core.base.open_files import shown
from detmap.core.tables import Note
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, counted, few

SUFFIXES = (".yaml", ".yml")
NAMES_FILES = ("classes.txt", "_darknet.labels", "obj.names")
LISTS = ("train.txt", "valid.txt", "val.txt", "test.txt")
SPLITS = ("val", "validation", "valid", "test")  # the default is the first that is there
MOST_CLASSES = 100_000
MOST_FOLDERS = 3  # of label files that an error lists
NULL = ("", "~", "null", "Null", "NULL")
IMAGES, LABELS = f"{os.sep}images{os.sep}", f"{os.sep}labels{os.sep}"


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A split.

    Parameters
    ----------
    images : image files; only their sizes are read
    labels : the label file of each; it may be missing
    names : class names, whose ids count from 0; None if unknown
    keypoints : number of keypoints, and numbers per point; None if there are none
    name : "val", "" if there is one split
    notes : warnings
    """

    images: list[Path]
    labels: list[Path]
    names: tuple[str, ...] | None
    keypoints: tuple[int, int] | None = None
    name: str = ""
    notes: list[Note] = field(default_factory=list)


def find(path: Path, split: str | None, image_sizes: Path | None) -> Split:
    """Finds the split of a data.yaml, a folder with one, or a folder of labels.

    Raises `DataError` for a missing split, missing images and invalid YAML.
    """
    if path.is_dir():
        inside = _yaml_in(path)
        if inside is None:
            return _from_labels(path, split, image_sizes)
        path = inside
    given = {key: value for key, value in plain_yaml.load(path).items() if value not in NULL}
    names = _names(path, given)
    chosen = split or next((name for name in SPLITS if given.get(name)), None)
    if not chosen or not given.get(chosen):
        there = [name for name in ("train", *SPLITS) if given.get(name)]
        what = f"no split {split!r}" if split else "neither val nor test"
        raise DataError(shown(path), what, f"choose a split: {', '.join(there) or 'none'}")
    entries = given[chosen] if isinstance(given[chosen], list) else [given[chosen]]
    if not all(isinstance(entry, str) and "\0" not in entry for entry in entries):
        raise DataError(
            f"{shown(path)}: {chosen}", f"{given[chosen]!r:.80}", "write a path, or a list of paths"
        )
    root, notes = _root(path, given.get("path"), entries)
    images: list[Path] = []
    for entry in entries:
        images += _images(path, root, entry, image_sizes)
        if (place := _resolved(root, entry)).is_dir():
            notes += folder_files.hidden(place, "image", *image_names.SUFFIXES)
    images = sorted(dict.fromkeys(images))
    if not images:
        raise DataError(f"{shown(path)}: {chosen}", f"no image in {few(entries)}", "check the path")
    labels = list(map(label_of, images))
    return Split(images, labels, names, _keypoints(path, given), chosen, notes)


def label_of(image: Path) -> Path:
    """Returns the label file of an image: the last folder ``images`` becomes ``labels``."""
    return Path(LABELS.join(str(image.with_suffix(".txt")).rsplit(IMAGES, 1)))


# --- data.yaml ------------------------------------------------------------------------------------


def _yaml_in(folder: Path) -> Path | None:
    """Returns the data.yaml of a folder, or its only YAML file."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    named = [file for file in files if file.stem in ("data", "dataset")]
    chosen = named or files
    if len(chosen) > 1:
        names = few(file.name for file in chosen)
        raise DataError(shown(folder), f"holds {names}", "give the file that describes the data")
    return chosen[0] if chosen else None


def _names(path: Path, data: dict[str, Any]) -> tuple[str, ...]:
    """Returns class names from a list, from a dict by class, or from nc."""
    names, nc = data.get("names"), _whole(data.get("nc"))
    where = f"{shown(path)}: names"
    if "nc" in data and not 1 <= (nc or 0) <= MOST_CLASSES:
        what = f"{text_fields.short(str(data['nc']))}"
        raise DataError(f"{shown(path)}: nc", what, "write the number of classes")
    if names is None and nc is not None:
        return tuple(f"class_{i}" for i in range(nc))
    if isinstance(names, dict):
        keys = [-1 if (number := _whole(key)) is None else number for key in names]
        if sorted(keys) != list(range(len(names))):
            what = f"classes {few(map(repr, names))}"
            raise DataError(where, what, "number the classes 0, 1, 2, ... without a gap")
        listed = [names[key] for _, key in sorted(zip(keys, names, strict=True))]
    elif isinstance(names, list):
        listed = names
    else:
        raise DataError(
            where,
            "missing" if names is None else text_fields.short(names),
            "give a list of class names",
        )
    if not all(isinstance(name, str) and name.strip() for name in listed):
        raise DataError(where, "a name that is not text", "write one name per class")
    if not listed or len(listed) > MOST_CLASSES or (nc is not None and nc != len(listed)):
        raise DataError(where, f"{len(listed)} names, nc is {nc}", "give one name per class")
    return tuple(listed)


def _whole(value: Any) -> int | None:
    """Returns a whole number of few digits from its text, else None."""
    is_one = isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value) is not None
    return int(value) if is_one else None


def _keypoints(path: Path, data: dict[str, Any]) -> tuple[int, int] | None:
    shape = data.get("kpt_shape")
    if shape is None:
        return None
    n, values = map(_whole, shape) if isinstance(shape, list) and len(shape) == 2 else (None, None)
    if n is None or not 1 <= n <= 10_000 or values not in (2, 3):
        raise DataError(f"{shown(path)}: kpt_shape", f"{shape!r:.60}", "write it as [17, 3]")
    return n, values


def _root(path: Path, given: Any, entries: list[str]) -> tuple[Path, list[Note]]:
    """Returns the base folder of paths in data.yaml, and a note if it is not the given one."""
    beside = path.absolute().parent
    if given is None or given == "":
        return beside, []
    if not isinstance(given, str) or "\0" in given:
        raise DataError(f"{shown(path)}: path", f"{given!r:.60}", "write the path of a folder")
    tried = [beside / given, Path.cwd() / given, beside.parent / given]
    for folder in tried:
        if folder.is_dir() and any(_resolved(folder, entry).exists() for entry in entries):
            return folder, []
    if any(_resolved(beside, entry).exists() for entry in entries):
        text = f"path of data.yaml ({given}) does not exist: its own folder is used"
        return beside, [Note("path-moved", text, 1, shown(path), adding="once")]
    return next((folder for folder in tried if folder.is_dir()), beside), []


def _resolved(root: Path, entry: str) -> Path:
    """Resolves an entry under a root; Roboflow writes one ``../`` too many."""
    place = root / entry
    if not place.exists() and entry.startswith("../") and (root / entry[3:]).exists():
        return root / entry[3:]
    return place


def has_labels(folder: Path) -> bool:
    """Checks for text files that are neither class names nor lists of images."""
    return any(name not in (*NAMES_FILES, *LISTS) for name in folder_files.names(folder, ".txt"))


def _images(path: Path, root: Path, entry: str, image_sizes: Path | None) -> list[Path]:
    """Returns the images of an entry: a folder, or a list file."""
    place = Path(os.path.normpath(_resolved(root, entry).absolute()))
    if place.is_dir():
        images = folder_files.images(place, nested=True)
        if images or image_sizes is None:
            return images
    if place.is_file():
        return folder_files.there([_listed(place, root, name) for name in image_paths(place)])
    labels = Path(LABELS.join(f"{place}{os.sep}".rsplit(IMAGES, 1)))
    if image_sizes is not None and labels.is_dir() and labels != place:
        return [place / name for name in _sized(image_sizes)]
    raise DataError(
        f"{shown(path)}: {entry}",
        f"no folder or list of images at {shown(place)}",
        "fix path and the split in it"
        + (", or give the image sizes: --image-sizes FILE" if labels.is_dir() else ""),
    )


def _paths_in(file: Path) -> list[str]:
    lines = [line.strip() for line in text_fields.decoded(file).splitlines()]
    if any("\0" in line for line in lines):
        raise DataError(shown(file), "not a list of images", "write one path per line")
    return [line for line in lines if line]


def image_paths(file: Path) -> list[str]:
    """Returns the paths in a list file. Its content is not shown in errors."""
    names = _paths_in(file)
    if not all(map(image_names.is_image, names)):
        what = "not a list of images: a line that is not an image path"
        raise DataError(shown(file), what, "write one path of an image (.jpg, .png, ...) per line")
    return names


def _listed(file: Path, root: Path, name: str) -> Path:
    """Returns a listed image: beside the list, in the data set's folder, or in the working
    directory.
    """
    entry = name.removeprefix("./")
    places = [file.parent / entry, root / entry, Path.cwd() / entry]
    chosen = next((place for place in places if place.exists()), places[0])
    return Path(os.path.normpath(chosen.absolute()))


def _sized(image_sizes: Path) -> list[str]:
    """Returns the images of a size file, by file name."""
    names = sizes.listed(image_sizes)
    last = [name.replace("\\", "/").rsplit("/", 1)[-1] for name in names]
    return [name if image_names.is_image(name) else f"{name}.jpg" for name in last]


# --- a folder of labels ---------------------------------------------------------------------------


def _from_labels(path: Path, split: str | None, image_sizes: Path | None) -> Split:
    """Reads a folder of label files; images are in the sibling folder ``images`` or with the
    labels.
    """
    folder = path.absolute()
    if not has_labels(folder) and (folder / "labels").is_dir():
        folder = folder / "labels"
    inner = sorted(each.name for each in folder.iterdir() if each.is_dir())
    if split or (not has_labels(folder) and inner):
        chosen = split or next((name for name in SPLITS if name in inner), "")
        if chosen not in inner:
            raise DataError(
                shown(folder),
                f"no folder {chosen}" if chosen else "no label files",
                f"choose a split: {few(inner) or 'none'}",
            )
        folder = folder / chosen
    files = [file for file in label_files.listed(folder) if file.name not in NAMES_FILES]
    stems = {file.stem for file in files}
    beside = Path(IMAGES.join(f"{folder}{os.sep}".rsplit(LABELS, 1)))
    images = folder_files.images(beside, nested=True)
    real = bool(images)
    if image_sizes is not None and not real:
        names = _sized(image_sizes)
        there = sorted(stems)
        renamed = image_names.matches_before_upload(there, set(map(image_names.stem, names)))
        names = [
            f"{there[renamed[stem]]}.jpg" if (stem := image_names.stem(name)) in renamed else name
            for name in names
        ]
        images = [folder / name for name in dict.fromkeys(names)]
        images += [folder / f"{stem}.jpg" for stem in stems - {image.stem for image in images}]
    if not images:
        raise DataError(
            shown(path),
            f"no images in {shown(beside)}, so their sizes are unknown",
            "give the data.yaml, or the sizes: --image-sizes FILE (columns image, width, height)",
        )
    lost = stems - {image.stem for image in images}
    notes = []
    if lost:
        text = "label files without an image are ignored: {names}"
        without = listed_names(lost)
        notes.append(Note("label-without-image", text, len(lost), shown(path), without))
    root = beside if real else folder
    labels = [folder / image.relative_to(root).with_suffix(".txt") for image in images]
    return Split(images, labels, _names_beside(folder), name=split or "", notes=notes)


def _names_beside(folder: Path) -> tuple[str, ...] | None:
    """Returns the class names of a list in the labels' folder or its parents."""
    files = (place / name for place in (folder, *folder.parents[:2]) for name in NAMES_FILES)
    file = next(filter(Path.is_file, files), None)
    return None if file is None else names_in(file)


def label_folders(root: Path) -> list[str]:
    """Returns what a data set has of label files: folders, how many and such as which."""
    found = []
    for parent, folders, names in os.walk(root):
        folders.sort()
        labels = sorted(n for n in names if n.lower().endswith(".txt") and n not in NAMES_FILES)
        if labels and Path(parent).name != "images":
            found.append(f"{shown(Path(parent))} has {counted(len(labels), 'file')} ({labels[0]})")
        if len(found) > MOST_FOLDERS:
            break
    return found


def names_in(file: Path) -> tuple[str, ...]:
    """Reads class names, one per line. Raises `DataError` if there are none."""
    names = tuple(_paths_in(file))
    if not names or len(names) > MOST_CLASSES:
        raise DataError(shown(file), f"{len(names)} class names", "write one per line")
    return names
