"""Reads cells, text and numbers of MATLAB's MAT files of version 5, as far as benchmarks use them.

Source: MathWorks, MAT-File Format (level 5).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.base import memory, open_files
from detmap.base.open_files import shown
from detmap.errors import DataError

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL, TEXT = 1, 4
NUMERIC = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
CHARACTERS = {1: "u1", 2: "u1", 4: "u2", 16: "u1", 17: "u2"}
ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16-le", 16: "utf-8", 17: "utf-16-le"}
NUMBERS = range(6, 16)  # classes of arrays: double, single, and integers
DEEPEST = 8  # cells within cells
MOST_TIMES = 1100  # zlib packs no better

Array = NDArray[Any]
"""Numbers in MATLAB's shape, or an object array of cells."""
Value = Array | str


class _BrokenError(ValueError):
    """What is wrong with the bytes."""


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A part of the file and its byte order."""

    data: memoryview
    order: str

    def elements(self) -> Iterator[tuple[int, _Bytes]]:
        """Type and content of each data element."""
        at, size = 0, len(self.data)
        while at < size:
            if size - at < 8:
                raise _BrokenError("a data element is cut off")
            kind, length = struct.unpack_from(f"{self.order}II", self.data, at)
            if kind >> 16:  # a small element: both in four bytes
                kind, length, begin, step = kind & 0xFFFF, kind >> 16, at + 4, 8
                if length > 4:
                    raise _BrokenError(f"a small data element of {length} bytes")
            else:
                begin = at + 8
                padded = length if kind == COMPRESSED else -(-length // 8) * 8
                step = 8 + padded
            if begin + length > size:
                raise _BrokenError("a data element is cut off")
            yield kind, _Bytes(self.data[begin : begin + length], self.order)
            at += step

    def numbers(self, kind: int, codes: dict[int, str]) -> Array:
        """(n,) the content as numbers of a data type."""
        if kind not in codes:
            raise _BrokenError(f"data type {kind}")
        number = np.dtype(self.order + codes[kind])
        if len(self.data) % number.itemsize:
            raise _BrokenError("a part of a number")
        return np.frombuffer(self.data, number)


def read(path: Path) -> dict[str, Value]:
    """Returns the variables by name.

    Raises
    ------
    DataError : not a MAT file of version 5, broken, or with other contents than cells, text and
        numbers
    """
    data = open_files.read_bytes(path, times=4)
    if data.startswith(b"\x89HDF") or data[:10] == b"MATLAB 7.3":
        fix = "save it again with -v7 or -v6"
        raise DataError(shown(path), "a MAT file of version 7.3 (HDF5)", fix)
    order = {b"IM": "<", b"MI": ">"}.get(data[126:HEADER], "")
    if not order:
        fix = "give the benchmark's own file, or save it with -v7 or -v6"
        raise DataError(shown(path), "not a MAT file of version 5", fix)
    try:
        return dict(_variables(_Bytes(memoryview(data)[HEADER:], order), shown(path)))
    except (_BrokenError, zlib.error) as error:
        fix = "copy or download the file again"
        raise DataError(shown(path), f"broken MAT file: {error}", fix) from None


def _variables(content: _Bytes, where: str) -> Iterator[tuple[str, Value]]:
    for kind, part in content.elements():
        if kind == COMPRESSED:
            for inner, of in _unpacked(part, where).elements():
                if inner == MATRIX:
                    yield _matrix(of, 0)
        elif kind == MATRIX:
            yield _matrix(part, 0)


def _unpacked(part: _Bytes, where: str) -> _Bytes:
    most = MOST_TIMES * len(part.data) + 64
    memory.require(min(most, 1 << 28), where, "decompressing")
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(part.data, most)
    if not unpacker.eof:
        raise _BrokenError("compressed data that do not end")
    return _Bytes(memoryview(data), part.order)


def _matrix(part: _Bytes, depth: int) -> tuple[str, Value]:
    """Name and value of an array."""
    if not len(part.data):
        return "", np.zeros((0, 0))
    if depth > DEEPEST:
        raise _BrokenError("cells are nested too deeply")
    elements = part.elements()
    try:
        (flag_kind, flags), (shape_kind, shape), (_, name) = (next(elements) for _ in range(3))
    except (StopIteration, RuntimeError):
        raise _BrokenError("an array without flags, shape and name") from None
    words = flags.numbers(flag_kind, {6: "u4"})
    sides = [int(side) for side in shape.numbers(shape_kind, {5: "i4"})]
    if not len(words) or len(sides) < 2 or min(sides) < 0:
        raise _BrokenError("an array without a shape")
    of, size, called = int(words[0]) & 0xFF, math.prod(sides), bytes(name.data).decode("latin-1")
    if int(words[0]) & 0x800:
        raise _BrokenError(f"{called or 'an array'} is complex")
    if of == CELL:
        return called, _cells(elements, sides, size, depth)
    if of != TEXT and of not in NUMBERS:
        raise _BrokenError(f"{called or 'an array'} is of class {of}, not cells, text or numbers")
    kind, values = next(elements, (0, None))
    if values is None:
        raise _BrokenError(f"{called or 'an array'} has no content")
    found = values.numbers(kind, CHARACTERS if of == TEXT else NUMERIC)
    if len(found) != size:
        raise _BrokenError(f"{len(found)} values where the shape is {sides}")
    if of == TEXT:
        return called, _text(found, kind)
    return called, found.astype(np.float64).reshape(sides, order="F")


def _cells(
    elements: Iterator[tuple[int, _Bytes]], sides: list[int], size: int, depth: int
) -> Array:
    parts: list[Value] = []
    for kind, each in elements:
        if kind != MATRIX or len(parts) == size:
            raise _BrokenError("cells with other content than arrays")
        parts.append(_matrix(each, depth + 1)[1])
    if len(parts) != size:
        raise _BrokenError(f"{len(parts)} cells where the shape is {sides}")
    cells = np.empty(size, dtype=object)
    cells[:] = parts
    return cells


def _text(found: Array, kind: int) -> str:
    wide = found.astype("<u2").tobytes() if kind in (4, 17) else found.tobytes()
    try:
        return wide.decode(ENCODINGS[kind])
    except UnicodeDecodeError:
        raise _BrokenError(f"text that is not {ENCODINGS[kind]}") from None
