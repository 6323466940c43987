"""Every kernel once, on drawn data; prints what came out, as JSON. Run with and without the JIT by test_plain_python.py."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

import detmap
from detmap import integrators, ranking
from detmap.curves import coco_arrays
from detmap.kernels import curves
from tests.drawing import draw_coco, draw_many_detections, draw_voc
from tests.tables import read_coco, voc_tables


def outcomes() -> list[object]:
    """Numbers that depend on every line of every kernel."""
    found: list[object] = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = draw_many_detections(rng) if seed == 0 else draw_coco(rng)
        truth, detections = read_coco(*data)
        result = detmap.evaluate(truth, detections, threads=1)
        arrays = coco_arrays(result.matches)
        found += [result.signature, *(float(array.sum()) for array in arrays.values()), result.integrators()]
        found.append(detmap.evaluate(truth, detections, "voc2012", threads=1).per_class)
        result = detmap.evaluate(*voc_tables(*draw_voc(rng)), "voc2007", settings={"areas.tiny": [0, 60]}, threads=1)
        found += [result.metrics, result.per_class, result.signature]
    recall, precision = np.array([0.25, 0.5, 0.75]), np.array([1, 0.5, 0.6])
    found += [integrators.eleven_point(recall, precision), integrators.all_points(recall, precision),
              integrators.grid_envelope(recall, precision), integrators.step(recall, precision)]  # fmt: skip
    truth, scores, weight = rng.random((40, 5)) < 0.3, rng.random((40, 5)).round(1), rng.random(40)
    for average in ranking.AVERAGES:
        found += [ranking.average_precision(truth, scores, average=average, sample_weight=weight, threads=1),
                  ranking.auc(truth, scores, average=average, threads=1)]  # fmt: skip
    found += [ranking.average_precision(truth, scores, ties="input", integrator="grid_envelope", threads=1),
              ranking.precision_at_k(truth, scores, 2).tolist(), ranking.roc_curve(truth[0], scores[0])]  # fmt: skip
    n_within = np.zeros((2, 1, 1), dtype=np.int64)  # of three true positives one has a rank beyond the last limit
    words = np.array([[1], [1], [1]], dtype=np.uint16)
    ranked = curves.Ranked(np.array([0, 3]), words, words * 0, np.arange(3, dtype=np.int32))
    curves.count_within(0, ranked, np.array([1, 2]), n_within)
    return [*found, n_within.tolist()]


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)  # NumPy warns of the wrap-around that a digest is made of
    json.dump(outcomes(), sys.stdout, default=str)
