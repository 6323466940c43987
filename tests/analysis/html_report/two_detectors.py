"""Two detectors on 120 images whose true and false positives are known by construction."""

from functools import cache

import numpy as np

import detmap
from detmap.analysis.html_report.gather import Run, gather
from detmap.core.tables import Detections, Truth

N = 120
CLASSES = ("cat", "dog", "fox", "owl")
LEFT, RIGHT = [10.0, 10, 20, 20], [60.0, 10, 20, 20]
MIDDLE, BELOW = [35.0, 40, 20, 20], [60.0, 70, 20, 20]
FAR, OFF = [9.0, 60, 9, 9], [10.0, 20, 20, 20]  # FAR from all; OFF has IoU 1/3 with LEFT
Rows = list[tuple[int, int, list[float], float]]


def rows(first: int, last: int, label: int, box: list[float], score: float = 0.9) -> Rows:
    """One per image: image, class, box and score."""
    return [(image, label, box, score) for image in range(first, last + 1)]


OBJECTS = [
    *(rows(1, N, 1, LEFT) + rows(1, 100, 2, RIGHT)),
    *(rows(21, N, 3, MIDDLE) + rows(1, N, 4, BELOW)),
]
FOUND = {
    # 90 cats and 10 false ones; 64 dogs, 6 more as cats; 30 foxes; 61 owls
    "A": [
        *(rows(1, 90, 1, LEFT) + rows(1, 10, 1, FAR, 0.95) + rows(1, 6, 1, RIGHT)),
        *(rows(7, 70, 2, RIGHT) + rows(21, 50, 3, MIDDLE) + rows(1, 61, 4, BELOW)),
    ],
    # 40 cats and 12 beside one; 90 dogs; 70 foxes; 60 owls
    "B": [
        *(rows(1, 40, 1, LEFT) + rows(41, 52, 1, OFF, 0.85) + rows(1, 90, 2, RIGHT)),
        *(rows(21, 90, 3, MIDDLE) + rows(1, 60, 4, BELOW)),
    ],
}


def truth() -> Truth:
    image, label, boxes, _ = zip(*OBJECTS, strict=True)
    names = dict(enumerate(CLASSES, 1))
    images = np.arange(1, N + 1)
    return detmap.truth_from_arrays(image, label, boxes, images=images, categories=names)


def found(known: Truth, name: str) -> Detections:
    image, label, boxes, score = zip(*FOUND[name], strict=True)
    return detmap.detections_from_arrays(known, image, label, boxes, score)


@cache
def runs(*metrics: str) -> tuple[Run, Run]:
    """A and B by the rules of COCO; metrics are those of COCO, or these."""
    known, protocol = truth(), detmap.load_protocol("coco-bbox")
    if metrics:
        protocol = protocol.override({"metrics": list(metrics)})
    a, b = (gather(name, known, found(known, name), protocol) for name in FOUND)
    return a, b
