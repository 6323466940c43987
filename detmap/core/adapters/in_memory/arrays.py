"""Creates tables from arrays in memory."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.adapters import box_conventions
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import ClassNames, named_classes, policy
from detmap.core.adapters.tabular import column_tables, csv_parquet
from detmap.core.base import arguments
from detmap.core.base.immutable import blank
from detmap.core.base.parallel import map_chunks
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.tables import MAX_ROWS, BoxFormat, Categories, Detections, Images, Truth
from detmap.core.tables.grouping import positions
from detmap.errors import DataError

Table = Any
"""A frame of pandas or polars, an Arrow table, a dict of columns."""


@proposes_arguments
def truth_from_arrays(
    image_id: ArrayLike | Table,
    category_id: ArrayLike | None = None,
    boxes: ArrayLike | None = None,
    *,
    box_format: str | None = None,
    area: ArrayLike | None = None,
    crowd: ArrayLike | None = None,
    images: ArrayLike | None = None,
    categories: dict[int, str] | None = None,
    roles: Mapping[str, ArrayLike] | Sequence[str] | None = None,
    attributes: Mapping[str, ArrayLike] | Sequence[str] | None = None,
) -> Truth:
    """Creates ground truth from arrays, or from a table.

    >>> import detmap
    >>> truth = detmap.truth_from_arrays(
    ...     image_id=[1, 1], category_id=[1, 2], boxes=[[0, 0, 9, 9], [20, 0, 9, 9]]
    ... )
    >>> len(truth), truth.categories.names
    (2, ('1', '2'))

    Parameters
    ----------
    image_id : (G,) integers or strings; or a table (pandas, polars, Arrow, dict) with the columns
        of a CSV file (docs/formats.md); with a table only `box_format`, `images`, `categories`, and
        column names in `roles` and `attributes` are allowed
    box_format : box convention: one of `detmap.core.adapters.BOX_FORMATS` (default of arrays:
        ``xywh``; of a table: its column names define it)
    category_id : (G,) integers
    boxes : (G, 4) pixels in `box_format`, by default x, y, width, height
    area : (G,) square pixels; default width times height
    crowd : (G,) bool; default False
    images : ids of all images of the split; default: the ids in `image_id`, without images that
        have no objects
    categories : id to name; default: the ids in `category_id`, named by number
    roles : (G,) bool each, by role name: ``{"occluded": ...}``
    attributes : (G,) numbers each, by attribute name: ``{"visibility": ...}``; NaN is unknown,
        outside every range

    Raises
    ------
    DataError : wrong shapes, negative or non-finite numbers, ids not in `images` or `categories`
    """
    where = "truth arrays"
    if csv_parquet.is_table(image_id):
        columns = [each for each in (roles, attributes) if isinstance(each, Mapping | str)]
        _refuse_beside_table(where, (category_id, boxes, area, crowd, *columns))
        named = {"roles": tuple(roles or ()), "attributes": tuple(attributes or ())}
        return _truth_from_table(image_id, box_format, images, categories, named)
    category_id, boxes = _needed(where, category_id=category_id, boxes=boxes)
    image_ids, category_ids = (
        arguments.ids(f"{where}: image_id", image_id),
        arguments.ids(f"{where}: category_id", category_id),
    )
    sizes = partial(box_conventions.unknown_sizes, len(image_ids))
    xywh, form = _boxes(where, boxes, len(image_ids), box_format, sizes)
    known = np.unique(image_ids if images is None else arguments.ids(f"{where}: images", images))
    classes = _classes(where, category_ids, _category_names(where, categories))
    given = box_conventions.areas(xywh, form) if area is None else area
    areas = arguments.numbers(f"{where}: area", given, flags=False)
    given_crowd = np.zeros(len(xywh), dtype=bool) if crowd is None else crowd
    crowds = arguments.flags(f"{where}: crowd", given_crowd)
    flags = {"crowd": crowds} | _named(f"{where}: roles", roles, arguments.flags)
    numbers = {"area": areas} | _named(f"{where}: attributes", attributes, arguments.numbers)
    _same_length(where, len(xywh), category_id=category_ids, **flags, **numbers)
    bad = ~(np.isfinite(areas) & (areas >= 0))
    arguments.refuse_first(f"{where}: area", areas, bad, "is negative or not a finite number")
    unknown = np.full(len(known), np.nan)
    return Truth(
        Images(known, ("",) * len(known), unknown, unknown),
        classes,
        _places(where, "image_id", image_ids, known, "add every id to images="),
        _places(where, "category_id", category_ids, classes.ids, "add every id to categories="),
        xywh,
        roles=flags,
        attributes=numbers,
        box_format=form,
        family="coco",
        source=where,
    )


def _truth_from_table(
    table: Table,
    box_format: str | None,
    images: ArrayLike | None,
    categories: dict[int, str] | None,
    named: dict[str, Any],
) -> Truth:
    """Does `truth_from_arrays` for a table."""
    where = "truth arrays"
    ids = () if images is None else arguments.ids(f"{where}: images", images).tolist()
    return column_tables.read_truth(
        csv_parquet.from_table(table, "truth table"),
        box_format,
        images_too=list(map(str, ids)),
        categories=_category_names(where, categories),
        **named,
    )


def _classes(where: str, ids: NDArray[Any], categories: dict[int, str] | None) -> Categories:
    """The given classes, or those of the ids, named by number."""
    if categories is None and ids.dtype.kind != "i":
        what = f"{ids[0].item()!r} is a string"
        raise DataError(f"{where}: category_id[0]", what, "category ids are whole numbers")
    names = {int(i): str(i) for i in np.unique(ids)} if categories is None else categories
    class_ids = np.sort(arguments.ids(f"{where}: categories", list(names)))
    if class_ids.dtype.kind != "i":
        raise DataError(
            f"{where}: categories", "keys are strings", "give a dict from category id to name"
        )
    return Categories(class_ids, tuple(names[int(i)] for i in class_ids))


def _places(
    where: str, field: str, ids: NDArray[Any], known: NDArray[Any], fix: str
) -> NDArray[np.int32]:
    """(n,) positions of ids among known ones; raises `DataError` for an unknown id."""
    if len(ids) and len(known) and ids.dtype.kind != known.dtype.kind:
        raise DataError(
            f"{where}: {field}[0]",
            f"{ids[0].item()!r}, but known ids are such as {known[0].item()!r}",
            "give integers or strings in both",
        )
    places = positions(known, ids)
    arguments.refuse_first(f"{where}: {field}", ids, places < 0, "is unknown", fix)
    return places


@proposes_arguments
def detections_from_arrays(
    truth: Truth,
    image_id: ArrayLike | Table,
    category_id: ArrayLike | None = None,
    boxes: ArrayLike | None = None,
    score: ArrayLike | None = None,
    *,
    box_format: str | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
    image_key: str | None = None,
    class_key: str | None = None,
) -> Detections:
    """Creates detections from arrays, or from a table.

    >>> import detmap
    >>> truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    >>> found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 8]], score=[0.9])
    >>> round(detmap.evaluate(truth, found, "coco-bbox")["AP"], 2)
    0.8

    Parameters
    ----------
    truth : the ground truth that the ids refer to
    image_id, category_id : (D,) ids as in the ground truth; or `image_id` is a table, as in
        `truth_from_arrays`
    box_format : as in `truth_from_arrays`
    boxes : (D, 4) pixels in `box_format`
    score : (D,) finite numbers; None: detections without scores, all 1
    unknown, class_names, image_key, class_key : as in `read_detections`

    Raises
    ------
    DataError : wrong shapes, negative or non-finite numbers, unknown images or classes
    """
    where = "detection arrays"
    told = policy(unknown, class_names, image_key, class_key)
    if not isinstance(truth, Truth):
        what = f"a {type(truth).__name__} instead of a ground truth"
        raise DataError(
            f"{where}: truth", what, "give the result of `truth_from_arrays` or `read_truth`"
        )
    truth, told = named_classes(truth, told)
    if csv_parquet.is_table(image_id):
        _refuse_beside_table(where, (category_id, boxes, score))
        sheet = csv_parquet.from_table(image_id, "detection table")
        return column_tables.read_detections(sheet, truth, box_format, told)
    category_id, boxes = _needed(where, category_id=category_id, boxes=boxes)
    image_ids, category_ids = (
        arguments.ids(f"{where}: image_id", image_id),
        arguments.ids(f"{where}: category_id", category_id),
    )
    given = np.ones(len(image_ids)) if score is None else score
    scores = arguments.numbers(f"{where}: score", given, flags=False)
    _same_length(where, len(image_ids), category_id=category_ids, score=scores)
    arguments.refuse_first(
        f"{where}: score", scores, ~np.isfinite(scores), "is not a finite number"
    )
    label = join.classes_by_id(truth, category_ids, f"{where}: category_id[0]", told)

    def place(i: int) -> str:
        return f"{where}: image_id[{i}]"

    image, notes = join.images_named(truth, image_ids, place, where, key="id")
    sizes = partial(box_conventions.sizes_of, truth, image)
    xywh, form = _boxes(where, boxes, len(image_ids), box_format, sizes)
    origin = join.Origin(
        where, place, image_ids, category_ids, lambda i: f"{where}: category_id[{i}]"
    )
    return join.joined(
        truth,
        image,
        label,
        xywh,
        scores,
        box_format=form,
        origin=origin,
        policy=told,
        notes=(*notes, *(join.unscored(len(xywh), where) if score is None else ())),
        checked=box_format in (None, "xywh"),  # `_copied` has seen each
    )


def _refuse_beside_table(where: str, more: Sequence[Any]) -> None:
    if any(each is not None for each in more):
        raise DataError(where, "a table and separate columns", "add all columns to the table")


def _needed(where: str, **arrays: ArrayLike | None) -> list[Any]:
    """Returns the arrays, all of which are required."""
    for name, array in arrays.items():
        if array is None:
            raise DataError(f"{where}: {name}", "missing", "give every array, or one table")
    return list(arrays.values())


def _category_names(where: str, categories: Any) -> dict[int, str] | None:
    """Returns checked class names by id."""
    if categories is not None and not (
        isinstance(categories, Mapping)
        and all(isinstance(name, str) for name in categories.values())
    ):
        fix = "give a dict from category id to name"
        raise DataError(
            f"{where}: categories", f"{type(categories).__name__}: {categories!r:.60}", fix
        )
    return categories  # type: ignore[return-value]


def _named(
    where: str,
    columns: Mapping[str, ArrayLike] | Sequence[str] | None,
    read: Callable[[str, ArrayLike], Any],
) -> dict[str, NDArray[Any]]:
    """Returns further columns by name."""
    if not isinstance(columns, Mapping | None) or not all(
        isinstance(name, str) for name in columns or ()
    ):
        raise DataError(where, f"{columns!r:.60}", "give a dict from name to array")
    taken = {"area", "crowd"}.intersection(columns or ())
    if taken:
        raise DataError(f"{where}[{taken.pop()!r}]", "has its own argument", "use it")
    return {name: read(f"{where}[{name!r}]", column) for name, column in (columns or {}).items()}


def _boxes(
    where: str,
    boxes: ArrayLike,
    n_rows: int,
    box_format: str | None,
    sizes: Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> tuple[NDArray[np.float64], BoxFormat]:
    """(n, 4) table boxes and their format; `sizes` finds widths and heights of the rows' images."""
    form = "xywh" if box_format is None else box_conventions.require(box_format)
    array = arguments.numbers(f"{where}: boxes", boxes, flags=False)
    if array.size == 0:
        array = array.reshape(0, 4)
    if array.ndim != 2 or array.shape[1] != 4 or len(array) != n_rows:
        raise DataError(
            f"{where}: boxes",
            f"shape {array.shape} where ({n_rows}, 4) is needed",
            f"one row of {form} for each image id",
        )
    if n_rows > MAX_ROWS:
        raise DataError(f"{where}: boxes", f"{n_rows} rows", f"evaluate at most {MAX_ROWS} at once")
    if form != "xywh":
        return box_conventions.table_boxes(
            array, form, sizes=sizes(), place=f"{where}: boxes[{{}}]".format
        )
    return _copied(where, array), "xywh"


def _copied(where: str, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """A checked copy of boxes x, y, width, height."""
    from detmap.kernels.overlap import copy_boxes

    xywh = blank(array.shape, np.float64)

    def copy(rows: slice) -> int:
        row = copy_boxes(array[rows], join.MAX_PIXEL, xywh[rows])
        return row if row < 0 else row + int(rows.start)

    row = next((row for row in map_chunks(copy, len(array)) if row >= 0), -1)
    if row >= 0:
        what = join.box_fault(xywh[row], xywh[row].tolist())
        fix = (
            f"a box is x, y, width, height in pixels, each at most {join.MAX_PIXEL:g}; "
            'box_format="xyxy" reads corners'
        )
        raise DataError(f"{where}: boxes[{row}]", what, fix)
    return xywh


def _same_length(where: str, n_rows: int, **columns: NDArray[Any]) -> None:
    for name, column in columns.items():
        if column.shape != (n_rows,):
            raise DataError(
                f"{where}: {name}",
                f"shape {column.shape} where ({n_rows},) is needed",
                "give one value per box",
            )
