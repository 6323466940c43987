"""Opens regular files and checks their size before reading.

Pipes, devices, sockets, folders and link cycles are errors, not endless waits. A file that shrinks
during reading is an error too.
"""

import json
import os
import re
import stat
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from detmap.core.base import memory
from detmap.core.base.sums import add_integers
from detmap.errors import DataError

# A pipe without a writer would block already when it is opened. Flags that a system lacks are 0.
_FLAGS = os.O_RDONLY | add_integers(
    getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)

_PIECE = 1 << 24  # bytes that are unpacked at a time
_PLENTY, _TIMES = 32 << 20, 40
"""Bytes that any .gz may unpack to, and how many times its own: real results are packed 3 to 10
times smaller, and reading JSON takes 10 times its bytes.
"""
MOST_TIMES = 200  # as large in memory as on disk: a Parquet file

HEAD = 1 << 16  # bytes of a file that are looked at
MARK = b"\xef\xbb\xbf"  # of the byte order
SMALL = 1 << 14  # bytes of a file, a protocol or a list, that nobody has to ask memory for


_ESCAPED = rb"\\u00(3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])"
_UTF16 = rb"\xff\xfe|\xfe\xff|(?:[\t\n\r -~]\0){2}|(?:\0[\t\n\r -~]){2}"
SAVE_UTF8 = "save it as plain text in UTF-8"


class UnreadableError(DataError):
    """The file cannot be read."""


class MissingFileError(UnreadableError):
    """The file does not exist."""


class InputFile:
    """A regular file that several threads may read at given positions.

    Parameters
    ----------
    path : its name, for messages
    descriptor : of the open file
    size : bytes when it was opened; later additions are not read
    """

    def __init__(self, path: str | Path, descriptor: int, size: int) -> None:
        self.path, self.descriptor, self.size = path, descriptor, size
        self._one_at_a_time = threading.Lock()  # only where a system cannot read at a place

    def read(self, at: int, size: int) -> bytes:
        """Reads `size` bytes from `at` on, fewer only at the end of the file.

        Raises `UnreadableError` if the file has shrunk or the system cannot read it.
        """
        wanted = max(0, min(size, self.size - at))
        try:
            data = self._read(at, wanted)
            while len(data) < wanted:  # an interrupted system call, or a network's short answer
                more = self._read(at + len(data), wanted - len(data))
                if not more:
                    raise UnreadableError(
                        shown(self.path),
                        "was truncated during reading",
                        "retry when no process writes to it",
                    )
                data += more
        except OSError as error:
            raise _refused(self.path, error) from None
        return data

    def _read(self, at: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self.descriptor, size, at)
        with self._one_at_a_time:
            os.lseek(self.descriptor, at, os.SEEK_SET)
            return os.read(self.descriptor, size)


class _Block:
    """A block of `remembering`: its thread, and device and number of each file that was read."""

    def __init__(self) -> None:
        self.thread, self.known = threading.get_ident(), set[tuple[int, int]]()


