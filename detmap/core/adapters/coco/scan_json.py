"""The fast reader of large simple COCO files: a compiled parallel scanner.

It returns exactly what the reference reader (`detmap.core.adapters.coco.decode`) would, or None.
Ranges are cut at guessed record starts, which are verified: each range must end where the next
begins. The file is not memory-mapped, so truncation by others is safe.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import number_lists
from detmap.core.adapters.coco.scan_columns import Columns, GrowingColumns, Piece
from detmap.core.base import memory, open_files
from detmap.core.base.parallel import map_ordered

LEAST_SIZE = 1 << 10  # smaller files are not worth it
HELD = 1 << 20  # bytes of a file that is read at once
SPACE = b" \t\n\r"
PIECE = 2 << 20  # a piece and its columns fit a cache
SHAPES_PIECE = 1 << 20  # shapes take several bytes of memory for each byte of text
SMALL_PIECE = 1 << 16  # for what is beside the records
NEAR, OVERLAP = 1 << 14, 1 << 18
"""Bytes after a piece that are read with it, and again if its last record does not end there; one
that reaches further is handed back."""
USUAL_RECORD = 100  # bytes; those of a row in memory
ROW = 57
SECOND_KEYS = re.compile(rb'"(?:file_name|category_name|confidence|conf|scores|probability|prob)"')
"""Keys that say the same as others, or take their place: the reference reader compares them."""
PARTS = b'_name"', b'"conf', b'"scores"', b'"prob'  # of these keys, which are found quickly
SHORTEST_RECORD = 40  # of those that have an image, a category and a box


def has_second_keys(text: bytes) -> bool:
    """Checks if a text has one of `SECOND_KEYS`."""
    return any(part in text for part in PARTS) and SECOND_KEYS.search(text) is not None


def _refuse_second_keys(text: NDArray[np.uint8], n: int) -> None:
    """Raises `HandBack` if n records, with more texts than their four keys, have `SECOND_KEYS`."""
    if np.count_nonzero(text == ord('"')) > 8 * n and has_second_keys(text.tobytes()):
        raise HandBack


def key(name: str) -> int:
    """Returns the bit of a key in `Columns.seen`; ``crowd`` is the bit of iscrowd 1."""
    from detmap.kernels.scanning import json_scan

    return int(getattr(json_scan, name.upper()))


class HandBack(Exception):  # noqa: N818
    """The scanner does not support the file."""


Locate = Callable[[NDArray[Any]], NDArray[Any]]


class JsonFile:
    """A JSON file that is read at given positions.

    Parameters
    ----------
    file : to read from
    """

    def __init__(self, file: open_files.InputFile) -> None:
        self.file, self.path, self.size = file, file.path, file.size
        self.hold(file.read(0, file.size) if file.size <= HELD else None)

    def hold(self, text: bytes | None) -> None:
        """Keeps the whole text in memory, or None."""
        self._held, self._bytes = text, np.frombuffer(text or b"", dtype=np.uint8)

    def read(self, at: int, size: int) -> NDArray[np.uint8]:
        """Reads up to `size` bytes from `at` on, (n,) uint8."""
        if self._held is not None:
            return self._bytes[at : at + size]
        return np.frombuffer(self.file.read(at, size), dtype=np.uint8)

    def byte(self, at: int) -> tuple[int, int]:
        """Returns position and value of the first byte from `at` on that is not white space; value
        -1 at the end.
        """
        from detmap.kernels.scanning.json_skip import skip_space

        if self._held is not None:
            while at < self.size and self._held[at] in SPACE:
                at += 1
            return at, self._held[at] if at < self.size else -1
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
    except open_files.UnreadableError:  # the reference reader reports why
        raise HandBack from None


def scan_detections(
    path: Path | JsonFile,
    locate_image: Locate,
    locate_category: Locate,
    *,
    shape: str = "",
    second_keys: bool = False,
) -> Columns | None:
    """Returns the records of a results file, or None for the reference reader.

    Parameters
    ----------
    path : a JSON file, or an open one
    locate_image, locate_category : map ids to positions in the ground truth, -1 if unknown
    shape : "segmentation" or "keypoints", which all records must have; then all may be without
        boxes
    second_keys : whether to skip `SECOND_KEYS`; else the reference reader reads them
    """
    from detmap.kernels.scanning import json_scan as scan

    wanted = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX | scan.SCORE
    boxless = wanted & ~scan.BBOX if shape else wanted
    try:
        with opened(path) as file:
            at, byte = file.byte(0)
            if byte != ord("["):
                return None
            more = key(shape) if shape else 0
            locate = (locate_image, locate_category)
            columns, at = scan_list(file, at + 1, wanted | more, locate, second_keys=second_keys)
            alike = any((columns.seen == keys).all() for keys in {wanted, boxless})
            if file.byte(at)[1] != -1 or not alike or not _all_known(columns):
                return None
            return columns
    except HandBack:
        return None


def scan_instances(
    path: Path | JsonFile, decode: Mapping[str, Callable[[bytes], Locate]], *, shape: str = ""
) -> Columns | None:
    """Returns the annotations of an instances file, or None for the reference reader.

    Parameters
    ----------
    path : a JSON file, or an open one
    decode : for ``images`` and ``categories``, called with the text of the list; returns the
        look-up of its ids
    shape : "segmentation" or "keypoints", which all annotations must have
    """
    from detmap.kernels.scanning import json_scan as scan

    wanted = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX | scan.AREA | scan.ISCROWD | scan.ID
    wanted |= scan.IGNORE | (key(shape) | scan.ATTRIBUTES if shape else 0)
    wanted |= scan.NUM_KEYPOINTS * (shape == "keypoints")
    required = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX
    texts: dict[str, bytes] = {}
    located: dict[str, Locate] = {}
    columns: Columns | None = None

    def locate() -> None:
        for name in [each for each in texts if each not in located]:
            located[name] = decode[name](texts[name])

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
                    columns, at = scan_list(file, at + 1, wanted, beside=locate)
                else:
                    end = file.value_end(at)
                    if name in decode:
                        texts[name] = file.read(at, end - at).tobytes()
                    at = end
                at, separator = file.byte(at)
            if file.byte(at + 1)[1] != -1 or len(texts) < 2 or columns is None:
                return None
            locate()  # what stood behind the annotations
            columns = columns._replace(
                image=located["images"](columns.image),
                category=located["categories"](columns.category),
            )
            if not (columns.seen & required == required).all() or not _all_known(columns):
                return None
            return columns
    except HandBack:
        return None


def scan_list(
    file: JsonFile,
    at: int,
    wanted: int,
    locate: tuple[Locate, Locate] | None = None,
    *,
    second_keys: bool = True,
    beside: Callable[[], None] = lambda: None,
) -> tuple[Columns, int]:
    """Returns the records of the list that opens just before `at`, and the position after it.

    Images and categories are positions, or int64 ids without `locate`. A text with
    `SECOND_KEYS` is not supported unless `second_keys` is set; they are looked for where records
    have further keys. `beside` is called after each of several pieces, while others are read.
    """
    from detmap.kernels.scanning import json_scan as scan

    at, byte = file.byte(at)
    memory.require((file.size - at) // USUAL_RECORD * ROW, str(file.path), "reading the file")
    masks = bool(wanted & (scan.SEGMENTATION | scan.KEYPOINTS))
    ids, numbers = np.int32 if locate else np.int64, bool(wanted & scan.ID)
    whole = GrowingColumns(ids, numbers, masks)
    if byte == ord("]"):
        return whole.columns(more=True), at + 1
    free: SimpleQueue[Piece] = SimpleQueue()  # those of pieces that have been copied
    size = SHAPES_PIECE if masks else PIECE
    most = min(size + OVERLAP, file.size - at)

    def scan_piece(begin: int) -> tuple[Piece, int, int, bool]:
        text, stop = _piece(file, begin, size)
        first = 0 if begin == at else scan.find_record(text, 0)
        if first < 0:
            raise HandBack
        buffer = _spare(free, most // SHORTEST_RECORD + 1, most * masks)
        until = stop if stop >= 0 else len(text)
        end = stop if first == stop else buffer.scan(text, first, until, wanted)
        n, last, _ = buffer.state.tolist()
        if end < 0 or (stop < 0 and not last):
            raise HandBack
        if not second_keys and buffer.state[scan.MORE]:
            _refuse_second_keys(text, n)
        if locate:
            image, category = buffer.records.image, buffer.records.category
            image[:n] = locate[0](image[:n])
            category[:n] = locate[1](category[:n])
        if masks and not buffer.read_lists(text, n, 1 if wanted & scan.KEYPOINTS else 2):
            raise HandBack
        return buffer, n, begin + end, bool(last)

    more, pieces = 0, map_ordered(scan_piece, range(at, file.size, size))
    for buffer, n, end, last in pieces:
        more += int(buffer.state[scan.MORE])
        if last:
            pieces.close()  # here, for an interrupt is lost where a generator is collected
            if not (whole.n or masks):  # of one piece, as most small files
                return buffer.columns(n, ids, numbers=numbers, more=bool(more)), end
        beside()
        whole.append(buffer, n, 1 if last else (end - at) / (file.size - at))
        free.put(buffer)
        if last:
            del buffer, free, scan_piece  # the last references to the buffers
            if file.size > HELD:
                memory.give_back("reading detections" if locate else "reading truth")
            return whole.columns(more=bool(more)), end
    raise HandBack


def _spare(free: SimpleQueue[Piece], n: int, n_runs: int) -> Piece:
    """Returns a piece that has been copied, else a new one; several threads may ask."""
    try:
        piece = free.get_nowait()
    except Empty:
        piece = Piece(n, n_runs)
    piece.state[:] = 0
    return piece


def _piece(file: JsonFile, begin: int, size: int) -> tuple[NDArray[np.uint8], int]:
    """Returns bytes from `begin` on, and where in them the first record of the next piece begins;
    -1 if it is too far.
    """
    from detmap.kernels.scanning import json_scan as scan

    for more in (NEAR, OVERLAP):
        text = file.read(begin, size + more)
        stop = scan.find_record(text, size) if begin + size < file.size else len(text)
        if stop >= 0:
            break
    return text, stop


def _all_known(columns: Columns) -> bool:
    """Checks that the ground truth has every image and class."""
    return bool(columns.image.min(initial=0) >= 0 and columns.category.min(initial=0) >= 0)


def _key(file: JsonFile, at: int) -> tuple[str, int]:
    """Returns the top-level key that opens at `at`, and the position of its value."""
    from detmap.kernels.scanning.json_skip import skip_string

    piece = file.read(at, 4096)
    begin = piece[:32].tobytes()
    end = begin.find(b'"', 1) + 1
    if not end or not begin[1 : end - 1].isalnum():  # as the keys of COCO are
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

    text, buffer = np.empty(0, dtype=np.uint8), Piece(0)
    buffer.state[:] = 0
    buffer.scan(text, 0, 0, 0)
    number_lists.read(text, np.zeros((0, 2), dtype=np.int64), 1, number_lists.buffer(0, 0))
    skips = json_skip.skip_space, json_skip.skip_string, json_skip.skip_value
    for kernel in (scan.find_record, *skips):
        kernel(text, 0)
