"""Tables from lists with one dict per image, as training loops have them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions
from detmap.core.adapters.in_memory import batches
from detmap.core.adapters.in_memory.batch_rows import Reader
from detmap.core.adapters.in_memory.batch_tables import Known, identify
from detmap.core.adapters.in_memory.batches import FLAG_KEYS, Fields
from detmap.core.adapters.joining import image_names, join, unknown_policy
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.overlaps import KINDS, kind_of
from detmap.core.tables import Categories, Detections, Truth
from detmap.core.tables.extension import with_axes, with_classes
from detmap.errors import DataError

SOURCE = join.LIST
"""`Truth.source` of a ground truth whose images are in the order of the list: numbered from 0, or
with ascending ids."""

SHAPES = ("boxes", "masks", "keypoints", "polygons")


def is_list_of_images(thing: Any) -> bool:
    """Checks for a list of images, a dict from image id to image, or one image."""
    if isinstance(thing, Mapping):
        if _is_image(thing):
            return True
        return bool(thing) and all(map(_is_image, thing.values()))
    if not isinstance(thing, list | tuple) or not thing:
        return False
    return all(_is_image(each) or _is_pipeline(each) or _is_misspelt(each) for each in thing)


def _is_image(thing: Any) -> bool:
    if isinstance(thing, Mapping):
        row = thing.get("objects")
        own = any(key in thing for key in SHAPES) and "category_id" not in thing
        return own or (isinstance(row, Mapping) and "bbox" in row)
    return hasattr(thing, "xyxy") and hasattr(thing, "class_id")


def _is_misspelt(thing: Any) -> bool:
    """Checks for an image whose boxes have another key, ``bboxes``, which the reader refuses."""
    rows = [thing[key] for key in thing if "box" in str(key)] if isinstance(thing, Mapping) else []
    return any(
        getattr(each, "ndim", 0) == 2
        or (isinstance(each, list | tuple) and each and isinstance(each[0], list | tuple))
        for each in rows
    )


def _is_pipeline(thing: Any) -> bool:
    """Checks for the objects of an image from a pipeline of Hugging Face."""
    return isinstance(thing, list) and all(
        isinstance(each, Mapping) and {"score", "label", "box"} <= each.keys() for each in thing
    )


def _images(where: str, given: Any, box_format: str | None) -> tuple[list[Fields], str]:
    """Returns the images as dicts with ``boxes`` and ``labels``, and their box format."""
    if isinstance(given, Mapping) and _is_image(given):
        given = [given]
    rows = list(given.values()) if isinstance(given, Mapping) else list(given)
    default = "xyxy"
    if any(isinstance(each, Mapping) and "objects" in each for each in rows):
        default = "xywh"
        rows = [_row_fields(f"{where}[{i}]", each) for i, each in enumerate(rows)]
    else:
        rows = [_pipeline_fields(each) if isinstance(each, list) else each for each in rows]
    images: Any = dict(zip(given, rows, strict=True)) if isinstance(given, Mapping) else rows
    form = box_conventions.require(box_format or default, box_conventions.IN_MEMORY)
    return batches.batch(where, images), form


def _row_fields(where: str, row: Any) -> Fields:
    """A row of a Hugging Face data set with ``objects``: boxes x, y, width, height."""
    if not isinstance(row, Mapping) or not isinstance(row.get("objects"), Mapping):
        raise DataError(where, "has no objects", "give each row the same columns")
    own = row["objects"]
    names = ("category", "categories", "category_id", "label", "labels")
    key = next((name for name in names if name in own), None)
    if key is None:
        what = f"objects have no column {', '.join(names)}"
        raise DataError(f"{where}.objects", what, "name the class of each object")
    given = {name: own[name] for name in ("area", "iscrowd") if name in own}
    ids = {name: row[name] for name in ("image_id",) if name in row}
    return {"boxes": own["bbox"], "labels": own[key], **given, **ids}


def _pipeline_fields(found: Sequence[Mapping[str, Any]]) -> Fields:
    """The output of a Hugging Face pipeline for one image."""
    sides = ("xmin", "ymin", "xmax", "ymax")
    return {
        "boxes": np.array([[each["box"][side] for side in sides] for each in found], dtype=float),
        "labels": [each["label"] for each in found],
        "scores": [each["score"] for each in found],
    }


def read_truth(
    given: Any,
    *,
    box_format: str | None = None,
    shapes: str = "boxes",
    roles: Sequence[str] = (),
    attributes: Sequence[str] = (),
) -> Truth:
    """Reads ground truth from a list of images.

    Images without ``image_id`` are numbered from 0. Classes are those of the labels, ids or names.

    Parameters
    ----------
    given : of `is_list_of_images`
    box_format : of the boxes (default: ``xyxy``; ``xywh`` of Hugging Face rows)
    shapes, roles, attributes : as in `detmap.read_truth`; columns that no image has are left out
    """
    images, form = _images("truth", given, box_format)
    named = [
        [each for each in names if any(each in image for image in images)]
        for names in (roles, attributes)
    ]
    own_roles = [each for each in named[0] if each not in {*FLAG_KEYS, *FLAG_KEYS.values()}]
    own_numbers = [each for each in named[1] if each != "area"]
    shape_reader = kind_of("boxes" if shapes == "boxes" else shapes).reader
    reader = Reader(None, form, own_roles, own_numbers, shapes=shape_reader)
    ids, _ = identify([{}] * len(images), images, set(), None, None)
    objects, _ = reader.read_targets(images, np.full((len(images), 2), np.nan))
    truth = _with_files(reader.truth_table(ids, objects), ids, images)
    source = SOURCE if (ids[1:] > ids[:-1]).all() else f"{SOURCE} in another order"
    keys = {"image_id", *batches.FILES}
    if not isinstance(given, Mapping) and all(keys.isdisjoint(each) for each in images):
        source = join.NUMBERED
    return replace(truth, source=source, named=not truth.categories.are_numbers)


def read_detections(
    given: Any, truth: Truth, policy: Policy, box_format: str | None = None
) -> Detections:
    """Reads detections from a list of images.

    Images without ``image_id`` and file are those of a ground truth that is such a list, in its
    order, if its own ids ascend. Labels are ids or names of the classes. A class that such a list
    of ground truth lacks is added to it, without objects.

    Raises
    ------
    DataError : images that cannot be assigned, unknown images or classes, malformed rows
    """
    images, form = _images("detections", given, box_format)
    from_list = truth.source.startswith(SOURCE)
    named = any(truth.images.stems) and all(map(batches.file_of, images))
    in_order = truth.source in (SOURCE, join.NUMBERED)
    if in_order and not (named or any("image_id" in each for each in images)):
        if len(images) != len(truth.images):
            what = f"{len(images)} images, but {len(truth.images)} in the ground truth"
            raise DataError("detections", what, "give one entry per image, in the same order")
        ids_in_order = truth.images.ids.tolist()
        images = [{**each, "image_id": i} for i, each in zip(ids_in_order, images, strict=True)]
    if from_list and policy.class_names is None:
        truth = _with_classes(truth, images)
    readers = [kind.reader for kind in KINDS if kind.reader is not None]
    shapes = next((each for each in readers if isinstance(truth.shapes, each.kind)), None)
    known = Known(truth)
    reader = Reader(truth.categories, form, policy=policy, truth=known, shapes=shapes)
    if not images:
        ids: NDArray[Any] = truth.images.ids[:0]
    else:
        ids, _ = identify(images, [{}] * len(images), set(), None, known)
    table = reader.detection_table(reader.read(ids, images, []), truth)
    if any("image_id" in each for each in images):
        join.require_numbered(truth, table)
    notes = table.notes
    if from_list and truth.categories.are_numbers:
        used, known_ids = (truth.categories.ids[np.unique(each.label)] for each in (table, truth))
        notes += unknown_policy.off_by_one(used, known_ids, SOURCE)
    return replace(table, source="list of images", notes=notes)


def _with_files(truth: Truth, ids: NDArray[Any], images: Sequence[Fields]) -> Truth:
    """Adds the files of the images, if all have one."""
    files = [batches.file_of(each) for each in images]
    if not files or None in files:
        return truth
    ordered = tuple(str(files[i]) for i in np.argsort(ids, kind="stable").tolist())
    stems = tuple(map(image_names.stem, ordered))
    return replace(truth, images=replace(truth.images, stems=stems, files=ordered))


def _with_classes(truth: Truth, images: Sequence[Fields]) -> Truth:
    """Adds the classes of detections, without objects."""
    labels = [np.asarray(each.get("labels", ())).ravel() for each in images]
    found = {label for each in labels for label in each.tolist()}
    names = {label for label in found if isinstance(label, str)} - {*truth.categories.names}
    ids = {label for label in found if type(label) is int} - {*truth.categories.ids.tolist()}
    like = truth.categories
    if like.are_numbers and len(like) and not all(map(str.isdigit, names)):
        return truth  # the reader refuses names where the ground truth has numbers
    if names and not ids:
        like = with_classes(like, sorted(names))
    elif ids and like.are_numbers:
        every = np.union1d(like.ids, np.array(sorted(ids)))
        like = Categories(every, tuple(map(str, every.tolist())))
    return with_axes(truth, truth.images, like)
