"""Reads and writes untrusted ``.npz`` files: named arrays and a JSON header.

Large arrays are stored by byte if they are smaller so: all first bytes, then all second bytes ...
Equal high bytes are then side by side. Their names end in the dtype: ``position-i4.npy``.

All sizes are compared with the expected sizes, the file size and the free memory before any array
is decompressed.
"""

import io
import json
import math
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import atomic_files, memory, open_files
from detmap.core.base.immutable import blank
from detmap.core.base.sums import add_floats, add_integers
from detmap.errors import DataError

MOST_HEADER = 64 << 20  # bytes of JSON
RATIO = 1032
"""Bytes that a byte of a deflated stream stands for at most. Source: zlib's "Technical Details"."""
PLENTY, MOST_TIMES = 1 << 25, 32
"""Bytes that the arrays of any archive may have, and how many times the bytes of the file: results
are packed two to twenty times smaller, and merging takes ten times the bytes of the arrays.
"""
SLACK = 4096  # bytes that the smallest member may have
LEVEL = 3  # of deflate: a fourth of the time of level 6
BY_BYTE_FROM = 1 << 16  # bytes of an array; smaller ones are plain
SAMPLE = 1 << 14  # numbers that decide
BY_BYTE = {f"{kind}{size}" for kind in "iuf" for size in (2, 4, 8)} - {"f2"}


class Member(NamedTuple):
    """An array that is not read yet: its place, dtype, shape, header size, and if it is by byte."""

    info: zipfile.ZipInfo
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    by_byte: bool = False


class Archive:
    """The arrays of an open archive."""

    def __init__(
        self, path: str, members: dict[str, Member], file: zipfile.ZipFile, size: int
    ) -> None:
        self.path, self.members, self.file, self.size = path, members, file, size

    def place(self, name: str) -> str:
        """Returns the name of an array for messages."""
        return f"{self.path}: {name}"

    def length(self, name: str) -> int:
        """Returns the number of rows of an array."""
        return (*self.members[name].shape, 0)[0]

    def require(self, name: str, dtype: Any, *shape: int) -> None:
        """Raises `DataError` unless an array has this dtype (None: ids) and shape."""
        member = self.members[name]
        ids = member.dtype == np.int64 or (member.dtype.kind == "U" and member.dtype.isnative)
        if not (ids if dtype is None else member.dtype == dtype):
            wanted = "int64 or strings" if dtype is None else np.dtype(dtype).name
            what = f"dtype {member.dtype.str} where {wanted} is needed"
            raise DataError(self.place(name), what, WRITE_AGAIN)
        if member.shape != shape:
            what = f"shape {member.shape} where {shape} is needed"
            raise DataError(self.place(name), what, WRITE_AGAIN)

    def require_memory(self) -> None:
        """Raises `DataError` if the arrays do not fit into memory, or are packed too small."""
        total = add_integers(member.info.file_size for member in self.members.values())
        if total > max(PLENTY, MOST_TIMES * self.size):
            what = f"unpacks to {total:,} bytes, of {self.size:,}"
            raise DataError(self.path, what, WRITE_AGAIN)
        memory.require(2 * total, self.path, "reading its arrays")

    def read(self, name: str) -> NDArray[Any]:
        """Reads an array, which is read-only."""
        info, dtype, shape, begin, by_byte = self.members[name]
        try:
            with self.file.open(info) as stream:
                stream.read(begin)
                size = info.file_size - begin
                content = stream.read(size)
                if len(content) != size or stream.read(1):
                    raise DataError(
                        self.place(name), "does not have the stated length", WRITE_AGAIN
                    )
        except DataError:
            raise
        except Exception as error:  # zip and zlib fail in many ways
            raise DataError(self.place(name), _damaged(error), WRITE_AGAIN) from None
        if not size:
            return np.zeros(shape, dtype=dtype)
        if not by_byte:
            return np.frombuffer(content, dtype=dtype).reshape(shape)
        array = blank(shape, dtype)
        planes = np.frombuffer(content, dtype=np.uint8).reshape(dtype.itemsize, -1)
        for i, plane in enumerate(planes):
            array.reshape(-1).view(np.uint8)[i :: dtype.itemsize] = plane
        array.flags.writeable = False
        return array

    def read_json(self, name: str) -> Any:
        """Reads an array of bytes as JSON."""
        if self.members[name].info.file_size > MOST_HEADER:
            what = f"{self.members[name].info.file_size} bytes"
            raise DataError(self.place(name), what, f"the limit is {MOST_HEADER}")
        self.require(name, np.uint8, self.length(name))
        try:
            return json.loads(self.read(name).tobytes())
        except (ValueError, RecursionError) as error:
            raise DataError(self.place(name), f"is not JSON ({error})", WRITE_AGAIN) from None


