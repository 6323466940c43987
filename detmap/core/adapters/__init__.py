"""Adapters read files of one format as box tables. The path decides which adapter reads it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions, registry
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import UNKNOWN as UNKNOWN
from detmap.core.adapters.joining.unknown_policy import ClassNames as ClassNames
from detmap.core.adapters.joining.unknown_policy import Policy, named_classes
from detmap.core.adapters.joining.unknown_policy import policy as unknown_policy
from detmap.core.base import open_files
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.overlaps import kind_of
from detmap.core.protocol import Protocol
from detmap.core.protocol.named_columns import named_columns, named_flags
from detmap.core.tables import Detections, Note, Truth
from detmap.errors import DataError

FORMATS = tuple(row.name for row in registry.FORMATS)
BOX_FORMATS = box_conventions.FORMATS


@proposes_arguments
def read_truth(
    path: Any,
    *,
    split: str | None = None,
    format: str | None = None,
    shapes: str = "boxes",
    box_format: str | None = None,
    image_sizes: str | Path | None = None,
    roles: Sequence[str] = (),
    attributes: Sequence[str] = (),
    classes: Sequence[str] = (),
) -> Truth:
    """Reads the ground truth of a benchmark split.

    >>> import detmap
    >>> truth = detmap.read_truth("shapes")
    >>> len(truth.images), len(truth), truth.categories.names[:2]
    (60, 326, ('circle', 'ellipse'))

    Parameters
    ----------
    path : a COCO instances JSON file, a VOC folder (``VOCdevkit/VOC2007``, with ``Annotations`` and
        ``ImageSets``), or a file or folder of any other of `FORMATS` (docs/formats.md); or a Python
        object: a COCO dict, a list of one dict per image, a data frame, an open file ...
    split : of a VOC folder; default ``test`` if present, else ``val``
    format : one of `FORMATS`; default: detected from the path
    box_format : box convention, for formats that do not define it: one of `BOX_FORMATS`
    image_sizes : CSV file with columns image, width and height, COCO JSON file, or folder of
        images, for formats without sizes
    shapes : "masks", "keypoints" or "polygons" (rotated boxes), to read them besides the boxes
    roles, attributes : names of further flags and numbers of the objects to read: ``["occluded"]``,
        ``["visibility"]``
    classes : names of further classes to read, for a format with a list of classes of its own
        (Scalabel): those that a protocol renames

    Raises
    ------
    DataError : names the file, record and field, what is wrong, and how to fix it
    """
    if not isinstance(path, str | os.PathLike):
        options: dict[str, Any] = {"split": split, "format": format, "box_format": box_format}
        options |= {"shapes": shapes, "image_sizes": image_sizes, "classes": classes}
        options |= {"roles": roles, "attributes": attributes}
        return _read_object(path, partial(read_truth, **options), options)
    path = registry.checked_path(path)
    for name, words in (("roles", roles), ("attributes", attributes), ("classes", classes)):
        if not isinstance(words, Sequence | Set) or not all(
            isinstance(word, str) for word in words
        ):
            raise DataError(name, f"{words!r:.60}", "give a tuple of names")
    with readable(path), explained(path, "truth", format):
        row, rivals = registry.choose_noted(
            registry.FORMATS, path, lambda row: row.truth_looks, format
        )
        sizes = None if image_sizes is None else registry.checked_path(image_sizes)
        own_sizes = "image_sizes" in row.options
        told = registry.told(
            row.name,
            row.options,
            path,
            split=split,
            shapes=None if shapes == "boxes" else shapes,
            box_format=box_format,
            image_sizes=sizes if own_sizes else None,
            roles=tuple(roles) or None,
            attributes=tuple(attributes) or None,
            classes=tuple(classes) or None,
        )
        truth = _noted(row.read_truth(path, **told), rivals)
        if sizes is None or own_sizes:
            return truth
        from detmap.core.adapters.joining.image_sizes import (
            completed,  # it imports the reader of CSV
        )

        return completed(truth, sizes)


def read_truth_for(
    path: Any, protocol: Protocol, *, format: str | None = None, **options: Any
) -> Truth:
    """Reads ground truth with all shapes, roles and attributes that a protocol uses.

    Matching reports what is missing. The protocol's ``files.truth`` is taken if the path may be of
    that format. `format` and `options` are as in `read_truth`.
    """
    names = names_for(protocol)
    of = protocol.iou.of
    shapes = "boxes" if kind_of(of).reader is None else of
    if not isinstance(path, str | os.PathLike):
        read = partial(read_truth_for, protocol=protocol, format=format, **options)
        return _read_object(path, read, {"shapes": shapes, "format": format, **names, **options})
    path = registry.checked_path(path)
    preferred = protocol.files.truth
    with readable(path), explained(path, "truth", format or preferred or None):
        row, rivals = registry.choose_noted(
            registry.FORMATS, path, lambda row: row.truth_looks, format, preferred
        )
        options |= {name: names[name] for name in names if name in row.options}
        return _noted(read_truth(path, format=row.name, shapes=shapes, **options), rivals)


def _read_object(given: Any, read: Callable[[Path], Truth], options: Mapping[str, Any]) -> Truth:
    """The ground truth of a Python object; `read` reads a path with the options."""
    from detmap.core.adapters.in_memory import python_objects  # most ground truth is a path

    return python_objects.read_truth(given, read, options)


def names_for(protocol: Protocol) -> dict[str, tuple[str, ...]]:
    """Returns the roles, attributes and classes that a protocol reads by name, as options of
    `read_truth`.
    """
    roles, attributes = named_columns(protocol)
    return {
        "roles": (*roles, *named_flags(protocol)),
        "attributes": tuple(attributes),
        "classes": tuple(sorted(protocol.classes.new_names())),
    }


def _noted(truth: Truth, notes: tuple[Note, ...]) -> Truth:
    return replace(truth, notes=(*truth.notes, *notes)) if notes else truth


@proposes_arguments
def read_detections(
    path: Any,
    truth: Truth,
    *,
    format: str | None = None,
    box_format: str | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
    image_key: str | None = None,
    class_key: str | None = None,
    preferred_format: str | None = None,
    protocol_unknown: str = "error",
    protocol_classes: Mapping[str, str] | None = None,
) -> Detections:
    """Reads detections and joins them to the images and classes of the ground truth.

    >>> import detmap
    >>> truth = detmap.read_truth("shapes")
    >>> len(detmap.read_detections("shapes/detections/contours", truth))
    2840

    Parameters
    ----------
    path : a COCO results JSON file, a folder of VOC text (``comp4_det_<split>_<class>.txt``), or a
        file or folder of any other of `FORMATS` (docs/formats.md); or a Python object: a list of
        COCO results, a list of one dict per image, a data frame, an open file ...
    truth : the ground truth; its format may differ
    format : one of `FORMATS`; default: detected from the path
    box_format : box convention, for formats that do not define it: one of `BOX_FORMATS`
    unknown : "error" rejects detections on images or of classes that are not in the ground truth;
        "drop" drops them and counts them in the notes and the signature
    class_names : meaning of the class ids if they are not those of the ground truth: names of the
        classes 0, 1, 2 ..., a dict from id to name, or a file of either (one name per line, line 1
        is class 0; or JSON). They name the classes of a ground truth that has numbers alone, too
    image_key, class_key : "id" or "name": what columns name images and classes by if their header
        leaves it open (docs/formats.md, "One file, one meaning"); default: all values together
        decide
    preferred_format : the protocol's ``files.detections``, used if the path may be of that format
    protocol_unknown : the protocol's ``scope.unknown``, in place of "error"
    protocol_classes : what the protocol's ``classes`` makes of class names: a detection may have
        any name that becomes the same as one of the ground truth

    Raises
    ------
    DataError : names the file, record and field, what is wrong, and how to fix it
    """
    options: dict[str, Any] = {
        "format": format,
        "box_format": box_format,
        "unknown": unknown,
        "class_names": class_names,
        "image_key": image_key,
        "class_key": class_key,
        "preferred_format": preferred_format,
        "protocol_unknown": protocol_unknown,
        "protocol_classes": protocol_classes,
    }
    if not isinstance(path, str | os.PathLike):
        from detmap.core.adapters.in_memory import python_objects

        given = unknown, class_names, image_key, class_key
        truth, policy = _policy(truth, given, protocol_unknown, protocol_classes)
        read = partial(read_detections, truth=truth, **options)
        return python_objects.read_detections(path, truth, policy, read, options)
    with detection_reader(cast(Any, path), truth, **options) as reader:
        table = reader.row.read_detections(
            reader.path, reader.truth, policy=reader.policy, **reader.options
        )
    join.require_numbered(truth, table)
    return table


def options_of(protocol: Protocol) -> dict[str, Any]:
    """Returns the options of `read_detections` that a protocol decides."""
    return {
        "preferred_format": protocol.files.detections,
        "protocol_unknown": protocol.scope.unknown,
        "protocol_classes": protocol.classes.new_names(),
    }


class DetectionReader(NamedTuple):
    """The format chosen for a path of detections, and what its reader needs."""

    path: Path
    row: registry.Format
    truth: Truth
    policy: Policy
    options: dict[str, Any]


@contextmanager
def detection_reader(
    path: str | Path,
    truth: Truth,
    *,
    format: str | None = None,
    box_format: str | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
    image_key: str | None = None,
    class_key: str | None = None,
    preferred_format: str | None = None,
    protocol_unknown: str = "error",
    protocol_classes: Mapping[str, str] | None = None,
) -> Iterator[DetectionReader]:
    """Chooses the reader of detections; reads inside the ``with`` get its error messages.

    Parameters and errors are those of `read_detections`.
    """
    given = unknown, class_names, image_key, class_key
    truth, policy = _policy(truth, given, protocol_unknown, protocol_classes)
    path = registry.checked_path(path)
    with readable(path), explained(path, "detections", format or preferred_format or None):
        if format is None and not preferred_format and open_files.is_folder(path):
            from detmap.core.adapters.voc import result_files

            format = "voc" if result_files.are_of_classes(path, truth, policy) else None
        row, _ = registry.choose_noted(
            registry.FORMATS, path, lambda row: row.detections_look, format, preferred_format
        )
        told = registry.told(row.name, row.detection_options, path, box_format=box_format)
        yield DetectionReader(path, row, truth, policy, told)


def _policy(
    truth: Any,
    given: tuple[str, ClassNames | None, str | None, str | None],
    protocol_unknown: str,
    protocol_classes: Mapping[str, str] | None,
) -> tuple[Truth, Policy]:
    """The policy of the user and the protocol, and the ground truth with names for its classes;
    refuses what is no ground truth.
    """
    if not isinstance(truth, Truth):
        what = f"a {type(truth).__name__} instead of a ground truth"
        raise DataError("read_detections: truth", what, "give the result of `read_truth`")
    policy = unknown_policy(*given)
    if policy.unknown == "error":
        policy = policy._replace(unknown=cast(Any, protocol_unknown))
    return named_classes(truth, policy._replace(new_names=protocol_classes))


def read_images(path: str | Path, truth: Truth, image_key: str | None = None) -> NDArray[np.int32]:
    """Returns positions of the images listed in a text file, one stem, path or id per line.

    `image_key` is as in `read_detections`. Raises `DataError` for a missing or empty file, for
    unknown or repeated images, and for names that may be ids of other images.
    """
    from detmap.core.adapters import text_fields
    from detmap.core.adapters.joining import image_keys
    from detmap.core.adapters.joining.unknown_policy import chosen_key

    path = registry.checked_path(path)
    places = {line: " ".join(words) for line, words in text_fields.lines(path)}
    if not places:
        raise DataError(
            str(path), "lists no images", "write one image per line, by file stem or id"
        )
    key = chosen_key("image_key", image_key)
    images = image_keys.find_listed(truth, list(places.values()), str(path), key)
    seen: set[int] = set()
    for (line, name), image in zip(places.items(), images.tolist(), strict=True):
        if image < 0:
            raise DataError(
                f"{path}: line {line}",
                f"no image {name!r} in {truth.source}",
                "name images by stem, path or id, one per line and nothing else",
            )
        if image in seen:
            raise DataError(
                f"{path}: line {line}", f"image {name!r} occurs twice", "list each image once"
            )
        seen.add(image)
    return images


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Looks once at each path, and converts `OSError` to `DataError`."""
    try:
        with open_files.seeing():
            yield
    except OSError as error:
        raise DataError(
            str(error.filename or path),
            f"cannot be read: {error.strerror}",
            "check the path and its permissions",
        ) from None


@contextmanager
def explained(path: Path, kind: str, wanted: str | None) -> Iterator[None]:
    """Replaces the error of a reader that does not fit a path by one with the path's format.

    Parameters
    ----------
    path : that is read
    kind : "truth" or "detections"
    wanted : the format that the user chose; then the error of its reader stays
    """
    try:
        yield
    except DataError as error:
        from detmap.core.adapters import recognition  # only an error needs it

        better = None if wanted is not None else recognition.better_error(path, kind, error)
        if better is None:
            raise
        raise better from None
