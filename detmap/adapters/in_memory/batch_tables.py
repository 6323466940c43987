"""Converts a batch of predictions and targets to tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.adapters.in_memory import batches
from detmap.adapters.in_memory.batches import Fields
from detmap.adapters.joining import unknown_policy
from detmap.adapters.joining.unknown_policy import STRICT, Policy
from detmap.base import column_checks
from detmap.errors import DataError, few
from detmap.tables import Categories, Detections, Images, Note, Truth
from detmap.tables.grouping import Positions, rows_of


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
        raise DataError(
            "classes",
            "not unique" if twice else f"{given[:3]}",
            "give names, or whole numbers, each once",
        )
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

    def find(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Returns positions of images by id, -1 if unknown."""
        known = ids.dtype.kind == self.table.images.ids.dtype.kind
        return self.images(ids).astype(np.int64) if known else np.full(len(ids), -1)

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
                "targets", "given, but the evaluator has a truth", "remove them or truth="
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


def identify(
    predicted: Sequence[Fields],
    annotated: Sequence[Fields],
    seen: Set[Any],
    numbered_before: bool | None,
    known: bool,
) -> tuple[NDArray[Any], NDArray[np.int32], bool]:
    """Returns (B,) ascending ids, each image's place among them, and whether they are arrival
    numbers.

    Parameters
    ----------
    predicted, annotated : predictions and targets of each image
    seen : ids of earlier images
    numbered_before : whether those are arrival numbers; None if there are none
    known : whether the truth is known in advance, so that each image needs an id

    Raises `DataError` for mixed, missing or repeated ids.
    """
    place = np.arange(len(predicted), dtype=np.int32)
    ids = []
    for i, (prediction, target) in enumerate(zip(predicted, annotated, strict=True)):
        own = batches.identifier(f"predictions[{i}]", prediction)
        other = batches.identifier(f"targets[{i}]", target)
        if own is not None and other is not None and own != other:
            raise DataError(
                f"predictions[{i}].image_id",
                f"{own!r}, but {other!r} in targets[{i}]",
                "give images in the same order",
            )
        ids.append(other if own is None else own)
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
        if known:
            raise DataError(
                "predictions[0].image_id", "missing", "give the id of its image in the truth"
            )
        return np.arange(len(seen), len(seen) + len(ids)), place, True
    if len({type(each) for each in (*ids, *islice(seen, 1))}) > 1:
        raise DataError(
            "predictions[0].image_id", "whole numbers and strings", "use one kind of ids"
        )
    if len(set(ids)) < len(ids) or not seen.isdisjoint(ids):
        i = next(i for i, each in enumerate(ids) if each in seen or each in ids[:i])
        raise DataError(
            f"predictions[{i}].image_id",
            f"{ids[i]!r} was already added",
            "update each image once; reset() starts again",
        )
    try:
        if isinstance(ids[0], str):
            array = column_checks.id_array("image_id", [str(each) for each in ids])
        else:
            array = np.array(ids).astype(np.int64, casting="safe")
    except (OverflowError, TypeError):
        raise DataError(
            "predictions[0].image_id",
            "not a whole number of 64 bits",
            "use smaller ids, or strings",
        ) from None
    order = np.argsort(array)
    place[order] = place.copy()
    return array[order], place, False


FLAG_KEYS = {"iscrowd": "crowd", "difficult": "difficult", "ignore": "ignore"}
"""Keys of targets that may be left out, then nobody has the role; and the roles that they give."""


