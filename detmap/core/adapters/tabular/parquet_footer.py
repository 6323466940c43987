"""Counts the values that a Parquet file declares, and lists its encodings, from its last bytes.

pyarrow gives these only through the metadata of a column chunk. In pyarrow 26, that property ends
the process if the statistics of the chunk are malformed.

Source: Thrift's compact protocol (thrift-compact-protocol.md), and ``parquet.thrift`` of Parquet.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO

from detmap.core.base.sums import add_integers

MAGIC = b"PAR1"
MOST_DEPTH = 32  # of nested structures; Parquet has 8
ROW_GROUPS, COLUMNS, META_DATA = 4, 1, 3  # fields of parquet.thrift
NUM_VALUES, ENCODINGS = ((ROW_GROUPS, COLUMNS, META_DATA, field) for field in (5, 2))
DELTA = {6, 7}  # encodings of texts: DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)
SIZES = {BYTE: 1, DOUBLE: 8, UUID: 16}


def count_values(data: bytes) -> int:
    """Returns the sum over column chunks of their numbers of values.

    Raises `ValueError` if the file does not end with a valid footer.
    """
    return add_integers(max(0, number) for number in _numbers(data, NUM_VALUES))


def has_delta(data: bytes) -> bool:
    """Checks if texts of a column chunk are in delta encoding; raises as `count_values`."""
    return bool(DELTA & set(_numbers(data, ENCODINGS)))


def last_bytes(stream: BinaryIO) -> bytes:
    """Returns the footer of an open file and its length and magic number, as far as they exist."""
    end = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, end - 8))
    size = 8 + int.from_bytes(stream.read(4), "little")
    stream.seek(max(0, end - size))
    return stream.read()


def _numbers(data: bytes, place: tuple[int, ...]) -> list[int]:
    """The numbers in the fields at a place."""
    size = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != MAGIC or size + 8 > len(data):
        raise ValueError("no footer")
    try:
        return list(_Footer(data[-8 - size : -8], place).struct(()))
    except IndexError:
        raise ValueError("the footer ends early") from None


class _Footer:
    """Reads the bytes of a footer in order."""

    def __init__(self, data: bytes, place: tuple[int, ...]) -> None:
        self.data, self.at, self.place = data, 0, place

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
        return value | byte << shift

    def signed(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def struct(self, path: tuple[int, ...]) -> Iterator[int]:
        """Yields the numbers at the place; `path` has the fields that lead to this structure."""
        if len(path) > MOST_DEPTH:
            raise ValueError("nested too deeply")
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.signed()
            if head & 15 not in (TRUE, FALSE):  # these are the value of a field
                yield from self.value(head & 15, (*path, field))

    def value(self, kind: int, path: tuple[int, ...]) -> Iterator[int]:
        """Reads a value; yields the numbers at the place."""
        if kind in (I16, I32, I64):
            number = self.signed()
            if path == self.place:
                yield number
        elif kind in SIZES:
            self.at += SIZES[kind]
        elif kind == BINARY:
            size = self.varint()
            self.at += size
        elif kind == STRUCT:
            yield from self.struct(path)
        elif kind in (LIST, SET):
            head = self.byte()
            n = head >> 4 if head >> 4 < 15 else self.varint()
            yield from self.items(n, (head & 15,), path)
        elif kind == MAP:
            n = self.varint()
            head = self.byte() if n else 0
            yield from self.items(n, (head >> 4, head & 15), path)
        else:
            raise ValueError(f"a value of the unknown kind {kind}")

    def items(self, n: int, kinds: tuple[int, ...], path: tuple[int, ...]) -> Iterator[int]:
        for _ in range(n):
            for kind in kinds:
                yield from self.value(BYTE if kind in (TRUE, FALSE) else kind, path)
