"""Numbers of many cells of a text at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.scanning.json_scan import Floats, read_number
from detmap.kernels.scanning.json_skip import HAND_BACK, Bytes

Places = NDArray[np.int64]


@kernel
def read_cells(text: Bytes, begin: Places, end: Places, values: Floats) -> int:
    """Parse the cells text[begin:end] as numbers of JSON.

    text (n,) uint8, without a digit behind its last cell; begin, end (m,) int64; out: values (m,)
    float64, the nearest doubles. Returns m, or a negative number if a cell has another form; then
    the full reader has to decide.

    Source: RFC 8259, section 6.
    """
    for i in range(begin.size):
        value, at = read_number(text, begin[i])
        if at != end[i]:
            return HAND_BACK
        values[i] = value
    return int(begin.size)