WRITE_AGAIN = "write it again"
BEGIN, END = b"PK\x03\x04", b"PK\x05\x06"  # of a zip archive
END_SIZE = 22  # bytes of the record of its end
MOST_END = (1 << 16) + END_SIZE  # with a comment


@contextmanager
def opened(
    path: str | Path | bytes | BinaryIO, names: list[str], more: list[str]
) -> Iterator[Archive]:
    """Opens an archive, or the bytes of one, with exactly these arrays, and all or none of `more`.

    Raises `DataError` if it is damaged, an array is missing, unknown or repeated, or a size is
    impossible.
    """
    shown, content = shown_name(path), _content(path)
    try:
        file = zipfile.ZipFile(io.BytesIO(content))
    except Exception as error:  # a damaged directory fails in many ways
        what = f"not a readable file of matches ({_unreadable(content, error)})"
        wrong = not content.startswith(BEGIN[:2])
        fix = "give a file that `detmap match` wrote" if wrong else WRITE_AGAIN
        raise DataError(shown, what, fix) from None
    with file:
        there: dict[str, zipfile.ZipInfo] = {}
        for info in file.infolist():
            name, _, dtype = info.filename.removesuffix(".npy").partition("-")
            known = name in (*names, *more) and info.filename.endswith(".npy")
            if not known or ("-" in info.filename and dtype not in BY_BYTE):
                raise DataError(shown, f"has an unknown part {info.filename[:40]!r}", WRITE_AGAIN)
            if name in there:
                raise DataError(f"{shown}: {name}", "occurs twice", WRITE_AGAIN)
            there[name] = info
        if not there.keys().isdisjoint(more):
            names = [*names, *more]
        for name in names:
            if name not in there:
                raise DataError(f"{shown}: {name}", "is missing", WRITE_AGAIN)
        members = {name: _member(f"{shown}: {name}", file, there[name]) for name in names}
        yield Archive(shown, members, file, len(content))


def shown_name(source: Any) -> str:
    """Returns the name of a file for messages; bytes and file objects are called ``matches``."""
    unnamed = isinstance(source, bytes) or hasattr(source, "read")
    return "matches" if unnamed else open_files.shown(source)


def _content(source: Any) -> bytes:
    """The bytes of a file, given by path or as a file object, or bytes as they are."""
    if isinstance(source, bytes):
        return source
    if not hasattr(source, "read"):
        return open_files.read_bytes(source)
    content = source.read()
    if not isinstance(content, bytes):
        raise DataError("file object", f"it reads a {type(content).__name__}", 'open it with "rb"')
    return content


def _damaged(error: Exception) -> str:
    """Says that an array is damaged, and why; an error without a text is named by its class."""
    return f"is damaged ({str(error) or type(error).__name__})"


def _unreadable(content: bytes, error: Exception) -> str:
    """Says why an archive cannot be opened: its directory is at the end, so a part has none."""
    if not content:
        return "the file is empty"
    is_begun = content.startswith(BEGIN) or BEGIN.startswith(content)
    at = content.rfind(END, -MOST_END)
    if is_begun and (at < 0 or len(content) < at + END_SIZE):
        return "the file is truncated: its end is missing"
    return str(error) or type(error).__name__


