"""A Parquet file that is mutated: read or refused in words, within limits."""

import io
import random

import pyarrow
from pyarrow import parquet

from detmap.core.adapters.tabular import csv_parquet as sheets
from tools.fuzzing import _bounds

STREAM = io.BytesIO()
TABLE = {name: [1.0] * 9 for name in "xywh"} | {"image": ["a"] * 9, "class": ["b", "c", "d"] * 3}
parquet.write_table(pyarrow.table(TABLE), STREAM)
PIECES = [bytes([value]) for value in (0, 1, 2, 0x15, 0x7F, 0x80, 0xFF)] + [b"\xff" * 8, b"PAR1"]


def case(seed: int) -> str | None:
    """What is wrong with one mutated file."""
    rng = random.Random(seed)
    data = _bounds.mutated(rng, STREAM.getvalue(), PIECES)
    return _bounds.checked(sheets.read_parquet, data, ".parquet")
