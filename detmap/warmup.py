"""Compile the kernels ahead of time, by using each once on next to nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from detmap import curves
from detmap.adapters.arrays import detections_from_arrays, truth_from_arrays
from detmap.adapters.coco_scan import skip_nothing
from detmap.adapters.voc_scan import read_nothing
from detmap.matches import Matches
from detmap.matching import match
from detmap.protocol import Protocol, load
from detmap.signature import image_digests


def steps() -> dict[str, Callable[[], object]]:
    """What evaluations of COCO and VOC data use."""
    truth = truth_from_arrays([1], [1], [[0, 0, 10, 10]])
    coco, voc = load("coco-bbox"), load("voc2007")

    def match_one(protocol: Protocol) -> Matches:
        return match(
            truth, detections_from_arrays(truth, [1], [1], [[0, 0, 10, 10]], [0.5]), protocol
        )

    return {
        "small": prepare_nothing,
        "scores": lambda: curves.scores(Matches.empty(coco, truth.categories)),
        "json": skip_nothing,
        "voc": read_nothing,
        "match": lambda: match_one(coco),
        "voc match": lambda: match_one(voc),
        "arrays": lambda: curves.coco_arrays(Matches.empty(coco, truth.categories)),
    }


def prepare_nothing() -> None:
    """Use the small kernels that come before the matching."""
    from detmap.kernels import grouping

    truth = truth_from_arrays([1], [1], [[0, 0, 10, 10]])
    found = detections_from_arrays(truth, [1], [1], [[0, 0, 10, 10]], [0.5])
    row, off = np.zeros(1, np.int32), np.array([0, 1])
    grouping.group(truth.label, row, row.copy(), off)
    image_digests(truth, found)


def warmup() -> None:
    """Have every kernel of an evaluation compiled and kept; quick where they are."""
    for step in steps().values():
        step()
