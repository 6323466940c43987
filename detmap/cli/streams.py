"""Write results to stdout or a file, and all else to stderr.

A stream may be closed, full, or without a reader; only losing a result is an error.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from detmap.errors import DetmapError


@contextmanager
def stdout() -> Iterator[TextIO]:
    """Yield stdout and flush it when the block ends.

    Raises
    ------
    DetmapError : it is closed or cannot be written (a full disk)
    BrokenPipeError : its reader has ended
    """
    if sys.stdout is None:
        raise DetmapError("stdout", "is closed", "write to a file with -o")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
        raise
    except OSError as error:
        drop(sys.stdout)
        raise DetmapError(
            "stdout", str(error.strerror or error), "write to a file with -o"
        ) from None


def drop(stream: TextIO) -> None:
    """Redirect a stream to the null device, also for the interpreter's exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write(text: str, path: Path | None) -> None:
    """Write a result to stdout, or to a file that appears whole or not at all."""
    if path is None:
        with stdout() as stream:
            stream.write(text)
    else:
        from detmap.core.base import atomic_files

        atomic_files.write_bytes(path, text.encode("utf-8", "backslashreplace"))


def inform(text: str) -> None:
    """Write a line to stdout; ignore errors."""
    with suppress(DetmapError, BrokenPipeError), stdout() as stream:
        stream.write(harmless(text))


def harmless(text: str) -> str:
    """Escape control characters, which names of files and classes can contain."""
    lines = text.split("\n")
    if all(map(str.isprintable, lines)):
        return text
    from detmap.core.base.printable import shown

    return "\n".join(map(shown, lines))


def say(text: str) -> None:
    """Write a note or error to stderr; ignore errors."""
    text = harmless(text)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(_colored(text) if has_colors(sys.stderr) else text)


def has_colors(stream: TextIO) -> bool:
    """Whether it is a terminal with colors that the user allows (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


PER_LINE = 60  # seconds between two lines of progress in a log file
COLORS = {"note:": "33", "detmap: error:": "1;31", "  fix:": "36"}


def _colored(text: str) -> str:
    """Color the prefix of a message."""
    for words, color in COLORS.items():
        if text.startswith(words):
            return f"\x1b[{color}m{words}\x1b[0m{text.removeprefix(words)}"
    return text


def counter(what: str) -> Callable[[int, int], None]:
    """Return a progress callback that updates one terminal line, with an estimate of the time left,
    and clears it at the end.

    Where stderr is not a terminal, such as a log file, it writes a line per minute instead.
    """
    begin = written = time.monotonic()

    def show(done: int, of: int) -> None:
        nonlocal written
        now = time.monotonic()
        left = (of - done) * (now - begin) / max(done, 1)
        line = f"{done} of {of} {what}, about {left:.0f} s left" if done < of else ""
        with suppress(OSError, ValueError, AttributeError):
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{line:<60}" + ("" if line else "\r"))
                sys.stderr.flush()
            elif line and now - written >= PER_LINE:
                written = now
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()

    return show


def progress(text: str) -> None:
    """Write the current step to a terminal."""
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            sys.stderr.write(f"{text} ...\n")
