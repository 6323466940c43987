"""A diagnosis as HTML, for a notebook."""

from __future__ import annotations

from html import escape

from detmap.diagnosis.analysis import Diagnosis
from detmap.diagnosis.summary import parts, sentences
from detmap.output import tiles


def html(diagnosis: Diagnosis) -> str:
    """Tiles of the main numbers and the key findings."""
    seen = parts(diagnosis)
    best, ap = seen.points[0], seen.tide.ap / 100
    rates = {"precision": best.precision, "recall": best.recall}
    shown = {f"AP at IoU {diagnosis.iou:g}": ap, "best F1 (micro)": best.f1, **rates}
    counts = f"<p>{escape(repr(diagnosis))}</p>"
    return tiles.metric_tiles(shown, tiles.sentences(sentences(seen)), counts)
