"""The numbers of classes of a torchmetrics metric, from one evaluation of all classes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from detmap.integrations.torchmetrics_backend import LastLimitEvaluation


def compute(metric: Any, whole: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns the numbers of torchmetrics, with those of classes from one evaluation of all.

    Parameters
    ----------
    metric : with a `Backend`
    whole : torchmetrics' own `compute` of this metric. It evaluates once per class, which is left
        to it for several iou types: it has a rule for their areas
    """
    if not metric.class_metrics or len(metric.iou_type) > 1:
        return dict(whole())
    backend = vars(metric)["_coco_backend"]
    try:
        with _options(metric, class_metrics=False):
            numbers = dict(whole())
            if metric.average == "micro" and "map_per_class" in numbers:
                with _options(metric, average="macro", extended_summary=False):
                    whole()
        if "map_per_class" in numbers:  # there are images
            limit = metric.max_detection_thresholds[-1]
            names = ("map_per_class", f"mar_{limit}_per_class")
            numbers |= dict(zip(names, _class_numbers(backend.last), strict=True))
        return numbers
    finally:
        backend.last = None


@contextmanager
def _options(metric: Any, **options: Any) -> Iterator[None]:
    """Sets attributes of a metric for the block."""
    before = {name: getattr(metric, name) for name in options}
    try:
        for name, value in options.items():
            setattr(metric, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(metric, name, value)


def _class_numbers(evaluation: Any) -> tuple[Any, Any]:
    """AP and AR of each class, (K,) float32: the first and ninth number of `summarize` for this
    class alone; -1 where undefined.
    """
    limits = evaluation.params.maxDets
    places = [m for m, limit in enumerate(limits) if limit == 100]
    if isinstance(evaluation, LastLimitEvaluation):
        places = [len(limits) - 1]
    largest = [m for m, limit in enumerate(limits) if limit == limits[2]]
    precision = evaluation.eval["precision"][:, :, :, 0, places]  # all areas
    recall = evaluation.eval["recall"][:, :, 0, largest]
    classes = range(recall.shape[1])
    ap = [_mean(precision[:, :, k]) for k in classes]
    ar = [_mean(recall[:, k]) for k in classes]
    return torch.tensor(ap, dtype=torch.float32), torch.tensor(ar, dtype=torch.float32)


def _mean(values: NDArray[np.float64]) -> float:
    found = values[values > -1]
    return float(found.mean()) if found.size else -1.0