class _Look:
    """What was seen of a path: its mode, 0 if there is nothing; its first bytes, as they are and as
    `plain_head` returns them, None before they are asked for.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            self.mode = os.stat(path).st_mode
        except (OSError, ValueError):
            self.mode = 0
        self.begin: bytes | None = None
        self.plain: bytes | None = None


_blocks: list[_Block] = []  # that are open, of all threads
_looking: set[int] = set()  # threads
_seen: dict[int, dict[str | Path, _Look]] = {}  # by thread


@contextmanager
def remembering() -> Iterator[None]:
    """Remembers the files that any thread reads during the block, so that no output that this
    thread writes replaces one of them.
    """
    block = _Block()
    _blocks.append(block)
    try:
        yield
    finally:
        _blocks.remove(block)


@contextmanager
def looking() -> Iterator[None]:
    """In this block files are looked at, to recognize or to hash them: not remembered."""
    thread = threading.get_ident()
    outer = thread in _looking
    _looking.add(thread)
    try:
        with seeing():
            yield
    finally:
        if not outer:
            _looking.discard(thread)


@contextmanager
def seeing() -> Iterator[None]:
    """In this block `is_folder`, `is_file`, `head` and `plain_head` ask the system once a path."""
    thread = threading.get_ident()
    outer = thread in _seen
    _seen.setdefault(thread, {})
    try:
        yield
    finally:
        if not outer:
            del _seen[thread]


def _look(path: str | Path) -> _Look:
    seen = _seen.get(threading.get_ident())
    if seen is None:
        return _Look(path)
    return seen.get(path) or seen.setdefault(path, _Look(path))


def is_folder(path: str | Path) -> bool:
    """Checks for a folder, as `Path.is_dir`."""
    return stat.S_ISDIR(_look(path).mode)


def is_file(path: str | Path) -> bool:
    """Checks for a regular file, as `Path.is_file`."""
    return stat.S_ISREG(_look(path).mode)


def was_read(path: str | Path) -> bool:
    """Checks if a file was read in the innermost block of `remembering` of this thread."""
    thread = threading.get_ident()
    block = next((each for each in reversed(_blocks) if each.thread == thread), None)
    if block is None:
        return False
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) in block.known


def _remember(status: os.stat_result) -> None:
    if _blocks and threading.get_ident() not in _looking:
        for block in tuple(_blocks):
            block.known.add((status.st_dev, status.st_ino))


@contextmanager
def opened(path: str | Path) -> Iterator[InputFile]:
    """Opens a regular file for reading, or raises `UnreadableError`."""
    descriptor, size = _open(path)
    try:
        yield InputFile(path, descriptor, size)
    finally:
        os.close(descriptor)


def read_bytes(
    path: str | Path, *, times: int = 1, what: str = "reading the file", most: int | None = None
) -> bytes:
    """Reads all bytes of a regular file.

    Parameters
    ----------
    path : the file
    times : bytes of memory needed per byte of the file
    what : the operation, for the memory error
    most : largest allowed size in bytes

    Raises `UnreadableError` if it cannot be read or is too large, `DataError` if memory is too
        small.
    """
    descriptor, size = _open(path)
    try:
        if most is not None and size > most:
            raise UnreadableError(
                shown(path), f"has {size} bytes, the limit is {most}", "check its content"
            )
        if size > SMALL:
            memory.require(times * size, shown(path), what)
        return InputFile(path, descriptor, size).read(0, size)
    finally:
        os.close(descriptor)


def head(path: str | Path, size: int) -> bytes:
    """Returns the first bytes of a file, without byte order mark; none if it cannot be read."""
    if size > HEAD:
        return _head(path, size)
    look = _look(path)
    if look.begin is None:
        look.begin = _head(path, HEAD) if stat.S_ISREG(look.mode) else b""
    return look.begin[:size]


def plain_head(path: str | Path) -> bytes:
    """Returns the first `HEAD` bytes of JSON with `plain_letters`, and without spaces before it."""
    look = _look(path)
    if look.plain is None:
        look.plain = plain_letters(head(path, HEAD).lstrip())
    return look.plain


def _head(path: str | Path, size: int) -> bytes:
    try:
        with opened(path) as file:
            return file.read(0, size + len(MARK)).removeprefix(MARK)[:size]
    except (DataError, OSError):
        return b""


def has(data: bytes, word: bytes) -> bool:
    """Checks if text has a word. That a letter is missing takes Python a twentieth of the time, and
    a search from the end half of that of ``in``.
    """
    return all(letter in data for letter in word) and data.rfind(word) >= 0


def is_utf16(data: bytes) -> bool:
    """Checks if text is UTF-16: by its byte order mark, or by zeros beside its first characters."""
    return re.match(_UTF16, data) is not None


def plain_letters(data: bytes) -> bytes:
    """Returns JSON text with its escaped ASCII letters, digits and underscores written as such.

    Any writer may escape those of keys; other escapes stay.
    """
    if not has(data, b"\\u00"):
        return data
    return re.sub(_ESCAPED, lambda found: bytes([int(found[1], 16)]), data, flags=re.IGNORECASE)


def parse_json(data: str | bytes, where: str) -> Any:
    """Returns the value of JSON text, as Python's own reader; `where` is for the message.

    Raises
    ------
    ValueError : not JSON
    DataError : nested too deeply
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise DataError(where, "nested too deeply", "check what the file is") from None


