"""The backends of torchmetrics, evaluated by detmap."""

from __future__ import annotations

from typing import Any

from torchmetrics.detection.helpers import CocoBackend

from detmap.compat import COCO, COCOeval, mask


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
    """

    @property
    def coco(self) -> Any:
        """Returns the class that reads annotations."""
        return COCO

    @property
    def cocoeval(self) -> Any:
        """Returns the class that evaluates."""
        return LastLimitEvaluation if self.backend == "faster_coco_eval" else COCOeval

    @property
    def mask_utils(self) -> Any:
        """Returns the module that encodes masks."""
        return mask
