"""The command line: the only part that prints, and the only one that exits.

stdout carries results; stderr carries notes, progress and errors. Exit 0: fine; 1: a comparison
failed; 2: bad input or usage; 130: interrupted.

Here, in `detmap.cli.process` and in ``detmap/__init__.py`` nearly nothing is imported, since a
Ctrl-C can only be answered after that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def entry() -> NoReturn:
    """Be the process of the command line, from its first moment to its exit code."""
    from detmap.cli import process

    process.begin()
    process.end(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Nothing is raised, whatever happens."""
    import sys

    from detmap.cli.dispatch import dispatch

    return dispatch(sys.argv[1:] if argv is None else argv)
