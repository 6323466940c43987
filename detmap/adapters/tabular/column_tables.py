"""Truth and detections from tables with named columns: CSV, Parquet, frames in memory.

A row is a box: an image, a class, four numbers, of a detection a score. What the four numbers are
is said by the names of their columns; whether they are fractions, or count pixels as VOC does, by
``box_format``. A row of the truth without box and class is an image without objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import box_conventions as geometry
from detmap.adapters.joining import image_names, image_sizes
from detmap.adapters.joining import join as joining
from detmap.adapters.joining.unknown_policy import STRICT, Policy
from detmap.adapters.tabular import box_columns
from detmap.adapters.tabular import csv_parquet as sheets
from detmap.adapters.tabular.csv_parquet import Sheet
from detmap.base import arguments as given
from detmap.base import column_checks as checks
from detmap.errors import DataError
from detmap.tables import Categories, Detections, Images, Note, Truth

CLASS_NAME = ("class", "classname", "categoryname", "labelname", "label", "category", "name", "cls")
CLASS_ID = ("classid", "categoryid", "labelid", "classidx", "catid")
MOST_CLASSES = 50_000  # of a truth: each takes memory in every table of numbers
SCORE = ("score", "confidence", "conf", "scores", "probability", "prob")
FILE_NAME = ("filename", "imagename", "imagepath", "path", "file")


def read_truth(
    sheet: Sheet,
    box_format: str | None = None,
    sizes_file: Path | None = None,
    *,
    images_too: Sequence[str] = (),
    categories: Mapping[int, str] | None = None,
    roles: Sequence[str] = (),
    attributes: Sequence[str] = (),
) -> Truth:
    """The truth that a sheet holds.

    Parameters
    ----------
    sheet : a row a box
    box_format : see `box_columns.find`
    sizes_file : CSV file of the images' sizes; it may list images without objects
    images_too : further images, without objects
    categories : id to name; made of the columns when left out
    roles, attributes : further columns of flags and of numbers, where the sheet has them

    Class ids are those of a column of whole numbers; names without ids are numbered from 1 in
    alphabetical order.

    Raises
    ------
    DataError : a column that is missing or may be read in two ways, a cell that is not what it
        should be
    """
    blank = _blank_class(sheet)
    boxes = box_columns.find(sheet, box_format, blank)
    empty = np.isnan(boxes.values).all(axis=1) & blank
    objects = sheet.take(~empty) if empty.any() else sheet
    values = boxes.values[~empty]
    images, image = _images(sheet, sizes_file, boxes.columns, images_too)
    rows = image[~empty]
    written, table_format = geometry.table_boxes(
        values,
        boxes.box_format,
        sizes=(images.width[rows], images.height[rows]),
        place=objects.place,
    )
    known, label = _categories(objects, categories)
    area = objects.named(("area",))
    flags = {
        role: given.flags(f"{objects.source}: column {column}", objects.numbers(column))
        for role, column in _named(objects, ("difficult", "crowd", "ignore", *roles)).items()
    }
    numbers = {
        name: objects.numbers(column, blank=True)
        for name, column in _named(objects, attributes).items()
    }
    areas = geometry.areas(written, table_format)
    if area is not None:
        areas = objects.numbers(area)
        bad = ~(np.isfinite(areas) & (areas >= 0))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{objects.place(row)}, column {area}", f"{areas[row]:g}", "from 0 on")
    return Truth(
        images,
        known,
        rows,
        label,
        written,
        roles=flags,
        attributes=numbers | {"area": areas},
        box_format=table_format,
        family="coco",
        source=sheet.source,
    )


def read_detections(
    sheet: Sheet, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """The detections that a sheet holds.

    Raises
    ------
    DataError : a column that is missing or may be read in two ways, a cell that is not what it
        should be, images that the truth lacks
    """
    boxes = box_columns.find(sheet, box_format)
    score_column = sheet.find(SCORE, "score")
    score = sheet.numbers(score_column)
    bad = ~np.isfinite(score)
    if bad.any():
        row = int(np.argmax(bad))
        where = f"{sheet.place(row)}, column {score_column}"
        raise DataError(where, f"{score[row]} is not a finite number", "correct the row")
    image, named_images, notes = _found_images(sheet, truth)
    if truth.family == "voc" and box_format is None and boxes.box_format == "xyxy":
        text = (
            "columns are read as corners of boxes; where they are first and last pixels, as in the "
            "XML of VOC, read them with --detections-box-format voc"
        )
        notes = (*notes, Note("corners-assumed", text, len(boxes.columns), sheet.source))
    label, classes = _found_classes(sheet, truth, policy)
    written, table_format = geometry.table_boxes(
        boxes.values, boxes.box_format, sizes=geometry.sizes_of(truth, image), place=sheet.place
    )
    return joining.joined(
        truth,
        image,
        label,
        written,
        score,
        box_format=table_format,
        origin=joining.Origin(sheet.source, sheet.place, named_images, classes),
        policy=policy,
        notes=notes,
    )


def _named(sheet: Sheet, names: Iterable[str]) -> dict[str, str]:
    """The columns of names, of those that have one: ``group_of`` is group_of or IsGroupOf."""
    columns = {
        name: sheet.named((f"is{sheets.spelled(name)}", sheets.spelled(name))) for name in names
    }
    return {name: column for name, column in columns.items() if column is not None}


# --- images ---------------------------------------------------------------------------------------


def _images(
    sheet: Sheet, sizes_file: Path | None, box_columns: Sequence[str], more: Sequence[str]
) -> tuple[Images, NDArray[np.int32]]:
    """The images of a truth, and that of each row.

    Beside a column of ids one of file names gives the stems; else an id is a stem itself, and a
    file of sizes may list images without objects.
    """
    column = sheet.find(sheets.IMAGE, "image")
    names = sheet.texts(column)
    if not names:
        raise DataError(sheet.source, "holds no row", "write one row an object")
    listed = list(dict.fromkeys(names))
    place = {name: i for i, name in enumerate(listed)}
    row_of = np.array([place[name] for name in names], dtype=np.int32)
    listed += [name for name in dict.fromkeys(more) if name not in place]
    files = sheet.named(FILE_NAME)
    paths = listed
    if files is not None and files != column:
        file_of = dict(zip(names, sheet.texts(files), strict=True))
        paths = [file_of.get(name, "") for name in listed]
    elif sizes_file is not None:
        rows = set(map(image_names.stem, listed))
        sized = image_sizes.listed(sizes_file)
        listed += [name for name in sized if image_names.stem(name) not in rows]
    sizes = _sizes(sheet, sizes_file, box_columns, row_of, listed, paths)
    in_memory = isinstance(sheet.columns[column], np.ndarray)
    whole = in_memory and sheet.whole(column) is not None
    if paths is listed and not whole:
        images, order = image_names.table(sheet.source, listed, sizes)
        return images, order[row_of]
    ids: NDArray[Any] | None = image_names.plain_numbers(listed)
    if whole:
        ids = given.ids(f"{sheet.source}: images", list(map(int, listed)))
    if ids is None:
        ids = checks.id_array(f"{sheet.source}: column {column}", listed)
    back = np.argsort(ids, kind="stable")
    order = np.argsort(back).astype(np.int32)
    stems = tuple("" if paths is listed else image_names.stem(paths[i]) for i in back.tolist())
    width, height = (np.ascontiguousarray(side[back]) for side in sizes)
    return Images(ids[back], stems, width, height), order[row_of]


def _sizes(
    sheet: Sheet,
    sizes_file: Path | None,
    box_columns: Sequence[str],
    row_of: NDArray[np.int32],
    names: list[str],
    paths: list[str],
) -> image_sizes.Sizes:
    """Width and height of each image: of the file, else of columns that are not the box's."""
    if sizes_file is not None:
        called = [
            (name, path, image_names.stem(path)) for name, path in zip(names, paths, strict=True)
        ]
        return image_sizes.from_csv(sizes_file, called)
    sizes = []
    for sides in (sheets.WIDTH[:-1], sheets.HEIGHT[:-1]):  # w and h are those of boxes
        left = [name for name in sides if sheet.named([name]) not in (None, *box_columns)]
        column = sheet.named(left)
        if column is None:
            return geometry.unknown_sizes(len(names))
        values = sheet.numbers(column)
        size = np.full(len(names), np.nan)
        size[row_of] = values
        bad = ~((values > 0) & (values <= image_sizes.MOST)) | (size[row_of] != values)
        if bad.any():
            row = int(np.argmax(bad))
            what = f"{values[row]:g} pixels, where {size[row_of[row]]:g} are said of the same image"
            raise DataError(f"{sheet.place(row)}, column {column}", what, "give one size above 0")
        sizes.append(size)
    return sizes[0], sizes[1]


