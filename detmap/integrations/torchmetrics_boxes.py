"""Boxes in the metric of `detmap.integrations.torchmetrics`: a batch is checked and converted as
one tensor, where torchmetrics takes several steps for each image.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torchmetrics.detection import helpers

from detmap.integrations.inputs.torch_images import LARGEST_LABEL

OTHERS = {
    "scores": {"masks", "keypoints", "area", "iscrowd"},
    "iscrowd": {"masks", "keypoints", "scores"},
}
"""By the key that only one side has: the keys of this side that are checked, and not appended."""

Column = list[torch.Tensor]


def append(metric: Any, preds: Sequence[Any], target: Sequence[Any]) -> bool:
    """Appends a batch of boxes to the states of a metric, as torchmetrics does.

    Returns False, and appends nothing, if the batch must be checked image by image.
    """
    found, known = _columns(preds, "scores"), _columns(target, "iscrowd", "area")
    if len(preds) != len(target) or found is None or known is None:
        return False
    limit = metric.max_detection_thresholds[-1]
    if metric.warn_on_many_detections and max(map(len, found["boxes"])) > limit:
        helpers._warning_on_too_many_detections(limit)
    metric.detection_box.extend(_converted(found["boxes"], metric.box_format))
    metric.detection_labels.extend(found["labels"])
    metric.detection_scores.extend(found["scores"])
    metric.groundtruth_box.extend(_converted(known["boxes"], metric.box_format))
    metric.groundtruth_labels.extend(known["labels"])
    metric.groundtruth_crowds.extend(known["iscrowd"])
    metric.groundtruth_area.extend(known["area"])
    return True


def _columns(side: Sequence[Mapping[str, Any]], *keys: str) -> dict[str, Column] | None:
    """The tensors of each key, with zeros for those that a target may lack; None unless they have
    the right shapes, finite numbers, and labels of 32 bits.
    """
    columns: dict[str, Column] = {key: [] for key in ("boxes", "labels", *keys)}
    numbers: Column = []
    for image in side:
        box, label = image.get("boxes"), image.get("labels")
        if not isinstance(box, torch.Tensor) or not isinstance(label, torch.Tensor):
            return None
        shape = label.shape
        if len(shape) != 1 or box.shape != (*shape, 4) or not OTHERS[keys[0]].isdisjoint(image):
            return None
        columns["boxes"].append(box)
        columns["labels"].append(label)
        for key in keys:
            value = image.get(key)
            if key not in image and key != "scores":
                value = torch.zeros_like(label)
            elif not isinstance(value, torch.Tensor) or value.shape != shape:
                return None
            elif key != "iscrowd":
                numbers.append(value)
            columns[key].append(value)
    boxes, labels = columns["boxes"], columns["labels"]
    if len({each.dtype for each in boxes}) != 1 or len({each.dtype for each in labels}) != 1:
        return None
    numbers += [each.flatten() for each in boxes]
    try:
        return columns if _are_usual(torch.cat(numbers), torch.cat(labels)) else None
    except RuntimeError:  # on several devices
        return None


def _are_usual(numbers: torch.Tensor, labels: torch.Tensor) -> bool:
    """Checks that no number is NaN or infinite, and that labels fit 32 bits."""
    if not bool(torch.isfinite(numbers.sum())):
        return False
    if labels.dtype != torch.int64 or not len(labels):
        return bool(labels.dtype.itemsize < 8)
    low, high = (int(each) for each in torch.aminmax(labels))
    return -LARGEST_LABEL - 1 <= low <= high <= LARGEST_LABEL


def _converted(boxes: Column, box_format: str) -> Column:
    """The boxes as x, y, width and height, each a tensor of its own."""
    if box_format == "xywh":
        return [each.clone() for each in boxes]
    from torchvision.ops import box_convert  # type: ignore[import-not-found]

    whole = box_convert(torch.cat(boxes), in_fmt=box_format, out_fmt="xywh")
    return [each.clone() for each in whole.split([len(each) for each in boxes])]
