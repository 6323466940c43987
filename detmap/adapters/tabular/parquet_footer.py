"""Counts the values that a Parquet file declares, from the file's last bytes.

pyarrow gives this count only through the metadata of a column chunk. In pyarrow 26, that property
ends the process if the statistics of the chunk are malformed.

Source: Thrift's compact protocol (thrift-compact-protocol.md), and ``parquet.thrift`` of Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = b"PAR1"
MOST_DEPTH = 32  # of nested structures; Parquet has 8
ROW_GROUPS, COLUMNS, META_DATA, NUM_VALUES = 4, 1, 3, 5  # fields of parquet.thrift
PLACE = (ROW_GROUPS, COLUMNS, META_DATA, NUM_VALUES)
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)
SIZES = {BYTE: 1, DOUBLE: 8, UUID: 16}


def count_values(data: bytes) -> int:
    """Returns the sum over column chunks of their numbers of values.

    Raises `ValueError` if the file does not end with a valid footer.
    """
    size = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != MAGIC or size + 8 > len(data):
        raise ValueError("no footer")
    try:
        return sum(max(0, number) for number in _Footer(data[-8 - size : -8]).struct(()))
    except IndexError:
        raise ValueError("the footer ends early") from None


class _Footer:
    """Reads the bytes of a footer in order."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

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
        """Yields the numbers at `PLACE`; `path` has the fields that lead to this structure."""
        if len(path) > MOST_DEPTH:
            raise ValueError("nested too deeply")
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.signed()
            if head & 15 not in (TRUE, FALSE):  # these are the value of a field
                yield from self.value(head & 15, (*path, field))

    def value(self, kind: int, path: tuple[int, ...]) -> Iterator[int]:
        """Reads a value; yields the numbers at `PLACE`."""
        if kind in (I16, I32, I64):
            number = self.signed()
            if path == PLACE:
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
