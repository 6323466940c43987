"""Reads roles and attributes by name from the annotations of COCO JSON."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from detmap.core.adapters.coco.record_errors import short
from detmap.core.adapters.coco.records import Records
from detmap.core.base import arguments
from detmap.core.base.open_files import shown
from detmap.core.tables import Columns, Note, Truth
from detmap.errors import DataError


def with_columns(
    truth: Truth, records: Records, roles: Sequence[str], attributes: Sequence[str]
) -> Truth:
    """Adds roles and attributes to the ground truth, as far as annotations have them.

    A missing role is False and a missing attribute is NaN; notes count both. Raises `DataError` for
    invalid values.
    """
    columns: dict[str, Any] = {}
    notes = []
    for name in (*roles, *attributes):
        values = records.values[name]
        missing = sum(value is None for value in values)
        if missing == len(values):
            continue
        read, unknown = (arguments.flag, False) if name in roles else (_number, np.nan)
        column = [unknown if value is None else read(value) for value in values]
        if None in column:
            row = column.index(None)
            kind = "flag" if name in roles else "number"
            fix = arguments.FLAG_FIX if name in roles else "an attribute is a number"
            what = f"{short(values[row])} is not a {kind}"
            raise DataError(records.place(name)(row), what, fix)
        columns[name] = np.array(column, dtype=bool if name in roles else np.float64)
        if missing:
            reading = "false" if name in roles else "NaN, outside every range"
            text = f"annotations have no {name}: read as {reading}"
            notes.append(Note("column-missing", text, missing, shown(records.path)))
    return replace(
        truth,
        roles=Columns({**truth.roles, **{x: columns[x] for x in roles if x in columns}}),
        attributes=Columns(
            {**truth.attributes, **{x: columns[x] for x in attributes if x in columns}}
        ),
        notes=(*truth.notes, *notes),
    )


def _number(value: Any) -> float | None:
    """Returns a number, None if invalid."""
    try:
        number = float(value) if isinstance(value, bool | int | float) else math.inf
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
