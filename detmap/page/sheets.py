"""The tables of the page: headings and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detmap.diagnosis.mistakes import SUSPECTS
from detmap.diagnosis.operating import OVERALL
from detmap.diagnosis.summary import MEANING
from detmap.page.changes import difference
from detmap.page.content import Run
from detmap.page.figures import titled

TILES, SUSPECTS_SHOWN, IMAGES_SHOWN = 12, 15, 25


def tiles(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The numbers at the top: metrics with intervals, and the best F1."""
    names = list(runs[0].result.metrics)[:TILES]
    tiles = [
        {
            "name": name,
            "each": [run.shown(name) for run in runs],
            "difference": difference(runs[0], runs[1], name) if len(runs) == 2 else "",
        }
        for name in names
    ]
    micro = [run.points[0] for run in runs]
    tiles.append(
        {
            "name": "best F1 (micro)",
            "each": [{"value": point.f1, "low": None, "high": None} for point in micro],
            "difference": "",
        }
    )
    return tiles


def interval_text(runs: Sequence[Run]) -> str:
    """How the intervals were made."""
    if runs[0].intervals is None:
        return "No intervals: there are too few images, or the rules are a tool's."
    return f"Intervals: {runs[0].intervals.signature}; they speak of images like these."


def costs(runs: Sequence[Run]) -> dict[str, Any]:
    """Kinds of errors: cases and points."""
    letters = [""] if len(runs) == 1 else ["A ", "B "]
    header = ["error", "meaning"]
    header += [f"{letter}{name}" for letter in letters for name in ("cases", "points")]
    header += [f"{letter}tidecv" for letter in letters]
    meaning = {**MEANING, "FalsePos": "all false positives", "FalseNeg": "all missed objects"}
    rows = []
    for kind, text in meaning.items():
        row: list[Any] = [kind, text]
        for run in runs:
            row += [run.tide.counts.get(kind), run.tide.gain[kind]]
        rows.append(row + [run.tidecv.as_dict()[kind] for run in runs])
    return {"header": header, "rows": rows}


def classes(runs: Sequence[Run]) -> dict[str, Any]:
    """A row a class."""
    per_class = [run.result.per_class for run in runs]
    values = [key for key in per_class[0][0] if key not in ("name", "id", "objects")]
    values = [key for key in values if isinstance(per_class[0][0][key], float)]
    letters = [""] if len(runs) == 1 else ["A ", "B "]
    header = ["class", "objects"]
    header += [f"{letter}{name}" for name in (*values, "F1", "score") for letter in letters]
    if len(runs) == 1:
        header[3:3] = [f"95 % CI of {values[0]}"] if values else []
        header += ["precision", "recall", "FP", "missed"]
    rows = []
    for k, first in enumerate(per_class[0]):
        row: list[Any] = [first["name"], first["objects"]]
        row += [100 * each[k][name] for name in values for each in per_class]
        points = [run.points[len(OVERALL) + k] for run in runs]
        row += [100 * point.f1 for point in points]
        row += [f"{point.score:.3f}" if point.score == point.score else None for point in points]
        if len(runs) == 1:
            row[3:3] = [_interval(runs[0], first["name"], values[0])] if values else []
            point = points[0]
            row += [100 * point.precision, 100 * point.recall, point.fp, point.missed]
        rows.append(row)
    return {"header": header, "rows": rows}


def _interval(run: Run, name: str, value: str) -> str | None:
    """The interval of a class's number, in points; None where there is none."""
    known = run.intervals.per_class.get(name, {}) if run.intervals is not None else {}
    if value not in known or known[value].why_not:
        return None
    return f"{100 * known[value].low:.1f} to {100 * known[value].high:.1f}"


def lrp(runs: Sequence[Run]) -> dict[str, Any]:
    """OLRP and its parts."""
    header = ["detector", "oLRP", "localisation", "false positives", "missed"]
    rows = [
        [run.name, *(100 * value for value in (whole.olrp, whole.loc, whole.fp, whole.fn))]
        for run in runs
        for whole in [run.olrp[""]]
    ]
    return {"header": header, "rows": rows}


def sliced(runs: Sequence[Run]) -> dict[str, Any]:
    """A row a slice."""
    letters = [""] if len(runs) == 1 else ["A ", "B "]
    header = ["by", "range", "objects"]
    header += [f"{letter}{name}" for name in ("recall", "AP") for letter in letters]
    rows = []
    for each in zip(*(run.slices for run in runs), strict=True):
        row: list[Any] = [each[0].by, each[0].name, each[0].objects]
        row += [100 * part.recall for part in each]
        rows.append(row + [100 * part.ap for part in each])
    return {"header": header, "rows": rows}


def images(runs: Sequence[Run]) -> dict[str, Any]:
    """The images with most errors."""
    letters = [""] if len(runs) == 1 else ["A ", "B "]
    header = ["image", "objects"]
    header += [f"{letter}{name}" for letter in letters for name in ("TP", "FP", "missed")]
    others = [{each.image: each for each in run.images} for run in runs]
    rows = []
    for each in runs[-1].images[:IMAGES_SHOWN]:
        row: list[Any] = [str(each.image), each.objects]
        for known in others:
            same = known[each.image]
            row += [same.tp, same.fp, same.missed]
        rows.append(row)
    return {"header": header, "rows": rows}


def suspected(run: Run, two: bool) -> dict[str, Any]:
    """Labels to look at again."""
    counts = {kind: sum(each.kind == kind for each in run.suspects) for kind in SUSPECTS}
    rows = []
    for kind in SUSPECTS:
        some = [each for each in run.suspects if each.kind == kind][:SUSPECTS_SHOWN]
        rows += [
            [kind, str(each.image), each.category, each.score, each.other, *each.box]
            for each in some
        ]
    told = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) or "nothing"
    return {"title": titled(run, two, f"To look at: {told}"), "rows": rows}


def method(runs: Sequence[Run], inputs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What the numbers were made with."""
    rules = runs[0].result.protocol
    found = [*inputs, ("protocol", f"{rules.name}, version {rules.version}: {rules.source}")]
    found += [(f"signature, {run.name}", run.result.signature) for run in runs]
    if runs[0].intervals is not None:
        found.append(("intervals", runs[0].intervals.signature))
    found += [
        ("errors", "kinds and order of tidecv 1.0.1; AP, mean and ties of the protocol"),
        ("IoU, background", f"{runs[0].diagnosis.iou:g}, {runs[0].diagnosis.background:g}"),
        ("confusion", "one to one, same class first, then by overlap; ignored left out"),
        ("oLRP", "at the best of all scores that occur"),
    ]
    return found


def notes(runs: Sequence[Run]) -> list[Any]:
    """What a careful reader would ask."""
    return list(dict.fromkeys(str(note) for run in runs for note in run.result.notes))