def _found_images(
    sheet: Sheet, truth: Truth
) -> tuple[NDArray[np.int32], Sequence[Any], tuple[Note, ...]]:
    """The image of each row in the truth, how the sheet calls it, and how it was found."""
    column = sheet.find(sheets.IMAGE, "image")
    ids = sheet.whole(column) if isinstance(sheet.columns[column], np.ndarray) else None
    if ids is not None:
        image, notes = joining.images_named(truth, ids, sheet.place, sheet.source)
        return image, ids.tolist(), notes
    names = sheet.texts(column)
    known = set(map(str, truth.images.ids.tolist())) | set(truth.images.stems)
    short = {name: name if name in known else image_names.stem(name) for name in set(names)}
    image = joining.images_by_stem(truth, [short[name] for name in names], sheet.source)
    return image, names, ()


# --- classes --------------------------------------------------------------------------------------


def _class_column(sheet: Sheet) -> tuple[str, str | None]:
    """The column that says the class, and a second one with ids beside names."""
    name, number = sheet.named(CLASS_NAME), sheet.named(CLASS_ID)
    column = name or number
    if column is None:
        return sheet.find(CLASS_NAME, "class"), None
    return column, number if name is not None else None


def _blank_class(sheet: Sheet) -> NDArray[np.bool_]:
    """(n,) which rows say no class."""
    values = sheet.columns[_class_column(sheet)[0]]
    if not isinstance(values, np.ndarray):
        return np.array([not cell for cell in values], dtype=bool)
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.array(list(map(_missing, values.tolist())), dtype=bool)