class Reader:
    """Reads batches as tables.

    Parameters
    ----------
    categories : classes of the targets' labels, and of predictions if `truth` is None
    box_format : one of `box_conventions.IN_MEMORY`
    roles, attributes : required keys of targets, with flags and numbers
    policy : about images and classes that are not in the truth
    truth : known in advance, or None
    """

    def __init__(
        self,
        categories: Categories,
        box_format: str,
        roles: Sequence[str] = (),
        attributes: Sequence[str] = (),
        policy: Policy = STRICT,
        truth: Known | None = None,
    ) -> None:
        if policy.class_names is not None and truth is None:
            raise DataError("class_names", "given without truth", "give them as classes=")
        self.categories, self.box_format = categories, box_format
        self.roles, self.attributes = tuple(roles), tuple(attributes)
        self.policy, self.truth = policy, truth
        self._positions = Positions(categories.ids)
        self._predicted: tuple[Positions, NDArray[np.int32]] | None = None

    def _predicted_label(self, given: NDArray[np.int64]) -> NDArray[np.int32]:
        """Returns positions of predicted classes, -1 if unknown."""
        if self.truth is None:
            return self._positions(given).astype(np.int32)
        if self._predicted is None:
            ids, labels = self.policy.class_ids(self.truth.table, "predictions.labels")
            labels = np.arange(len(ids), dtype=np.int32) if labels is None else labels
            # Behind the last stands what -1 points to.
            self._predicted = Positions(ids), np.append(labels, np.int32(-1))
        positions, labels = self._predicted
        return labels[positions(given)]

    def known(
        self, truth: Known, ids: NDArray[Any], place: NDArray[np.int32], images: Sequence[Fields]
    ) -> tuple[Truth, NDArray[np.int32], list[Fields], tuple[Note, ...]]:
        """Returns the truth on the known images of a batch, each image's place, their predictions,
        and notes on dropped ones.

        Raises `DataError` for unknown images, unless they are dropped.
        """
        position = truth.find(ids)
        has = position >= 0
        if has.all():
            return truth.select_images(position), place, list(images), ()
        lost = [i for i, at in enumerate(place.tolist()) if not has[at]]
        rows = batches.read_rows(
            "predictions", [images[i] for i in lost], self.box_format, {"scores": None}
        )
        strange = ids[~has].tolist()
        if self.policy.unknown == "error":
            where = f"predictions[{lost[0]}].image_id"
            first = [ids[place[lost[0]]].item(), *strange]
            count = int(rows.count.sum())
            raise unknown_policy.refusal(where, "image", first, count, truth.table, "on")
        text = "detections on images that are not in the truth were dropped"
        note = Note("image-unknown", text, int(rows.count.sum()), source_of(strange[0]))
        left = [i for i, at in enumerate(place.tolist()) if has[at]]
        moved = (np.cumsum(has) - 1).astype(np.int32)[place[left]]
        return truth.select_images(position[has]), moved, [images[i] for i in left], (note,)

    def predictions(
        self, truth: Truth, place: NDArray[np.int32], images: Sequence[Fields]
    ) -> Detections:
        """Returns the detections on B images; image i is image ``place[i]`` of the truth.

        Raises `DataError` for invalid rows, non-finite scores and unknown classes.
        """
        where = "predictions"
        rows = batches.read_rows(where, images, self.box_format, {"scores": None})
        score = np.asarray(rows.more["scores"], dtype=np.float64)
        bad = ~np.isfinite(score)
        if bad.any():
            i, row = batches.place_of(rows.count, bad)
            raise DataError(
                f"{where}[{i}].scores[{row}]",
                f"{score[bad][0]} is not a finite number",
                "a score is a number",
            )
        label = self._predicted_label(rows.label)
        notes: tuple[Note, ...] = ()
        lost = label < 0
        if lost.any():
            strange = rows.label[lost].tolist()
            names = self.policy.class_names or {}
            if self.policy.unknown == "error":
                i, row = batches.place_of(rows.count, lost)
                place_of_first = f"{where}[{i}].labels[{row}]"
                named = [names.get(each, each) for each in strange]
                raise unknown_policy.refusal(
                    place_of_first, "class", named, len(named), truth, "of"
                )
            text = "detections of classes that are not in the truth were dropped"
            notes = (Note("class-unknown", text, len(strange), source_of(truth.images.ids[0])),)
        return _group_rows(
            Detections(
                truth.images,
                truth.categories,
                np.repeat(place, rows.count)[~lost],
                label[~lost],
                rows.boxes[~lost],
                score[~lost],
                batches.table_format(self.box_format),
                notes=notes,
            )
        )

    def targets(
        self, ids: NDArray[Any], place: NDArray[np.int32], images: Sequence[Fields]
    ) -> Truth:
        """Returns the objects on B images with these ascending ids; image i has ``ids[place[i]]``.

        Raises `DataError` for invalid rows, invalid areas and unknown classes.
        """
        where = "targets"
        optional = {"area": np.nan, **dict.fromkeys(FLAG_KEYS, 0)}
        asked = {
            key: missing
            for key, missing in optional.items()
            if any(key in image for image in images)
        }
        required = dict.fromkeys((*self.roles, *self.attributes))
        rows = batches.read_rows(where, images, self.box_format, asked | required)
        for key in (*(asked.keys() & FLAG_KEYS.keys()), *self.roles):
            bad = (rows.more[key] != 0) & (rows.more[key] != 1)
            if bad.any():
                i, row = batches.place_of(rows.count, bad)
                what = f"{rows.more[key][bad][0]} is not a flag"
                raise DataError(f"{where}[{i}].{key}[{row}]", what, "flags are 0 or 1")
        corners = self.box_format == "voc"
        sides = rows.boxes[:, 2:] - rows.boxes[:, :2] + 1 if corners else rows.boxes[:, 2:]
        area = sides[:, 0] * sides[:, 1]
        if "area" in asked:
            given = np.repeat(["area" in image for image in images], rows.count)
            area = np.where(given, rows.more["area"], area)
            bad = ~(np.isfinite(area) & (area >= 0))
            if bad.any():
                i, row = batches.place_of(rows.count, bad)
                raise DataError(
                    f"{where}[{i}].area[{row}]",
                    f"{area[bad][0]} is negative or not a finite number",
                    "areas are square pixels",
                )
        unknown = np.full(len(ids), np.nan)
        return _group_rows(
            Truth(
                Images(ids, ("",) * len(ids), unknown, unknown),
                self.categories,
                image=np.repeat(place, rows.count),
                label=self._label(where, rows),
                boxes=rows.boxes,
                roles={
                    FLAG_KEYS.get(key, key): rows.more[key].astype(bool)
                    if key in rows.more
                    else np.zeros(len(rows.boxes), dtype=bool)
                    for key in (*FLAG_KEYS, *self.roles)
                },
                attributes={"area": area}
                | {key: rows.more[key].astype(np.float64) for key in self.attributes},
                box_format=batches.table_format(self.box_format),
                family="voc" if corners else "coco",
            )
        )

    def _label(self, where: str, rows: batches.Rows) -> NDArray[np.int32]:
        label = self._positions(rows.label)
        bad = label < 0
        if bad.any():
            i, row = batches.place_of(rows.count, bad)
            raise DataError(
                f"{where}[{i}].labels[{row}]",
                f"no class {rows.label[bad][0]}",
                f"the class ids are {few(self.categories.ids.tolist())}",
            )
        return label


def source_of(image: Any) -> str:
    """Returns the source for notes on a batch; it is unique, so that notes of batches add up."""
    return f"predictions on image {image}"


Table = TypeVar("Table", Detections, Truth)


def _group_rows(table: Table) -> Table:
    """Sorts the rows of a table by image (stable)."""
    if (table.image[1:] >= table.image[:-1]).all():
        return table
    return table.take(np.argsort(table.image, kind="stable"))
