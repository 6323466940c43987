"""torchmetrics' `MeanAveragePrecision`, computed by detmap.

Tested with torchmetrics 1.9. Arguments, keys, dtypes, shapes and values are those of torchmetrics.
Beyond it: the number of images may differ between ranks, `merge_state` keeps the order of images,
and `result` gives a `detmap.Result`.

>>> from detmap.integrations.torchmetrics import MeanAveragePrecision  # doctest: +SKIP
>>> metric = MeanAveragePrecision(class_metrics=True)                  # doctest: +SKIP
>>> metric.update(preds, target); metric.compute()["map"]              # doctest: +SKIP
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import detmap
from detmap.compat import PycocotoolsQuirk, patch_pycocotools
from detmap.errors import DetmapError

try:
    import torch
    from torchmetrics import Metric
    from torchmetrics.detection import mean_ap
except ImportError as error:
    raise DetmapError(
        "detmap.integrations.torchmetrics",
        f"{error.name} is not installed",
        "pip install torch torchmetrics torchvision",
    ) from None


class MeanAveragePrecision(mean_ap.MeanAveragePrecision):  # type: ignore[misc]
    """Mean average precision and recall of detections; see torchmetrics for all arguments.

    Parameters
    ----------
    protocol : rules of `result`, a name or a `detmap.Protocol`; `compute` always follows those of
        torchmetrics
    """

    full_state_update = False

    def __init__(
        self, *arguments: Any, protocol: str | detmap.Protocol = "torchmetrics", **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.protocol = protocol

    def compute(self) -> dict[str, Any]:
        """Returns what torchmetrics returns, in the same bits."""
        with patch_pycocotools(), warnings.catch_warnings():
            warnings.simplefilter("ignore", PycocotoolsQuirk)
            computed: dict[str, Any] = super().compute()
        return computed

    @property
    def result(self) -> detmap.Result:
        """The `detmap.Result` of all images so far, for intervals, curves and tables.

        Classes are those seen, named by number; images are numbered from 0. Only for boxes.
        """
        if self.iou_type != ("bbox",):
            fix = 'use iou_type="bbox", or detmap.evaluate'
            raise DetmapError("MeanAveragePrecision.result", f"iou_type {self.iou_type}", fix)
        truth = detmap.truth_from_arrays(
            _images(self.groundtruth_labels),
            _column(self.groundtruth_labels, np.int64),
            _boxes(self.groundtruth_box),
            crowd=_column(self.groundtruth_crowds, np.int64) != 0,
            area=self._areas(),
            images=np.arange(len(self.groundtruth_labels)),
            categories={label: str(label) for label in self._labels()},
        )
        found = detmap.detections_from_arrays(
            truth,
            _images(self.detection_labels),
            _column(self.detection_labels, np.int64),
            _boxes(self.detection_box),
            _column(self.detection_scores, np.float64),
        )
        settings = {} if self.protocol != "torchmetrics" else self._settings()
        return detmap.evaluate(truth, found, self.protocol, settings=settings)

    def _labels(self) -> list[int]:
        """Labels seen in predictions or targets, ascending."""
        seen = _column([*self.groundtruth_labels, *self.detection_labels], np.int64)
        return [int(label) for label in np.unique(seen)]

    def _areas(self) -> Any:
        """Areas as given; width times height for 0, as torchmetrics."""
        boxes = _boxes(self.groundtruth_box).astype(np.float32)
        given = _column(self.groundtruth_area, np.float64)
        return np.where(given > 0, given, (boxes[:, 2] * boxes[:, 3]).astype(np.float64))

    def _settings(self) -> dict[str, Any]:
        """Arguments of the metric as keys of the protocol, with the rows of recall."""
        limits = list(self.max_detection_thresholds)
        names = ["map: AP", "map_50: AP50", "map_75: AP75"]
        names += [f"map_{word}: AP{word[0]}" for word in ("small", "medium", "large")]
        names += [f"mar_{limit}: AR@{limit}" for limit in limits]
        names += [f"mar_{word}: AR{word[0]}" for word in ("small", "medium", "large")]
        return {
            "limits.max_dets": limits,
            "iou.thresholds": sorted(self.iou_thresholds),
            "ap.grid": sorted(self.rec_thresholds),
            "metrics": names,
        }

    def _sync_dist(self, dist_sync_fn: Any = None, process_group: Any = None) -> None:
        """Gathers the images of all ranks, rank after rank; ranks may have different numbers."""
        del dist_sync_fn
        group = process_group or self.process_group
        mine = {name: _moved(getattr(self, name), "cpu") for name in self._defaults}
        everyone: list[Any] = [None] * torch.distributed.get_world_size(group)
        torch.distributed.all_gather_object(everyone, mine, group=group)
        for name in self._defaults:
            gathered = [item for rank in everyone for item in rank[name]]
            setattr(self, name, _moved(gathered, self.device))

    def merge_state(self, incoming_state: Mapping[str, Any] | Metric) -> None:
        """Appends the images of another metric, or of its `metric_state`, after its own."""
        if isinstance(incoming_state, Metric):
            if not isinstance(incoming_state, type(self)):
                raise ValueError(f"Expected a {type(self).__name__}, got {type(incoming_state)}")
            incoming_state = incoming_state.metric_state
        elif not isinstance(incoming_state, Mapping):
            raise ValueError(f"Expected a dict or a metric, got {type(incoming_state)}")
        for name in self._defaults:
            setattr(self, name, [*getattr(self, name), *incoming_state[name]])
        self._update_count += 1
        self._computed = None


def _moved(items: list[Any], device: Any) -> list[Any]:
    return [item.to(device) if isinstance(item, torch.Tensor) else item for item in items]


def _images(labels: list[Any]) -> Any:
    """(n,) int64, the number of each row's image."""
    return np.repeat(np.arange(len(labels)), [each.numel() for each in labels])


def _column(parts: list[Any], dtype: Any) -> Any:
    values = [each.detach().cpu().reshape(-1).double().numpy() for each in parts]
    return np.concatenate([np.zeros(0), *values]).astype(dtype)


def _boxes(parts: list[Any]) -> Any:
    values = [each.detach().cpu().reshape(-1, 4).double().numpy() for each in parts]
    return np.concatenate([np.zeros((0, 4)), *values])