def _missing(cell: Any) -> bool:
    """None, NaN, or pandas' NA."""
    return (
        cell is None
        or type(cell).__name__ == "NAType"
        or (isinstance(cell, float) and math.isnan(cell))
    )


def _categories(
    sheet: Sheet, known: Mapping[int, str] | None
) -> tuple[Categories, NDArray[np.int32]]:
    """The classes of a truth, and that of each row."""
    column, ids_column = _class_column(sheet)
    numbers = sheet.whole(ids_column or column)
    if known is not None:
        given_ids = sorted(known)
        texts = tuple(known[i] for i in given_ids)
        categories = Categories(np.array(given_ids, dtype=np.int64), texts)
        cells: list[Any] = sheet.texts(column) if numbers is None else numbers.tolist()
        place = {cell: i for i, cell in enumerate(texts if numbers is None else given_ids)}
        label = np.array([place.get(cell, -1) for cell in cells], dtype=np.int32)
        if (label < 0).any():
            row = int(np.argmax(label < 0))
            what = f"no class {cells[row]!r} in categories"
            raise DataError(f"{sheet.place(row)}, column {column}", what, "list every class")
        return categories, label
    if ids_column is not None and numbers is None:
        where = f"{sheet.source}: column {ids_column}"
        raise DataError(where, "not whole numbers", "class ids are whole numbers")
    if numbers is None:
        names = sheet.texts(column)
        listed = sorted(set(names))
        _refuse_many(len(listed), f"{sheet.source}: column {column}")
        place = {name: i for i, name in enumerate(listed)}
        label = np.array([place[name] for name in names], dtype=np.int32)
        return Categories(np.arange(1, len(listed) + 1), tuple(listed)), label
    ids = np.unique(numbers)
    _refuse_many(len(ids), f"{sheet.source}: column {column}")
    label = np.searchsorted(ids, numbers).astype(np.int32)
    if ids_column is None:
        return Categories(ids, tuple(map(str, ids.tolist()))), label
    name_of: dict[int, str] = {}
    for row, (number, name) in enumerate(zip(numbers.tolist(), sheet.texts(column), strict=True)):
        if name_of.setdefault(number, name) != name:
            what = f"class {number} is {name!r} here and {name_of[number]!r} before"
            raise DataError(f"{sheet.place(row)}, column {column}", what, "give each id one name")
    return Categories(ids, tuple(name_of[i] for i in ids.tolist())), label


def _refuse_many(classes: int, where: str) -> None:
    if classes > MOST_CLASSES:
        what = f"{classes} classes, where {MOST_CLASSES} are plenty"
        raise DataError(where, what, "call the column of classes class, and check its cells")


def _found_classes(
    sheet: Sheet, truth: Truth, policy: Policy
) -> tuple[NDArray[np.int32], Sequence[Any]]:
    """The class of each row in the truth, by name where the cells are its names, else by id."""
    column, _ = _class_column(sheet)
    numbers = sheet.whole(column)
    if numbers is not None:
        names = set(truth.categories.names)
        are_names = set(map(str, np.unique(numbers).tolist())) <= names
        if policy.class_names is not None or not are_names:
            return joining.classes_by_id(truth, numbers, sheet.source, policy), numbers.tolist()
    classes = sheet.texts(column)
    return joining.classes_by_id(truth, classes, sheet.source, policy), classes


# --- files ----------------------------------------------------------------------------------------


def read_csv_truth(
    path: Path, box_format: str | None = None, image_sizes: Path | None = None, **named: Any
) -> Truth:
    """A CSV file of truth; see `read_truth`."""
    return read_truth(sheets.read_csv(path), box_format, image_sizes, **named)


def read_csv_detections(
    path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """A CSV file of detections; see `read_detections`."""
    return read_detections(sheets.read_csv(path), truth, box_format, policy)


def read_parquet_truth(
    path: Path, box_format: str | None = None, image_sizes: Path | None = None, **named: Any
) -> Truth:
    """A Parquet file of truth; see `read_truth`."""
    return read_truth(sheets.read_parquet(path), box_format, image_sizes, **named)


def read_parquet_detections(
    path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """A Parquet file of detections; see `read_detections`."""
    return read_detections(sheets.read_parquet(path), truth, box_format, policy)
