"""`compute_metrics` for the Trainer of Hugging Face transformers. Tested with 5.23.0.

>>> from detmap.integrations.transformers import compute_metrics          # doctest: +SKIP
>>> arguments = TrainingArguments(                                        # doctest: +SKIP
...     eval_do_concat_batches=False, remove_unused_columns=False, label_names=["labels"])
>>> Trainer(model, arguments, compute_metrics=compute_metrics(processor, id2label))
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import detmap
from detmap.core.results.flat_metrics import flat
from detmap.errors import require
from detmap.integrations import host_errors
from detmap.integrations.host_errors import HostError
from detmap.integrations.inputs import field_values

REQUIRED = ("boxes", "class_labels", "image_id", "orig_size")
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

    In a training run (`Trainer.train`) an error is one warning, and the run continues: the metrics
    of that run are NaN from then on, without those of classes. Elsewhere errors are `ValueError`.

    Parameters
    ----------
    processor : has ``post_process_object_detection``
    id2label : names of classes, as in the model's configuration
    protocol : rules
    threshold : lowest score that is kept
    classes : whether to add ``AP/<class>``
    """
    torch = require("torch", "torch")

    warn = logging.getLogger("transformers.detmap").warning
    guard = host_errors.TrainingGuard("compute_metrics", warn)
    with host_errors.value_errors("compute_metrics"):
        names = flat(dict.fromkeys(host_errors.undefined_metrics(protocol), 0.0), [], "", None)

    def compute(evaluated: Any) -> dict[str, float]:
        training = host_errors.is_training("transformers")
        if not (training and guard.failed):
            with guard.running(training):
                result = evaluate(evaluated)
                compute.result = result  # type: ignore[attr-defined]
                return result.flat(classes=classes)
        return dict.fromkeys(names, float("nan"))  # found by `metric_for_best_model`

    def evaluate(evaluated: Any) -> detmap.Result:
        evaluator = detmap.Evaluator(protocol, classes={int(k): v for k, v in id2label.items()})
        outputs, labels = evaluated.predictions, evaluated.label_ids
        if not isinstance(outputs, list) or not isinstance(labels, list | tuple):
            raise HostError("predictions", "batches were concatenated", FIX)
        if len(outputs) != len(labels):
            what = f"{len(labels)} batches of labels for {len(outputs)} of predictions"
            raise HostError("label_ids", what, FIX)
        predictions: list[Any] = []
        targets: list[Any] = []
        for i, (batch, annotated) in enumerate(zip(outputs, labels, strict=True)):
            logits, boxes = _logits_and_boxes(f"predictions[{i}]", batch, len(annotated))
            known = [_fields(f"label_ids[{i}][{k}]", each) for k, each in enumerate(annotated)]
            found = processor.post_process_object_detection(
                SimpleNamespace(logits=torch.tensor(logits), pred_boxes=torch.tensor(boxes)),
                threshold=threshold,
                target_sizes=[[int(side) for side in each["orig_size"]] for each in known],
            )
            predictions += found
            targets += map(_target, known)
        evaluator.update(predictions, targets)
        return evaluator.compute()

    return compute


def _logits_and_boxes(where: str, batch: Sequence[Any], n: int) -> tuple[Any, Any]:
    """The two arrays of a batch of n images; a score that is not a number would be dropped."""
    arrays = [each for each in map(field_values.to_numpy, batch) if each.ndim == 3][:2]
    if len(arrays) != 2 or any(len(each) != n for each in arrays):
        shapes = [each.shape for each in arrays]
        fix = "the model returns logits (n, queries, classes) and boxes (n, queries, 4)"
        raise HostError(where, f"shapes {shapes} for {n} images", fix)
    for name, array in zip(("logits", "boxes"), arrays, strict=True):
        bad = np.isnan(array).any(axis=(1, 2))
        if bad.any():
            fix = "the model diverged: check the loss"
            raise HostError(f"{where}: {name}[{int(bad.argmax())}]", "not a number", fix)
    return arrays[0], arrays[1]


def _fields(where: str, label: Any) -> dict[str, Any]:
    """The fields of an image's labels as arrays."""
    fields = {
        name: field_values.to_numpy(field_values.field(label, name, where)) for name in REQUIRED
    }
    if "iscrowd" in label:
        fields["iscrowd"] = field_values.to_numpy(label["iscrowd"]).reshape(-1)
    return fields


def _target(label: Mapping[str, Any]) -> dict[str, Any]:
    """The objects of an image, in pixels of the original image."""
    height, width = (int(side) for side in label["orig_size"])
    cx, cy, w, h = np.asarray(label["boxes"], dtype=np.float64).reshape(-1, 4).T
    corners = np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], axis=1)
    target = {
        "boxes": corners * [width, height, width, height],
        "labels": label["class_labels"].reshape(-1),
        "image_id": int(label["image_id"].reshape(-1)[0]),
    }
    return target | ({"iscrowd": label["iscrowd"]} if "iscrowd" in label else {})
