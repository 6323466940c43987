"""The images and classes of a batch of predictions and targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.in_memory import batches
from detmap.core.adapters.in_memory.batches import Fields
from detmap.core.adapters.joining import image_lookup, join
from detmap.core.base import column_checks
from detmap.core.tables import Categories, Truth
from detmap.core.tables.grouping import Positions, rows_of
from detmap.errors import DataError, few


def read_classes(classes: Any) -> Categories:
    """Returns classes by ascending id, from names, ids, or a dict of both."""
    if isinstance(classes, Categories):
        return classes
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise DataError("classes", f"{classes!r:.60}", "give a list of names, of ids, or a dict")
    try:
        given = list(classes)
        twice = len(set(given)) < len(given)
    except Exception as error:  # of the members, or of the object that is asked for them
        raise DataError("classes", str(error), "give a list of names, of ids, or a dict") from None
    if isinstance(classes, Mapping):
        names = {key: str(name) for key, name in classes.items()}
    elif given and all(isinstance(each, str) for each in given):
        if isinstance(classes, set | frozenset):
            raise DataError("classes", "a set has no order", "give a list")
        names = dict(enumerate(given))
    else:
        names = {each: str(each) for each in given}
    whole = [isinstance(key, int | np.integer) and not isinstance(key, bool) for key in names]
    if twice or not all(whole):
        of_names = isinstance(classes, Mapping) and all(isinstance(key, str) for key in given)
        fix = "a dict from id to name" if of_names else "names, or whole numbers, each once"
        raise DataError("classes", "not unique" if twice else f"{given[:3]}", f"give {fix}")
    ids = sorted(int(key) for key in names)
    if ids and not -(2**63) <= ids[0] <= ids[-1] < 2**63:
        raise DataError("classes", "an id of more than 64 bits", "give smaller ids")
    return Categories(np.array(ids, dtype=np.int64), tuple(names[i] for i in ids))


class Known:
    """A ground truth known in advance, from which the objects on some images are selected."""

    def __init__(self, table: Truth) -> None:
        self.table = table
        self.images = Positions(table.images.ids)
        self.rows = np.argsort(table.image, kind="stable")
        self.off = np.searchsorted(table.image[self.rows], np.arange(len(table.images) + 1))
        self._lookup: image_lookup.Lookup | None = None  # of names, when the first is asked for

    def find(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Returns positions of images by id, or else by path, file name or stem; -1 if unknown."""
        same = ids.dtype.kind == self.table.images.ids.dtype.kind
        place = self.images(ids).astype(np.int64) if same else np.full(len(ids), -1)
        if (ids.dtype.kind == "i" and same) or place.min(initial=0) >= 0:
            return place
        at = "predictions[{}].image_id".format
        if ids.dtype.kind == "i":
            return join.images_named(self.table, ids, at, "predictions", key="id")[0].astype(int)
        lookup = self._lookup = self._lookup or image_lookup.Lookup(self.table)
        named = image_lookup.positions_by_name(lookup, ids.tolist(), at, "id")[0]
        return named.astype(np.int64)

    def select_images(self, image: NDArray[np.int64]) -> Truth:
        """Selects images by ascending positions."""
        places, _ = rows_of(self.off, image)
        return self.table.select_images(image, self.rows[places])

    def same(self, other: Known) -> bool:
        """Checks if both hold the same objects."""
        one, two = self.table, other.table
        names = ("image", "label", "boxes", "area", "crowd", "difficult")
        return one is two or (
            np.array_equal(one.images.ids, two.images.ids)
            and all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)
        )


