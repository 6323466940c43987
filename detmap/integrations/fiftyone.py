"""An evaluation backend for FiftyOne. Tested with 1.22.1, without its database.

>>> from detmap.integrations.fiftyone import DetmapEvaluationConfig        # doctest: +SKIP
>>> dataset.compute_metadata()                                             # doctest: +SKIP
>>> results = dataset.evaluate_detections(                                 # doctest: +SKIP
...     "predictions", gt_field="ground_truth", eval_key="eval", method=DetmapEvaluationConfig)
>>> results.metrics()["AP"]                                                # doctest: +SKIP

FiftyOne matches the objects that its App shows, at ``iou``; detmap computes the metrics.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import detmap
from detmap.errors import require
from detmap.integrations.host_errors import HostError, value_errors

_coco = require("fiftyone.utils.eval.coco", "fiftyone")
_COCOEvaluationConfig: Any = _coco.COCOEvaluationConfig
_COCOEvaluation: Any = _coco.COCOEvaluation
_DetectionResults: Any = _coco.DetectionResults


class DetmapEvaluationConfig(_COCOEvaluationConfig):  # type: ignore[misc]
    """Settings: those of FiftyOne's COCO evaluation, and `protocol`."""

    def __init__(
        self, pred_field: str, gt_field: str, protocol: str = "coco-bbox", **options: Any
    ) -> None:
        super().__init__(pred_field, gt_field, **options)
        self.protocol = protocol

    @property
    def method(self) -> str:
        """The name of the backend."""
        return "detmap"


class DetmapDetectionResults(_DetectionResults):  # type: ignore[misc]
    """Results with ``detmap``, a `detmap.Result`; it is not stored in the database."""

    detmap: Any = None  # a `detmap.Result`, a name that is this attribute here

    def metrics(self, **options: Any) -> dict[str, Any]:
        """Returns FiftyOne's metrics at ``iou``, and those of detmap by name."""
        metrics: dict[str, Any] = super().metrics(**options)
        return metrics if self.detmap is None else metrics | self.detmap.flat()


class DetmapEvaluation(_COCOEvaluation):  # type: ignore[misc]
    """Matches by FiftyOne, metrics by detmap."""

    def __init__(self, config: DetmapEvaluationConfig) -> None:
        super().__init__(config)
        self._images: list[tuple[list[Any], list[Any], tuple[float, float]]] = []

    def evaluate(self, sample_or_frame: Any, eval_key: str | None = None) -> Any:
        """Returns the matches of one image at the IoU threshold of the settings."""
        size = getattr(sample_or_frame, "metadata", None)
        where = str(getattr(sample_or_frame, "filepath", "sample"))
        if size is None or not size.width or not size.height:
            raise HostError(where, "the size of the image is unknown", "call compute_metadata()")
        sides = []
        for field in (self.pred_field, self.gt_field):
            sides.append(_objects(sample_or_frame, field, where))
            _require_boxes(f"{where}: {field}", sides[-1])
        self._images.append((sides[0], sides[1], (size.width, size.height)))
        return super().evaluate(sample_or_frame, eval_key)

    def generate_results(
        self, samples: Any, matches: Any, eval_key: str | None = None, **options: Any
    ) -> DetmapDetectionResults:
        """Returns the results of all images; classes are those given, else those seen."""
        classes, missing = options.get("classes"), options.get("missing")
        results = DetmapDetectionResults(
            samples, self.config, eval_key, matches, classes=classes, missing=missing, backend=self
        )
        images, self._images = self._images, []
        seen = {each.label for found, known, _ in images for each in (*found, *known)}
        names = sorted(seen if classes is None else classes)
        with value_errors("DetmapEvaluation"):
            evaluator = detmap.Evaluator(self.config.protocol, classes=names)
            known = [self._image(known, size, names) for _, known, size in images]
            found = [self._image(found, size, names) for found, _, size in images]
            for image, (objects, _, _) in zip(found, images, strict=True):
                # FiftyOne ranks detections without confidence last.
                image["scores"] = [-1.0 if o.confidence is None else o.confidence for o in objects]
            evaluator.update(found, known)
            results.detmap = evaluator.compute()
        return results

    def _image(
        self, objects: Sequence[Any], size: tuple[float, float], names: list[str]
    ) -> dict[str, Any]:
        """Boxes in pixels, labels and crowds; FiftyOne keeps fractions of the image."""
        boxes = np.array([each.bounding_box for each in objects], dtype=np.float64).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        crowd = [bool(each.get_attribute_value(self.config.iscrowd, False)) for each in objects]
        labels = [names.index(each.label) if each.label in names else -1 for each in objects]
        return {"boxes": boxes * [*size, *size], "labels": labels, "iscrowd": crowd}


def _objects(sample_or_frame: Any, field: str, where: str) -> list[Any]:
    """The objects of a field. Raises `HostError` for a field that is missing or of another type."""
    try:
        labels = sample_or_frame[field]
        return [] if labels is None else list(labels.detections)
    except (KeyError, AttributeError):
        fix = "give the names of fields with fiftyone.Detections"
        raise HostError(where, f"no detections in a field {field!r}", fix) from None


def _require_boxes(where: str, objects: Sequence[Any]) -> None:
    """Raises `HostError` for a box on which FiftyOne's matching would stop."""
    for i, each in enumerate(objects):
        box = each.bounding_box
        if len(box) != 4 or not all(math.isfinite(side) for side in box):
            fix = "a box is left, top, width, height, as fractions of the image"
            raise HostError(f"{where}.detections[{i}].bounding_box", f"{list(box)}", fix)
