"""Reads the folders that Roboflow exports: ``_annotations.*`` in ``test``, ``valid`` or ``train``.

The annotations are COCO, CreateML, or CSV with a header (TensorFlow) or without (RetinaNet), read
by the reader of that format. VOC and YOLO exports have other files and need no reader of their own.

- Category 0 of COCO, which Roboflow adds and no object has, is left out.
- ``extra.name`` of a COCO image is a second name, by which detections may be joined.
- Images of the folder that CSV does not name have no objects.

Source: exports of app.roboflow.com; the layout is not documented.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from detmap.annotation_tools import typed_json
from detmap.annotation_tools.looks import ROBOFLOW, ROBOFLOW_SPLITS
from detmap.core.adapters import folder_files, registry
from detmap.core.adapters.joining import image_names, image_sizes
from detmap.core.base.open_files import shown
from detmap.core.tables import Note, Truth
from detmap.errors import DataError, few

NAME = "roboflow"


def read_truth(path: Path, split: str | None = None, **options: Any) -> Truth:
    """Reads the annotations of a split.

    Parameters
    ----------
    path : the file, its folder, or the folder of the splits
    split : of a folder of splits; default ``test``, then ``valid``, then the only one
    options : those of the format of the file

    Raises `DataError` for missing splits, options that the format does not have, and invalid files.
    """
    file, notes = _find(path, split)
    rows = [row for row in registry.FORMATS if row.name != NAME]
    row, _ = registry.choose_noted(rows, file, lambda row: row.truth_looks)
    for name in ("roles", "attributes"):
        if name not in row.options:
            options.pop(name, None)
    sizes = None if "image_sizes" in row.options else options.pop("image_sizes", None)
    told = registry.told(row.name, row.options, file, **options)
    if file.suffix.lower() == ".csv":
        told["images_too"] = _pictures(file.parent)
    truth = row.read_truth(file, **told)
    truth = truth if sizes is None else image_sizes.completed(truth, sizes)
    if file.suffix.lower() == ".csv":
        notes += _without_row(file, truth)
    if file.name == ROBOFLOW[0]:
        truth, dropped = _without_unused(_with_originals(truth, file))
        notes += dropped
    return replace(truth, notes=(*truth.notes, *notes))


def _file_in(folder: Path) -> Path | None:
    return next((folder / name for name in ROBOFLOW if (folder / name).is_file()), None)


def _splits(folder: Path) -> list[str]:
    return [name for name in ROBOFLOW_SPLITS if _file_in(folder / name)]


def _find(path: Path, split: str | None) -> tuple[Path, tuple[Note, ...]]:
    """Returns the file of a split, and a note if it was chosen here."""
    file = _file_in(path) if path.is_dir() else path
    if file is not None:
        if split is not None and split != file.absolute().parent.name:
            what = f"split {split!r}, but this is one split"
            raise DataError(shown(path), what, "leave it out, or give the folder of the splits")
        return file, ()
    splits = _splits(path)
    wanted = "valid" if split == "val" else split
    if wanted is None and ("test" in splits or "valid" in splits or len(splits) == 1):
        wanted = splits[0]
    file = _file_in(path / wanted) if wanted in splits and wanted else None
    if file is None:
        what = f"no split {split!r}" if split else "no split test or valid"
        raise DataError(shown(path), what, f"the splits are: {few(splits) or 'none'}")
    if split is None:
        text = f"split of {len(splits)} was chosen: {wanted}"
        return file, (Note("split-chosen", text, 1, shown(path), adding="once"),)
    return file, ()


def _pictures(folder: Path) -> list[str]:
    return [file.name for file in folder_files.images(folder)]


def _without_row(file: Path, truth: Truth) -> tuple[Note, ...]:
    """Returns a note on images without objects."""
    count = len(truth.images) - len(np.unique(truth.image))
    text = "images have no row with a box: read as images without objects"
    return (Note("images-empty", text, count, shown(file)),) if count else ()


class _Extra(msgspec.Struct):
    name: str | None = None


class _Image(msgspec.Struct):
    id: int | str
    extra: _Extra | None = None


class _File(msgspec.Struct):
    images: list[_Image]


def _with_originals(truth: Truth, file: Path) -> Truth:
    """Adds the names of images before the upload, which are ``extra.name``, if every image has one.

    The file name shows them only without spaces and other signs.
    """
    images = typed_json.decoded(file, _File, "extra of an image holds its name").images
    name_of = {each.id: each.extra.name for each in images if each.extra and each.extra.name}
    names = [name_of.get(i, "") for i in truth.images.ids.tolist()]
    if not all(names):
        return truth
    originals = tuple(map(image_names.stem, names))
    return replace(truth, images=replace(truth.images, originals=originals))


def _without_unused(truth: Truth) -> tuple[Truth, tuple[Note, ...]]:
    """Returns a ground truth without category 0 if no object has it."""
    ids = truth.categories.ids
    if len(ids) < 2 or ids[0] != 0 or (truth.label == 0).any():
        return truth, ()
    text = f"category without objects is left out: 0 ({truth.categories.names[0]}), of Roboflow"
    categories = truth.categories.take(np.arange(1, len(ids)))
    note = Note("category-unused", text, 1, truth.source, adding="once")
    return replace(truth, categories=categories, label=truth.label - np.int32(1)), (note,)
