"""Precision, recall and F1 at the protocol's score threshold: the rows P, R and F1.

`detmap.core.curves.operating_points` gives them at any threshold.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching.matches import Matches
from detmap.core.protocol.metric_rows import POINT

Floats = NDArray[np.float64]
TINY = 1e-16  # yolov5 adds it to denominators
BLOCK = 1 << 20  # numbers of a block of classes over all scores


def points(
    matches: Matches,
    positives: NDArray[Any],
    judged: NDArray[np.int64],
    weight: Floats | None = None,
) -> dict[int, Floats]:
    """(3, 1 + J) the numbers of `POINT` of all classes and of each, by position of the IoU.

    Parameters
    ----------
    matches : of one protocol
    positives : (K, A) the denominator of recall
    judged : (J,) classes with objects
    weight : (I,) image weights; None for 1
    """
    protocol = matches.protocol
    asked = {row.iou for row in protocol.rows()[0] if row.kind in POINT and row.iou is not None}
    values = {}
    for t in sorted(protocol.threshold(iou) for iou in asked):
        a = protocol.subset()
        bit = matches.tp.dtype.type(1 << t)
        counts = matches.ignored[:, a] & bit == 0
        hit = (matches.tp[:, a] & bit) != 0
        each = np.ones(len(matches)) if weight is None else weight[matches.image]
        gain = np.where(counts, each, 0.0)
        n_objects = positives[:, a].astype(np.float64)
        if protocol.operating.rule == "above":
            values[t] = _above(matches, hit, gain, n_objects, judged)
        else:
            values[t] = _best_mean_f1(matches, hit & counts, gain, n_objects, judged)
    return values


def _above(
    matches: Matches,
    hit: NDArray[np.bool_],
    gain: Floats,
    n_objects: Floats,
    judged: NDArray[np.int64],
) -> Floats:
    """Values of the detections above a score; those of all classes first.

    Source: darknet src/detector.c, validate_detector_map (tp_for_thresh, fp_for_thresh).
    """
    protocol = matches.protocol
    number: Any = np.float32 if protocol.ap.arithmetic == "float32" else np.float64
    gain = np.where(matches.score > protocol.operating.score, gain, 0.0)

    def class_sums(values: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        return np.diff(sums[matches.off])

    true, every = class_sums(gain * hit), class_sums(gain)
    columns = (
        np.concatenate([[values.sum()], values[judged]]).astype(number)
        for values in (true, every, n_objects)
    )
    tp, predicted, to_find = columns
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = tp / predicted, tp / to_find
        f1 = number(2) * precision * recall / (precision + recall)
    return np.stack([precision, recall, f1]).astype(np.float64)


def _best_mean_f1(
    matches: Matches,
    hit: NDArray[np.bool_],
    gain: Floats,
    n_objects: Floats,
    judged: NDArray[np.int64],
) -> Floats:
    """Values at the highest mean F1 of the classes; the means first.

    Source: yolov5 and Ultralytics utils/metrics.py, ap_per_class and smooth.
    """
    if not len(judged):
        return np.full((len(POINT), 1), np.nan)
    operating = matches.protocol.operating

    def curves(begin: int) -> Floats:
        chosen = judged[begin : begin + step]
        return _curves_over_scores(matches, hit, gain, n_objects, chosen, operating.samples)

    step = max(1, BLOCK // operating.samples)
    begins = range(0, len(judged), step)
    block = curves(0)
    total = block[2].sum(0)
    for begin in begins[1:]:  # one more row at a time, as one sum of all rows
        block = curves(begin)
        total = np.concatenate([total[None], block[2]]).sum(0)
    best = int(_smoothed(total / len(judged), operating.smooth).argmax())
    parts = (block if len(begins) == 1 else curves(begin) for begin in begins)
    of_classes = np.concatenate([part[:, :, best].copy() for part in parts], axis=1)
    means = np.array([[row.mean()] for row in of_classes])
    return np.concatenate([means, of_classes], axis=1)


def _curves_over_scores(
    matches: Matches,
    hit: NDArray[np.bool_],
    gain: Floats,
    n_objects: Floats,
    classes: NDArray[np.int64],
    samples: int,
) -> Floats:
    """(3, n, samples) precision, recall and F1 of some classes at evenly spaced scores."""
    x = np.linspace(0, 1, samples)
    precision, recall = np.zeros((2, len(classes), samples))
    for j, k in enumerate(classes.tolist()):
        mine = slice(int(matches.off[k]), int(matches.off[k + 1]))
        listed = np.flatnonzero(gain[mine])
        if len(listed):
            each, score = gain[mine][listed], matches.score[mine][listed]
            true, false = np.cumsum(each * hit[mine][listed]), np.cumsum(each * ~hit[mine][listed])
            recall[j] = np.interp(-x, -score, true / (n_objects[k] + TINY), left=0)
            precision[j] = np.interp(-x, -score, true / (true + false), left=1)
    return np.stack([precision, recall, 2 * precision * recall / (precision + recall + TINY)])


def _smoothed(values: Floats, share: float) -> Floats:
    """A moving mean over an odd number of values, with repeated ends."""
    width = round(len(values) * share * 2) // 2 + 1
    ends = np.ones(width // 2)
    longer = np.concatenate((ends * values[0], values, ends * values[-1]))
    return np.convolve(longer, np.ones(width) / width, mode="valid")
