"""The tables of a diagnosis: key findings, costs, operating points, subsets, confusion, images, and
one row per error or suspected label error.
"""

from __future__ import annotations

from typing import Any

from detmap.diagnosis.analysis import Diagnosis
from detmap.diagnosis.mistakes import errors
from detmap.diagnosis.summary import MEANING
from detmap.output.table import Cell, Table

MOST_IMAGES = 10


def summary_tables(content: dict[str, Any], *, percent: bool = False) -> list[Table]:
    """The summary as tables."""
    own, theirs = content["tide_protocol"], content["tide"]
    costs = [
        (name, MEANING[name], own["counts"][name], _share(own["raw"][name]), _share(theirs[name]))
        for name in MEANING
    ]
    points = [
        tuple(row[name] for name in ("name", "score", "precision", "recall", "f1", "fp", "missed"))
        for row in content["operating_points"]
    ]
    slices = [
        (row["by"], row["name"], row["objects"], row["recall"], row["ap"])
        for row in content["slices"]
    ]
    rows = [row for row in content["images"] if row["fp"] or row["missed"]][:MOST_IMAGES]
    best = content["operating_points"][0]["score"]
    at_best = "" if best is None else f" at score threshold {best:.4g}"
    unit = "in points" if percent else "0.01 is one point"
    return [
        Table(
            "",
            ("key findings",),
            tuple((sentence,) for sentence in content["sentences"]),
            name="sentences",
        ),
        Table(
            f"AP gain if each kind of error is fixed ({unit}; gains do not add up)",
            ("error", "meaning", "cases", "AP gain if fixed", "AP gain (tidecv)"),
            tuple(costs),
            name="costs",
        ),
        Table(
            "Operating points with the highest F1",
            ("class", "score", "precision", "recall", "F1", "FP", "missed"),
            tuple(points),
            name="points",
        ),
        Table(
            f"Recall{at_best} and AP by subset",
            ("by", "range", "objects", "recall", "AP"),
            tuple(slices),
            name="slices",
        ),
        Table(
            "Most confused classes",
            ("true", "predicted", "count"),
            tuple(_confused(content["confusion"])),
            name="confused",
        ),
        Table(
            f"Images with most errors{at_best}",
            ("image", "objects", "TP", "FP", "missed"),
            tuple(tuple(row.values()) for row in rows),
            name="images",
        ),
    ]


def error_table(diagnosis: Diagnosis) -> Table:
    """One row per false positive and missed object."""
    return _table("errors", [each.to_dict() for each in errors(diagnosis)])


def suspect_table(rows: list[dict[str, Any]]) -> Table:
    """One row per suspected label error."""
    header = ("kind", "image", "label", "detected", "x", "y", "w", "h", "score", "overlap")
    rows_of = tuple(tuple(row.values()) for row in rows)
    return Table("", (*header, "reason", "row"), rows_of, name="suspects")


def _share(points: float | None) -> float | None:
    """Points as a fraction."""
    return None if points is None else points / 100


def _confused(confusion: dict[str, Any], most: int = 10) -> list[tuple[Cell, ...]]:
    names, matrix = confusion["classes"][:-1], confusion["matrix"]
    rows = [
        (names[i], names[j], matrix[i][j])
        for i in range(len(names))
        for j in range(len(names))
        if i != j and matrix[i][j]
    ]
    return list(sorted(rows, key=lambda row: -row[2])[:most])


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    header = ("kind", "image", "class", "x", "y", "w", "h", "score", "overlap", "other", "row")
    return Table("", header, tuple(tuple(row.values()) for row in rows), name=name)
