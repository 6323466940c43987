"""Tables of a result."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from detmap.core.output.table import Cell, Quantity, Table
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import NO_LIMIT, MetricRow
from detmap.errors import counted


def metric_table(
    protocol: Protocol, rows: Sequence[MetricRow], values: Mapping[str, float]
) -> Table:
    """Returns one row per metric, with its definition; metrics without a row have none."""
    cells: list[tuple[Cell, ...]] = [
        (
            row.name,
            overlaps(protocol, row),
            row.group or row.subset,
            row.max_dets if row.max_dets < NO_LIMIT else "all",
            values[row.name] if row.metric.unit == "fraction" else Quantity(values[row.name]),
        )
        for row in rows
    ]
    known = {row.name for row in rows}
    cells += [(name, "", "", "", value) for name, value in values.items() if name not in known]
    header = ("metric", "IoU", "area", "max dets", "value")
    return Table(protocol.title, header, tuple(cells), name="metrics")


def overlaps(protocol: Protocol, row: MetricRow) -> str:
    """Returns the IoU threshold of a metric, or the first and last of its range."""
    thresholds = protocol.thresholds() if row.iou is None else [row.iou]
    if len(thresholds) == 1:
        return f"{thresholds[0]:.2f}"
    return f"{thresholds[0]:.2f}:{thresholds[-1]:.2f}"


def integrator_table(by_rule: Mapping[str, Mapping[str, float]]) -> Table:
    """Returns one row per AP interpolation."""
    header = ("AP interpolation", *next(iter(by_rule.values())))
    cells: list[tuple[Cell, ...]] = [(rule, *row.values()) for rule, row in by_rule.items()]
    return Table("AP interpolation", header, tuple(cells), name="integrators")


def class_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Returns one row per class."""
    header = ("class", *(key for key in rows[0] if key != "name")) if rows else ("class",)
    cells: list[tuple[Cell, ...]] = [tuple(row.values()) for row in rows]
    return Table("classes", header, tuple(cells), name="classes")


def count_lines(counts: Mapping[str, int | float], lowest: float) -> str:
    """Returns the numbers of images, objects and detections, and the lowest score, as a line."""
    each = ("image", "object", "detection")
    line = ", ".join(counted(counts[f"{name}s"], name, sep="") for name in each)
    return line if math.isnan(lowest) else f"{line}, lowest score {lowest:.3g}"


def totals(counts: Mapping[str, int | float], lowest: float) -> tuple[str, str]:
    """Returns the total counts and the lowest score as two lines of text."""
    return (
        count_lines(counts, lowest),
        "at IoU {iou:g}: {tp} TP, {fp} FP, {ignored} ignored, {missed} missed".format_map(counts),
    )
