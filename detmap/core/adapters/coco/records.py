"""Reads further keys of COCO JSON records besides the boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import decode, ids, record_errors, tool_results
from detmap.core.adapters.coco.ids import Id, Ids
from detmap.core.adapters.joining import join
from detmap.core.overlaps.shape_records import Place
from detmap.core.tables import Truth
from detmap.core.tables.grouping import positions
from detmap.errors import DataError

NESTED = "attributes"
"""A key of annotations whose value may hold further ones by name (CVAT, BDD)."""


class Records(NamedTuple):
    """Records of a file.

    Parameters
    ----------
    rows : n, the place of each in its list
    values : n values per requested key; None if missing
    """

    path: Path
    group: str
    rows: Sequence[int]
    values: Mapping[str, list[Any]]

    def place(self, field: str) -> Place:
        """Returns a function from row i to the place of a field."""
        return lambda i: f"{record_errors.place(self.path, self.group, self.rows[i])}.{field}"

    def take(self, rows: Sequence[int]) -> Records:
        """Selects records."""
        values = {name: [of[i] for i in rows] for name, of in self.values.items()}
        return self._replace(rows=[self.rows[i] for i in rows], values=values)


class Results(NamedTuple):
    """The records of a results file; ids and scores as in `decode.Scored`."""

    records: Records
    image_ids: Ids
    category_ids: Ids
    score: NDArray[np.float64]


def objects(path: Path, truth: Truth, names: Sequence[str]) -> Records:
    """Returns values of some keys, also of those in ``attributes``, for each object of a ground
    truth.

    Raises `DataError` for repeated keys and for reserved names.
    """
    fixed: list[Any] = [("image_id", Id), ("category_id", int | float)]
    row = _row_of(fixed, (*names, NESTED))
    kind = msgspec.defstruct(
        "Instances",
        [
            ("annotations", list[row]),  # type: ignore[valid-type]
            ("images", msgspec.Raw, msgspec.Raw(b"")),
            ("categories", msgspec.Raw, msgspec.Raw(b"")),
        ],
        gc=False,
    )
    data = tool_results.read_bytes(path)
    file: Any = _decoded(path, data, kind, record_errors.INSTANCES)
    annotations = file.annotations
    values = _values(annotations, (*names, NESTED))
    inner = [each if isinstance(each, dict) else {} for each in values.pop(NESTED)]
    least = {name: sum(x is not None for x in of) for name, of in values.items()}
    for name in names:
        key = b'"%s"' % name.encode()
        least[name] += bytes(file.images).count(key) + bytes(file.categories).count(key)
        if any(name in each for each in inner):
            least[name] += sum(name in each for each in inner)
            values[name] = [
                each.get(name) if own is None else own
                for own, each in zip(values[name], inner, strict=True)
            ]
    least |= record_errors.least_runs(values.get("segmentation", ()))
    record_errors.require_once(path, data, record_errors.INSTANCES, least)
    image_ids = ids.read(path, "annotations", "image_id", [row.image_id for row in annotations])
    image = join.places(truth.images.ids, image_ids)
    category_ids = np.array([row.category_id for row in annotations]).astype(np.int64)
    known = (image >= 0) & (positions(truth.categories.ids, category_ids) >= 0)
    records = Records(path, "annotations", range(len(annotations)), values)
    return records.take(np.flatnonzero(known).tolist())


def results(path: Path, data: bytes, names: Sequence[str]) -> Results:
    """Returns the records of plain JSON results with the values of some keys."""
    fixed: list[Any] = [("image_id", Id), ("category_id", Id), ("score", float)]
    row = _row_of(fixed, names)
    kind = msgspec.defstruct("Results", [("annotations", list[row])], gc=False)  # type: ignore[valid-type]
    file: Any = _decoded(path, data, list[row] | kind, record_errors.SHAPED)  # type: ignore[valid-type]
    annotations, group = (file, "") if isinstance(file, list) else (file.annotations, "annotations")
    values = _values(annotations, names)
    least = {
        "annotations": 1,
        **dict.fromkeys(("image_id", "category_id", "score"), len(annotations)),
    }
    least |= {name: sum(x is not None for x in of) for name, of in values.items()}
    least |= record_errors.least_runs(values.get("segmentation", ()))
    record_errors.require_once(path, data, record_errors.SHAPED, least)
    records = Records(path, group, range(len(annotations)), values)
    image_ids = ids.read(path, group, "image_id", [each.image_id for each in annotations])
    category_ids = ids.read(path, group, "category_id", [each.category_id for each in annotations])
    score = np.array([each.score for each in annotations], dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(score)).tolist()
    if bad:
        where = records.place("score")(bad[0])
        raise DataError(where, "is not a finite number", "a score is a number")
    return Results(records, image_ids, category_ids, score)


def _row_of(fixed: Sequence[Any], names: Sequence[str]) -> Any:
    """Returns a record type with optional keys of any type."""
    taken = [name for name in names if name in {key for key, _ in fixed}]
    if taken:
        raise DataError(taken[0], "is a reserved key", "name another key")
    keys = {f"value{i}": name for i, name in enumerate(names)}
    more = [(field, Any, None) for field in keys]
    return msgspec.defstruct("Record", [*fixed, *more], rename=keys, gc=False)


def _values(records: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [getattr(row, f"value{i}") for row in records] for i, name in enumerate(names)}


def _decoded(path: Path, data: bytes, kind: Any, expected: record_errors.Expected) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except decode.REFUSALS as error:
        raise record_errors.explain(path, data, expected, error) from None
