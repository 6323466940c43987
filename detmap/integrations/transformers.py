"""`compute_metrics` for the Trainer of Hugging Face transformers. Tested with 5.23.0.

>>> from detmap.integrations.transformers import compute_metrics          # doctest: +SKIP
>>> arguments = TrainingArguments(                                        # doctest: +SKIP
...     eval_do_concat_batches=False, remove_unused_columns=False, label_names=["labels"])
>>> Trainer(model, arguments, compute_metrics=compute_metrics(processor, id2label))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import detmap
from detmap.errors import require
from detmap.integrations.host_errors import HostError, value_errors

FIX = (
    "set eval_do_concat_batches=False, remove_unused_columns=False and label_names=['labels'] in "
    "TrainingArguments"
)


def compute_metrics(
    processor: Any,
    id2label: Mapping[int, str],
    protocol: str | detmap.Protocol = "coco-bbox",
    *,
    threshold: float = 0.0,
    classes: bool = False,
) -> Callable[[Any], dict[str, float]]:
    """Returns a function for ``Trainer(compute_metrics=...)``.

    Its attribute ``result`` is the `detmap.Result` of the last evaluation. Areas are those of the
    boxes, because processors rescale the areas of the ground truth.

    Parameters
    ----------
    processor : has ``post_process_object_detection``
    id2label : names of classes, as in the model's configuration
    protocol : rules
    threshold : lowest score that is kept
    classes : whether to add ``AP/<class>``
    """
    torch = require("torch", "torch")

    def compute(evaluated: Any) -> dict[str, float]:
        evaluator = detmap.Evaluator(protocol, classes={int(k): v for k, v in id2label.items()})
        outputs, labels = evaluated.predictions, evaluated.label_ids
        if not isinstance(outputs, list) or not isinstance(labels, list | tuple):
            raise HostError("compute_metrics", "batches were concatenated", FIX)
        predictions: list[Any] = []
        targets: list[Any] = []
        with value_errors("compute_metrics"):
            for batch, annotated in zip(outputs, labels, strict=True):
                logits, boxes = [each for each in batch if np.ndim(each) == 3][:2]
                sizes = [[int(side) for side in each["orig_size"]] for each in annotated]
                found = processor.post_process_object_detection(
                    SimpleNamespace(logits=torch.tensor(logits), pred_boxes=torch.tensor(boxes)),
                    threshold=threshold,
                    target_sizes=sizes,
                )
                predictions += found
                targets += [_target(*each) for each in zip(annotated, sizes, strict=True)]
            evaluator.update(predictions, targets)
            result = evaluator.compute()
        compute.result = result  # type: ignore[attr-defined]
        return result.flat(classes=classes)

    return compute


def _target(label: Mapping[str, Any], size: Sequence[int]) -> dict[str, Any]:
    """The objects of an image, in pixels of the original image of this height and width."""
    height, width = size
    cx, cy, w, h = np.asarray(label["boxes"], dtype=np.float64).reshape(-1, 4).T
    corners = np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], axis=1)
    target = {
        "boxes": corners * [width, height, width, height],
        "labels": np.asarray(label["class_labels"]).reshape(-1),
        "image_id": int(np.asarray(label["image_id"]).reshape(-1)[0]),
    }
    if "iscrowd" in label:
        target["iscrowd"] = np.asarray(label["iscrowd"]).reshape(-1)
    return target
