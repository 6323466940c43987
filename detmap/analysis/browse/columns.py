"""Columns of numbers as text for the browser, and the files that hold them."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """Returns whole numbers from 0 on in as few bytes as the largest needs, or float64 in 8:
    {"w": bytes of a number, "b": little-endian bytes in base64}.

    Not compressed: the same input gives the same bytes with every version of zlib, and a zip of
    the folder is as small.
    """
    is_float = values.dtype.kind == "f"
    numbers = np.asarray(values, dtype="<f8" if is_float else "<u4").reshape(-1, 1)
    width = 8 if is_float else max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    planes = numbers.view(np.uint8)[:, :width]
    return {"w": width, "b": base64.b64encode(planes.tobytes()).decode("ascii")}


def script(name: str, content: dict[str, Any]) -> bytes:
    """Returns a JavaScript file that hands content over under a name. Pages from disk may load
    scripts, but no JSON. ASCII only, so that no name in it has a meaning in JavaScript.
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return f"detmapData({json.dumps(name)},{text});\n".encode("ascii")
