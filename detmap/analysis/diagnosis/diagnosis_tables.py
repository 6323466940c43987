"""The tables of a diagnosis: key findings, costs, operating points, subsets, confusion, images, and
one row per error or suspected label error.
"""

from typing import Any

from detmap.analysis.diagnosis.analysis import Diagnosis
from detmap.analysis.diagnosis.mistakes import errors
from detmap.analysis.diagnosis.tide import MEANING
from detmap.core.output.table import Cell, Table

MOST_IMAGES, MOST_PAIRS = 10, 10


def sentence_table(content: dict[str, Any], percent: bool) -> Table:
    """The key findings, one per row."""
    return Table("", ("key findings",), tuple((each,) for each in content["sentences"]))


def cost_table(content: dict[str, Any], percent: bool) -> Table:
    """One row per kind of error: its cases, and the AP gain by the protocol and by tidecv."""
    own, theirs = content["tide_protocol"], content["tide"]
    unit = "in points" if percent else "0.01 is one point"
    return Table(
        f"AP gain if each kind of error is fixed ({unit}; gains do not add up)",
        ("error", "meaning", "cases", "AP gain if fixed", "AP gain (tidecv)"),
        tuple(
            (kind, meaning, own["counts"][kind], _share(own["raw"][kind]), _share(theirs[kind]))
            for kind, meaning in MEANING.items()
        ),
    )


def point_table(content: dict[str, Any], percent: bool) -> Table:
    """One row per operating point: all classes, then each class."""
    keys = ("name", "score", "precision", "recall", "f1", "fp", "missed")
    return Table(
        "Operating points with the highest F1",
        ("class", "score", "precision", "recall", "F1", "FP", "missed"),
        tuple(tuple(row[key] for key in keys) for row in content["operating_points"]),
    )


def slice_table(content: dict[str, Any], percent: bool) -> Table:
    """One row per range of size, aspect, crowding ..."""
    return Table(
        f"Recall{_best_words(content)} and AP by subset",
        ("by", "range", "objects", "recall", "AP"),
        tuple(
            (row["by"], row["name"], row["objects"], row["recall"], row["ap"])
            for row in content["slices"]
        ),
    )


def confused_table(content: dict[str, Any], percent: bool) -> Table:
    """One row per pair of different classes, most frequent first."""
    confusion = content["confusion"]
    names, matrix = confusion["classes"][:-1], confusion["matrix"]
    if matrix is None:
        counts = confusion["counts"]
    else:
        counts = ((i, j, n) for i, row in enumerate(matrix) for j, n in enumerate(row) if n)
    rows: list[tuple[Cell, ...]] = [
        (names[i], names[j], n) for i, j, n in counts if i != j and max(i, j) < len(names)
    ]
    chosen = sorted(rows, key=lambda row: -row[2])[:MOST_PAIRS]  # type: ignore[operator]
    score = confusion["confidence"]
    where = "" if score is None else f"confidence {score:.4g} and "
    title = f"Most confused classes at {where}IoU {confusion['iou']:g}"
    lines = () if chosen else ("no object is detected as another class",)
    return Table(title, ("true", "predicted", "count"), tuple(chosen), lines)


def image_table(content: dict[str, Any], percent: bool) -> Table:
    """One row per image with errors, most errors first."""
    rows = [row for row in content["images"] if row["fp"] or row["missed"]][:MOST_IMAGES]
    return Table(
        f"Images with most errors{_best_words(content)}",
        ("image", "objects", "TP", "FP", "missed"),
        tuple(tuple(row.values()) for row in rows),
    )


def _best_words(content: dict[str, Any]) -> str:
    best = content["operating_points"][0]["score"]
    return "" if best is None else f" at score threshold {best:.4g}"


def error_table(diagnosis: Diagnosis) -> Table:
    """One row per false positive and missed object."""
    header = ("kind", "image", "class", "x", "y", "w", "h", "score", "overlap", "other", "row")
    rows = tuple(tuple(each.to_dict().values()) for each in errors(diagnosis))
    return Table("", header, rows, name="errors")


def suspect_table(rows: list[dict[str, Any]]) -> Table:
    """One row per suspected label error."""
    header = ("kind", "image", "label", "detected", "x", "y", "w", "h", "score", "overlap")
    rows_of = tuple(tuple(row.values()) for row in rows)
    return Table("", (*header, "reason", "row"), rows_of, name="suspects")


def _share(points: float | None) -> float | None:
    """Points as a fraction."""
    return None if points is None else points / 100
