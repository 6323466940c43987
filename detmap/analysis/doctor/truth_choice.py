"""Chooses among readings of the ground truth's boxes by the detections."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from detmap.analysis.doctor.box_frames import mode, pairs
from detmap.analysis.doctor.box_layouts import LAYOUTS
from detmap.analysis.doctor.explanation import explains, measure
from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.trial import Trial, sample
from detmap.analysis.doctor.truth_checks import MOST_AREA
from detmap.analysis.doctor.truth_layouts import Reading, beyond, readings
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth

SCALED = 1.1  # factor of boxes from which on it is no accident


def choose(trial: Trial, rows: Raw) -> tuple[Finding, Truth] | None:
    """Returns the finding of the reading that explains the detections, or that the fields of the
    ground truth prove, and the ground truth in it; None if nothing is odd.
    """
    truth = replace(trial.shaped_truth, shapes=None)
    trial = replace(trial, truth=truth)  # with its own boxes
    found = list(readings(truth)) or list(_scaled(trial, rows))
    if not found:
        return None
    now = trial.outcome(rows).ap50
    tried = [(_works(trial, each.truth, rows), each) for each in found]
    (works, after), best = max(tried, key=lambda each: each[0])
    sizes = [each for each in found if each.name == "truth-image-sizes"]
    part = sample(trial, rows)
    if explains(measure(part, part.rows), now) and (now >= after or not works):
        # Both sides agree as they are: what differs is the size of the images, or both are wrong.
        chosen = sizes[0] if sizes else found[0]
        both = not sizes and len(rows) > 0
        return told(truth, chosen, None, None, both=both), chosen.truth if sizes else truth
    if not works and len(rows):
        chosen = found[0]
        return told(truth, chosen, None, None), chosen.truth
    return told(truth, best, now if len(rows) else None, after if len(rows) else None), best.truth


def _scaled(trial: Trial, rows: Raw) -> Iterator[Reading]:
    """The scale that detections show, where most objects have an `area` larger than their box."""
    truth = trial.truth
    if truth.box_format != "xywh" or not len(truth) or not len(rows):
        return
    larger = truth.area > MOST_AREA * truth.boxes[:, 2] * truth.boxes[:, 3] + 2
    if larger.mean() < 0.5:
        return
    boxes, wanted, _ = pairs(sample(trial, rows), LAYOUTS["xywh"])
    factor = mode((boxes[:, 2:] / np.maximum(wanted[:, 2:], 1e-9)).ravel())
    if factor is not None and factor >= SCALED:
        other = replace(truth, boxes=truth.boxes * factor)
        yield Reading("truth-boxes", f"boxes are 1/{factor:.3g} of their size by `area`", other)


def _works(trial: Trial, truth: Truth, rows: Raw) -> tuple[bool, float]:
    other = replace(trial, truth=truth)
    after = other.outcome(rows).ap50
    part = sample(other, rows)
    return explains(measure(part, part.rows), after), after


def told(
    truth: Truth, reading: Reading, now: float | None, after: float | None, *, both: bool = False
) -> Finding:
    """Returns the finding of a reading, with AP50 before and after if detections were tried;
    `both`: these agree with the ground truth as it is.
    """
    out = int(beyond(truth, truth.boxes).sum())
    why = f"{out:,} of {len(truth):,} boxes reach out of their image as they are read"
    if not out:
        why = "as they are read, they contradict the sizes of images or their `area`"
    do = "correct the ground truth, not the detections"
    if both:
        do = "the detections agree with them: correct both files, or neither"
    text = f"{reading.meaning}: {why}; {do}"
    return Finding(reading.name, f"ground truth: {text}", now, after)
