"""Write results as tables, JSON and notes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from detmap.cli import streams, uncertainty_tables
from detmap.core.output import SUFFIXES, format_of
from detmap.core.output.cell_text import or_none
from detmap.core.output.formats import RENDERERS
from detmap.core.output.table import Style, Table
from detmap.core.tables.notes import Note
from detmap.errors import DetmapError

if TYPE_CHECKING:
    from detmap.core.curves.operating_points import Operating
    from detmap.core.results.result import Result

TABLES = (
    "metrics",
    "integrators",
    "classes",
    "confidence",
    "best-f1",
    "at-precision",
    "at-recall",
    *uncertainty_tables.TABLES,
)
"""Names of the tables of a result, for --table."""

PIPED = 120
"""Columns of output that is no terminal; the variable COLUMNS sets another number."""

FIRST = ("score-missing", "score-key")
"""Codes of notes above the result: without scores no number is right."""


def write_result(
    result: Result, arguments: argparse.Namespace, slices: Mapping[str, Result] | None = None
) -> int:
    """Write a result in the chosen format, and its notes to stderr."""
    points, known = _operating(result, arguments), uncertainty_tables.known(result, arguments)
    write_notes(note for note in result.notes if note.code in FIRST)
    if arguments.per_image is not None:
        _write_images(result, arguments)
    if arguments.plot is not None:
        result.plot(arguments.plot, iou=arguments.iou)
    if arguments.format == "json":
        content = result.to_dict(iou=arguments.iou)
        if arguments.integrators:
            content["integrators"] = {
                rule: {name: or_none(value) for name, value in row.items()}
                for rule, row in result.integrators().items()
            }
        content |= {name.replace("-", "_"): each.to_dict() for name, (_, each) in points.items()}
        if slices:
            content["slices"] = {
                name: _slice_text(each, arguments) for name, each in slices.items()
            }
        known.write_into(content)
        write_json(content, arguments)
    else:
        tables = result.tables(
            iou=arguments.iou,
            per_class=arguments.per_class or arguments.table == "classes",
            integrators=arguments.integrators or arguments.table == "integrators",
        )
        between = [each.table(name, title) for name, (title, each) in points.items()]
        if slices:
            from detmap.core.results import slices as slicing

            between.append(slicing.slice_table(slices, arguments.iou))
        more = _threshold(result, points, arguments.iou)
        write_tables(known.added_to(tables, between, more), arguments)
    write_notes(note for note in result.notes if note.code not in FIRST)
    return 0


def _operating(result: Result, arguments: argparse.Namespace) -> dict[str, tuple[str, Operating]]:
    """Return the requested operating points: table name to title and content."""
    chosen, iou = {}, arguments.iou
    if arguments.confidence is not None:
        title = f"score threshold {arguments.confidence:g} (the metrics use all detections)"
        chosen["confidence"] = (title, result.operating_point(arguments.confidence, iou=iou))
    if arguments.best_f1 or arguments.table == "best-f1":
        chosen["best-f1"] = ("highest F1", result.best_f_beta(iou=iou))
    if arguments.min_precision is not None:
        title = f"precision of at least {arguments.min_precision:g}"
        points = result.threshold_for_precision(arguments.min_precision, iou=iou)
        chosen["at-precision"] = (title, points)
    if arguments.min_recall is not None:
        title = f"recall of at least {arguments.min_recall:g}"
        chosen["at-recall"] = (title, result.threshold_for_recall(arguments.min_recall, iou=iou))
    return chosen


def _threshold(
    result: Result, points: Mapping[str, tuple[str, Operating]], iou: float | None
) -> tuple[str, ...]:
    """Return the sentence of --best-f1: the shortest threshold with the counts of the best F1."""
    if "best-f1" not in points:
        return ()
    best = points["best-f1"][1].micro
    if not best["f1"] > 0:
        return ("no confidence threshold: no object is matched",)
    counts = ("tp", "fp", "missed")
    for digits in range(2, 18):
        shown = round(best["threshold"], digits)
        point = result.operating_point(shown, iou=iou).micro
        if all(point[name] == best[name] for name in counts):
            break
    return (f"use a confidence threshold of {shown!r}",)


def _slice_text(result: Result, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the JSON content of a slice."""
    content = result.to_dict(iou=arguments.iou)
    return {name: content[name] for name in ("metrics", "counts", "signature")}


def _write_images(result: Result, arguments: argparse.Namespace) -> None:
    """Write the file of --per-image."""
    from detmap.core.results import slices as slicing

    suffix = arguments.per_image.suffix.lower()
    form = SUFFIXES.get(suffix, "csv") if suffix else "csv"
    table = slicing.image_table(result.per_image(arguments.iou))
    streams.write(RENDERERS[form]([table], Style()), arguments.per_image)


def write_json(content: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Write a tree of plain values, after the findings of the doctor."""
    found = getattr(arguments, "findings", ())
    content = {"findings": [each.to_dict() for each in found]} | content if found else content
    streams.write(json.dumps(content, indent=2, allow_nan=False) + "\n", arguments.output)


def write_tables(tables: Sequence[Table], arguments: argparse.Namespace) -> None:
    """Write tables in the chosen format, within the width of a terminal; the findings of the doctor
    above them, except on a terminal, which has shown them.
    """
    tables = _chosen(tables, getattr(arguments, "table", None))
    style, found = arguments.style, getattr(arguments, "findings", None)
    if arguments.output is None:
        style = replace(style, width=get_terminal_size((PIPED, 0)).columns)
    elif arguments.by_suffix and arguments.output.is_file():
        format_of(arguments.output)  # refuses an old file of another suffix
    on_terminal = arguments.output is None and sys.stdout is not None and sys.stdout.isatty()
    alone = arguments.format == "csv" or getattr(arguments, "table", None) is not None
    if found and not (on_terminal or alone):
        tables = [*found.tables(), *tables]
    streams.write(RENDERERS[arguments.format](tables, style), arguments.output)
    if arguments.format == "csv":  # has no place for lines below the table
        for table in tables:
            for line in table.lines:
                streams.say(f"{line}\n")
        others = [table.name for table in tables[:-1]]
        if others:
            what = f"CSV holds the table {tables[-1].name}; --table has {', '.join(others)}"
            streams.say(f"note: {what}\n")


def _chosen(tables: Sequence[Table], name: str | None) -> Sequence[Table]:
    """Return all tables, or the named one with the lines below the last."""
    if name is None:
        return tables
    chosen = [table for table in tables if table.name == name]
    if not chosen:
        known = ", ".join(table.name for table in tables)
        raise DetmapError("--table", f"no table {name} in this output", f"choose one of {known}")
    return [replace(chosen[0], lines=tables[-1].lines)]


def write_notes(notes: Iterable[object]) -> None:
    """Write notes to stderr."""
    for note in notes:
        if isinstance(note, Note) and not note.is_shown:
            continue
        streams.say(f"note: {note}\n")
