"""Selects images and classes in both tables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base import arguments
from detmap.core.tables import Categories, Detections, Scope, Truth
from detmap.core.tables.grouping import positions
from detmap.core.tables.join_keys import KEYS, Column, choose
from detmap.errors import DataError, few


def part(
    truth: Truth,
    detections: Detections,
    images: ArrayLike | None,
    classes: Sequence[str | int] | None,
) -> tuple[Truth, Detections]:
    """Restricts both tables to images (ids) and classes (names or ids); None selects all."""
    if classes is not None:
        places = places_of(truth.categories, classes)
        truth, detections = select_classes(truth, detections, places)
    return (truth, detections) if images is None else select_images(truth, detections, images)


def select_images(
    truth: Truth, detections: Detections, image_ids: ArrayLike
) -> tuple[Truth, Detections]:
    """Selects images by id. Raises `DataError` for unknown ids."""
    places = image_places(truth, image_ids)
    return truth.select_images(places), detections.select_images(places)


def image_places(truth: Truth, image_ids: ArrayLike) -> NDArray[np.int32]:
    """Returns ascending positions of images, by id. Raises `DataError` for unknown ids."""
    wanted = np.unique(arguments.ids("images", image_ids))
    known = truth.images.ids
    if len(wanted) and wanted.dtype.kind != known.dtype.kind:
        what = f"{wanted[0].item()!r}, where the ground truth has {known[0].item()!r}"
        raise DataError("images", what, "give ids of the ground truth")
    places = positions(known, wanted)
    if (places < 0).any():
        strange = few(wanted[places < 0].tolist())
        raise DataError("images", f"no images {strange}", "give ids of the ground truth")
    return places


def places_of(
    categories: Categories, classes: Sequence[str | int], key: str | None = None
) -> NDArray[np.int64]:
    """Returns ascending positions of classes, by name or id. Numbers are ids; texts are all names,
    or all ids.

    Parameters
    ----------
    key : "id" or "name", if texts may be both; default: it is an error

    Raises `DataError` for unknown classes, texts of two meanings, and for anything but a list.
    """
    if (
        isinstance(classes, str | bytes)
        or not isinstance(classes, Sequence | np.ndarray)
        or (isinstance(classes, np.ndarray) and classes.ndim != 1)
    ):
        raise DataError(
            "classes", f"{classes!r} is not a list", 'give names or ids: ["person", "dog"]'
        )
    if key is not None and key not in KEYS:
        raise DataError("class_key", f"{key!r:.60}", f"say {' or '.join(KEYS)}")
    texts = list(dict.fromkeys(each for each in classes if isinstance(each, str)))
    by_id = np.array(
        [_place(categories, int(each)) if _is_id(each) else -1 for each in texts], np.int64
    )
    by_name = np.array([_place(categories, each) for each in texts], np.int64)
    column = Column("class", "classes", lambda i: _described(categories, i), key)
    chosen, doubt = choose(column, texts, by_id, by_name)
    if doubt is not None:
        raise doubt
    ids = chosen == "id" and bool((by_id >= 0).any())
    places = [
        categories.index(int(each) if ids and isinstance(each, str) and _is_id(each) else each)
        for each in classes
    ]
    return np.unique(np.array(places, dtype=np.int64))


def _place(categories: Categories, name_or_id: str | int) -> int:
    """Returns the position of a class, -1 if there is none."""
    try:
        return categories.index(name_or_id)
    except DataError:
        return -1


def _described(categories: Categories, place: int) -> str:
    return f"class {int(categories.ids[place])} ({categories.names[place]})"


def _is_id(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 18


def select_classes(
    truth: Truth, detections: Detections, classes: NDArray[np.int64]
) -> tuple[Truth, Detections]:
    """Selects classes by ascending positions, as if the others did not exist."""
    place = np.full(len(truth.categories), -1, dtype=np.int32)
    place[classes] = np.arange(len(classes), dtype=np.int32)
    categories, scope = truth.categories.take(classes), truth.scope
    if scope is not None:
        kept = place[scope.label] >= 0
        total = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        scope = Scope(total[scope.off], place[scope.label[kept]], scope.kind[kept])
    objects = np.flatnonzero(place[truth.label] >= 0)
    rows = np.flatnonzero(place[detections.label] >= 0)
    some, theirs = truth.take(objects), detections.take(rows)
    return (
        replace(some, categories=categories, label=place[some.label], scope=scope),
        replace(theirs, categories=categories, label=place[theirs.label]),
    )
