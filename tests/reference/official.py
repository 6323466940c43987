"""pycocotools itself, run on plain dicts: what the twin of the COCO rule is held against."""

import contextlib
import copy
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def complete(instances: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which every annotation has ``iscrowd`` and ``area``, without which pycocotools
    stops."""
    completed = copy.deepcopy(dict(instances))
    for annotation in completed["annotations"]:
        annotation.setdefault("iscrowd", 0)
        annotation.setdefault("area", annotation["bbox"][2] * annotation["bbox"][3])
    return completed


def load(dataset: dict[str, Any]) -> COCO:
    """A ``COCO`` of a dict that is already in memory."""
    coco = COCO()
    coco.dataset = dataset
    coco.createIndex()
    return coco


def run(
    instances: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    made: type[COCOeval] = COCOeval,
    kind: str = "bbox",
    **params: Any,
) -> COCOeval:
    """Evaluate, accumulate and summarize without a print, leaving the arguments as they are; `made`
    is a subclass, `kind` its iouType.

    `params` are attributes of pycocotools' ``Params`` (``iouThrs``, ``recThrs``, ``areaRng``,
    ``maxDets``); with them there is no summary, which knows the defaults only. An empty list of
    results, on which ``loadRes`` fails, is a data set without annotations."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = load(complete(instances))
        detections = (
            truth.loadRes(copy.deepcopy(list(results)))
            if results
            else load({**truth.dataset, "annotations": []})
        )
        evaluation = made(truth, detections, kind)
        for name, value in params.items():
            setattr(evaluation.params, name, value)
        evaluation.evaluate()
        evaluation.accumulate()
        if not params:
            evaluation.summarize()
    return evaluation


def evaluate(
    instances: Mapping[str, Any], results: Sequence[Mapping[str, Any]], **params: Any
) -> dict[str, np.ndarray]:
    """The arrays ``precision``, ``recall`` and ``scores`` of `run`."""
    found = run(instances, results, **params).eval
    return {name: found[name] for name in ("precision", "recall", "scores")}
