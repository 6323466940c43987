"""Keypoints in the metric of `detmap.integrations.torchmetrics`: its state and its numbers."""

from typing import Any

import numpy as np
import torch

from detmap.core.overlaps.keypoints import Keypoints
from detmap.errors import DetmapError
from detmap.integrations import torchmetrics_result
from detmap.integrations.inputs import torch_images

KEYS = {
    "map": "AP",
    "map_50": "AP50",
    "map_75": "AP75",
    "map_medium": "APm",
    "map_large": "APl",
    "mar": "AR",
    "mar_50": "AR50",
    "mar_75": "AR75",
    "mar_medium": "ARm",
    "mar_large": "ARl",
}
"""The keys of keypoints and the metrics of COCO; there is one detection limit, 20."""


def append(metric: Any, preds: Any, target: Any) -> None:
    """Appends a batch to the metric's states.

    Raises `ValueError`, torchmetrics' own error, for invalid input, and then adds nothing.
    """
    for name, side in (("preds", preds), ("target", target)):
        if not torch_images.are_images(side):
            raise ValueError(f"{name}: not a list of dicts (give one dict per image)")
    try:
        # Its first batch is matched at once: this checks all that the protocol needs.
        stream = torchmetrics_result.evaluator(metric, "coco-keypoints")
        for i, each in enumerate(target):
            if "area" not in each:
                raise ValueError(f"target[{i}].area: missing (OKS divides by the area)")
        stream.update([{**each} for each in preds], [{**each} for each in target])
    except (DetmapError, TypeError) as error:
        raise ValueError(str(error)) from error
    batch = stream._pending[0]
    for name, side in (("preds", preds), ("target", target)):
        for i, each in enumerate(side):
            torch_images.require_labels(f"{name}[{i}].labels", torch.as_tensor(each["labels"]))
    for name, rows, images in (
        ("detection", batch.found, preds),
        ("groundtruth", batch.objects, target),
    ):
        assert rows is not None
        assert isinstance(rows.shapes, Keypoints)
        ends = np.cumsum(rows.count)[:-1]
        for column, values in (
            ("box", rows.boxes),
            ("labels", rows.label),
            ("keypoints", rows.shapes.points),
        ):
            parts = [torch.from_numpy(part.copy()) for part in np.split(values, ends)]
            getattr(metric, f"{name}_{column}").extend(torch_images.moved(parts, metric.device))
        others = ("scores",) if name == "detection" else ("area", "iscrowd")
        for key in others:
            state = getattr(metric, f"{name}_{'crowds' if key == 'iscrowd' else key}")
            for image, n in zip(images, rows.count.tolist(), strict=True):
                value = torch.as_tensor(image.get(key, [0] * n))
                state.append(value.detach().to(metric.device))


def compute(metric: Any) -> dict[str, Any]:
    """Returns the numbers of the metric's images under torchmetrics' names, as float32 tensors."""
    by_class = result = metric._result("coco-keypoints", pooled=False)
    if metric.average == "micro":
        result = metric._result("coco-keypoints", pooled=True)
    numbers = {key: _tensor(result.metrics[name]) for key, name in KEYS.items()}
    for key, name in (("map_per_class", "AP"), ("mar_per_class", "AR")):
        found = [row[name] for row in by_class.per_class] if metric.class_metrics else [-1.0]
        numbers[key] = _tensor(found).squeeze()
    ids = by_class.overview.categories.ids
    return numbers | {"classes": torch.tensor(ids, dtype=torch.int32).squeeze()}


def _tensor(values: Any) -> Any:
    """A float32 tensor, -1 for undefined numbers."""
    return torch.tensor(np.nan_to_num(np.asarray(values, dtype=np.float64), nan=-1)).float()
