"""Writes MAT files of version 5, for tests."""

import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

HEADER = 128


def element(kind: int, content: bytes, order: str = "<") -> bytes:
    padding = b"" if kind == 15 else bytes(-len(content) % 8)
    return struct.pack(f"{order}II", kind, len(content)) + content + padding


def matrix(name: str, of: int, shape: tuple[int, ...], content: bytes, order: str) -> bytes:
    parts = (
        element(6, struct.pack(f"{order}II", of, 0), order),
        element(5, struct.pack(f"{order}{len(shape)}i", *shape), order),
        element(1, name.encode(), order),
        content,
    )
    return element(14, b"".join(parts), order)


def array(name: str, values: Any, order: str = "<", of: int = 6) -> bytes:
    content = np.asarray(values, dtype=f"{order}f8").tobytes(order="F")
    return matrix(name, of, values.shape, element(9, content, order), order)


def text(name: str, content: str, order: str = "<") -> bytes:
    values = content.encode("utf-16-le" if order == "<" else "utf-16-be")
    return matrix(name, 4, (1, len(content)), element(4, values, order), order)


def cells(name: str, parts: list[bytes], order: str = "<") -> bytes:
    return matrix(name, 1, (len(parts), 1), b"".join(parts), order)


def mat(*variables: bytes, packed: bool = False, order: str = "<") -> bytes:
    if packed:
        variables = tuple(element(15, zlib.compress(each), order) for each in variables)
    mark = b"IM" if order == "<" else b"MI"
    return b"MATLAB 5.0".ljust(124) + struct.pack(f"{order}H", 0x100) + mark + b"".join(variables)


def value(name: str, given: Any) -> bytes:
    """Numbers, a text in UTF-8, or a list as a column of cells."""
    if isinstance(given, list):
        return cells(name, [value("", each) for each in given])
    if isinstance(given, str):
        return matrix(name, 4, (1, len(given)), element(16, given.encode()), "<")
    return array(name, np.atleast_2d(given))


def saved(variables: Mapping[str, Any], packed: bool = True) -> bytes:
    """A file of variables by name."""
    return mat(*(value(name, each) for name, each in variables.items()), packed=packed)
