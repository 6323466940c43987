"""Files are written beside their place and then renamed: whoever reads one finds the old or the new
content, whole, whatever ends the writing.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from detmap.errors import DetmapError

_drafts: set[str] = set()


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends without an error.

    It is written in the same folder, forced to the disk, and renamed. A link stays, what it points
    to is replaced; the permissions of an older file stay too.

    Raises
    ------
    DetmapError : the place is a folder or a device, or the system refuses (no space, a limit, no
        permission); what was there is left as it was
    """
    draft = None
    try:
        place = Path(os.path.realpath(path))
        mode = _mode(path, place)
        handle, draft = tempfile.mkstemp(prefix=".detmap-", suffix=".part", dir=place.parent)
        _drafts.add(draft)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(draft, place)
        _drafts.discard(draft)
        draft = None
        _settle(place.parent)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DetmapError(
            str(path), f"cannot be written: {reason}", "write to another place, or make room"
        ) from error
    finally:
        if draft is not None:
            with suppress(OSError):
                os.unlink(draft)
            _drafts.discard(draft)


def abandon() -> None:
    """Remove the drafts that are being written, for a process that ends at once (Ctrl-C)."""
    for draft in tuple(_drafts):
        with suppress(OSError):
            os.unlink(draft)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a whole file, as `replacing` does."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | Path, content: str) -> None:
    """Write a whole file in UTF-8, as `replacing` does."""
    write_bytes(path, content.encode())


def _mode(path: str | Path, place: Path) -> int:
    """The permissions that the new file shall have."""
    try:
        there = os.stat(place)
    except FileNotFoundError:
        mask = os.umask(0)  # the only way to ask for it
        os.umask(mask)
        return 0o666 & ~mask
    if not stat.S_ISREG(there.st_mode):
        kind = "a folder" if stat.S_ISDIR(there.st_mode) else "not a regular file"
        raise DetmapError(str(path), f"is {kind}", "give the path of a file")
    return stat.S_IMODE(there.st_mode)


def _settle(folder: Path) -> None:
    """Force the rename to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
