"""The lowest and the highest that an order of equal scores gives, and the note where that shows."""

from __future__ import annotations

from detmap.curves import aggregation
from detmap.curves.equal_scores import Orders, Tables, may_matter
from detmap.curves.extremes import extremes_of
from detmap.curves.open_cells import OpenCells
from detmap.curves.scores import Scores
from detmap.errors import DetmapError
from detmap.matching.matches import Matches
from detmap.tables import Note

DIGITS = 4  # that a table prints
AFFORDED = 100_000  # detections up to which a note looks at orders inside images too


def note(
    matches: Matches, scores: Scores, tables: Tables | None = None, threads: int | None = None
) -> list[Note]:
    """A remark where the order of equal scores may change a printed digit of a metric; none under
    rules whose bounds are not known.
    """
    protocol = matches.protocol
    try:
        matches.protocol.require_stock("bounds over the orders of equal scores")
        dear = len(matches) > AFFORDED and may_matter(matches)
        cells = None if dear else open_cells(matches, tables, threads)
        among = " of different images" if dear else ""
        low, high = extremes(matches, scores, cells, threads)
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
    text = f"{verb} on the order of equal scores{among}: {shown} (--ties tells more)"
    return [Note("ties-show", text, len(metrics))]


def open_cells(
    matches: Matches, tables: Tables | None, threads: int | None = None
) -> OpenCells | None:
    """Where equal scores of an image decide more than the order among images; None for nowhere.

    Raises
    ------
    DetmapError : rules under which no bounds are known
    """
    matches.protocol.require_stock("bounds over the orders of equal scores")
    if not may_matter(matches):
        return None
    cells = OpenCells(matches, None if tables is None else Orders(matches, tables, threads))
    return cells if cells.decide else None


def extremes(
    matches: Matches, scores: Scores, cells: OpenCells | None, threads: int | None = None
) -> tuple[Scores, Scores]:
    """The scores with every cell at its lowest, and at its highest, over all orders."""
    if cells is None or not len(cells):
        return extremes_of(matches, scores, threads)
    return cells.bounds(scores, threads)
