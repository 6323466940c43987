"""Names of images and classes in the files that `writers` writes, and the
ids and the order that images have when these files are read again.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.joining import image_names
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError, counted, few

Table = Truth | Detections

_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]|^\.")


def names_of_images(table: Table) -> list[str]:
    """Returns a name of each image: its stem, or its id if a stem is missing or repeated."""
    images = table.images
    if all(images.stems) and len(set(images.stems)) == len(images):
        return list(images.stems)
    return list(map(str, images.ids.tolist()))


def file_names(table: Table) -> list[str]:
    """Returns a file name of each image, whose stem is the image's; [] if a stem is missing."""
    images = table.images
    if not all(images.stems):
        return []
    files = images.files or images.stems
    return [
        file if file != stem and image_names.stem(file) == stem else f"{stem}.jpg"
        for file, stem in zip(files, images.stems, strict=True)
    ]


def class_names(table: Table, target: str) -> tuple[str, ...]:
    """Returns the class names. Raises `DataError` if they are not unique, or change when read."""
    names = table.categories.names
    twice = [name for name, n in Counter(names).items() if n > 1 or not name.strip()]
    if twice:
        what = f"class names that are empty or repeated: {few(map(repr, twice))}"
        raise DataError("convert", what, f"{target} knows classes by name: write coco")
    require_bare(names, "class", target)
    return names


def require_bare(names: Sequence[str], what: str, target: str) -> None:
    """Raises `DataError` for names with white space at an end, which readers of text remove."""
    bad = [repr(name) for name in dict.fromkeys(names) if name != name.strip()]
    if bad:
        text = f"{counted(len(bad), what)} with names that begin or end with white space, which "
        text += f"readers of {target} remove: {few(bad)}"
        raise DataError("convert", text, "rename them, or write coco")


def require_safe(names: Sequence[str], what: str, target: str, also: Sequence[str] = ()) -> None:
    """Raises `DataError` for names that cannot be names of files."""
    bad = [name for name in names if _UNSAFE.search(name) or any(part in name for part in also)]
    if bad:
        text = f"{counted(len(bad), what)} with names that {target} files cannot have: {few(bad)}"
        raise DataError("convert", text, "rename them, or write coco or csv")
    require_bare(names, what, target)


def new_ids(table: Table, target: str) -> NDArray[np.bool_]:
    """Returns (I,) bool, images whose id is another one in what is written."""
    ids = table.images.ids
    if target == "coco":
        return np.full(len(ids), ids.dtype.kind != "i")
    return np.asarray(ids.astype(str) != _ids_read(table, target).astype(str), dtype=bool)


def moved_images(table: Table, target: str) -> NDArray[np.bool_]:
    """Returns (I,) bool, images whose place in the order of images is another one when what is
    written is read again.
    """
    if target == "coco":  # ids that are no numbers are numbered in their order
        return np.zeros(len(table.images), dtype=bool)
    order = np.argsort(_ids_read(table, target), kind="stable")
    return np.asarray(order != np.arange(len(order)), dtype=bool)


def _ids_read(table: Table, target: str) -> NDArray[Any]:
    """Returns (I,) ids that images have when what is written is read again."""
    names = list(map(str, table.images.ids.tolist()))
    names = names if target == "csv" else names_of_images(table)
    numbers = None if target == "voc" else image_names.plain_numbers(names)
    return np.array(names, dtype=str) if numbers is None else numbers


def rows_move(table: Detections) -> bool:
    """Checks if rows are in another order when they are read from one file per image, by name: VOC
    ranks equal scores by rows.
    """
    place = np.argsort(np.argsort(np.array(names_of_images(table), dtype=str)))
    return bool((np.diff(place[table.image]) < 0).any())


def tied_between_images(table: Detections) -> NDArray[np.bool_]:
    """Returns (n,) bool, detections whose score another image has in the same class."""
    order = np.lexsort((table.image, table.score, table.label))
    image, score, label = table.image[order], table.score[order], table.label[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (score[1:] != score[:-1]) | (label[1:] != label[:-1])
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(order))
    several = image[starts] != image[ends - 1]  # rows of a run ascend by image
    found = np.empty(len(order), dtype=bool)
    found[order] = np.repeat(several, ends - starts)
    return found
