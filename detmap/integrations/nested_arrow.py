"""Reads tables with one row an image: Arrow, pandas or a list of dicts, with nested columns."""

from typing import Any

import numpy as np

from detmap.errors import DataError, require

KEYS = {
    "bbox": "boxes",
    "box": "boxes",
    "category_id": "labels",
    "category": "labels",
    "label": "labels",
    "score": "scores",
}
"""Names of columns beside those of `detmap.Evaluator.update`, which are kept."""
ID = "image_id"
"""Of a row; its records may repeat it, as those of COCO JSON."""


def images_from_table(
    table: Any, *, truth: str = "truth", detections: str = "detections"
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns predictions and targets for `detmap.Evaluator.update`.

    Parameters
    ----------
    table : an Arrow table or record batch, a pandas frame, or a list of dicts: one row an image,
        with ``image_id`` and two nested columns
    truth, detections : names of the nested columns; a list of structs, or a struct of lists, with
        the keys of `detmap.Evaluator.update` or of COCO JSON (``bbox``, ``category_id``,
        ``score``)

    Raises
    ------
    DataError : a column is missing or is not nested; a row without a list; a box without four
        numbers; a record with another ``image_id`` than its row
    """
    arrow = require("pyarrow", "parquet")
    n_given = len(table) if isinstance(table, list) else 0  # Arrow has no rows without columns
    table = _arrow_table(arrow, table)
    if not table.num_rows and not n_given:
        return [], []  # its columns may have no type
    for name in (ID, truth, detections):
        if name not in table.column_names:
            fix = f"the columns are {', '.join(table.column_names) or 'none'}"
            raise DataError("table", f"no column {name!r}", fix)
    column = table.column(ID)
    _require_given(f"table: {ID}", column, "give every row the id of its image")
    ids = column.to_pylist()
    return _images(ids, table, detections, truth), _images(ids, table, truth, truth)


def _arrow_table(arrow: Any, table: Any) -> Any:
    """Returns the rows as an Arrow table. Raises `DataError` for values that Arrow cannot hold."""
    if isinstance(table, arrow.Table):
        return table
    try:
        if isinstance(table, arrow.RecordBatch):
            return arrow.Table.from_batches([table])
        if isinstance(table, list):
            return arrow.Table.from_pylist(table)
        return arrow.Table.from_pandas(table)
    except (arrow.ArrowException, OverflowError, TypeError, AttributeError) as error:
        fix = "give one row an image, with one type per column; a whole number has 64 bits"
        raise DataError("table", str(error), fix) from None


def _images(ids: list[Any], table: Any, name: str, truth: str) -> list[dict[str, Any]]:
    """Returns one dict an image; an image without rows has empty columns."""
    arrow = require("pyarrow", "parquet")
    column = table.column(name).combine_chunks()
    _require_lists(f"table: {name}", column)
    images: list[dict[str, Any]] = [{ID: each} for each in ids]
    if _is_list(arrow, column.type) and arrow.types.is_null(column.type.value_type):
        nothing = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64)}
        scores = {} if name == truth else {"scores": np.zeros(0)}
        return [each | nothing | scores for each in images]  # no row in the whole table
    for key, lists in _fields(arrow, name, column):
        if key == ID:
            _require_same_id(arrow, name, ids, lists)
            continue
        _require_lists(f"table: {name}.{key}", lists)
        sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
        values = _values(arrow, f"{name}.{key}", lists.flatten())
        for image, part in zip(images, np.split(values, np.cumsum(sizes)[:-1]), strict=False):
            image[KEYS.get(key, key)] = part
    return images


def _require_same_id(arrow: Any, name: str, ids: list[Any], column: Any) -> None:
    """Raises `DataError` for the first record that names another image than its row."""
    for row, (known, given) in enumerate(zip(ids, column.to_pylist(), strict=True)):
        inside = given if _is_list(arrow, column.type) else [given]
        for i, each in enumerate(inside or ()):
            if each is not None and (type(each) is not type(known) or each != known):
                what = f"{each!r:.80}, where the row has the {ID} {known!r:.80}"
                fix = f"give both the same {ID}, or leave it out of the records"
                raise DataError(f"table: {name}[{row}][{i}].{ID}", what, fix)


def _require_lists(where: str, column: Any) -> None:
    """Raises `DataError` for a row that is null: null does not mean that the image has no boxes."""
    _require_given(where, column, "give an empty list to an image without any")


def _require_given(where: str, column: Any, fix: str) -> None:
    """Raises `DataError` for the first row that is null."""
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise DataError(f"{where}[{row}]", "None", fix)


def _fields(arrow: Any, name: str, column: Any) -> list[tuple[str, Any]]:
    """Returns the lists of each field."""
    if arrow.types.is_struct(column.type):
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        lists = [column.field(each) for each in names]
    elif _is_list(arrow, column.type) and arrow.types.is_struct(column.type.value_type):
        sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        off = arrow.array(np.concatenate([[0], np.cumsum(sizes)]), type=arrow.int64())
        flat = column.flatten()
        names = [flat.type.field(i).name for i in range(flat.type.num_fields)]
        lists = [arrow.LargeListArray.from_arrays(off, flat.field(each)) for each in names]
    else:
        fix = "give a list of structs, or a struct of lists, with bbox, category_id and score"
        raise DataError(f"table: {name}", f"type {column.type}", fix)
    for key, each in zip(names, lists, strict=True):
        if not _is_list(arrow, each.type) and key != ID:
            raise DataError(f"table: {name}.{key}", f"type {each.type}", "give a list an image")
    return list(zip(names, lists, strict=True))


def _values(arrow: Any, where: str, values: Any) -> Any:
    """The rows of all images: (n, 4) boxes, or n values."""
    if not len(values) and arrow.types.is_null(values.type):
        return np.zeros(0)  # lists that are all empty have no type
    if not _is_list(arrow, values.type):
        array = values.to_numpy(zero_copy_only=False)
        return array.astype(str) if array.dtype.kind == "O" and len(array) else array
    sizes = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    if (sizes != 4).any():
        row = int(np.argmax(sizes != 4))
        raise DataError(f"table: {where}[{row}]", f"{sizes[row]} numbers", "a box has four")
    return values.flatten().to_numpy(zero_copy_only=False).reshape(-1, 4)


def _is_list(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
