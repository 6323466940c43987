"""The command line, run in this process or as one of its own."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from detmap.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(*argv: object) -> Outcome:
    """``detmap ARGV`` in this process, whose streams are those of a terminal."""
    return run(*argv, stream=Terminal)


def run(*argv: object, stream: type[io.StringIO] = io.StringIO) -> Outcome:
    """``detmap ARGV`` in this process."""
    out, err = stream(), stream()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in argv])
        except SystemExit as stop:  # argparse ends the process itself
            code = stop.code if isinstance(stop.code, int) else 1
    return Outcome(code, out.getvalue(), err.getvalue())


def spawn(*argv: object, cwd: Path | None = None, **environment: str) -> Outcome:
    """``python -m detmap ARGV`` in a process of its own."""
    return python("-m", "detmap", *argv, cwd=cwd, **environment)


def python(
    *argv: object, cwd: Path | str | None = None, timeout: float = 120, **environment: object
) -> Outcome:
    """A Python process with these arguments; it must not take long, nor read a terminal."""
    done = subprocess.run(
        [sys.executable, *map(str, argv)],
        cwd=cwd,
        env=os.environ | {name: str(value) for name, value in environment.items()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
