"""Writes small MAT files of level 5, for tests that do without scipy."""

import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def array(value: Any, name: str = "") -> bytes:
    """A matrix element of a list (a column of cells), a text or numbers."""
    if isinstance(value, list):
        kind, sides, content = 1, (len(value), 1), b"".join(map(array, value))
    elif isinstance(value, str):
        kind, sides, content = 4, (1, len(value)), element(16, value.encode())
    else:
        numbers = np.atleast_2d(np.asarray(value, dtype="<f8"))
        kind, sides, content = 6, numbers.shape, element(9, numbers.tobytes("F"))
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<ii", *sides))
    return element(14, head + element(1, name.encode()) + content)


def mat(variables: Mapping[str, Any], packed: bool = True) -> bytes:
    parts = [array(value, name) for name, value in variables.items()]
    if packed:
        parts = [struct.pack("<II", 15, len(z := zlib.compress(part))) + z for part in parts]
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(parts)
