"""Columns of a table that say the same twice: they have to agree in every row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import CodedNames, coded
from detmap.core.adapters.joining import class_keys, image_keys, image_names
from detmap.core.adapters.joining.join import SCORES
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.tabular.csv_parquet import Sheet
from detmap.core.base.flat_rows import first_true
from detmap.core.tables import Truth
from detmap.core.tables.join_keys import Earlier
from detmap.errors import DataError


def scores(sheet: Sheet) -> tuple[str | None, NDArray[np.float64]]:
    """Returns the column of scores and (n,) scores; None and ones without such a column.

    Raises `DataError` for invalid cells, and for a second column with another score in a row.
    """
    column = sheet.named(SCORES)
    if column is None:
        return None, np.ones(len(sheet))
    score = sheet.numbers(column, flags=False)
    for other in columns(sheet, SCORES, column):
        try:
            second = sheet.numbers(other, blank=True, flags=False)
        except DataError:
            continue  # not one number per row, such as the scores of all classes
        differ = ~np.isnan(second) & (second != score)
        if (row := first_true(differ)) is not None:
            cells = f"{score[row]:g}", f"{second[row]:g}"
            raise contradiction(sheet, row, (column, other), cells)
    return column, score


def columns(sheet: Sheet, names: Sequence[str], known: str) -> list[str]:
    """Returns the columns with one of these names, without the known one."""
    return [each for each in sheet.columns if each != known and csv_parquet.spelled(each) in names]


def contradiction(
    sheet: Sheet, row: int, columns: tuple[str, str], cells: tuple[str, str]
) -> DataError:
    """Returns the error for two columns that contradict each other in a row."""
    one, other = columns
    what = f"{one} is {cells[0]:.100}, but {other} is {cells[1]:.100}"
    return DataError(sheet.place(row), what, f"correct the row, or remove {one} or {other}")


def require_same_images(
    sheet: Sheet, truth: Truth, column: str, image: NDArray[np.int32], other: str
) -> None:
    """Raises `DataError` if a second column names another image in a row.

    Parameters
    ----------
    image : (n,) positions by `column`
    other : the second column; what names no image of the ground truth is not compared
    """
    filled = ~sheet.blank(other)
    rows, some = np.flatnonzero(filled), sheet if filled.all() else sheet.take(filled)
    where = f"{sheet.source}: column {other}"
    named = image_keys.column_of(truth, where, None, csv_parquet.spelled(other))
    try:
        second = image_keys.find(truth, some.names(other), named, None, image_names.stem).image
    except DataError:
        return  # not one name per row, or of two meanings
    differ = (second >= 0) & (second != image[rows])
    if differ.any():
        row = int(rows[np.argmax(differ)])
        at, own = int(second[np.argmax(differ)]), int(image[row])
        first = "no image of the ground truth"
        if own >= 0:
            first = image_keys.described(truth.images, own)
        cells = first, image_keys.described(truth.images, at)
        raise contradiction(sheet, row, (column, other), cells)


def require_same_classes(
    sheet: Sheet, truth: Truth, policy: Policy, by_name: tuple[str, NDArray[np.int32]], ids: str
) -> None:
    """Raises `DataError` if a column of ids contradicts that of names.

    An id has one name, and a name one id. Ids of a column that is named as one (``category_id``)
    are those of the ground truth.

    Parameters
    ----------
    by_name : the column of names, and (n,) positions by it
    """
    column, label = by_name
    names, numbers = sheet.names(column), coded(sheet.columns[ids])
    _require_pairs(sheet, policy, (column, names), (ids, numbers))
    header = csv_parquet.spelled(ids)
    if header not in class_keys.IDS:
        return
    where = f"{sheet.source}: column {ids}"
    alone = policy._replace(earlier=None)
    try:
        second = class_keys.find(truth, sheet.names(ids), where, alone, header).label
    except DataError:
        return  # the ground truth has no such ids
    differ = (second >= 0) & (second != label)
    if (row := first_true(differ)) is not None:
        first = repr(names[row])
        if label[row] >= 0:
            first = class_keys.described(truth.categories, int(label[row]))
        cells = first, class_keys.described(truth.categories, int(second[row]))
        raise contradiction(sheet, row, (column, ids), cells)


def _require_pairs(
    sheet: Sheet, policy: Policy, one: tuple[str, CodedNames], other: tuple[str, CodedNames]
) -> None:
    """Raises `DataError` for the first row whose id has had another name, or name another id."""
    (column, names), (ids, numbers) = one, other
    n = max(len(numbers.names), 1)
    code = names.code * np.int64(n) + numbers.code
    pairs, first = np.unique(code, return_index=True)
    known = Earlier().pairs if policy.earlier is None else policy.earlier.pairs
    order = np.argsort(first)
    for pair, row in zip(pairs[order].tolist(), first[order].tolist(), strict=True):
        name, number = names.names[pair // n], numbers.names[pair % n]
        for entry, value, what in (
            (("name", name), number, f"{column} {name!r:.60} has {ids}"),
            (("id", number), name, f"{ids} {number!r:.60} has {column}"),
        ):
            before = known.setdefault(entry, value)  # type: ignore[arg-type]
            if before != value:
                what += f" {value!r:.60}, but {before!r:.60} before"
                fix = f"correct the row, or remove {column} or {ids}"
                raise DataError(sheet.place(row), what, fix)
