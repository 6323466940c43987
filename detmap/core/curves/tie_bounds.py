"""The lowest and the highest metrics over orders of tied scores, and the note on them."""

from __future__ import annotations

from detmap.core.curves import aggregation
from detmap.core.curves.equal_scores import Orders, Tables, TooManyPairsError, may_matter
from detmap.core.curves.extremes import extremes_of
from detmap.core.curves.open_cells import OpenCells
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.tables import Note
from detmap.errors import DetmapError

DIGITS = 4  # in tables


def note(matches: Matches, scores: Scores, threads: int | None = None) -> list[Note]:
    """Returns a note if the order of tied scores can change a printed digit.

    It looks at orders among images only, as these need no tables: the note is the same for an
    evaluation, a merge and a stream. `Result.ties` looks at all orders.
    """
    protocol = matches.protocol
    try:
        protocol.require("note on ties")
        low, high = extremes(matches, scores, None, threads)
    except DetmapError:
        return []
    metrics = []
    for row in protocol.rows()[0]:
        a, b = (
            f"{aggregation.mean(each, row, protocol, matches.categories):.{DIGITS}f}"
            for each in (low, high)
        )
        if a != b:
            metrics.append(f"{row.name} {a} to {b}")
    if not metrics:
        return []
    shown = ", ".join(metrics[:3]) + (" ..." if len(metrics) > 3 else "")
    verb = "metric depends" if len(metrics) == 1 else "metrics depend"
    text = f"{verb} on the order of tied scores in different images: {shown} (see --ties)"
    return [Note("ties-show", text, len(metrics))]


def open_cells(
    matches: Matches, tables: Tables | None, threads: int | None = None
) -> OpenCells | None:
    """Returns the cells where the order inside an image matters; None for none. Without the orders
    of the tables, whose bounds are narrower, where tables are None or have too many pairs.

    Raises
    ------
    DetmapError : no bounds are known for the protocol
    """
    matches.protocol.require("tie bounds")
    if not may_matter(matches):
        return None
    try:
        cells = OpenCells(matches, None if tables is None else Orders(matches, tables, threads))
    except TooManyPairsError:
        cells = _without_orders(matches)
    return cells if cells.decide else None


def _without_orders(matches: Matches) -> OpenCells:
    try:
        return OpenCells(matches, None)
    except DetmapError:
        what = "tied detections and objects lie in heaps: the orders inside an image are too many"
        fix = "remove boxes that occur many times; `detmap doctor` counts them"
        raise DetmapError("ties", what, fix) from None


def extremes(
    matches: Matches, scores: Scores, cells: OpenCells | None, threads: int | None = None
) -> tuple[Scores, Scores]:
    """Returns the lowest and the highest scores over all orders."""
    if cells is None or not len(cells):
        return extremes_of(matches, scores, threads)
    return cells.bounds(scores, threads)
