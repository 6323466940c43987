"""Flags of objects in named columns: difficult, iscrowd, ignore, and those of Open Images.

Source: the box annotations of Open Images V7, whose IsGroupOf, IsOccluded, ... are 0, 1 or -1.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.tabular.csv_parquet import Sheet
from detmap.core.base import arguments
from detmap.core.tables import Note

OPEN_IMAGES = ("group_of", "occluded", "truncated", "depiction", "inside")
"""Of these its evaluation uses group_of alone, which COCO calls a crowd."""


def named(sheet: Sheet, names: Iterable[str]) -> dict[str, str]:
    """Returns the named columns that exist: ``group_of`` is group_of or IsGroupOf."""
    columns = {
        name: sheet.named((f"is{csv_parquet.spelled(name)}", csv_parquet.spelled(name)))
        for name in names
    }
    return {name: column for name, column in columns.items() if column is not None}


def read(
    sheet: Sheet, roles: Sequence[str]
) -> tuple[dict[str, NDArray[np.bool_]], tuple[Note, ...]]:
    """Returns the flags of objects, and notes on how Open Images' are read."""
    columns = named(sheet, ("difficult", "crowd", "ignore", *OPEN_IMAGES, *roles))
    notes: list[Note] = []
    if "group_of" in columns and "crowd" not in columns and "group_of" not in roles:
        columns["crowd"] = columns["group_of"]
    flags = {}
    for role, column in columns.items():
        values = sheet.numbers(column)
        if role in OPEN_IMAGES and (values == -1).any():
            text = f"objects have {column} -1, which is unknown: read as 0"
            notes.append(Note("flag-unknown", text, int((values == -1).sum()), sheet.source))
            values = np.where(values == -1, 0.0, values)
        flags[role] = arguments.flags(f"{sheet.source}: column {column}", values)
    if columns.get("crowd") == columns.get("group_of", "") and flags["crowd"].any():
        text = "objects are group-of boxes (IsGroupOf): read as crowds"
        notes.append(Note("group-of-crowd", text, int(flags["crowd"].sum()), sheet.source))
    return flags, tuple(notes)
