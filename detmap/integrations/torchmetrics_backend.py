"""The backends of torchmetrics, evaluated by detmap."""

from __future__ import annotations

from typing import Any

from torchmetrics.detection.helpers import CocoBackend

from detmap.compat import COCOeval


class LastLimitEvaluation(COCOeval):
    """As faster_coco_eval: ``map`` is read at the last detection limit, not at 100."""

    def summarize(self) -> None:
        """Computes `stats`."""
        super().summarize()
        precision = self.eval["precision"][..., 0, -1]
        found = precision[precision > -1]
        self.stats[0] = found.mean() if found.size else -1


class Backend(CocoBackend):  # type: ignore[misc]
    """A backend of torchmetrics under the patch of pycocotools, which also encodes the masks."""

    def __init__(self, name: str) -> None:
        super().__init__("pycocotools")
        self.last_limit = name == "faster_coco_eval"

    @property
    def cocoeval(self) -> Any:
        """Returns the class that evaluates."""
        return LastLimitEvaluation if self.last_limit else super().cocoeval
