"""torchmetrics' `MeanAveragePrecision`, computed by detmap.

Tested with torchmetrics 1.9. Arguments, keys, dtypes, shapes and values are those of torchmetrics.
Beyond it: keypoints; the number of images may differ between ranks, `merge_state` keeps the order
of images, and `result` gives a `detmap.Result`.

>>> from detmap.integrations.torchmetrics import MeanAveragePrecision  # doctest: +SKIP
>>> metric = MeanAveragePrecision(class_metrics=True)                  # doctest: +SKIP
>>> metric.update(preds, target); metric.compute()["map"]              # doctest: +SKIP
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import detmap
from detmap.compat import PycocotoolsQuirk
from detmap.errors import MissingError
from detmap.integrations.host_errors import require_protocol

try:
    from torchmetrics import Metric
    from torchmetrics.detection import mean_ap

    from detmap.integrations import (
        torchmetrics_backend,
        torchmetrics_boxes,
        torchmetrics_classes,
        torchmetrics_keypoints,
        torchmetrics_result,
    )
    from detmap.integrations.inputs import torch_images
except ImportError as error:
    fix = "pip install torch torchmetrics torchvision"
    raise MissingError("detmap.integrations.torchmetrics", str(error), fix) from None


class MeanAveragePrecision(mean_ap.MeanAveragePrecision):  # type: ignore[misc]
    """Mean average precision and recall of detections; see torchmetrics for all other arguments.

    Parameters
    ----------
    box_format, iou_type : as in torchmetrics; `iou_type` may also be "keypoints": predictions have
        ``keypoints`` (n, points, 3), ``scores``, ``labels``; targets ``keypoints`` (x, y,
        visibility), ``labels``, ``area``, optional ``iscrowd``, and ``boxes`` for objects without
        a labeled point. `compute` then gives the keys of `torchmetrics_keypoints`
    protocol : rules of `result`, a name or a `detmap.Protocol`; the default is that of torchmetrics
    keypoint_sigmas : a number per point (default: the 17 of COCO)

    `compute` follows torchmetrics and, for keypoints, COCO. detmap evaluates for both values of
    `backend`; with "faster_coco_eval", `map` is that of the last detection limit.
    """

    full_state_update = False
    # torch.jit.script would read it, and it is an error before the ranks are gathered.
    __jit_unused_properties__ = (*Metric.__jit_unused_properties__, "result")
    __jit_ignored_attributes__ = (*Metric.__jit_ignored_attributes__, "result")

    def __init__(
        self,
        box_format: str = "xyxy",
        iou_type: Any = "bbox",
        *arguments: Any,
        protocol: str | detmap.Protocol | None = None,
        keypoint_sigmas: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        with_points = iou_type in ("keypoints", ("keypoints",), ["keypoints"])
        require_protocol("MeanAveragePrecision", protocol)
        super().__init__(box_format, "bbox" if with_points else iou_type, *arguments, **options)
        self._coco_backend = torchmetrics_backend.Backend(vars(self)["_coco_backend"].backend)
        self.protocol, self.keypoint_sigmas = protocol, keypoint_sigmas
        self._evaluated: dict[str, list[Any]] | None = None
        if with_points:
            self.iou_type = ("keypoints",)
            for side in ("detection", "groundtruth"):
                self.add_state(f"{side}_keypoints", default=[], dist_reduce_fx=None)

    def update(self, preds: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        """Adds a batch. Raises `ValueError` for invalid input, and then adds nothing."""
        self._evaluated = None
        if self.iou_type == ("keypoints",):
            torchmetrics_keypoints.append(self, preds, target)
            return
        if torch_images.are_images(preds) and torch_images.are_images(target):
            if self.iou_type == ("bbox",) and torchmetrics_boxes.append(self, preds, target):
                return
            torch_images.require_valid("preds", preds)
            torch_images.require_valid("target", target)
            torch_images.require_same_sizes(preds, target)
        super().update(preds, target)

    def compute(self) -> dict[str, Any]:
        """Returns what torchmetrics returns, in the same bits."""
        # torchmetrics gathers the ranks for this call only; `result` needs the same images later.
        # `forward` computes the batch alone, without this flag.
        if self._should_unsync:
            self._evaluated = {name: [*getattr(self, name)] for name in self._defaults}
        if self.iou_type == ("keypoints",):
            return torchmetrics_keypoints.compute(self)
        with warnings.catch_warnings(action="ignore", category=PycocotoolsQuirk):
            return torchmetrics_classes.compute(self, super().compute)

    def reset(self) -> None:
        """Removes all images."""
        super().reset()
        self._evaluated = None

    @property
    def result(self) -> detmap.Result:
        """The `detmap.Result` of all images so far, for intervals, curves and tables.

        Under torch.distributed, call `compute` first: the images are those of all ranks, as there.
        Classes are those seen, named by number; with ``average="micro"``, all are class 0. Images
        are numbered from 0. For masks and without `protocol`, images without ground-truth masks are
        left out, as in torchmetrics; a note counts them.

        Raises `DetmapError` for several iou types, for several ranks without `compute` after the
        last batch, and for recall thresholds that are not ascending.
        """
        torchmetrics_result.require_evaluable(self)
        torchmetrics_result.require_gathered(self)
        return self._result(self.protocol, pooled=self.average == "micro")

    def _result(self, protocol: str | detmap.Protocol | None, pooled: bool) -> detmap.Result:
        states = self._evaluated or {name: getattr(self, name) for name in self._defaults}
        return torchmetrics_result.evaluate(self, states, protocol, pooled)

    def _sync_dist(self, dist_sync_fn: Any = None, process_group: Any = None) -> None:
        """Gathers the images of all ranks, rank after rank; ranks may have different numbers.

        Raises `DetmapError` if a rank is lost; this rank keeps its images.
        """
        del dist_sync_fn
        states = {name: getattr(self, name) for name in self._defaults}
        everyone = torch_images.gathered(states, process_group or self.process_group)
        for name in self._defaults:
            gathered = [item for rank in everyone for item in rank[name]]
            setattr(self, name, torch_images.moved(gathered, self.device))

    def merge_state(self, incoming_state: Mapping[str, Any] | Metric) -> None:
        """Appends the images of another metric, or of its `metric_state`, after its own."""
        if isinstance(incoming_state, type(self)):
            incoming_state = incoming_state.metric_state
        elif not isinstance(incoming_state, Mapping):
            raise ValueError(f"Expected {type(self).__name__} or dict, got {type(incoming_state)}")
        for name in self._defaults:
            setattr(self, name, [*getattr(self, name), *incoming_state[name]])
        self._update_count += 1
        self._computed = self._evaluated = None
