"""Columns of numbers as text for the browser, and the files that hold them."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDEST = 4  # bytes of a whole number


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """Returns whole numbers from 0 on in as few bytes as the largest needs: {"w": bytes of a
    number, "b": little-endian bytes in base64}.

    Not compressed: the same input gives the same bytes with every version of zlib, and a zip of
    the folder is as small.
    """
    numbers = np.asarray(values, dtype="<u4")
    width = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    planes = numbers.reshape(-1, 1).view(np.uint8)[:, :width]
    return {"w": width, "b": base64.b64encode(planes.tobytes()).decode("ascii")}


def packed_floats(values: NDArray[Any]) -> dict[str, Any]:
    """Returns float64 numbers as `packed` does, 8 bytes each."""
    raw = np.asarray(values, dtype="<f8").tobytes()
    return {"w": 8, "b": base64.b64encode(raw).decode("ascii")}


def script(name: str, content: dict[str, Any]) -> bytes:
    """Returns a JavaScript file that hands content over under a name. Pages from disk may load
    scripts, but no JSON. ASCII only, so that no name in it has a meaning in JavaScript.
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return f"detmapData({json.dumps(name)},{text});\n".encode("ascii")