def pair(
    predictions: Any, targets: Any, known: bool, box_format: str
) -> tuple[list[Fields], list[Fields]]:
    """Returns the images of a batch, predicted and annotated; None for targets known in advance.

    Raises `DataError` unless both are lists of the same length, and for missing or unwanted
    targets.
    """
    predicted = batches.batch("predictions", predictions)
    if known:
        if targets is not None:
            raise DataError(
                "targets", "given, but the evaluator has a ground truth", "remove them or truth="
            )
        return predicted, [{}] * len(predicted)
    if targets is None:
        raise DataError("targets", "missing", "give targets, or truth= to the evaluator")
    if isinstance(predictions, Mapping) and isinstance(targets, Mapping):
        if predictions.keys() != targets.keys():
            lone = sorted(map(repr, predictions.keys() ^ targets.keys()))
            what = f"images only in predictions or only in targets: {few(lone)}"
            raise DataError("targets", what, "give one of each per image")
        targets = {key: targets[key] for key in predictions}
    annotated = batches.batch("targets", targets)
    if len(annotated) != len(predicted):
        what = f"{len(annotated)} images, but {len(predicted)} in predictions"
        raise DataError("targets", what, "give one of each per image")
    if box_format.startswith("normalized"):
        batches.require_same_sizes(predicted, annotated)
    return predicted, annotated


def _given_ids(predicted: Sequence[Fields], annotated: Sequence[Fields], named: bool) -> list[Any]:
    """The id of each image, or its file if that names it, of its prediction or its target; None
    without.
    """
    ids = []
    for i, (prediction, target) in enumerate(zip(predicted, annotated, strict=True)):
        own = batches.identifier(f"predictions[{i}]", prediction)
        own = batches.file_of(prediction) if own is None and named else own
        other = batches.identifier(f"targets[{i}]", target)
        if own is not None and other is not None and own != other:
            raise DataError(
                f"predictions[{i}].image_id",
                f"{own!r}, but {other!r} in targets[{i}]",
                "give images in the same order",
            )
        ids.append(other if own is None else own)
    return ids


def identify(
    predicted: Sequence[Fields],
    annotated: Sequence[Fields],
    seen: Set[Any],
    numbered_before: bool | None,
    known: Known | None,
) -> tuple[NDArray[Any], bool]:
    """Returns (B,) ids, those of the ground truth if it has all, and whether they are arrival
    numbers.

    Parameters
    ----------
    predicted, annotated : predictions and targets of each image
    seen : ids of earlier images
    numbered_before : whether those are arrival numbers; None if there are none
    known : the ground truth if it is known in advance, so that each image needs an id or a file

    Raises `DataError` for mixed, missing or repeated ids.
    """
    ids = _given_ids(predicted, annotated, known is not None)
    numbered = ids[0] is None
    if 0 < ids.count(None) < len(ids):
        i = next(i for i, each in enumerate(ids) if (each is None) != numbered)
        raise DataError(
            f"predictions[{i}].image_id",
            "only some images have one",
            "give every image an id, or none",
        )
    if numbered_before not in (None, numbered):
        raise DataError(
            "predictions[0].image_id",
            "only some batches have one",
            "give every image an id, or none",
        )
    if numbered:
        if known is not None:
            fix = "give the id of its image in the ground truth, or its file_name"
            fix += '; Detections of supervision have it in metadata["image_id"]'
            raise DataError("predictions[0].image_id", "missing", fix)
        return np.arange(len(seen), len(seen) + len(ids)), True
    seen_too = islice(seen, 1) if known is None else ()
    if len({type(each) for each in (*ids, *seen_too)}) > 1:
        raise DataError(
            "predictions[0].image_id", "whole numbers and strings", "use one kind of ids"
        )
    array = _id_array(ids)
    if known is not None and (place := known.find(array)).min() >= 0:
        array = known.table.images.ids[place]
        ids = array.tolist()
    if len(set(ids)) < len(ids) or not seen.isdisjoint(ids):
        i = next(i for i, each in enumerate(ids) if each in seen or each in ids[:i])
        raise DataError(
            f"predictions[{i}].image_id",
            f"{ids[i]!r} was already added",
            "update each image once; reset() starts again",
        )
    return array, False


def _id_array(ids: Sequence[Any]) -> NDArray[Any]:
    try:
        if isinstance(ids[0], str):
            return column_checks.id_array("image_id", [str(each) for each in ids])
        return np.array(ids).astype(np.int64, casting="safe")
    except (OverflowError, TypeError):
        raise DataError(
            "predictions[0].image_id",
            "not a whole number of 64 bits",
            "use smaller ids, or strings",
        ) from None