def regular(path: str, flags: int) -> int:
    """An `opener` for Python's `open`. Raises `UnreadableError` for pipes, devices and sockets."""
    descriptor = os.open(path, flags | _FLAGS)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        _remember(status)
        return descriptor
    os.close(descriptor)
    raise _not_a_file(path, status.st_mode)


def unpacked(path: str | Path, *, times: int = 1, what: str = "reading the file") -> bytes:
    """Reads all bytes of a regular file and decompresses it if its name ends in .gz.

    Raises `UnreadableError` if it cannot be read or decompressed, `DataError` if memory is too
    small.
    """
    data = read_bytes(path, times=times, what=what)
    if Path(path).suffix.lower() != ".gz":
        return data
    parts, total, size = [], 0, len(data)
    fix = "write or copy the file again"
    while data:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                part = member.decompress(data, _PIECE)
            except zlib.error as error:
                raise UnreadableError(shown(path), f"not gzip: {error}", fix) from None
            data = member.unconsumed_tail
            total += len(part)
            if total > max(_PLENTY, _TIMES * (size - len(data))):
                what = f"unpacks to more than {_TIMES} times its {size} bytes"
                raise UnreadableError(shown(path), what, "decompress it and check its content")
            memory.require(times * total, shown(path), what)
            parts.append(part)
            if not part and not data and not member.eof:
                raise UnreadableError(shown(path), "truncated: it ends in the middle", fix)
        data = member.unused_data.lstrip(b"\0")
    return b"".join(parts)


def shown(path: str | Path) -> str:
    """Returns a path as printable text: bytes that are not UTF-8 in hexadecimal."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except TypeError:
        what = f"a {type(path).__name__}"
        raise DataError("path", what, "give the path of a file") from None


def _open(path: str | Path) -> tuple[int, int]:
    """Returns the descriptor and size of a regular file."""
    shown(path)  # a number would be somebody's descriptor
    try:
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        _remember(status)
        return descriptor, status.st_size
    os.close(descriptor)
    raise _not_a_file(path, status.st_mode)


def _not_a_file(path: str | Path, mode: int) -> UnreadableError:
    kind = next((name for is_one, name in _KINDS if is_one(mode)), "something else")
    return UnreadableError(shown(path), f"{kind}, not a file", "give a regular file")


def unreadable_folder(path: str | Path, error: OSError) -> UnreadableError:
    """Returns the error for a folder whose files the system does not list."""
    what = f"the folder cannot be read: {error.strerror}"
    return UnreadableError(shown(path), what, "check the path and its permissions")


def _refused(path: str | Path, error: OSError | ValueError) -> UnreadableError:
    """Returns the error for a path that the system cannot open or read."""
    if isinstance(error, FileNotFoundError):
        if os.path.islink(path):
            return MissingFileError(shown(path), "a link to a missing file", "restore or remove it")
        return MissingFileError(shown(path), "no such file", "check the path")
    if not isinstance(error, OSError):  # what Python says about a NUL
        return UnreadableError(shown(path), f"not a path: {error}", "check the path")
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            return _not_a_file(path, mode)
    except OSError:
        pass
    return UnreadableError(
        shown(path), f"cannot be read: {error.strerror}", "check the path and its permissions"
    )
