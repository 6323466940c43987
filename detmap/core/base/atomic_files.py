"""Writes files and folders atomically: into a draft in the same folder, which is then renamed."""

import _thread
import errno
import hashlib
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from detmap.core.base import open_files
from detmap.errors import DataError, DetmapError

try:
    import fcntl
except ImportError:  # Windows: what a killed writer leaves stays
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = ".detmap-", ".part"
"""Of the names of drafts; folders have no suffix."""

_drafts: set[str] = set()
_swept: set[str] = set()  # folders in which stale drafts were looked for
_changing = _thread.RLock()  # held while a draft is created or renamed; `abandon` keeps it


def _begin_child() -> None:
    """Gives a forked process a lock of its own; the drafts are its parent's."""
    global _changing
    _changing = _thread.RLock()
    _drafts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)

MOST_WRITERS = 1000  # of one place at a time
MOST_TRIES = 100  # to delete a folder
MOST_LINKS = 40  # from one link to the next, as in the kernel
LONGEST_CHANGE = 2.0  # seconds; a network disk may never answer


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Opens a file that replaces `path` when the block ends without an error.

    The draft is synced to disk and renamed. Symbolic links and permissions are kept. The next write
    to the same path removes the draft of a killed process. Errors of the block propagate.

    Raises `DetmapError` if the path is not a regular file, is an input of the command, or the
    system refuses; the old file is kept.
    """
    if not isinstance(path, str | os.PathLike):
        raise DetmapError("path", f"a {type(path).__name__}", "give the path of a file")
    if open_files.was_read(path):  # a command checks what its line names, but not what these name
        what = "is an input, and would be overwritten"
        raise DetmapError(str(path), what, "write to another file")
    if _is_stream(path):  # it may lead to a file that others append to
        fix = "write to a file, or to stdout without the option"
        raise DetmapError(str(path), "is a stream of this process, not a file", fix)
    with _explained(path):
        place = Path(os.path.realpath(path))
        mode = _mode(path, place)
        raw = _draft_of(place)
    file = io.BufferedWriter(raw)
    try:
        try:
            yield file
        except OSError as error:
            if error in raw.failures:
                raise _refused(path, error) from error
            raise
        with _explained(path):
            file.flush()
            if mode is not None:
                os.fchmod(raw.fileno(), mode)
            os.fsync(raw.fileno())
            rename(raw.place, place)
        raw.replaced = True
        _settle(place.parent)
    finally:
        if not raw.replaced:  # while it is open: it could be another writer's afterwards
            with suppress(OSError):
                os.unlink(raw.place)
            _drafts.discard(raw.place)
        with suppress(OSError):
            file.close()


def _is_stream(path: str | Path) -> bool:
    """Checks for /dev/stdout and other links into the descriptors of a process."""
    place = os.path.abspath(path)
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(place))
        if folder.startswith("/proc/"):
            return True
        if not os.path.islink(place):
            break
        place = os.path.join(folder, os.readlink(place))
    return False


def abandon() -> None:
    """Removes all open drafts, for a process that ends at once (Ctrl-C).

    No thread creates or renames a draft afterwards: it waits for the end of the process.
    """
    _changing.acquire(timeout=LONGEST_CHANGE)
    for draft in tuple(_drafts):
        try:
            os.unlink(draft)
        except FileNotFoundError:
            continue
        except OSError:
            _abandon_folder(draft)


def _abandon_folder(draft: str) -> None:
    """Removes a folder that another thread may still write into, by its path."""
    moved = f"{draft}-gone"  # where that thread finds it no more, but for a file that it opens now
    for _ in range(MOST_TRIES):
        with suppress(OSError):
            os.rename(draft, moved)
        for place in (moved, draft):
            shutil.rmtree(place, ignore_errors=True)
        if not os.path.lexists(draft) and not os.path.lexists(moved):
            break


def rename(draft: str | Path, place: str | Path) -> None:
    """Renames a draft, which replaces a file or an empty folder at `place`."""
    with _changing:
        os.replace(draft, place)
        _drafts.discard(str(draft))


@contextmanager
def temporary_folder(parent: str | Path | None = None) -> Iterator[Path]:
    """Creates a folder that is deleted at the end of the block, also on Ctrl-C.

    It is in `parent`, or in the system's folder of temporary files. In the block it can be renamed,
    which keeps it. It is locked while its process lives; the next one on this machine removes what
    a killed one left. Raises `OSError` if it cannot be created.
    """
    parent = tempfile.gettempdir() if parent is None else str(parent)
    remove_stale(parent)
    folder, handle = _locked_folder(parent)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _drafts.discard(folder)
        if handle is not None:
            os.close(handle)


def _locked_folder(parent: str) -> tuple[str, int | None]:
    """Creates a folder and locks it; returns None for the lock if the system has none."""
    while True:
        with _changing:
            folder = tempfile.mkdtemp(prefix=f"{PREFIX}{_machine()}-", dir=parent)
            if fcntl is None:
                _drafts.add(folder)
                return folder, None
            try:
                handle = os.open(folder, os.O_RDONLY)
            except FileNotFoundError:  # who looked for stale folders was faster than the lock
                continue
            if _lock(handle) is not False and _is_at(handle, folder):
                _drafts.add(folder)
                return folder, handle
            os.close(handle)


def remove_stale(parent: str) -> None:
    """Removes drafts in a folder whose process is dead: those that nobody holds a lock of.

    Drafts have the machine in their name, because a disk of several machines may have locks that
    hold on one of them alone; those of others are kept, as is all where the system has no locks.
    Looks once per folder and process.
    """
    if fcntl is None or parent in _swept:
        return
    _swept.add(parent)
    drafts: list[str] = []
    with suppress(OSError), os.scandir(parent) as entries:
        own = f"{PREFIX}{_machine()}-"
        drafts = [entry.path for entry in entries if entry.name.startswith(own)]
    for place in drafts:
        _remove_stale(place) if place.endswith(SUFFIX) else _remove_stale_folder(place)


def _remove_stale_folder(place: str) -> None:
    with suppress(OSError):
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if _lock(handle) and _is_at(handle, place):
                shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(handle)


@cache
def _machine() -> str:
    """A name of the running system: other machines, and this one after a restart, have others."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:  # not Linux
        import platform

        text = platform.node()
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def write_bytes(path: str | Path, content: bytes) -> None:
    """Writes a whole file atomically."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | Path, content: str) -> None:
    """Writes a whole file in UTF-8 atomically."""
    write_bytes(path, content.encode())


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Creates a folder that replaces `path`, nothing or another folder, when the block ends without
    an error. Until then it is beside it; the old folder is kept if the system refuses (`OSError`).
    """
    place = Path(os.path.realpath(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(place.parent) as draft:
        yield draft
        os.chmod(draft, 0o777 & ~_umask())
        if not place.exists():
            rename(draft, place)
            return
        with temporary_folder(place.parent) as old, _changing:  # `abandon` finds both, or neither
            try:
                os.rename(place, old / "replaced")
                rename(draft, place)
            except BaseException:  # an interrupt, too
                with suppress(OSError):
                    os.rename(old / "replaced", place)
                raise


def write_folder(path: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes a folder that appears whole or not at all.

    Raises `DataError` if it exists and is not empty, or cannot be written.
    """
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise DataError(str(path), "exists", "name a new folder")
    try:
        with replacing_folder(path) as draft:
            for folder in {(draft / name).parent for name in files}:
                folder.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():  # creates no folder: an abandoned draft stays away
                data = content if isinstance(content, bytes) else content.encode()
                (draft / name).write_bytes(data)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise DataError(str(path), what, "write to another place, or make room") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class _Draft(io.FileIO):
    """A new file beside the target. It is locked while its writer lives."""

    def __init__(self, place: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        super().__init__(os.open(place, flags | getattr(os, "O_BINARY", 0), 0o666), "wb")
        self.place, self.replaced = place, False
        self.failures: list[OSError] = []

    def write(self, data: Any, /) -> int:
        """Writes, and records errors of the system."""
        try:
            return super().write(data) or 0
        except OSError as error:
            self.failures.append(error)
            raise


def _draft_of(place: Path) -> _Draft:
    """Creates the first draft that no other live process uses."""
    remove_stale(str(place.parent))
    key = hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]
    for number in range(MOST_WRITERS):
        name = str(place.parent / f"{PREFIX}{_machine()}-{key}-{number}{SUFFIX}")
        _remove_stale(name)
        with _changing:
            try:
                draft = _Draft(name)
            except FileExistsError:
                continue
            if _lock(draft.fileno()) is not False and _is_at(draft.fileno(), name):
                _drafts.add(name)
                return draft
            draft.close()  # who looked for stale drafts was faster than the lock
    raise OSError(errno.EBUSY, f"{MOST_WRITERS} other processes write to it")


def _remove_stale(name: str) -> None:
    """Removes the draft of a killed process."""
    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(name).st_mode):
            return
        handle = os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if _lock(handle) and _is_at(handle, name):
                os.unlink(name)
        finally:
            os.close(handle)


def _lock(handle: int) -> bool | None:
    """Tries to lock a file. Returns None if the system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(handle: int, name: str) -> bool:
    """Checks if a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(name))
    except FileNotFoundError:
        return False


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Converts system errors to `DetmapError`."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error


def _refused(path: str | Path, error: OSError | ValueError) -> DetmapError:
    if isinstance(error, FileNotFoundError):
        return DetmapError(str(path), "there is no folder of that name", "create the folder first")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DetmapError(
        str(path), f"cannot be written: {reason}", "write to another place, or make room"
    )


def _mode(path: str | Path, place: Path) -> int | None:
    """Returns the permissions of an existing file, else None."""
    try:
        there = os.stat(place)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(there.st_mode):
        kind = "a folder" if stat.S_ISDIR(there.st_mode) else "not a regular file"
        raise DetmapError(str(path), f"is {kind}", "give the path of a file")
    return stat.S_IMODE(there.st_mode)


def _settle(folder: Path) -> None:
    """Syncs the rename to disk if the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
