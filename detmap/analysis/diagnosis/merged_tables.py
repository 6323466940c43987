"""Merges diagnoses of disjoint sets of images, and their tables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import OF_DETECTIONS, OF_OBJECTS, Diagnosis
from detmap.core.overlaps import KINDS
from detmap.core.tables import Detections, Images, Scope, Shapes, Truth
from detmap.errors import MergeError

Table = TypeVar("Table", Truth, Detections)


def merge(parts: Sequence[Diagnosis]) -> Diagnosis:
    """Merges diagnoses of disjoint sets of images; rows are by image, in the order of image ids.

    Raises
    ------
    MergeError : parts that share an image, or were made by other rules or of other classes
    """
    if not parts:
        raise MergeError("merge", "nothing to merge", "give at least one diagnosis")
    first = parts[0]
    for part in parts[1:]:
        rules = (part.protocol, part.iou, part.background, part.truth.categories)
        if rules != (first.protocol, first.iou, first.background, first.truth.categories):
            raise MergeError("merge", "diagnoses of other rules or classes", "diagnose alike")
    truth, obj_order = concatenated([part.truth for part in parts])
    detections, order = concatenated([part.detections for part in parts])
    columns: dict[str, Any] = {}
    for names, rows in ((OF_DETECTIONS, order), (OF_OBJECTS, obj_order)):
        for name in names:
            columns[name] = np.concatenate([getattr(part, name) for part in parts])[rows]
    for name in ("same_object", "other_object", "took"):
        columns[name] = _renumbered(parts, name, [len(p.truth) for p in parts], obj_order)[order]
    sizes = [len(part.detections) for part in parts]
    columns["by"] = _renumbered(parts, "by", sizes, order)[obj_order]
    columns["tide_tables"] = _tide_tables(parts)
    return Diagnosis(truth, detections, first.protocol, first.iou, first.background, **columns)


def _tide_tables(parts: Sequence[Diagnosis]) -> tuple[Truth, Detections] | None:
    """The tables of TIDE's protocol; None if no part has tables of its own for it."""
    if all(part.tide_tables is None for part in parts):
        return None
    tables = [part.tide_tables or (part.truth, part.detections) for part in parts]
    return concatenated([each[0] for each in tables])[0], concatenated(
        [each[1] for each in tables]
    )[0]


def _renumbered(
    parts: Sequence[Diagnosis], name: str, sizes: list[int], order: NDArray[np.int64]
) -> NDArray[np.int32]:
    """A column of row numbers after the concatenated rows were sorted; -1 is unchanged."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    begins = np.cumsum([0, *sizes])
    columns = []
    for part, begin in zip(parts, begins, strict=False):
        column = getattr(part, name).copy()
        column[column >= 0] = place[column[column >= 0] + begin]
        columns.append(column)
    return np.concatenate(columns)


def concatenated(parts: Sequence[Table]) -> tuple[Table, NDArray[np.int64]]:
    """One table, and its rows in terms of the parts' rows one after the other: by image, in the
    order of the images' ids, and as given within an image.

    Raises
    ------
    MergeError : parts that share an image, or tables of different kinds
    """
    first = parts[0]
    if len({part.box_format for part in parts}) > 1:
        raise MergeError("merge", "boxes in different conventions", "read all parts alike")
    images, place = _images([part.images for part in parts])
    image = np.concatenate([place[k][part.image] for k, part in enumerate(parts)])
    order = np.argsort(image, kind="stable")
    columns: dict[str, Any] = {
        "images": images,
        "image": image[order].astype(np.int32),
        "notes": tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        "shapes": _shapes(parts, order),
    }
    for name in ("label", "boxes") + (("score",) if isinstance(first, Detections) else ()):
        columns[name] = np.concatenate([getattr(part, name) for part in parts])[order]
    if isinstance(first, Truth):
        truths = [part for part in parts if isinstance(part, Truth)]
        columns["roles"] = {
            name: np.concatenate([part.role(name) for part in truths])[order]
            for name in sorted({name for part in truths for name in part.roles})
        }
        columns["attributes"] = {
            name: np.concatenate([_attribute(part, name) for part in truths])[order]
            for name in sorted({name for part in truths for name in part.attributes})
        }
        columns["scope"] = _scope(truths, place)
    return replace(first, **columns), order


def _shapes(parts: Sequence[Table], order: NDArray[np.int64]) -> Shapes | None:
    """The shapes of all parts; None if a part with rows has none, or one of another kind."""
    some = [part.shapes for part in parts if len(part)]
    readers = [row.reader for row in KINDS if row.reader is not None]
    reader = next((each for each in readers if some and isinstance(some[0], each.kind)), None)
    if reader is None or not all(isinstance(each, reader.kind) for each in some):
        return None
    joined: Shapes = reader.join(some)
    return joined.take(order)


def _images(parts: Sequence[Images]) -> tuple[Images, list[NDArray[np.int64]]]:
    """All images by ascending id, and where each part's images are among them."""
    ids = np.concatenate([part.ids for part in parts])
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(twice):
        what = f"image {ids[order][twice[0]]!r} is in two parts"
        raise MergeError("merge", what, "give parts of disjoint sets of images")
    stems = [stem for part in parts for stem in part.stems]
    images = Images(
        ids[order],
        tuple(stems[i] for i in order.tolist()),
        np.concatenate([part.width for part in parts])[order],
        np.concatenate([part.height for part in parts])[order],
    )
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return images, np.split(place, np.cumsum([len(part) for part in parts])[:-1])


def _attribute(part: Truth, name: str) -> NDArray[np.float64]:
    """A column of numbers; NaN where the part does not have it."""
    return part.attributes[name] if name in part.attributes else np.full(len(part), np.nan)


def _scope(parts: Sequence[Truth], place: Sequence[NDArray[np.int64]]) -> Scope | None:
    """The pairs of image and class of all parts."""
    known = [part.scope for part in parts if part.scope is not None]
    if not known:
        return None
    if len(known) < len(parts):
        what = "some parts list annotated classes, and some do not"
        raise MergeError("merge", what, "read all parts alike")
    image = np.concatenate(
        [np.repeat(at, np.diff(scope.off)) for at, scope in zip(place, known, strict=True)]
    )
    order = np.argsort(image, kind="stable")
    n_images = sum(len(part.images) for part in parts)
    off = np.concatenate([[0], np.cumsum(np.bincount(image, minlength=n_images))])
    return Scope(
        off.astype(np.int64),
        np.concatenate([scope.label for scope in known])[order],
        np.concatenate([scope.kind for scope in known])[order],
    )
