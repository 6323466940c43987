"""The cache folder: where it is, whether it can be trusted, and whole files in and out of it."""

from __future__ import annotations

import logging
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOG = logging.getLogger("detmap")
LARGEST = 1 << 22  # bytes of a file; kernels have 5 to 50 KB
_said: set[str] = set()

Place = Path | int
"""An open folder; its path where the system opens no folders."""


def folder() -> Path | None:
    """Where machine code is kept: an absolute path, whatever the environment says; None where
    there is no such place.
    """
    if own := os.environ.get("DETMAP_CACHE_DIR"):
        path = Path(os.path.expanduser(own))
        wrong = "" if path.is_absolute() else "is no absolute path"
        if not wrong and os.path.dirname(place := os.path.realpath(path)) == place:
            wrong = "is the folder of the whole system"
        if not wrong:
            return path
        say("DETMAP_CACHE_DIR", f"DETMAP_CACHE_DIR {own!r} {wrong}: it is passed over")
    names: tuple[tuple[str, str], ...]
    if sys.platform == "win32":
        names = (("LOCALAPPDATA", ""), ("USERPROFILE", "AppData/Local"))
    elif sys.platform == "darwin":
        names = (("HOME", "Library/Caches"),)
    else:
        names = (("XDG_CACHE_HOME", ""), ("HOME", ".cache"))
    for name, below in names:
        if base := os.environ.get(name):
            if Path(base).is_absolute():
                return Path(base, below, "detmap")
            say(name, f"{name} {base!r} is no absolute path: it is passed over")
    home = _home()
    if home is not None:
        return home / names[-1][1] / "detmap"
    say("folder", "there is no folder for compiled kernels: set DETMAP_CACHE_DIR to one of yours")
    return None


def _home() -> Path | None:
    """As the system knows it, without the environment."""
    if sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
            if home.is_absolute() and home.is_dir():
                return home
    return None


@contextmanager
def opened(path: Path | None) -> Iterator[Place | None]:
    """The folder, made where it is not there: open, so that it cannot be changed for another;
    None where it must not be used, which is told once.
    """
    if path is None:
        yield None
        return
    place: Place | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if os.open in os.supports_dir_fd:
            place = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            _refuse_others(os.fstat(place))
            usable: Place | None = place
        else:
            usable = path
    except OSError as error:
        usable = None
        say(
            "folder",
            f"compiled kernels are not kept in {path}: {error.strerror or error};"
            " set DETMAP_CACHE_DIR to a folder of yours that nobody else can write",
        )
    try:
        yield usable
    finally:
        if isinstance(place, int):
            os.close(place)


def _refuse_others(status: os.stat_result) -> None:
    """An error where somebody else owns a file or folder, or may write to it."""
    if status.st_uid != os.geteuid():
        raise PermissionError("it belongs to somebody else")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("others may write there")


def read(place: Place, name: str) -> bytes:
    """A whole file of the folder: a regular one of the user, of a kernel's size."""
    if isinstance(place, Path):
        with open(place / name, "rb") as file:
            return file.read(LARGEST)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=place)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError("it is no regular file")
        _refuse_others(status)
        if status.st_size > LARGEST:
            raise PermissionError("it is too large")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST)
    finally:
        os.close(descriptor)


def write(place: Place, name: str, data: bytes) -> None:
    """Put a file in place at once, in place of whatever is there."""
    within = place if isinstance(place, int) else None
    draft = f".{name}.{os.getpid()}.{threading.get_ident()}.draft"
    target = name
    if isinstance(place, Path):
        draft, target = str(place / draft), str(place / name)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(draft, flags | getattr(os, "O_BINARY", 0), mode=0o600, dir_fd=within)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(draft, target, src_dir_fd=within, dst_dir_fd=within)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=within)
            raise
    except OSError as error:
        say(
            "folder",
            f"compiled kernels cannot be kept in {folder()}: {error.strerror or error};"
            " set DETMAP_CACHE_DIR to a folder of yours",
        )


def say(subject: str, text: str) -> None:
    """Tell the user, once a process and subject; shown on stderr unless the program configures
    logging otherwise.
    """
    if subject not in _said:
        _said.add(subject)
        LOG.warning("detmap: %s", text)
