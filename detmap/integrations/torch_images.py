"""The images of a torchmetrics metric as batches of `detmap.Evaluator`, and checks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from detmap.overlaps.mask_reader import MaskReader

CHECKED = ("boxes", "scores", "keypoints", "area")


def require_finite(name: str, images: Sequence[Mapping[str, Any]]) -> None:
    """Raises `ValueError`, torchmetrics' own error, for a number that is not finite."""
    for i, image in enumerate(images):
        for key in CHECKED:
            value = image.get(key)
            if isinstance(value, torch.Tensor) and not bool(torch.isfinite(value).all()):
                bad = ~torch.isfinite(value.reshape(len(value), -1)).all(dim=1)
                row = int(bad.int().argmax())
                what = f"{value[row].tolist()} is not finite"
                raise ValueError(f"{name}[{i}].{key}[{row}]: {what} (remove such rows)")


def moved(items: list[Any], device: Any) -> list[Any]:
    """Moves the tensors among items to a device."""
    return [item.to(device) if isinstance(item, torch.Tensor) else item for item in items]


def gathered(states: Mapping[str, list[Any]], group: Any) -> list[dict[str, list[Any]]]:
    """Returns the states of all ranks, on the CPU."""
    mine = {name: moved(items, "cpu") for name, items in states.items()}
    everyone: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(everyone, mine, group=group)
    return everyone


def array(tensor: Any, dtype: Any = np.float64) -> Any:
    """Returns a tensor as an array of numpy."""
    return tensor.detach().cpu().double().numpy().astype(dtype)


def images(metric: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns predictions and targets of all images, with boxes x, y, width, height.

    An area of 0 is computed: that of the box in float32, or the pixels of the mask.
    """
    kind = metric.iou_type[0]
    predictions = [
        {"labels": array(labels.reshape(-1), np.int64), "scores": array(scores.reshape(-1))}
        for labels, scores in zip(metric.detection_labels, metric.detection_scores, strict=True)
    ]
    targets = [
        {
            "labels": array(labels.reshape(-1), np.int64),
            "iscrowd": array(crowds.reshape(-1)) != 0,
            "area": array(area.reshape(-1)),
        }
        for labels, crowds, area in zip(
            metric.groundtruth_labels,
            metric.groundtruth_crowds,
            metric.groundtruth_area,
            strict=True,
        )
    ]
    for side, name in ((predictions, "detection"), (targets, "groundtruth")):
        for i, image in enumerate(side):
            if kind == "segm":
                given = getattr(metric, f"{name}_mask")[i]
                image["segmentation"] = [{"size": list(s), "counts": c} for s, c in given]
            else:
                image["boxes"] = array(getattr(metric, f"{name}_box")[i].reshape(-1, 4))
            if kind == "keypoints":
                image["keypoints"] = array(getattr(metric, f"{name}_keypoints")[i])
    for target in targets:
        target["area"] = np.where(target["area"] > 0, target["area"], _sizes(target))
    return predictions, targets


def _sizes(target: dict[str, Any]) -> Any:
    if "segmentation" not in target:
        boxes = target["boxes"].astype(np.float32)
        return (boxes[:, 2] * boxes[:, 3]).astype(np.float64)
    values = [
        {"size": [int(side) for side in each["size"]], "counts": bytes(each["counts"]).decode()}
        for each in target["segmentation"]
    ]
    sizes = np.array([each["size"] for each in values], dtype=np.float64).reshape(-1, 2)
    return MaskReader().read(values, sizes, str).area
