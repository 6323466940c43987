"""Summarize a diagnosis as plain values and as sentences."""

from html import escape
from typing import Any

import numpy as np

from detmap.analysis.diagnosis.analysis import Diagnosis
from detmap.analysis.diagnosis.breakdowns import Slice, slices
from detmap.analysis.diagnosis.confusion import confusion
from detmap.analysis.diagnosis.mistakes import SUSPECTS, suspects
from detmap.analysis.diagnosis.operating_sweep import Point, operating_points
from detmap.analysis.diagnosis.sections import SECTIONS, Choices, Known, Parts
from detmap.analysis.diagnosis.tide import ERRORS, MEANING, Tide, tide
from detmap.core.base.sums import add_integers
from detmap.core.output import tiles
from detmap.errors import counted

ENOUGH = 20  # objects of a slice that a sentence is about


DEFAULT = Choices()


def parts(diagnosis: Diagnosis, choices: Choices = DEFAULT, *, macro: bool = True) -> Parts:
    """The parts of a diagnosis that its sentences are about; `macro` as of `operating_points`."""
    points = operating_points(diagnosis, macro=macro)
    best = None if np.isnan(points[0].score) else points[0].score
    how = dict(choices.confusion)
    if how.get("rule", "detmap") == "detmap" and how.get("confidence") is None:
        how["confidence"] = best
    return Parts(
        tide(diagnosis),
        points,
        slices(diagnosis, confidence=points[0].score),
        confusion(diagnosis, **how),
        suspects(diagnosis, confidence=best),
        float(np.min(diagnosis.detections.score, initial=np.inf)),
    )


def summary(diagnosis: Diagnosis, choices: Choices = DEFAULT) -> dict[str, Any]:
    """All sections as plain values, None where nothing is defined: the content of the JSON output.

    ``tide`` is tidecv's where nothing else was chosen, ``tide_protocol`` the same by the protocol's
    own rules.
    """
    found = parts(diagnosis, choices)
    known = Known(diagnosis, found, sentences(found), choices)
    return {section.name: section.content(known) for section in SECTIONS}


def notebook_html(diagnosis: Diagnosis) -> str:
    """Tiles of the main numbers and the key findings, as HTML."""
    seen = parts(diagnosis)
    best, ap = seen.points[0], seen.tide.ap / 100
    rates = {"precision": best.precision, "recall": best.recall}
    shown = {f"AP at IoU {diagnosis.iou:g}": ap, "best F1 (micro)": best.f1, **rates}
    counts = f"<p>{escape(repr(diagnosis))}</p>"
    return tiles.metric_tiles(shown, tiles.sentences(sentences(seen)), counts)


def sentences(known: Parts) -> list[str]:
    """Key findings: largest loss, best score, lowest recall, confusion, suspected label errors."""
    micro = known.points[0]
    found = [
        _tide_sentence(known.tide),
        *_best_sentence(micro, known.lowest),
        *_slice_sentence(known.slices),
    ]
    pairs = known.confusion.confused(1)
    if pairs:
        true, predicted, n = pairs[0]
        score = known.confusion.confidence
        where = f" at score {score:.4g}" if np.isfinite(score) else ""
        where = "" if score == micro.score and micro.f1 else where
        times = counted(n, "time")
        found.append(f"Most frequent confusion: {true} predicted as {predicted} ({times}{where}).")
    counts = {kind: sum(each.kind == kind for each in known.suspects) for kind in SUSPECTS}
    some = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
    if some:
        found.append(f"Suspected label errors: {some}.")
    return found


def _tide_sentence(costs: Tide) -> str:
    if np.isnan(costs.ap):
        return "No class has a ground-truth object, so AP is undefined."
    gain = {kind: value for kind, value in costs.gain.items() if kind in ERRORS and value > 0}
    told = f"AP{100 * costs.iou:g} is {costs.ap:.1f}"
    if not gain and np.isnan(costs.gain["Miss"]):
        lost = counted(costs.counts["Miss"], "object")
        return f"{told}: no object is matched. The loss is Miss ({MEANING['Miss']}): {lost}."
    if not gain:
        return f"{told}. Fixing a single kind of error would not raise it."
    worst = max(gain, key=lambda kind: gain[kind])
    return (
        f"{told}. The largest loss is {worst} ({MEANING[worst]}): fixing "
        f"{counted(costs.counts[worst], 'case')} would add {gain[worst]:.1f} points."
    )


def _best_sentence(best: Point, lowest: float) -> list[str]:
    """The operating point of the highest F1; [] without objects."""
    if np.isnan(best.f1):
        return []
    if not best.f1:
        return ["No object is matched at any score."]
    cut = " (the lowest score: the file may have been cut there)" if best.score == lowest else ""
    return [
        f"The highest F1 is {best.f1:.3f}, at score {best.score:.4g}{cut}: precision "
        f"{best.precision:.3f}, recall {best.recall:.3f} ({best.fp} FP, {best.missed} missed)."
    ]


def _slice_sentence(found: list[Slice]) -> list[str]:
    """The range of at least `ENOUGH` objects with the lowest recall, if below the others'."""
    below = []
    for each in found:
        others = [other for other in found if other.by == each.by and other is not each]
        n = add_integers(other.objects for other in others)
        if n and each.objects >= ENOUGH and each.by != "objects of the class":
            rest = add_integers(other.found for other in others) / n
            if each.recall < rest:
                below.append((each.recall, rest, each))
    if not below:
        return []
    recall, rest, worst = min(below, key=lambda one: one[0])
    return [
        f"Lowest recall: {worst.by} {worst.name} ({recall:.0%}, {worst.found} of {worst.objects}; "
        f"others {rest:.0%}), at score {worst.score:.4g}."
    ]
