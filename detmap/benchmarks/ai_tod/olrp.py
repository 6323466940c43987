"""The oLRP that AI-TOD's evaluation prints beside AP: an error at the best rank of each class.

`detmap diagnose` has the oLRP of its authors, which reads scores of a grid and not ranks.
"""

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching import engine
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import LRP
from detmap.core.tables import Detections, Truth

IOU = 0.5


def olrp(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """Returns oLRP at IoU 0.5 and its parts, as means over the classes that have them.

    The parts are 1 - overlap of the true positives, 1 - precision and 1 - recall.
    """
    rules = protocol.override({"iou.thresholds": [IOU], "metrics": ["AP"]})
    matches = engine.match(truth, detections, rules, taken=True)
    a = rules.subset()
    right, wrong = matches.tp[:, a] != 0, (matches.tp | matches.ignored)[:, a] == 0
    overlap = _overlaps(matches, a)
    n_objects = matches.n_objects()[:, a]
    classes = [slice(matches.off[k], matches.off[k + 1]) for k in np.flatnonzero(n_objects)]
    errors = [
        _least_error(right[rows], wrong[rows], overlap[rows], n)
        for rows, n in zip(classes, n_objects[n_objects > 0].tolist(), strict=True)
    ]
    table = np.array(errors).reshape(-1, len(LRP))
    known = ~np.isnan(table)
    return {
        name: float(np.mean(table[known[:, i], i])) if known[:, i].any() else np.nan
        for i, name in enumerate(LRP)
    }


def _overlaps(matches: Matches, a: int) -> NDArray[np.float64]:
    """(D,) overlap of each true positive with its object, else 0."""
    overlap = np.zeros(len(matches))
    assert matches.taken is not None
    detection = matches.taken.detection()
    mine = (matches.taken.words[:, a] != 0) & (matches.tp[detection, a] != 0)
    overlap[detection[mine]] = matches.taken.overlap[mine]
    return overlap


def _least_error(
    right: NDArray[np.bool_], wrong: NDArray[np.bool_], overlap: NDArray[np.float64], n: int
) -> tuple[float, ...]:
    """The oLRP of a class with n objects and its parts, at the first rank with the least error.

    Source: cocoapi-aitod cocoeval.py, accumulate (with_lrp), with its order of operations.
    """
    if not right.any():
        return 1.0, np.nan, np.nan, 1.0
    tp, fp = np.cumsum(right), np.cumsum(wrong)
    loose: NDArray[np.float64] = tp - np.cumsum(overlap)
    missed = n - tp
    error = (loose / (1 - IOU) + fp + missed) / (tp + fp + missed)
    i = int(np.argmin(error))
    with np.errstate(invalid="ignore"):  # a class whose best rank has no true positive
        parts = loose[i] / tp[i], fp[i] / (tp[i] + fp[i]), missed[i] / n
    return float(error[i]), *map(float, parts)
