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
        "match": judge_nothing,
        "coco match": lambda: match_one(coco),
        "voc match": lambda: match_one(voc),
        "arrays": lambda: curves.coco_arrays(Matches.empty(coco, truth.categories)),
    }


def judge_nothing() -> None:
    """Use the kernel that takes longest to compile, on no detections; `match` would begin with
    those around it.
    """
    from detmap.kernels import match as kernels

    rows, off, boxes, words = (
        np.zeros(0, np.int32),
        np.zeros(2, np.int64),
        np.zeros((0, 4)),
        np.zeros((0, 1), np.uint16),
    )
    kernels.best_free(
        np.zeros(1, np.int32),
        kernels.Found(rows, rows, off, rows, boxes, np.zeros(0, np.uint64)),
        kernels.Objects(rows, off, rows, boxes, np.zeros(0, np.bool_), np.zeros((0, 1), np.bool_)),
        kernels.Rules(1, 0.0, np.array([0.5]), np.zeros((1, 2))),
        kernels.Verdicts(off, rows, rows, rows, words, words),
        kernels.room(1, 0, 1, 0),
    )


def prepare_nothing() -> None:
    """Use the small kernels that come before the matching."""
    from detmap.kernels import grouping

    truth = truth_from_arrays([1], [1], [[0, 0, 10, 10]])
    found = detections_from_arrays(truth, [1], [1], [[0, 0, 10, 10]], [0.5])
    row, off, kept = np.zeros(1, np.int32), np.array([0, 1]), np.zeros(1, np.int64)
    grouping.group(found.label, row, row.copy(), off)
    grouping.count_within(found.image, row, off, 1, row.copy(), kept)
    image_digests(truth, found)


def warmup() -> None:
    """Have every kernel of an evaluation compiled and kept; quick where they are."""
    for step in steps().values():
        step()
