"""Finds the split of a Darknet data set: ``obj.data``, ``obj.names`` and lists of images.

CVAT exports it as "YOLO 1.1". Paths in the lists were those on another machine: if a folder does
not exist, its leading parts are left out (``data/obj_train_data/x.jpg`` is
``obj_train_data/x.jpg`` beside ``obj.data``). The label file is beside the image, or in ``labels``
where the path has ``images`` or ``JPEGImages``.

Source: AlexeyAB/darknet, src/option_list.c and replace_image_to_label in src/utils.c.
"""

import re
from pathlib import Path

from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.text_per_image import data_yaml
from detmap.core.adapters.text_per_image.data_yaml import Split
from detmap.core.base.open_files import shown
from detmap.core.tables import Note
from detmap.errors import DataError, few

DATA, NAMES, SUFFIX = "obj.data", "obj.names", ".data"
SYNONYMS = {"val": "valid", "validation": "valid"}


def is_root(path: Path) -> bool:
    """Checks for a data file, or a folder with one or with names and a list."""
    if not path.is_dir():
        return path.suffix.lower() == SUFFIX
    has_list = any((path / name).is_file() for name in data_yaml.LISTS)
    return (path / DATA).is_file() or (has_list and (path / NAMES).is_file())


def find(path: Path, split: str | None, image_sizes: Path | None) -> Split:
    """Returns the split of a data file, or of a folder with one.

    Raises `DataError` for invalid data files, missing splits and missing images.
    """
    root = path if path.is_dir() else path.absolute().parent
    file = path / DATA if path.is_dir() else path
    keys = _keys(file) if file.is_file() else {}
    lists = {SYNONYMS.get(key, key): value for key, value in keys.items() if key not in _OTHERS}
    if not file.is_file():
        there = [name for name in data_yaml.LISTS if (root / name).is_file()]
        lists = {SYNONYMS.get(name[:-4], name[:-4]): name for name in there}
    chosen = SYNONYMS.get(split or "", split) or next(
        (name for name in ("valid", "test", "train") if name in lists), ""
    )
    if chosen not in lists:
        what = f"no split {split!r}" if split else "no list of images"
        raise DataError(shown(file), what, f"the splits are: {few(lists) or 'none'}")
    place = _found(root, lists[chosen])
    names_file = _found(root, keys.get("names", NAMES))
    names = data_yaml.names_in(names_file)
    if keys.get("classes", str(len(names))) != str(len(names)):
        what = f"{keys['classes']}, but {shown(names_file)} has {len(names)} names"
        raise DataError(f"{shown(file)}: classes", what, "give one name per class")
    images = [_found(root, entry) for entry in data_yaml.image_paths(place)]
    images = sorted(dict.fromkeys(folder_files.there(images)))
    if not images:
        raise DataError(shown(place), "lists no image", "give one path per line")
    if image_sizes is None and not any(image.is_file() for image in images):
        what = f"no image of the list is there, such as {shown(images[0])}: sizes are unknown"
        fix = "give them: --image-sizes FILE (columns image, width, height)"
        raise DataError(shown(place), what, fix)
    text = f"list of images, {chosen}, is the only one and is used"
    note = Note("split-only", text, 1, shown(path), adding="once")
    notes = [note] if split is None and chosen == "train" else []
    return Split(images, _labels_of(images), names, name=chosen, notes=notes)


_OTHERS = ("classes", "names", "backup", "eval", "results", "top", "map", "labels", "tree")


def _keys(file: Path) -> dict[str, str]:
    """Returns the lines ``key = value`` of a data file."""
    keys: dict[str, str] = {}
    for number, line in enumerate(text_fields.LINE_END.split(text_fields.decoded(file)), 1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        key, equals, value = (part.strip() for part in words.partition("="))
        if not equals or not key or "\0" in words:
            what = f"{text_fields.short(words)} is not key = value"
            raise DataError(f"{shown(file)}: line {number}", what, "write classes, train and names")
        keys[key.lower()] = value
    return keys


def _found(root: Path, entry: str) -> Path:
    """Returns the place of a path: as written from `root`, else below it without leading parts."""
    parts = [part for part in re.split(r"[/\\]", entry) if part not in ("", ".", "..")]
    if (root / entry).parent.is_dir() and (root / entry).exists():
        return root / entry
    tails = [root.joinpath(*parts[i:]) for i in range(len(parts))]
    return next((place for place in tails if place.parent.is_dir()), root / entry)


def _labels_of(images: list[Path]) -> list[Path]:
    """Returns the label file of each image: in a folder of labels, else beside the image."""
    beside = [image.with_suffix(".txt") for image in images]
    ways = (
        folder_files.existing(map(data_yaml.label_of, images)),
        folder_files.existing(Path(str(each).replace("JPEGImages", "labels")) for each in beside),
    )
    return [one or two or other for one, two, other in zip(*ways, beside, strict=True)]
