"""The backends of torchmetrics, evaluated by detmap."""

from functools import partial
from typing import Any

import torch
from torchmetrics.detection.helpers import CocoBackend

from detmap.compat import COCO, COCOeval, mask
from detmap.compat.annotation_rows import Unusual
from detmap.compat.annotation_sources import Columns
from detmap.integrations.inputs import torchmetrics_columns


class FixedLimitEvaluation(COCOeval):
    """As pycocotools: ``map`` is read at 100 detections, and is -1 without this limit."""

    def summarize(self) -> None:
        """Computes `stats`."""
        super(COCOeval, self).summarize()  # without what detmap's own adds


class LastLimitEvaluation(COCOeval):
    """As faster_coco_eval: ``map`` is read at the last detection limit, not at 100."""

    def summarize(self) -> None:
        """Computes `stats`."""
        super().summarize()
        precision = self.eval["precision"][..., 0, -1]
        found = precision[precision > -1]
        self.stats[0] = found.mean() if found.size else -1


class Backend(CocoBackend):  # type: ignore[misc]
    """A backend of torchmetrics with the classes of detmap.

    Parameters
    ----------
    backend : "pycocotools" or "faster_coco_eval": the backend whose numbers are computed. Only
        pycocotools must be installed, which encodes the masks

    ``last`` is the last evaluation while `torchmetrics_classes.compute` runs.
    """

    last: Any = None

    @property
    def coco(self) -> Any:
        """Returns the class that reads annotations."""
        return COCO

    @property
    def cocoeval(self) -> Any:
        """Returns the class of evaluations; RF-DETR asks it for its methods."""
        backend, last = self, self.backend == "faster_coco_eval"
        evaluation: Any = LastLimitEvaluation if last else FixedLimitEvaluation

        class Evaluation(evaluation):  # type: ignore[misc]
            def __init__(self, *arguments: Any, **options: Any) -> None:
                super().__init__(*arguments, **options)
                backend.last = self

        return Evaluation

    @property
    def mask_utils(self) -> Any:
        """Returns the module that encodes masks."""
        return mask

    def _get_coco_datasets(
        self,
        groundtruth_labels: list[Any],
        groundtruth_box: list[Any],
        groundtruth_mask: list[Any],
        groundtruth_crowds: list[Any],
        groundtruth_area: list[Any],
        detection_labels: list[Any],
        detection_box: list[Any],
        detection_mask: list[Any],
        detection_scores: list[Any],
        iou_type: Any = ("bbox",),
        average: str = "micro",
    ) -> tuple[Any, Any]:
        """Returns the detections and the ground truth: boxes as columns, all else as dicts."""
        try:
            if tuple(iou_type) != ("bbox",):
                raise Unusual
            return self._datasets_of_boxes(
                {
                    "labels": groundtruth_labels,
                    "boxes": groundtruth_box,
                    "crowds": groundtruth_crowds,
                    "area": groundtruth_area,
                },
                {"labels": detection_labels, "boxes": detection_box, "scores": detection_scores},
                average,
            )
        except Unusual:
            found: tuple[Any, Any] = super()._get_coco_datasets(
                groundtruth_labels,
                groundtruth_box,
                groundtruth_mask,
                groundtruth_crowds,
                groundtruth_area,
                detection_labels,
                detection_box,
                detection_mask,
                detection_scores,
                iou_type,
                average=average,
            )
            return found

    def _datasets_of_boxes(
        self, targets: dict[str, Any], shown: dict[str, Any], average: str
    ) -> tuple[Any, Any]:
        """Raises `Unusual` for boxes, labels and scores that only torchmetrics' code handles."""
        if average == "micro":
            targets, shown = (
                {**side, "labels": [torch.zeros_like(each) for each in side["labels"]]}
                for side in (targets, shown)
            )
        classes = torchmetrics_columns.read_classes([*shown["labels"], *targets["labels"]])
        images = [{"id": i} for i in range(len(targets["labels"]))]
        categories = [{"id": label, "name": str(label)} for label in classes]
        found = []
        for side in (shown, targets):
            rows = torchmetrics_columns.read_rows(classes, **side)
            kept = {name: [*column] for name, column in side.items()}
            make = partial(self._get_coco_format, all_labels=classes, average=average, **kept)
            found.append(COCO.from_columns(Columns(rows, images, categories, make)))
        return found[0], found[1]
