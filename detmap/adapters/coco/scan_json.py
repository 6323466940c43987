"""The fast reader of large simple COCO files: a compiled parallel scanner.

It returns exactly what the reference reader (`detmap.adapters.coco.decode`) would, or None. Ranges
are cut at guessed record starts, which are verified: each range must end where the next begins. The
file is not memory-mapped, so truncation by others is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.base import memory, open_files
from detmap.base.immutable import blank
from detmap.base.parallel import map_ordered

LEAST_SIZE = 1 << 20  # smaller files are not worth it
PIECE = 4 << 20
SMALL_PIECE = 1 << 16  # for what is beside the records
OVERLAP = 1 << 18  # a record that reaches further into the next piece is handed back
USUAL_RECORD = 100  # bytes; those of a row in memory
ROW = 57
SHORTEST_RECORD = 40  # of those that have an image, a category and a box


def key(name: str) -> int:
    """Returns the bit of a key in `Columns.seen`; ``crowd`` is the bit of iscrowd 1."""
    from detmap.kernels.scanning import json_scan

    return int(getattr(json_scan, name.upper()))


class HandBack(Exception):  # noqa: N818
    """The scanner does not support the file."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Records in file order.

    Parameters
    ----------
    image, category : (n,) int32 positions of the ids
    number : (n,) int64, the records' own ids, if requested
    boxes : (n, 4) float64, no negative side, no number above 1e80
    value : (n,) float64, score or area
    seen : (n,) uint8, bits of the keys that each record has
    whole : whether the text has no other keys, and floats wherever columns are float64
    """

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    number: NDArray[np.int64]
    boxes: NDArray[np.float64]
    value: NDArray[np.float64]
    seen: NDArray[np.uint8]
    whole: bool = False


ARRAYS = ("image", "category", "number", "boxes", "value", "seen")
Locate = Callable[[NDArray[Any]], NDArray[Any]]


class JsonFile:
    """A JSON file that is read at given positions.

    Parameters
    ----------
    file : to read from
    """

    def __init__(self, file: open_files.InputFile) -> None:
        self.file, self.path, self.size = file, file.path, file.size

    def read(self, at: int, size: int) -> NDArray[np.uint8]:
        """Reads up to `size` bytes from `at` on, (n,) uint8."""
        return np.frombuffer(self.file.read(at, size), dtype=np.uint8)

    def byte(self, at: int) -> tuple[int, int]:
        """Returns position and value of the first byte from `at` on that is not white space; value
        -1 at the end.
        """
        from detmap.kernels.scanning.json_skip import skip_space

        while at < self.size:
            piece = self.read(at, 4096)
            place = skip_space(piece, 0)
            if place < len(piece):
                return at + place, int(piece[place])
            at += len(piece)
        return at, -1

    def value_end(self, at: int) -> int:
        """Returns the position after the value that begins at `at`."""
        from detmap.kernels.scanning.json_skip import skip_value

        size = SMALL_PIECE
        while True:
            piece = self.read(at, size)
            end: int = skip_value(piece, 0)
            if 0 <= end < len(piece):
                return at + end
            if at + size >= self.size:
                raise HandBack
            size *= 4


@contextmanager
def opened(path: Path | JsonFile) -> Iterator[JsonFile]:
    """Opens a file of suitable size, else raises `HandBack`. Accepts an open file."""
    if isinstance(path, JsonFile):
        yield path
        return
    try:
        with open_files.opened(path) as file:
            if file.size < LEAST_SIZE:
                raise HandBack
            yield JsonFile(file)
    except open_files.UnreadableError:  # the other lane says why
        raise HandBack from None


def scan_detections(
    path: Path | JsonFile, locate_image: Locate, locate_category: Locate
) -> Columns | None:
    """Returns the records of a results file, or None for the reference reader.

    Parameters
    ----------
    path : a JSON file, or an open one
    locate_image, locate_category : map ids to positions in the truth, -1 if unknown
    """
    from detmap.kernels.scanning import json_scan as scan

    wanted = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX | scan.SCORE
    try:
        with opened(path) as file:
            at, byte = file.byte(0)
            if byte != ord("["):
                return None
            columns, at = scan_list(file, at + 1, wanted, (locate_image, locate_category))
            if (
                file.byte(at)[1] != -1
                or not (columns.seen == wanted).all()
                or not _all_known(columns)
            ):
                return None
            return columns
    except HandBack:
        return None


def scan_instances(
    path: Path | JsonFile, decode: dict[str, Callable[[bytes], Locate]]
) -> Columns | None:
    """Returns the annotations of an instances file, or None for the reference reader.

    Parameters
    ----------
    path : a JSON file, or an open one
    decode : for ``images`` and ``categories``, called with the text of the list; returns the
        look-up of its ids
    """
    from detmap.kernels.scanning import json_scan as scan

    wanted = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX | scan.AREA | scan.ISCROWD | scan.ID
    wanted |= scan.IGNORE
    required = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX
    located: dict[str, Locate] = {}
    columns: Columns | None = None
    try:
        with opened(path) as file:
            at, byte = file.byte(0)
            if byte != ord("{"):
                return None
            separator = ord(",")  # as if the opening brace were one
            seen: set[str] = set()
            while separator != ord("}"):
                at, byte = file.byte(at + 1)
                if byte != ord('"') or separator != ord(","):
                    return None
                name, at = _key(file, at)
                if name in seen:
                    return None
                seen.add(name)
                if name == "annotations":
                    at, byte = file.byte(at)
                    if byte != ord("["):
                        return None
                    columns, at = scan_list(file, at + 1, wanted)
                else:
                    end = file.value_end(at)
                    if name in decode:
                        located[name] = decode[name](file.read(at, end - at).tobytes())
                    at = end
                at, separator = file.byte(at)
            if file.byte(at + 1)[1] != -1 or len(located) < 2 or columns is None:
                return None
            columns = replace(
                columns,
                image=located["images"](columns.image),
                category=located["categories"](columns.category),
            )
            if not (columns.seen & required == required).all() or not _all_known(columns):
                return None
            return columns
    except HandBack:
        return None


def scan_list(
    file: JsonFile, at: int, wanted: int, locate: tuple[Locate, Locate] | None = None
) -> tuple[Columns, int]:
    """Returns the records of the list that opens just before `at`, and the position after it.

    Images and categories are positions, or int64 ids without `locate`.
    """
    from detmap.kernels.scanning import json_scan as scan

    at, byte = file.byte(at)
    memory.require((file.size - at) // USUAL_RECORD * ROW, str(file.path), "reading the file")
    whole = _empty(0, np.int32 if locate else np.int64)
    if byte == ord("]"):
        return whole, at + 1
    free: SimpleQueue[_Piece] = SimpleQueue()  # those of pieces that have been copied

    def scan_piece(begin: int) -> tuple[_Piece, int, int, bool]:
        text = file.read(begin, PIECE + OVERLAP)
        first = 0 if begin == at else scan.find_record(text, 0)
        stop = scan.find_record(text, PIECE) if begin + PIECE < file.size else len(text)
        if first < 0:
            raise HandBack
        buffer = _Piece(len(text) // SHORTEST_RECORD + 1) if free.empty() else free.get()
        buffer.state[:] = 0
        end = stop
        if first != stop:
            end = scan.scan_records(
                text,
                first,
                stop if stop >= 0 else len(text),
                wanted,
                buffer.image,
                buffer.category,
                buffer.number,
                buffer.boxes,
                buffer.value,
                buffer.seen,
                buffer.state,
            )
        n, last, _ = buffer.state.tolist()
        if end < 0 or (stop < 0 and not last):
            raise HandBack
        if locate:
            buffer.image[:n] = locate[0](buffer.image[:n])
            buffer.category[:n] = locate[1](buffer.category[:n])
        return buffer, n, begin + end, bool(last)

    filled = [name for name in ARRAYS if name != "number" or wanted & scan.ID]
    total = more = 0
    for buffer, n, end, last in map_ordered(scan_piece, range(at, file.size, PIECE)):
        if total + n > len(whole.seen):  # at the first piece, if the records are about alike
            read = (end - at) / (file.size - at)
            whole = _grown(whole, total, n + int(1.05 * (total + n) / read))
        rows = slice(total, total + n)
        for name in filled:
            getattr(whole, name)[rows] = getattr(buffer, name)[:n]
        total += n
        more += int(buffer.state[scan.MORE])
        free.put(buffer)
        if last:
            return replace(_cut(whole, total), whole=not more), end
    raise HandBack


class _Piece:
    """Columns of one piece, with ids not yet looked up."""

    def __init__(self, n: int) -> None:
        self.image, self.category, self.number = np.empty((3, n), dtype=np.int64)
        self.boxes, self.value, self.seen = (
            np.empty((n, 4)),
            np.empty(n),
            np.empty(n, dtype=np.uint8),
        )
        self.state = np.empty(3, dtype=np.int64)


def _empty(n: int, ids: Any) -> Columns:
    return Columns(
        blank(n, ids),
        blank(n, ids),
        blank(n, np.int64),
        blank((n, 4), np.float64),
        blank(n, np.float64),
        blank(n, np.uint8),
    )


def _grown(columns: Columns, n: int, capacity: int) -> Columns:
    """Returns the first n rows with room for more."""
    grown = _empty(capacity, columns.image.dtype)
    for name in ARRAYS:
        getattr(grown, name)[:n] = getattr(columns, name)[:n]
    return grown


def _cut(columns: Columns, n: int) -> Columns:
    return Columns(*(getattr(columns, name)[:n] for name in ARRAYS))


def _all_known(columns: Columns) -> bool:
    """Checks that the truth has every image and class."""
    return bool(columns.image.min(initial=0) >= 0 and columns.category.min(initial=0) >= 0)


def _key(file: JsonFile, at: int) -> tuple[str, int]:
    """Returns the top-level key that opens at `at`, and the position of its value."""
    from detmap.kernels.scanning.json_skip import skip_string

    piece = file.read(at, 4096)
    end = skip_string(piece, 1)
    if end < 0:
        raise HandBack
    colon, byte = file.byte(at + end)
    if byte != ord(":"):
        raise HandBack
    return piece[1 : end - 1].tobytes().decode("ascii"), file.byte(colon + 1)[0]


def skip_nothing() -> None:
    """Calls every kernel of the fast reader once, on an empty text."""
    from detmap.kernels.scanning import json_scan as scan
    from detmap.kernels.scanning import json_skip

    text, buffer = np.empty(0, dtype=np.uint8), _Piece(0)
    buffer.state[:] = 0
    scan.scan_records(
        text,
        0,
        0,
        0,
        buffer.image,
        buffer.category,
        buffer.number,
        buffer.boxes,
        buffer.value,
        buffer.seen,
        buffer.state,
    )
    for kernel in (
        scan.find_record,
        json_skip.skip_space,
        json_skip.skip_string,
        json_skip.skip_value,
    ):
        kernel(text, 0)
