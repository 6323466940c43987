"""The `detmap.Result` of the images of a torchmetrics metric."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import detmap
from detmap.errors import DetmapError
from detmap.integrations.inputs import torch_images

WHERE = "MeanAveragePrecision.result"
LEFT_OUT = (
    "image-without-masks",
    "images have no ground-truth masks; they are left out, as in torchmetrics",
)
"""Code and text of the note of `evaluate`."""


def require_evaluable(metric: Any) -> None:
    """Raises `DetmapError` for several iou types, and for recall thresholds out of order."""
    if len(metric.iou_type) > 1:
        fix = "use a metric with one iou_type"
        raise DetmapError(WHERE, f"iou_type {metric.iou_type}", fix)
    recalls = list(metric.rec_thresholds)
    if _has_own_rules(metric, metric.protocol) and recalls != sorted(recalls):
        what = "rec_thresholds are not ascending; torchmetrics reads precision in their order"
        raise DetmapError(WHERE, what, "sort them")


def require_gathered(metric: Any) -> None:
    """Raises `DetmapError` if `compute` would gather images of other ranks, and has not yet."""
    if metric._evaluated is not None:
        return
    wanted = metric.sync_on_compute and not metric._is_synced and metric.distributed_available_fn()
    if wanted and torch_images.n_ranks(metric.process_group) > 1:
        what, fix = "the images of other ranks are not here", "call compute() on all ranks first"
        raise DetmapError(WHERE, what, fix)


def evaluate(
    metric: Any,
    states: Mapping[str, list[Any]],
    protocol: str | detmap.Protocol | None,
    pooled: bool,
) -> detmap.Result:
    """Returns the result of images.

    Parameters
    ----------
    metric : its arguments are the rules, if `protocol` is None
    states : of the metric, by name; one item per image
    pooled : if all labels are one class, 0

    For masks and without `protocol`, images without ground-truth masks are left out; a note counts
    them.
    """
    predictions, targets = torch_images.images(states, metric.iou_type[0])
    if pooled:
        for image in (*predictions, *targets):
            image["labels"] = np.zeros_like(image["labels"])
    notes = []
    if metric.iou_type[0] == "segm" and _has_own_rules(metric, metric.protocol):
        kept = [i for i, target in enumerate(targets) if len(target["labels"])]
        if len(kept) < len(targets):
            notes = [detmap.Note(*LEFT_OUT, len(targets) - len(kept))]
            predictions, targets = ([side[i] for i in kept] for side in (predictions, targets))
    stream = evaluator(metric, protocol)
    stream.update(predictions, targets)
    matches = stream.matches
    return detmap.summarize(replace(matches, notes=(*matches.notes, *notes)))


def evaluator(metric: Any, protocol: str | detmap.Protocol | None) -> detmap.Evaluator:
    """Returns an empty `detmap.Evaluator` with the rules of the metric or of a protocol."""
    kind = metric.iou_type[0]
    settings: dict[str, Any] = {}
    if kind == "keypoints":
        sigmas = metric.keypoint_sigmas
        settings = {} if sigmas is None else {"iou.sigmas": [float(each) for each in sigmas]}
        protocol = protocol or "coco-keypoints"
    elif _has_own_rules(metric, protocol):
        protocol = "coco-segm" if kind == "segm" else "torchmetrics"
        settings = {
            "metrics": list(detmap.core.protocol.load("torchmetrics").metrics),
            "mean.precision": "rounded",
            "limits.max_dets": list(metric.max_detection_thresholds),
            "iou.thresholds": sorted(metric.iou_thresholds),
            "ap.grid": sorted(metric.rec_thresholds),
        }
    assert protocol is not None
    return detmap.Evaluator(protocol, settings=settings, box_format="xywh")


def _has_own_rules(metric: Any, protocol: Any) -> bool:
    """Checks if the rules are those of torchmetrics."""
    return metric.iou_type != ("keypoints",) and protocol in (None, "torchmetrics")
