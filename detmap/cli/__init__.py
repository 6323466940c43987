"""The command line: the only part that prints, and the only one that exits.

stdout carries results; stderr carries notes, progress and errors. Exit 0: fine; 1: a comparison
failed; 2: bad input or usage; 130: interrupted.

This module, `detmap.cli.process` and ``detmap/__init__.py`` import next to nothing, because Ctrl-C
is handled only after the imports.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def entry() -> NoReturn:
    """Run the command line as a process and exit."""
    from detmap.cli import process

    process.begin()
    process.end(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises nothing."""
    import sys

    from detmap.cli.dispatch import dispatch

    return dispatch(sys.argv[1:] if argv is None else argv)
