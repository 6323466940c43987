"""Tables as data frames. pandas is imported when one is made."""

from collections.abc import Sequence
from typing import Any

from detmap.core.output.table import Table
from detmap.errors import DetmapError, require


def frame(tables: Sequence[Table], name: str, signature: str) -> Any:
    """The table of this name as a `pandas.DataFrame`; undefined numbers are NaN.

    Raises
    ------
    DetmapError : there is none, or pandas is not installed
    """
    chosen = [table for table in tables if table.name == name]
    if not chosen:
        known = ", ".join(table.name for table in tables)
        raise DetmapError("to_frame", f"no table {name!r}", f"there are {known}")
    pandas = require("pandas", "frames")
    data = pandas.DataFrame(chosen[0].rows, columns=list(chosen[0].header))
    data.attrs["signature"] = signature
    return data
