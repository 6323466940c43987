"""A metric for supervision with detmap's protocols. Tested with 0.31.2.

>>> from detmap.integrations.supervision import DetmapMetric                # doctest: +SKIP
>>> DetmapMetric("coco-bbox").update(predictions, targets).compute().map50_95   # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import detmap
from detmap.errors import require
from detmap.integrations.host_errors import HostError, require_protocol, value_errors

_core = require("supervision.metrics.core", "supervision")
_MetricResult: Any = _core.MetricResult
_Metric: Any = _core.Metric

COLOR = "#A351FB"
FROM_DATA = ("iscrowd", "area", "ignore")
"""Keys of `data` that are read."""


@dataclass
class DetmapMetricResult(_MetricResult):  # type: ignore[misc]
    """Metrics of all images; ``result`` is the `detmap.Result`."""

    result: detmap.Result

    def _value(self, *names: str) -> float:
        known = self.result.metrics
        return next((known[name] for name in names if name in known), float("nan"))

    @property
    def map50_95(self) -> float:
        """Mean AP over IoU 0.50:0.95; NaN where the protocol has none."""
        return self._value("AP", "mAP", "mAP50-95")

    @property
    def map50(self) -> float:
        """AP at IoU 0.5."""
        return self._value("AP50", "mAP50")

    @property
    def map75(self) -> float:
        """AP at IoU 0.75."""
        return self._value("AP75")

    def to_pandas(self) -> Any:
        """Returns a data frame of one row."""
        return require("pandas", "frames").DataFrame([self.result.metrics])

    def _get_plot_details(self, include_object_sizes: bool = True) -> Any:
        small = {"APs", "APm", "APl", "ARs", "ARm", "ARl"}
        shown = {
            name: value
            for name, value in self.result.metrics.items()
            if value == value and (include_object_sizes or name not in small)
        }
        title = f"detmap, {self.result.protocol.name}"
        return _core.PlotDetails([*shown], [*shown.values()], [COLOR] * len(shown), title)

    def plot(self) -> None:
        """Shows a bar chart of the metrics."""
        _core._show_bar_plot(self._get_plot_details())


class DetmapMetric(_Metric):  # type: ignore[misc]
    """Evaluates `supervision.Detections`.

    Parameters
    ----------
    protocol : rules; ``supervision`` gives the numbers of supervision's own metric
    classes : names or ids of classes; by default those seen
    """

    def __init__(self, protocol: str | detmap.Protocol = "coco-bbox", classes: Any = None) -> None:
        require_protocol("DetmapMetric", protocol)
        self.protocol, self.classes = protocol, classes
        self.reset()

    def reset(self) -> None:
        """Removes all images."""
        self._predictions: list[Any] = []
        self._targets: list[Any] = []

    def update(self, predictions: Any, targets: Any) -> DetmapMetric:
        """Adds one image or a list of images; returns itself."""
        found = list(predictions) if isinstance(predictions, list) else [predictions]
        known = list(targets) if isinstance(targets, list) else [targets]
        if len(found) != len(known):
            what = f"{len(found)} predictions for {len(known)} targets"
            raise HostError("DetmapMetric.update", what, "give one of each per image")
        for name, images in (("predictions", found), ("targets", known)):
            for i, each in enumerate(images):
                if not hasattr(each, "xyxy"):
                    fix = "give supervision.Detections, or a list of them"
                    raise HostError(f"{name}[{i}]", f"a {type(each).__name__}", fix)
        for i, each in enumerate(found):
            if len(each) and each.confidence is None:
                raise HostError(f"predictions[{i}].confidence", "missing", "give the scores")
        self._predictions += found
        self._targets += known
        return self

    def compute(self) -> DetmapMetricResult:
        """Evaluates all images so far."""
        with value_errors("DetmapMetric"):
            classes = self._seen() if self.classes is None else self.classes
            evaluator = detmap.Evaluator(self.protocol, classes=classes)
            found, known = map(_images, (self._predictions, self._targets))
            evaluator.update(found, known)
            return DetmapMetricResult(evaluator.compute())

    def _seen(self) -> list[int]:
        ids = [each.class_id for each in (*self._predictions, *self._targets) if len(each)]
        given = [each for each in ids if each is not None]
        return [int(each) for each in np.unique(np.concatenate([np.zeros(0, int), *given]))]


def _images(detections: list[Any]) -> list[dict[str, Any]]:
    """Boxes, labels and scores, and the flags and areas that supervision keeps in `data`."""
    images = []
    for each in detections:
        columns = {"labels": each.class_id, "scores": each.confidence}
        columns |= {name: each.data[name] for name in FROM_DATA if name in each.data}
        given = {name: value for name, value in columns.items() if value is not None}
        images.append({"boxes": each.xyxy, "labels": [], **given})
    return images
