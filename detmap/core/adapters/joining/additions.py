"""Adds images and classes that only detections name, without objects: ``scope.unknown``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.joining import image_names
from detmap.core.tables import Categories, Images, Note
from detmap.core.tables.extension import with_classes, with_images
from detmap.core.tables.grouping import positions
from detmap.core.tables.notes import listed_names

Rows = NDArray[np.int32]
Names = Sequence[Any] | NDArray[Any]


def add_images(
    images: Images, image: Rows, names: Names, source: str
) -> tuple[Images, Rows, tuple[Note, ...]]:
    """Returns the images, the position of each row's image, and a note.

    Parameters
    ----------
    image : (n,) positions, -1 for unknown images
    names : of the n rows' images; names that cannot be ids of the ground truth remain unknown
    """
    lost = np.flatnonzero(image < 0).tolist()
    named = [image_names.stem(str(names[i])) for i in lost]
    listed = list(dict.fromkeys(named))
    whole = images.ids.dtype.kind == "i"
    ids: Any = image_names.plain_numbers(listed) if whole else listed
    if not listed or ids is None:
        return images, image, ()
    every = with_images(images, ids)
    place = dict(zip(listed, positions(every.ids, np.array(ids)).tolist(), strict=True))
    moved = positions(every.ids, images.ids)[image].astype(np.int32)
    moved[lost] = [place[name] for name in named]
    return every, moved, (_note("image", "images", listed, source),)


def add_classes(
    categories: Categories, label: Rows, names: Names, source: str
) -> tuple[Categories, Rows, tuple[Note, ...]]:
    """Does the same for classes; those without a name remain unknown."""
    lost = np.flatnonzero(label < 0).tolist()
    named = [names[i] for i in lost]
    if not named or not all(isinstance(each, str) for each in named):
        return categories, label, ()
    listed = list(dict.fromkeys(named))
    place = {name: i for i, name in enumerate(listed, start=len(categories))}
    added = label.copy()
    added[lost] = [place[name] for name in named]
    return with_classes(categories, listed), added, (_note("class", "classes", listed, source),)


def _note(kind: str, plural: str, names: Sequence[str], source: str) -> Note:
    text = f"{plural} that only the detections name were added without objects: {{names}}"
    return Note(f"{kind}-added", text, len(names), source, listed_names(names), adding="names")