def _member(where: str, file: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    """Reads the header of an array, but not its numbers."""
    if info.file_size > RATIO * info.compress_size + SLACK:
        what = f"{info.compress_size} bytes with a stated size of {info.file_size}"
        raise DataError(where, what, WRITE_AGAIN)
    try:
        with file.open(info) as stream:
            version = np.lib.format.read_magic(stream)
            readers = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            shape, by_columns, dtype = readers[version](stream)
            begin = stream.tell()
    except Exception as error:  # zip, zlib and the array's header fail in many ways
        raise DataError(where, _damaged(error), WRITE_AGAIN) from None
    by_byte = info.filename.removesuffix(".npy").partition("-")[2]
    if dtype.hasobject:
        raise DataError(where, "contains Python objects, which are not supported", WRITE_AGAIN)
    size = dtype.itemsize * math.prod(shape)
    if by_columns or min(shape, default=0) < 0 or begin + size != info.file_size:
        what = f"shape {shape} of {dtype.str} in {info.file_size - begin} bytes"
        raise DataError(where, what, WRITE_AGAIN)
    if not by_byte:
        return Member(info, dtype, shape, begin)
    wanted = np.dtype(f"<{by_byte}")
    if dtype != np.uint8 or shape[:1] != (wanted.itemsize,):
        what = f"shape {shape} of {dtype.str} for the bytes of {wanted.str}"
        raise DataError(where, what, WRITE_AGAIN)
    return Member(info, wanted, shape[1:], begin, by_byte=True)


def write(path: str | Path | BinaryIO, header: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes arrays and a header to a file object, or to a path, atomically.

    Raises `DetmapError` if the system refuses, or for a file object that takes text.
    """
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    if isinstance(path, io.TextIOBase):
        raise DataError("file object", "it is opened for text", 'open it with "wb"')
    target: Any = path
    if hasattr(target, "write"):
        _write(target, {"header": text, **arrays})
        return
    with atomic_files.replacing(target) as file:
        _write(file, {"header": text, **arrays})


def _write(file: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    deflated, stored = zipfile.ZIP_DEFLATED, _stored(arrays)
    with zipfile.ZipFile(file, "w", deflated, allowZip64=True, compresslevel=LEVEL) as archive:
        for name, array in arrays.items():
            if name in stored:
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
                continue
            member = name
            if array.nbytes >= BY_BYTE_FROM and _is_smaller_by_byte(array):
                member = f"{name}-{array.dtype.kind}{array.dtype.itemsize}"
                array = _planes(array)
            with archive.open(f"{member}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _stored(arrays: Mapping[str, NDArray[Any]]) -> set[str]:
    """The arrays that are not packed, because the archive would be so small that it is refused:
    those of the most equal numbers, such as counts of a million images without detections.
    """
    total, stored = add_integers(array.nbytes for array in arrays.values()), set[str]()
    if total <= PLENTY:
        return stored
    packed = {name: _packed_size(array) for name, array in arrays.items()}
    for name in sorted(arrays, key=lambda name: packed[name] / max(1, arrays[name].nbytes)):
        if total <= MOST_TIMES / 2 * add_floats(packed.values()):
            break
        stored.add(name)
        packed[name] = arrays[name].nbytes
    return stored


def _packed_size(array: NDArray[Any]) -> float:
    """The size of a packed array, by a sample from its middle, in the smaller way."""
    n, plain, by_byte = _packed_sample(array)
    return min(plain, by_byte) * array.size / max(1, n)


def _is_smaller_by_byte(array: NDArray[Any]) -> bool:
    _, plain, by_byte = _packed_sample(array)
    return by_byte < plain


def _packed_sample(array: NDArray[Any]) -> tuple[int, int, int]:
    """The numbers in a sample from the middle, and its packed sizes both ways: equal where an array
    has no second way.
    """
    flat = array.reshape(-1)
    middle = flat[max(len(flat) - SAMPLE, 0) // 2 :][:SAMPLE]
    plain = len(zlib.compress(middle.tobytes(), LEVEL))
    if f"{array.dtype.kind}{array.dtype.itemsize}" not in BY_BYTE or sys.byteorder != "little":
        return len(middle), plain, plain
    return len(middle), plain, len(zlib.compress(_planes(middle).tobytes(), LEVEL))


def _planes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """(b, *shape) the first bytes of all numbers, then the second ones ..."""
    size = array.dtype.itemsize
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    planes = np.empty((size, array.size), dtype=np.uint8)
    for i in range(size):
        planes[i] = flat[i::size]
    return planes.reshape(size, *array.shape)
