"""What a command writes: results to stdout or a file, the rest to stderr.

A stream may be closed, full, or without a reader; only a result that is lost is an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from detmap.errors import DetmapError


@contextmanager
def stdout() -> Iterator[TextIO]:
    """Where results go; what was written there has arrived when the block ends.

    Raises
    ------
    DetmapError : it is closed, or the system refuses (a full disk)
    BrokenPipeError : its reader has gone
    """
    if sys.stdout is None:
        raise DetmapError("stdout", "is closed", "name a file with -o")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
        raise
    except OSError as error:
        drop(sys.stdout)
        raise DetmapError("stdout", str(error.strerror or error), "name a file with -o") from None


def drop(stream: TextIO) -> None:
    """Nothing more is written there, not even by the interpreter as it ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write(text: str, path: Path | None) -> None:
    """Write a result to stdout, or to a file that appears whole or not at all."""
    if path is None:
        with stdout() as stream:
            stream.write(text)
    else:
        from detmap.base import atomic_files

        atomic_files.write_bytes(path, text.encode("utf-8", "backslashreplace"))


def inform(text: str) -> None:
    """A line on stdout that no result depends on."""
    with suppress(DetmapError, BrokenPipeError), stdout() as stream:
        stream.write(harmless(text))


def harmless(text: str) -> str:
    """Lines whose control characters, of the names of files and classes, do nothing."""
    lines = text.split("\n")
    if all(map(str.isprintable, lines)):
        return text
    from detmap.base.printable import shown

    return "\n".join(map(shown, lines))


def say(text: str) -> None:
    """A note or an error, on stderr; where nobody listens it is lost."""
    text = harmless(text)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(_coloured(text) if has_colours(sys.stderr) else text)


def has_colours(stream: TextIO) -> bool:
    """Whether it is a terminal with colours, whose user wants them (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


COLOURS = {"note:": "33", "detmap: error:": "1;31", "  fix:": "36"}


def _coloured(text: str) -> str:
    """The text with its first words in the colour of what they say."""
    for words, colour in COLOURS.items():
        if text.startswith(words):
            return f"\x1b[{colour}m{words}\x1b[0m{text.removeprefix(words)}"
    return text


def counter(what: str) -> Callable[[int, int], None]:
    """A count on one line of a terminal, which goes away when all is done."""

    def show(done: int, of: int) -> None:
        with suppress(OSError, ValueError, AttributeError):
            if sys.stderr.isatty():
                line = f"{done} of {of} {what}" if done < of else ""
                sys.stderr.write(f"\r{line:<40}" + ("" if line else "\r"))
                sys.stderr.flush()

    return show


def progress(text: str) -> None:
    """What is going on, for somebody who waits at a terminal."""
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            sys.stderr.write(f"{text} ...\n")
