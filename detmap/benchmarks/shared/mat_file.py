"""Reads MAT files of MATLAB, level 5 (``save -v6``, ``save -v7``): numbers, texts and cells.

Source: MathWorks, "MAT-File Format", level 5: a header of 128 bytes, then elements with a tag of
type and size. Structures, objects, sparse and complex arrays are not read: a variable with one is
an error if it is requested.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory, open_files
from detmap.core.base.open_files import shown
from detmap.errors import DataError, few

HEADER, TAG = 128, 8  # bytes
MATRIX, COMPRESSED = 14, 15
CELL, CHAR, NUMERIC = 1, 4, range(6, 16)  # classes of arrays
COMPLEX = 0x0800
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
NUMBERS |= {13: "u8"}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
DEEPEST = 16  # cells in cells
MOST_SIDES = 8  # dimensions of an array
PLENTY = 1 << 24  # bytes that any variable may unpack to
MOST_TIMES = 32  # as large as it is packed, beyond: a number is float64 here, maybe a byte there
SAVE = "write the file with save -v7"

Value = NDArray[Any] | str


def read_variables(path: Path, names: tuple[str, ...]) -> list[Value]:
    """Returns the variables of these names.

    A number array is float64, a cell array is of objects, both in MATLAB's shape; a row of
    characters is a string.

    Raises `DataError` for invalid files and missing variables.
    """
    data = memoryview(open_files.read_bytes(path, what="reading MATLAB variables"))
    order = _byte_order(shown(path), data)
    found: dict[str, Value] = {}
    present = []
    for element in _elements(_Bytes(shown(path), data, HEADER, order), packed=True):
        name, content = _header(element)
        present.append(name)
        if name in names:
            if name in found:
                raise element.error(f"variable {name!r} occurs twice")
            found[name] = _value(content, 0)
    for name in names:
        if name not in found:
            what = f"no variable {name!r}; there are {few(present) or 'none'}"
            raise DataError(shown(path), what, f"give the file with {' and '.join(names)}")
    return [found[name] for name in names]


def _byte_order(where: str, data: memoryview) -> str:
    if bytes(data[:6]) == b"MATLAB" and b"MATLAB 7.3" in bytes(data[:HEADER]):
        raise DataError(where, "a MAT file of version 7.3 (HDF5)", SAVE)
    mark = bytes(data[126:HEADER])
    if mark not in (b"IM", b"MI"):
        raise DataError(where, "not a MAT file of level 5", SAVE)
    return "<" if mark == b"IM" else ">"


@dataclass(slots=True)
class _Bytes:
    """Bytes of a file, read from the front.

    Parameters
    ----------
    where : the file, for messages
    data : of the element
    at : what has been read
    order : of the bytes of a number, < or >
    """

    where: str
    data: memoryview
    at: int
    order: str

    def error(self, what: str) -> DataError:
        return DataError(f"{self.where}: byte {self.at}", what, "write or copy the file again")

    def tag(self) -> tuple[int, _Bytes]:
        """Returns the type and the content of the next element."""
        if len(self.data) - self.at < TAG:
            raise self.error("ends in the middle")
        kind, size = np.frombuffer(self.data, f"{self.order}u4", 2, self.at).tolist()
        begin = self.at + TAG
        if kind >> 16:  # a small element: type, size and up to 4 bytes
            kind, size, begin = kind & 0xFFFF, kind >> 16, self.at + 4
            if size > 4:
                raise self.error(f"a small element of {size} bytes")
        if size > len(self.data) - begin:
            raise self.error("ends in the middle")
        padded = kind == COMPRESSED or begin == self.at + 4
        content = _Bytes(self.where, self.data[begin : begin + size], 0, self.order)
        self.at = begin + 4 if begin == self.at + 4 else begin + size + (0 if padded else -size % 8)
        return kind, content

    def numbers(self, kinds: dict[int, str] = NUMBERS) -> NDArray[Any]:
        """Returns the numbers of the next element."""
        kind, content = self.tag()
        if kind not in kinds:
            raise self.error(f"an element of type {kind} where numbers are needed")
        dtype = np.dtype(self.order + kinds[kind])
        if len(content.data) % dtype.itemsize:
            raise self.error("not a whole number of numbers")
        return np.frombuffer(content.data, dtype)


def _elements(data: _Bytes, *, packed: bool) -> Iterator[_Bytes]:
    """Yields the arrays in some bytes."""
    while data.at < len(data.data):
        kind, content = data.tag()
        if kind == COMPRESSED and packed:
            yield from _elements(_unpacked(content, data.error), packed=False)
        elif kind == MATRIX:
            yield content
        else:
            raise data.error(f"an element of type {kind} where an array is needed")


def _unpacked(content: _Bytes, error: Any) -> _Bytes:
    most = PLENTY + MOST_TIMES * len(content.data)
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(content.data, most)
    except zlib.error as reason:
        raise error(f"cannot be decompressed: {reason}") from None
    if len(data) == most:
        raise error(f"unpacks to more than {most:,} bytes, of {len(content.data):,}")
    if not stream.eof:
        raise error("ends in the middle")
    memory.require(4 * len(data), content.where, "reading MATLAB variables")
    return _Bytes(content.where, memoryview(data), 0, content.order)


def _header(element: _Bytes) -> tuple[str, tuple[int, tuple[int, ...], _Bytes]]:
    """Returns the name, and the class, the shape and the rest of an array."""
    flags = element.numbers({6: "u4"})
    if len(flags) != 2:
        raise element.error("array flags are not two numbers")
    kind = int(flags[0]) & 0xFF
    if flags[0] & COMPLEX:
        kind = -1
    sides = tuple(element.numbers({5: "i4", 6: "u4"}).tolist())
    if not 2 <= len(sides) <= MOST_SIDES or min(sides) < 0:
        raise element.error(f"an array of shape {sides[:MOST_SIDES]}")
    name = element.numbers({1: "u1", 2: "u1", 16: "u1"}).tobytes()
    return name.decode("latin-1"), (kind, sides, element)


def _value(array: tuple[int, tuple[int, ...], _Bytes], depth: int) -> Value:
    kind, sides, data = array
    size = math.prod(sides)
    if kind == CELL:
        if depth == DEEPEST or size * TAG > len(data.data):
            raise data.error(f"a cell array of shape {sides} in {len(data.data)} bytes")
        cells = np.empty(size, dtype=object)
        for i in range(size):
            each, content = data.tag()
            if each != MATRIX:
                raise data.error(f"an element of type {each} in a cell array")
            empty = not len(content.data)
            cells[i] = np.zeros((0, 0)) if empty else _value(_header(content)[1], depth + 1)
        return cells.reshape(sides, order="F")
    if kind == CHAR:
        return _text(sides, size, data)
    if kind not in NUMERIC:
        called = "a complex array" if kind < 0 else f"an array of class {kind}"
        raise data.error(f"{called}: only numbers, texts and cells are read")
    numbers = data.numbers()
    if len(numbers) != size:
        raise data.error(f"{len(numbers)} numbers in an array of shape {sides}")
    return numbers.astype(np.float64).reshape(sides, order="F")


def _text(sides: tuple[int, ...], size: int, data: _Bytes) -> str:
    if size and (len(sides) != 2 or sides[0] != 1):
        raise data.error(f"characters of shape {sides}, not one row")
    kind, content = data.tag()
    if kind not in TEXTS:
        raise data.error(f"an element of type {kind} where characters are needed")
    coding = TEXTS[kind]
    if coding in ("utf-16", "utf-32"):
        coding += "-le" if data.order == "<" else "-be"
    try:
        return bytes(content.data).decode(coding)
    except UnicodeDecodeError as error:
        raise data.error(f"characters are not {coding}: {error.reason}") from None
