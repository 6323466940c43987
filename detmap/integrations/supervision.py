"""A metric for supervision with detmap's protocols. Tested with 0.31.2.

>>> from detmap.integrations.supervision import DetmapMetric                # doctest: +SKIP
>>> DetmapMetric("coco-bbox").update(predictions, targets).compute().map50_95   # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import detmap
from detmap.core.adapters.in_memory import batches
from detmap.errors import require
from detmap.integrations.host_errors import HostError, require_protocol, value_errors

_core = require("supervision.metrics.core", "supervision")
_MetricResult: Any = _core.MetricResult
_Metric: Any = _core.Metric

COLOR = "#A351FB"


@dataclass
class SizeResult:
    """Metrics of objects of one size, as supervision names them; -1 where undefined.

    Parameters
    ----------
    mAP_scores : (T,) mean AP per IoU threshold
    ap_per_class : (K, T)
    iou_thresholds : (T,)
    matched_classes : (K,) class ids
    """

    mAP_scores: NDArray[np.float64]  # noqa: N815
    ap_per_class: NDArray[np.float64]
    iou_thresholds: NDArray[np.float64]
    matched_classes: NDArray[np.int64]

    @property
    def map50_95(self) -> float:
        """Mean AP over the thresholds."""
        defined = self.mAP_scores[self.mAP_scores > -1]
        return float(defined.mean()) if len(defined) else -1.0

    @property
    def map50(self) -> float:
        """AP at IoU 0.5."""
        return self._map_at(0.5)

    @property
    def map75(self) -> float:
        """AP at IoU 0.75."""
        return self._map_at(0.75)

    def _map_at(self, iou: float) -> float:
        found = np.flatnonzero(np.isclose(self.iou_thresholds, iou))
        return float(self.mAP_scores[found[0]]) if len(found) else -1.0


@dataclass
class DetmapMetricResult(_MetricResult):  # type: ignore[misc]
    """Metrics of all images; ``result`` is the `detmap.Result`."""

    result: detmap.Result

    def _value(self, *names: str) -> float:
        """The first of these metrics that the protocol has; as in supervision, -1 if undefined."""
        known = self.result.metrics
        value = next((known[name] for name in names if name in known), None)
        return float("nan") if value is None else -1.0 if np.isnan(value) else value

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

    @property
    def iou_thresholds(self) -> NDArray[np.float64]:
        """(T,) IoU thresholds."""
        return self.result.protocol.iou.thresholds.values()

    @property
    def matched_classes(self) -> NDArray[np.int64]:
        """(K,) ids of the classes with objects."""
        return self.result.verdicts.categories.ids[self._has_objects()]

    @property
    def mAP_scores(self) -> NDArray[np.float64]:  # noqa: N802
        """(T,) mean AP per IoU threshold; -1 where undefined."""
        return self._sized("all").mAP_scores

    @property
    def ap_per_class(self) -> NDArray[np.float64]:
        """(K, T) AP per class of `matched_classes` and IoU threshold; -1 where undefined."""
        return self._sized("all").ap_per_class

    @property
    def small_objects(self) -> SizeResult:
        """The metrics of small objects."""
        return self._sized("small")

    @property
    def medium_objects(self) -> SizeResult:
        """The metrics of medium objects."""
        return self._sized("medium")

    @property
    def large_objects(self) -> SizeResult:
        """The metrics of large objects."""
        return self._sized("large")

    def _has_objects(self) -> NDArray[np.bool_]:
        verdicts: Any = self.result.verdicts
        return np.asarray(np.diff(verdicts.obj_off) > 0)

    def _sized(self, name: str) -> SizeResult:
        """The metrics of a subset of the protocol; -1 everywhere if it has none of this name."""
        names = [each.name for each in self.result.protocol.subsets]
        terms = self.result.scores.terms[:, :, :, self._has_objects()]
        if name in names:
            per_class = terms[names.index(name)].mean(axis=1)  # (T, K)
        else:
            per_class = np.full((terms.shape[1], terms.shape[3]), np.nan)
        defined = ~np.isnan(per_class)
        total, count = np.where(defined, per_class, 0).sum(axis=1), defined.sum(axis=1)
        means = np.divide(total, count, out=np.full(len(total), -1.0), where=count > 0)
        ids = self.matched_classes
        listed = np.where(defined, per_class, -1.0).T
        return SizeResult(means, listed, self.iou_thresholds, ids)

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
    """Boxes, labels and scores, and the flags and areas of `batches.FROM_DATA`."""
    images = []
    for each in detections:
        columns = {"labels": each.class_id, "scores": each.confidence}
        columns |= {name: each.data[name] for name in batches.FROM_DATA if name in each.data}
        given = {name: value for name, value in columns.items() if value is not None}
        images.append({"boxes": each.xyxy, "labels": [], **given})
    return images
