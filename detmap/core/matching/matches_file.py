"""Reads and writes files of matches: a JSON header and arrays."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from detmap.core.base import npz_archive as archive
from detmap.core.matching import matches_header as headers
from detmap.core.matching.assignments import ARRAYS as ASSIGNMENT_ARRAYS
from detmap.core.matching.assignments import Assignments
from detmap.core.matching.matches_checks import word_of
from detmap.core.tables import MAX_ROWS, Categories
from detmap.errors import DataError

Made = TypeVar("Made")


def write(
    path: str | Path | BinaryIO, matches: Any, columns: Sequence[str], remarks: dict[str, Any]
) -> None:
    """Writes matches with the arrays of these names to a path or a file object.

    Raises
    ------
    DetmapError : the path is a folder or a device, or the write fails
    """
    header = headers.to_header(matches.protocol, matches.categories, matches.notes, remarks)
    arrays = {name: getattr(matches, name) for name in columns}
    if matches.taken is not None:
        arrays |= {f"taken_{name}": getattr(matches.taken, name) for name in ASSIGNMENT_ARRAYS}
    archive.write(path, header, {"category_ids": matches.categories.ids, **arrays})


def to_bytes(matches: Any, columns: Sequence[str]) -> bytes:
    """Returns what `write` writes."""
    stream = BytesIO()
    write(stream, matches, columns, {})
    return stream.getvalue()


def from_bytes(content: Any, columns: Sequence[str], make: Callable[..., Made]) -> Made:
    """Calls `make` with the parts of what `to_bytes` gave; raises `DataError` as `read`."""
    if not isinstance(content, bytes):
        what = f"a {type(content).__name__}"
        raise DataError("Matches.from_bytes", what, "give the bytes of `Matches.to_bytes`")
    return read(content, columns, make)[0]


def read(
    path: str | Path | bytes | BinaryIO, columns: Sequence[str], make: Callable[..., Made]
) -> tuple[Made, dict[str, Any]]:
    """Calls `make` with the parts of what `write` wrote; also returns the remarks.

    Raises
    ------
    DataError : not such a file, damaged, forged, or of an unknown format; names the array
    """
    more = [f"taken_{name}" for name in ASSIGNMENT_ARRAYS]
    with archive.opened(path, ["header", "category_ids", *columns], more) as file:
        header = file.read_json("header")
        protocol, names, groups, notes, remarks = headers.read(file.place("header"), header)
        n_rows, n_objects = file.length("score"), file.length("obj_image")
        n_images, n_classes, n_areas = file.length("image_ids"), len(names), len(protocol.subsets)
        word = word_of(protocol)
        file.require("category_ids", np.int64, n_classes)
        file.require("image_ids", None, n_images)
        file.require("digest", np.uint64, n_images, 2)
        file.require("beyond", np.int32, n_images)
        file.require("unjudged", np.int32, n_images)
        file.require("off", np.int64, n_classes + 1)
        file.require("obj_off", np.int64, n_classes + 1)
        for name, dtype in (("image", np.int32), ("rank", np.int32), ("position", np.int32)):
            file.require(name, dtype, n_rows)
        file.require("score", np.float64, n_rows)
        file.require("tp", word, n_rows, n_areas)
        file.require("ignored", word, n_rows, n_areas)
        file.require("obj_image", np.int32, n_objects)
        file.require("counted", np.bool_, n_objects, n_areas)
        if more[0] in file.members:
            n_taken = file.length("taken_object")
            file.require("taken_off", np.int64, n_rows + 1)
            file.require("taken_object", np.int32, n_taken)
            file.require("taken_overlap", np.float64, n_taken)
            file.require("taken_words", word, n_taken, n_areas)
        file.require_memory()
        for name, n in (("off", n_rows), ("obj_off", n_objects)):
            if file.read(name)[-1] != n:
                raise DataError(file.place(name), f"does not end at {n} rows", archive.WRITE_AGAIN)
        try:
            categories = Categories(file.read("category_ids"), names, groups)
            arrays = {name: file.read(name) for name in columns}
            taken = None
            if more[0] in file.members:
                values = {name: file.read(f"taken_{name}") for name in ASSIGNMENT_ARRAYS}
                taken = Assignments(**values)
            matches = make(protocol, categories, notes=notes, taken=taken, **arrays)
        except DataError as error:
            if error.where.startswith(file.path):
                raise
            where = error.where.removeprefix("Matches.").replace("Categories.", "category_")
            raise DataError(file.place(where), error.what, archive.WRITE_AGAIN) from None
    of_truth = remarks.get("images_of_truth", 0)
    if type(of_truth) is not int or not (of_truth == 0 or n_images <= of_truth <= MAX_ROWS):
        where = file.place("header.remarks.images_of_truth")
        raise DataError(where, f"{of_truth!r}", f"the file has {n_images} images")
    return matches, remarks
