"""Compile the kernels ahead of time, by using each once on next to nothing.

``python -m detmap.warmup`` takes them in the reverse of the order in which an evaluation of files needs them: it is what a
first evaluation starts beside itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from detmap import curves
from detmap.adapters.arrays import detections_from_arrays, truth_from_arrays
from detmap.adapters.coco_scan import skip_nothing
from detmap.adapters.voc_scan import read_nothing
from detmap.matching import Matches, match
from detmap.protocol import load


def steps() -> list[Callable[[], object]]:
    """What evaluations of COCO and VOC data use, roughly in order."""
    truth = truth_from_arrays([1], [1], [[0, 0, 10, 10]])
    detections = detections_from_arrays(truth, [1], [1], [[0, 0, 10, 10]], [0.5])
    coco, voc = load("coco-bbox"), load("voc2007")
    return [
        skip_nothing,
        read_nothing,
        lambda: match(truth, detections, voc),
        lambda: match(truth, detections, coco),
        lambda: curves.scores(Matches.empty(coco, truth.categories)),
    ]


def warmup() -> None:
    """Have every kernel of an evaluation compiled and kept; quick where they are."""
    for step in steps():
        step()


def main() -> None:
    """Compile from the last to the first."""
    np.seterr(all="ignore")
    for step in reversed(steps()):
        step()


if __name__ == "__main__":
    main()
