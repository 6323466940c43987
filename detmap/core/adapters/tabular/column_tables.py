"""Reads truth and detections from tables with named columns: CSV, Parquet, data frames.

A row is a box: image, class, four numbers, and a score for detections. Column names define the four
numbers; ``box_format`` defines fractions and VOC pixels. A ground truth row without box and class
is an image without objects.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions, folder_files
from detmap.core.adapters.coded_names import CodedNames
from detmap.core.adapters.joining import class_keys, image_keys, image_names, image_sizes, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.tabular import agreement, box_columns, csv_parquet, flag_columns
from detmap.core.adapters.tabular.csv_parquet import Sheet
from detmap.core.base import arguments, column_checks
from detmap.core.base.flat_rows import first_true
from detmap.core.overlaps.rotated_boxes import RotatedBoxes, require_rotated, rotated_boxes
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.errors import DataError, few

CLASS_NAME = ("class", "classname", "categoryname", "labelname", "label", "category", "name", "cls")
SCORED = "truth-scored"  # of notes
MOST_CLASSES = 50_000  # of a ground truth: each takes memory in every table of numbers
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
    """Reads ground truth from a sheet.

    Class ids come from a column of whole numbers; else names are numbered from 1 in alphabetical
    order.

    Parameters
    ----------
    sheet : one row per box
    box_format : see `box_columns.find`
    sizes_file : CSV file of image sizes; it may list images without objects
    images_too : further images, without objects
    categories : id to name; default: from the columns
    roles, attributes : further columns of flags and numbers, if present

    Raises `DataError` for missing or ambiguous columns and invalid cells.
    """
    blank = sheet.blank(_class_column(sheet)[0])
    boxes, notes = box_columns.find_meaning(sheet, box_format, blank)
    empty = np.isnan(boxes.values).all(axis=1) & blank
    objects = sheet.take(~empty) if empty.any() else sheet
    values = boxes.values[~empty]
    images, image = _images(sheet, sizes_file, boxes.columns, images_too)
    rows = image[~empty]
    written, table_format = box_conventions.table_boxes(
        values,
        boxes.box_format,
        sizes=(images.width[rows], images.height[rows]),
        place=objects.place,
    )
    known, label, named = _categories(objects, categories)
    shapes = _rotated(boxes, objects, ~empty)
    area = objects.named(("area",))
    flags, unknown = flag_columns.read(objects, roles)
    numbers = {
        name: objects.numbers(column, blank=True)
        for name, column in flag_columns.named(objects, attributes).items()
    }
    if len(np.unique(agreement.scores(objects)[1])) > 1:  # a confidence of 1 is usual
        text = "objects have a score, as detections have: scores of a ground truth are not used"
        unknown = (*unknown, Note(SCORED, text, len(objects), sheet.source))
    areas = box_conventions.areas(written, table_format) if shapes is None else shapes.area
    if area is not None:
        areas = objects.numbers(area)
        bad = ~(np.isfinite(areas) & (areas >= 0))
        if (row := first_true(bad)) is not None:
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
        notes=(*notes, *unknown),
        shapes=shapes,
        named=named,
    )


def read_detections(
    sheet: Sheet, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """Reads detections from a sheet.

    Raises `DataError` for missing or ambiguous columns, invalid cells and unknown images.
    """
    boxes, meaning = box_columns.find_meaning(sheet, box_format)
    score_column, score = agreement.scores(sheet)
    bad = ~np.isfinite(score)
    if (row := first_true(bad)) is not None:
        where = f"{sheet.place(row)}, column {score_column}"
        raise DataError(where, f"{score[row]} is not a finite number", "correct the row")
    image, named_images, notes = _found_images(sheet, truth, policy)
    notes = (*notes, *meaning)
    if score_column is None:
        if any(note.code == SCORED for note in truth.notes):
            what = "has no column of scores, and the ground truth has one"
            fix = "give the ground truth first: the two may be exchanged"
            raise DataError(sheet.source, what, fix)
        _refuse_other_scores(sheet, boxes.columns)
        notes = (*notes, *join.unscored(len(sheet), sheet.source, sheet.columns))
    if truth.box_format == "voc" and box_format is None and boxes.box_format == "xyxy":
        text = (
            "columns are read as box corners; if they are first and last pixels, as in "
            "VOC XML, use --detections-box-format voc"
        )
        notes = (
            *notes,
            Note("corners-assumed", text, len(boxes.columns), sheet.source, adding="once"),
        )
    classes = _found_classes(sheet, truth, policy)
    written, table_format = box_conventions.table_boxes(
        boxes.values,
        boxes.box_format,
        sizes=box_conventions.sizes_of(truth, image),
        place=sheet.place,
    )
    return join.joined(
        truth,
        image,
        classes.label,
        written,
        score,
        box_format=table_format,
        origin=join.Origin(sheet.source, sheet.place, named_images, classes.given),
        policy=policy,
        notes=(*notes, *classes.notes),
        shapes=_rotated(boxes, sheet, np.ones(len(score), dtype=bool)),
    )


def _refuse_other_scores(sheet: Sheet, used: Sequence[str]) -> None:
    """Raises `DataError` for a typed table without scores that has a column which may hold them."""
    others = [
        name
        for name, cells in sheet.columns.items()
        if isinstance(cells, np.ndarray) and cells.dtype.kind == "f" and name not in used
        if cells.size and ((cells >= 0) & (cells <= 1)).all()
    ]
    if others:
        what = f"has no column of scores, and numbers from 0 to 1 in {few(others)}"
        fix = "rename the column of scores to score; remove the others, or all if none is a score"
        raise DataError(sheet.source, what, fix)


def _rotated(
    boxes: box_columns.Boxes, sheet: Sheet, rows: NDArray[np.bool_]
) -> RotatedBoxes | None:
    """Returns the rotated boxes of rows, which `sheet` holds alone; None if there are none."""
    return None if boxes.rotated is None else rotated_boxes(boxes.rotated[rows], sheet.place)


# --- images ---------------------------------------------------------------------------------------


def _images(
    sheet: Sheet, sizes_file: Path | None, box_columns: Sequence[str], more: Sequence[str]
) -> tuple[Images, NDArray[np.int32]]:
    """Returns the images of a ground truth, and the image of each row.

    With a column of ids, file names give the stems. Else ids are stems, and a size file may list
    images without objects.
    """
    column = sheet.find(csv_parquet.IMAGE, "image")
    names = sheet.names(column)
    if not names:
        raise DataError(sheet.source, "holds no row", "write one row per object")
    row_of = names.code
    known = set(map(image_names.stem, names.names)) if more else set()
    listed = [*names.names]
    listed += [name for name in dict.fromkeys(more) if image_names.stem(name) not in known]
    files = sheet.named(FILE_NAME)
    paths = listed
    if files is not None and files != column:
        file_of = _files_of(sheet, (column, names), files)
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
        ids = arguments.ids(f"{sheet.source}: images", list(map(int, listed)))
    if ids is None:
        ids = column_checks.id_array(f"{sheet.source}: column {column}", listed)
    stems = [""] * len(ids) if paths is listed else list(map(image_names.stem, paths))
    images, order = image_names.ordered(ids, stems, sizes)
    return images, order[row_of]


def _files_of(sheet: Sheet, ids: tuple[str, CodedNames], files: str) -> dict[str, str]:
    """Returns the file of each id. Raises `DataError` for an id with two."""
    (column, names), paths = ids, sheet.names(files)
    first = np.zeros(len(names.names), dtype=np.int64)
    first[names.code[::-1]] = np.arange(len(names))[::-1]
    differ = paths.code != paths.code[first[names.code]]
    if (row := first_true(differ)) is not None:
        what = f"{column} {names[row]!r:.60} has {files} {paths[row]!r:.100}, but "
        what += f"{paths[int(first[names.code[row]])]!r:.100} before"
        raise DataError(sheet.place(row), what, f"correct the row, or remove {files}")
    rows = first.tolist()
    return {name: paths[row] for name, row in zip(names.names, rows, strict=True)}


def _sizes(
    sheet: Sheet,
    sizes_file: Path | None,
    box_columns: Sequence[str],
    row_of: NDArray[np.int32],
    names: list[str],
    paths: list[str],
) -> image_sizes.Sizes:
    """Returns width and height of each image, from the size file or from columns."""
    if sizes_file is not None:
        called: Sequence[Sequence[str]] = [(path, image_names.stem(path)) for path in paths]
        if paths is not names:
            called = image_sizes.choose_names(sizes_file, names, called)
        return image_sizes.from_path(sizes_file, called)
    sizes = []
    for sides in (csv_parquet.WIDTH[:-1], csv_parquet.HEIGHT[:-1]):  # w and h are those of boxes
        left = [name for name in sides if sheet.named([name]) not in (None, *box_columns)]
        column = sheet.named(left)
        if column is None:
            return box_conventions.unknown_sizes(len(names))
        values = sheet.numbers(column)
        size = np.full(len(names), np.nan)
        size[row_of] = values
        bad = ~((values > 0) & (values <= image_sizes.MOST)) | (size[row_of] != values)
        if (row := first_true(bad)) is not None:
            what = f"{values[row]:g} pixels, but {size[row_of[row]]:g} before"
            raise DataError(f"{sheet.place(row)}, column {column}", what, "give one size above 0")
        sizes.append(size)
    return sizes[0], sizes[1]


def _found_images(
    sheet: Sheet, truth: Truth, policy: Policy
) -> tuple[NDArray[np.int32], Sequence[Any], tuple[Note, ...]]:
    """Returns the image of each row in the ground truth, its name in the sheet, and notes.

    Raises `DataError` for a second column that names another image in a row.
    """
    column = sheet.find(csv_parquet.IMAGE, "image")
    found = _images_of(sheet, truth, policy, column)
    for other in agreement.columns(sheet, csv_parquet.IMAGE, column):
        agreement.require_same_images(sheet, truth, column, found[0], other)
    return found


def _images_of(
    sheet: Sheet, truth: Truth, policy: Policy, column: str
) -> tuple[NDArray[np.int32], Sequence[Any], tuple[Note, ...]]:
    """Does the same by one column."""
    where, spelled = f"{sheet.source}: column {column}", csv_parquet.spelled(column)
    named = image_keys.column_of(truth, where, policy.image_key, spelled)
    evidence = policy.evidence(column)
    ids = sheet.whole(column) if isinstance(sheet.columns[column], np.ndarray) else None
    if ids is None:
        rows = sheet.names(column)
        image, _ = image_keys.find(truth, rows, named, evidence, image_names.stem)
        return image, rows, ()
    image, notes = join.images_named(
        truth, ids, sheet.place, sheet.source, column=named, evidence=evidence
    )
    return image, ids.tolist(), notes


# --- classes --------------------------------------------------------------------------------------


def _class_column(sheet: Sheet) -> tuple[str, str | None]:
    """Returns the class column, and a second one with ids if there are names.

    In a file of YOLOv5 the column ``class`` holds numbers and ``name`` their names, which may be
    numbers too.
    """
    name, number = sheet.named(CLASS_NAME), sheet.named(class_keys.IDS)
    if name is not None and number is None and sheet.whole(name) is not None:
        others = [sheet.named((each,)) for each in (*class_keys.NAMES, *CLASS_NAME)]
        for each in dict.fromkeys(column for column in others if column not in (None, name)):
            if csv_parquet.spelled(str(each)) in class_keys.NAMES or sheet.whole(str(each)) is None:
                return str(each), name
    _refuse_two_classes(sheet, CLASS_NAME if number is None else CLASS_NAME[:-2])
    _refuse_two_classes(sheet, class_keys.IDS)
    column = name or number
    if column is None:
        return sheet.find(CLASS_NAME, "class"), None
    return column, number if name is not None else None


def _refuse_two_classes(sheet: Sheet, names: Sequence[str]) -> None:
    """Raises `DataError` if two columns may be the class, and they differ in a row."""
    image = sheet.named(csv_parquet.IMAGE)
    given = [column for name in names if (column := sheet.named((name,))) not in (None, image)]
    for kind in (True, False):
        one, *others = [name for name in given if _is_text(sheet, name) == kind] or [""]
        for other in others:
            pairs = zip(sheet.columns[one], sheet.columns[other], strict=True)
            row = next((i for i, (a, b) in enumerate(pairs) if a != b), -1)
            if row >= 0:
                cells = f"{sheet.columns[one][row]!r:.60} and {sheet.columns[other][row]!r:.60}"
                what = f"columns {one} and {other} may both be the class: {cells}"
                raise DataError(sheet.place(row), what, f"correct the row, or remove {other}")


def _is_text(sheet: Sheet, column: str) -> bool:
    values = sheet.columns[column]
    is_number = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
    return not is_number and sheet.whole(column) is None


def _categories(
    sheet: Sheet, known: Mapping[int, str] | None
) -> tuple[Categories, NDArray[np.int32], bool]:
    """Returns the classes of a ground truth, the class of each row, and whether they have names
    alone, no ids.
    """
    column, ids_column = _class_column(sheet)
    numbers = sheet.whole(ids_column or column)
    if known is not None:
        given_ids = sorted(known)
        texts = tuple(known[i] for i in given_ids)
        categories = Categories(np.array(given_ids, dtype=np.int64), texts)
        given = sheet.names(column) if numbers is None else numbers
        used = ids_column if numbers is not None and ids_column is not None else column
        where = f"{sheet.source}: column {used}"
        label = class_keys.find_declared(categories, given, where, csv_parquet.spelled(used))
        if (row := first_true(label < 0)) is not None:
            what = f"no class {given[row]!r} in categories"
            raise DataError(f"{sheet.place(row)}, column {column}", what, "list every class")
        return categories, label, False
    if ids_column is not None and numbers is None:
        where = f"{sheet.source}: column {ids_column}"
        raise DataError(where, "not whole numbers", "write ids such as 7, not 007")
    if numbers is None:
        names = sheet.names(column)
        listed = sorted(names.names)
        _refuse_many(len(listed), f"{sheet.source}: column {column}")
        label = names.positions({name: i for i, name in enumerate(listed)})
        return Categories(np.arange(1, len(listed) + 1), tuple(listed)), label, True
    ids = np.unique(numbers)
    _refuse_many(len(ids), f"{sheet.source}: column {column}")
    label = np.searchsorted(ids, numbers).astype(np.int32)
    if ids_column is None:
        return Categories(ids, tuple(map(str, ids.tolist()))), label, False
    name_of: dict[int, str] = {}
    for row, (number, name) in enumerate(zip(numbers.tolist(), sheet.texts(column), strict=True)):
        if name_of.setdefault(number, name) != name:
            what = f"class {number} is {name!r}, but {name_of[number]!r} before"
            raise DataError(f"{sheet.place(row)}, column {column}", what, "give each id one name")
    return Categories(ids, tuple(name_of[i] for i in ids.tolist())), label, False


def _refuse_many(classes: int, where: str) -> None:
    if classes > MOST_CLASSES:
        what = f"{classes} classes, where {MOST_CLASSES} are plenty"
        raise DataError(where, what, "call the column of classes class, and check its cells")


def _found_classes(sheet: Sheet, truth: Truth, policy: Policy) -> class_keys.Found:
    """Returns the class of each row in the ground truth.

    Raises `DataError` for a column of ids beside one of names that names another class in a row.
    """
    column, ids = _class_column(sheet)
    if ids is not None and policy.class_names is not None:
        column, ids = ids, None
    numbers = sheet.whole(column) if isinstance(sheet.columns[column], np.ndarray) else None
    given = sheet.names(column) if numbers is None else numbers
    where, header = f"{sheet.source}: column {column}", csv_parquet.spelled(column)
    if ids is None:
        return class_keys.find(truth, given, where, policy, header)
    found = class_keys.find(truth, sheet.names(column), where, policy, "name")
    agreement.require_same_classes(sheet, truth, policy, (column, found.label), ids)
    return found


# --- files ----------------------------------------------------------------------------------------


def _read_file_truth(
    name: str,
    read: Callable[[Path], Sheet],
    path: Path,
    box_format: str | None = None,
    image_sizes: Path | None = None,
    shapes: str = "boxes",
    **named: Any,
) -> Truth:
    """Reads a file of truth; see `read_truth`."""
    require_rotated(shapes, path, name)
    return read_truth(read(path), box_format, image_sizes, **named)


read_csv_truth = partial(_read_file_truth, "CSV", csv_parquet.read_csv)
read_parquet_truth = partial(_read_file_truth, "PARQUET", csv_parquet.read_parquet)


def read_csv_detections(
    path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """Reads a CSV file of detections, or a folder with one per image; see `read_detections`."""
    read = csv_parquet.read_folder if path.is_dir() else csv_parquet.read_csv
    found = read_detections(read(path), truth, box_format, policy)
    return replace(found, notes=(*found.notes, *folder_files.unread(path, ".csv")))


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`: a folder of CSV files of detections."""
    first = folder_files.first(path, ".csv")
    return 2 * (first is not None and csv_parquet.is_of_image(first))


def read_parquet_detections(
    path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """Reads a Parquet file of detections; see `read_detections`."""
    return read_detections(csv_parquet.read_parquet(path), truth, box_format, policy)
