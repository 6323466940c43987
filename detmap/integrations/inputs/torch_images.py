"""The images of a torchmetrics metric as batches of `detmap.Evaluator`, and checks of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from detmap.core.overlaps.mask_reader import MaskReader
from detmap.core.streaming import torch_ranks
from detmap.integrations.inputs.field_values import array

CHECKED = ("boxes", "scores", "keypoints", "area")
LARGEST_LABEL = 2**31 - 1


def are_images(side: Any) -> bool:
    """Checks if predictions or targets are a list of dicts."""
    return isinstance(side, Sequence) and all(isinstance(each, Mapping) for each in side)


def require_valid(name: str, images: Sequence[Mapping[str, Any]]) -> None:
    """Raises `ValueError`, torchmetrics' own error, for what torchmetrics does not check.

    Numbers that are not finite, another shape of boxes, another type of masks, and other lengths of
    ``area`` and ``iscrowd``.
    """
    for i, image in enumerate(images):
        given = {key: value for key, value in image.items() if isinstance(value, torch.Tensor)}
        for key, value in given.items():
            _require_valid(f"{name}[{i}].{key}", key, value, given.get("labels"))


def _require_valid(where: str, key: str, value: Any, labels: Any) -> None:
    if key in CHECKED and not bool(torch.isfinite(value).all()):
        bad = ~torch.isfinite(value.reshape(len(value), -1)).all(dim=1)
        row = int(bad.int().argmax())
        what = f"{value[row].tolist()} is not finite"
        raise ValueError(f"{where}[{row}]: {what} (remove such rows)")
    if key == "boxes" and value.ndim == 2 and len(value) and value.shape[1] != 4:
        raise ValueError(f"{where}: shape {tuple(value.shape)} (give (n, 4))")
    if key == "labels":
        require_labels(where, value)
    if key == "masks" and value.numel() and value.dtype not in (torch.bool, torch.uint8):
        fix = "give booleans: masks > 0.5"
        raise ValueError(f"{where}: dtype {value.dtype} ({fix})")
    if key in ("area", "iscrowd") and labels is not None and value.numel() != labels.numel():
        what = f"{value.numel()} values for {labels.numel()} labels"
        raise ValueError(f"{where}: {what} (give one per object)")


def require_labels(where: str, labels: Any) -> None:
    """Raises `ValueError` for a label that torchmetrics cannot return: `classes` is int32."""
    if labels.dtype.itemsize < 8 or labels.is_floating_point():
        return
    bad = (labels.reshape(-1) > LARGEST_LABEL) | (labels.reshape(-1) < -LARGEST_LABEL - 1)
    if bool(bad.any()):
        row = int(bad.int().argmax())
        what = f"{int(labels.reshape(-1)[row])} does not fit 32 bits"
        raise ValueError(f"{where}[{row}]: {what} (torchmetrics returns the labels as int32)")


def require_same_sizes(preds: Sequence[Any], target: Sequence[Any]) -> None:
    """Raises `ValueError` if masks of an image have other sizes in predictions than in targets."""
    for i, images in enumerate(zip(preds, target, strict=False)):
        masks = [image.get("masks") for image in images]
        sizes = [tuple(m.shape[1:]) for m in masks if isinstance(m, torch.Tensor) and len(m)]
        if len(set(sizes)) > 1:
            what = f"masks of {sizes[0]} pixels, but {sizes[1]} in target[{i}]"
            raise ValueError(f"preds[{i}].masks: {what} (resize them to the image)")


def moved(items: list[Any], device: Any) -> list[Any]:
    """Moves the tensors among items to a device."""
    return [item.to(device) if isinstance(item, torch.Tensor) else item for item in items]


def n_ranks(group: Any) -> int:
    """Returns the number of ranks of a group of torch.distributed."""
    return int(torch.distributed.get_world_size(group))


def gathered(states: Mapping[str, list[Any]], group: Any) -> list[dict[str, list[Any]]]:
    """Returns the states of all ranks, on the CPU. Raises `DetmapError` if a rank is lost."""
    mine = {name: moved(items, "cpu") for name, items in states.items()}
    return torch_ranks.gather(mine, group)


def images(
    states: Mapping[str, list[Any]], kind: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns predictions and targets of all images, with boxes x, y, width, height.

    Parameters
    ----------
    states : of the metric, by name; one item per image
    kind : the metric's iou type

    An area of 0 is computed: that of the box in float32, or the pixels of the mask.
    """
    predictions = [
        {"labels": array(labels.reshape(-1), np.int64), "scores": array(scores.reshape(-1))}
        for labels, scores in zip(
            states["detection_labels"], states["detection_scores"], strict=True
        )
    ]
    targets = [
        {
            "labels": array(labels.reshape(-1), np.int64),
            "iscrowd": array(crowds.reshape(-1)) != 0,
            "area": array(area.reshape(-1)),
        }
        for labels, crowds, area in zip(
            states["groundtruth_labels"],
            states["groundtruth_crowds"],
            states["groundtruth_area"],
            strict=True,
        )
    ]
    for side, name in ((predictions, "detection"), (targets, "groundtruth")):
        for i, image in enumerate(side):
            if kind == "segm":
                given = states[f"{name}_mask"][i]
                image["segmentation"] = [{"size": list(s), "counts": c} for s, c in given]
            else:
                image["boxes"] = array(states[f"{name}_box"][i].reshape(-1, 4))
            if kind == "keypoints":
                image["keypoints"] = array(states[f"{name}_keypoints"][i])
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
