"""detmap beside pycocotools on masks and keypoints: what differs."""

import contextlib
import copy
import io
import json
import math
import tempfile
from pathlib import Path

import numpy as np
from pycocotools.cocoeval import COCOeval

import detmap
from detmap.core.curves import scores as curves
from detmap.core.results.result import Result
from tests.reference import official
from tests.support.drawing import CocoData

PROTOCOLS = {"segm": "coco-segm", "keypoints": "coco-keypoints"}


def evaluated(data: CocoData, kind: str) -> Result:
    """The dicts written as JSON files and evaluated."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "instances.json"), Path(folder, "results.json")
        for file, content in zip(files, data, strict=True):
            file.write_text(json.dumps(content))
        return detmap.evaluate(*files, PROTOCOLS[kind], threads=1)


def run(data: CocoData, kind: str) -> COCOeval:
    """pycocotools itself."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = official.load(copy.deepcopy(data[0]))
        found = (
            truth.loadRes(copy.deepcopy(data[1]))
            if data[1]
            else official.load({**copy.deepcopy(data[0]), "annotations": []})
        )
        evaluation = COCOeval(truth, found, kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def difference(data: CocoData, kind: str) -> str | None:
    """What differs in arrays and stats; None for nothing."""
    result, expected = evaluated(data, kind), run(data, kind)
    for name, found in curves.coco_arrays(result.matches).items():
        if not np.array_equal(found, expected.eval[name]):
            return f"{name}: {int((found != expected.eval[name]).sum())} cells"
    stats = [-1.0 if math.isnan(value) else value for value in result.metrics.values()]
    return None if stats == expected.stats.tolist() else f"{stats} and {expected.stats.tolist()}"
