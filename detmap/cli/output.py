"""Results as a command prints them: tables, JSON, notes."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detmap.cli import streams
from detmap.errors import DetmapError
from detmap.report import RENDERERS
from detmap.report.table import Table

if TYPE_CHECKING:
    from detmap.result import Result

TABLES = ("metrics", "integrators", "classes")
"""The tables of a result, by which one of them can be asked for."""


def write_result(result: Result, arguments: argparse.Namespace) -> int:
    """Write a result as asked, and its notes to stderr."""
    if arguments.format == "json":
        content = result.as_dict(iou=arguments.iou)
        if arguments.integrators:
            content["integrators"] = {
                rule: {name: None if math.isnan(value) else value for name, value in row.items()}
                for rule, row in result.integrators().items()
            }
        write_json(content, arguments)
    else:
        tables = result.tables(
            iou=arguments.iou,
            per_class=arguments.per_class or arguments.table == "classes",
            integrators=arguments.integrators or arguments.table == "integrators",
        )
        write_tables(tables, arguments)
    write_notes(result.notes)
    return 0


def write_json(content: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Write a tree of plain values."""
    streams.write(json.dumps(content, indent=2, allow_nan=False) + "\n", arguments.output)


def write_tables(tables: Sequence[Table], arguments: argparse.Namespace) -> None:
    """Write tables in the format that was asked for; ruled ones on a terminal."""
    tables = _chosen(tables, getattr(arguments, "table", None))
    to_stdout = arguments.output is None and sys.stdout is not None
    if arguments.format == "table" and to_stdout and sys.stdout.isatty():
        from detmap.report import terminal

        with streams.stdout() as stream:
            terminal.draw(tables, arguments.style, stream)
    else:
        streams.write(RENDERERS[arguments.format](tables, arguments.style), arguments.output)
    if arguments.format == "csv":  # its rows are all data: what stands below goes to the notes
        for table in tables:
            for line in table.lines:
                streams.say(f"{line}\n")
        others = [table.name for table in tables[:-1]]
        if others:
            what = f"CSV holds one table, {tables[-1].name}; --table has {', '.join(others)}"
            streams.say(f"note: {what}\n")


def _chosen(tables: Sequence[Table], name: str | None) -> Sequence[Table]:
    """All tables, or the one of this name, with what stands below the last."""
    if name is None:
        return tables
    found = [table for table in tables if table.name == name]
    if not found:
        known = ", ".join(table.name for table in tables)
        raise DetmapError("--table", f"there is no table {name} here", f"there are {known}")
    return [replace(found[0], lines=tables[-1].lines)]


def write_notes(notes: Iterable[object]) -> None:
    """Write what a careful reader would ask to stderr."""
    for note in notes:
        streams.say(f"note: {note}\n")
