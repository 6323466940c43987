"""Adapters: files of one format in, box tables out. The path decides which adapter reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import box_conventions as geometry
from detmap.adapters import registry
from detmap.adapters import text_fields as text
from detmap.adapters.joining import join as joining
from detmap.adapters.joining.unknown_policy import UNKNOWN as UNKNOWN
from detmap.adapters.joining.unknown_policy import ClassNames as ClassNames
from detmap.adapters.joining.unknown_policy import policy as unknown_policy
from detmap.errors import DataError
from detmap.overlaps import kind_of
from detmap.protocol import Protocol
from detmap.protocol.named_columns import named_columns, named_flags
from detmap.tables import Detections, Truth

FORMATS = tuple(row.name for row in registry.FORMATS)
BOX_FORMATS = geometry.FORMATS


def read_truth(
    path: str | Path,
    *,
    split: str | None = None,
    format: str | None = None,
    shapes: str = "boxes",
    box_format: str | None = None,
    image_sizes: str | Path | None = None,
    roles: Sequence[str] = (),
    attributes: Sequence[str] = (),
) -> Truth:
    """Ground truth of a benchmark split.

    Parameters
    ----------
    path : a COCO instances JSON file, a VOC folder (``VOCdevkit/VOC2007``, with ``Annotations``
        and ``ImageSets``), or a file or folder of any other of `FORMATS` (docs/formats.md)
    split : of a VOC folder; ``test`` where present, else ``val``, when left out
    format : one of `FORMATS`, to override what the path looks like
    box_format : what the numbers of a box are, where a format leaves that open: one of
        `BOX_FORMATS`
    image_sizes : a CSV file with columns image, width and height, for a format that does not say
    shapes : "masks" or "keypoints", to read them beside the boxes; a protocol says in ``iou.of``
        what it compares
    roles, attributes : further flags and numbers of the objects, by name, to read beside those that
        the format has of its own: ``["occluded"]``, ``["visibility"]``

    Raises
    ------
    DataError : what is wrong, in which file, record and field, and how to fix it
    """
    path = registry.checked_path(path)
    for name, words in (("roles", roles), ("attributes", attributes)):
        if not isinstance(words, Sequence | Set) or not all(
            isinstance(word, str) for word in words
        ):
            raise DataError(name, f"{words!r:.60}", "give a tuple of names")
    with readable(path):
        row = registry.choose(registry.FORMATS, path, lambda row: row.truth_looks, format)
        told = registry.told(
            row.name,
            row.options,
            path,
            split=split,
            shapes=None if shapes == "boxes" else shapes,
            box_format=box_format,
            image_sizes=None if image_sizes is None else registry.checked_path(image_sizes),
            roles=tuple(roles) or None,
            attributes=tuple(attributes) or None,
        )
        return row.read_truth(path, **told)


def read_truth_for(
    path: str | Path, protocol: Protocol, *, format: str | None = None, **options: Any
) -> Truth:
    """Ground truth with all that a protocol looks at, as far as the format can tell it: shapes,
    and roles and attributes by name. What is lacking then, matching says.

    Parameters
    ----------
    format, options : further ones of `read_truth`

    Raises
    ------
    DataError : as `read_truth`
    """
    path = registry.checked_path(path)
    row = registry.choose(registry.FORMATS, path, lambda row: row.truth_looks, format)
    names = dict(zip(("roles", "attributes"), named_columns(protocol), strict=True))
    names["roles"] += named_flags(protocol)
    options |= {name: names[name] for name in names if name in row.options}
    of = protocol.iou.of
    shapes = "boxes" if kind_of(of).reader is None else of
    return read_truth(path, format=format, shapes=shapes, **options)


def read_detections(
    path: str | Path,
    truth: Truth,
    *,
    format: str | None = None,
    box_format: str | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
) -> Detections:
    """A detector's output, joined to the images and classes of its truth.

    Parameters
    ----------
    path : a COCO results JSON file, a folder of VOC text (``comp4_det_<split>_<class>.txt``), or a
        file or folder of any other of `FORMATS` (docs/formats.md)
    truth : what the detections are of; it may come from files of another format
    format : one of `FORMATS`, to override what the path looks like
    box_format : what the numbers of a box are, where a format leaves that open: one of
        `BOX_FORMATS`
    unknown : "error" where detections on images or of classes that the truth lacks are refused,
        "drop" where they are left out, counted in the notes and in the signature
    class_names : what class ids stand for, where they are not the truth's own: names of the classes
        0, 1, 2 ..., a dict from id to name, or a file of either (one name a line, line 1 is class
        0; or JSON)

    Raises
    ------
    DataError : what is wrong, in which file, record and field, and how to fix it
    """
    if not isinstance(truth, Truth):
        what = f"a {type(truth).__name__} where the truth is needed"
        raise DataError("read_detections: truth", what, "give what `read_truth` returned")
    policy = unknown_policy(unknown, class_names)
    path = registry.checked_path(path)
    with readable(path):
        if format is None and path.is_dir():
            from detmap.adapters.voc import result_files as voc_files

            format = "voc" if voc_files.are_of_classes(path, truth) else None
        row = registry.choose(registry.FORMATS, path, lambda row: row.detections_look, format)
        told = registry.told(row.name, row.detection_options, path, box_format=box_format)
        return row.read_detections(path, truth, policy=policy, **told)


def read_images(path: str | Path, truth: Truth) -> NDArray[np.int32]:
    """Positions of the images that a text file names, one a line, by file stem or by id.

    Raises
    ------
    DataError : no such file, no name in it, a name twice, an image that the truth lacks
    """
    path = registry.checked_path(path)
    places = {line: " ".join(words) for line, words in text.lines(path)}
    if not places:
        raise DataError(str(path), "names no image", "write one image a line, by file stem or id")
    images = joining.images_by_stem(truth, list(places.values()), str(path))
    seen: set[int] = set()
    for (line, name), image in zip(places.items(), images.tolist(), strict=True):
        if image < 0:
            raise DataError(
                f"{path}: line {line}",
                f"no image {name!r} in {truth.source}",
                "name images by stem or id",
            )
        if image in seen:
            raise DataError(
                f"{path}: line {line}", f"image {name!r} is there twice", "name each image once"
            )
        seen.add(image)
    return images


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What the system refuses to read is bad input."""
    try:
        yield
    except OSError as error:
        raise DataError(
            str(error.filename or path),
            f"cannot be read: {error.strerror}",
            "check the path and its permissions",
        ) from None
