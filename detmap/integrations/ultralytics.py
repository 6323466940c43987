"""A callback and a validator for Ultralytics. Tested with 8.4.190.

>>> from detmap.integrations import ultralytics                   # doctest: +SKIP
>>> model.add_callback("on_val_end", ultralytics.callback())      # doctest: +SKIP
>>> model.val(data="data.yaml", save_json=True)                   # doctest: +SKIP

`val` matches boxes in the space of the network, where they are not clipped to the image. The files
that it writes have clipped boxes, so they give another number. `DetmapValidator` gives both.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import detmap
from detmap.errors import require
from detmap.integrations import ultralytics_tables
from detmap.integrations.host_errors import HostError, require_protocol, value_errors
from detmap.integrations.ultralytics_tables import boxes

_val = require("ultralytics.models.yolo.detect.val", "ultralytics")
_DetectionValidator: Any = _val.DetectionValidator
_log = require("ultralytics.utils", "ultralytics").LOGGER

OWN_RULES = "ultralytics-8.4"


def callback(
    protocol: str | detmap.Protocol = "coco-bbox",
    *,
    truth: str | Path | None = None,
    intervals: bool = True,
    report: str | None = "detmap.html",
    prefix: str = "detmap/",
) -> Callable[[Any], None]:
    """Returns a callback for ``on_val_end`` that evaluates the boxes of ``predictions.json``.

    It logs the first metric, writes the report beside the other results, and sets
    ``validator.detmap_result`` and ``validator.detmap`` (a flat dict of numbers).

    Parameters
    ----------
    protocol : rules of the numbers
    truth : ground truth for COCO and LVIS, where Ultralytics has none in memory
    intervals : whether to compute 95 % confidence intervals
    report : file name of the HTML report; None for none
    prefix : of the keys of ``validator.detmap``

    The callback does nothing in a training run unless `save_json` is set. It raises `ValueError` in
    a validation without ``save_json=True``.
    """
    # A trainer validates its best weights at the end: with the validator of its epochs, which then
    # is no longer `training`.
    trainers: WeakSet[Any] = WeakSet()
    require_protocol("detmap callback", protocol)

    def on_val_end(validator: Any) -> None:
        if not validator.args.save_json:
            if validator.training:
                trainers.add(validator)
                return
            if validator in trainers:
                advice = "call model.train(save_json=True), or model.val(save_json=True) afterwards"
                _log.warning(f"detmap: save_json is off, so there are no numbers ({advice})")
                return
            fix = "call model.val(save_json=True)"
            raise HostError("detmap callback", "save_json is off, so there are no rows", fix)
        with value_errors("detmap callback"):
            objects, found = ultralytics_tables.tables(validator, truth)
            result = detmap.evaluate(objects, found, protocol)
            sampled = result.intervals() if intervals else None
            validator.detmap_result = result
            validator.detmap = result.flat(prefix, classes=True, intervals=sampled)
            if report:
                from detmap import html_report

                page = html_report.report(objects, {"val": found}, result.protocol)
                Path(validator.save_dir, report).write_bytes(page)
        name, value = next(iter(result.metrics.items()))
        text = sampled.sentence() if sampled else f"{name} {100 * value:.1f}"
        _log.info(f"detmap: {text}; boxes of the files; {result.signature}")

    return on_val_end


class DetmapValidator(_DetectionValidator):  # type: ignore[misc]
    """Validates a detector and adds detmap's numbers: ``model.val(validator=DetmapValidator)``.

    ``network_result`` has the rules of Ultralytics on the boxes that `val` matches: the number that
    it prints. ``files_result`` has the rules of `detmap_protocol` on boxes clipped to the image, as
    in files. Subclass to change it.
    """

    detmap_protocol: str | detmap.Protocol = OWN_RULES

    def init_metrics(self, model: Any) -> None:
        """Starts a validation."""
        super().init_metrics(model)
        with value_errors("DetmapValidator"):
            require_protocol("detmap_protocol", self.detmap_protocol)
            ultralytics_tables.require_classes(self)
            self._labels = ultralytics_tables.objects(self.dataloader.dataset)
        # Pairs of predictions and targets per image, in both spaces.
        self._network: list[tuple[Any, Any]] = []
        self._files: list[tuple[Any, Any]] = []

    def update_metrics(self, preds: list[dict[str, Any]], batch: dict[str, Any]) -> None:
        """Adds a batch to the metrics of Ultralytics and of detmap."""
        super().update_metrics(preds, batch)
        for i, pred in enumerate(preds):
            target, found = self._prepare_batch(i, batch), self._prepare_pred(pred)
            scaled, name = self.scale_preds(found, target), str(target["im_file"])
            self._network.append((boxes(found), boxes(target)))
            # The id orders tied scores as files do.
            self._files.append(({**boxes(scaled), "image_id": name}, self._labels[name]))

    def gather_stats(self) -> None:
        """Gathers the images of all ranks, rank after rank."""
        super().gather_stats()
        dist = _val.dist
        if not dist.is_initialized():
            return
        ranks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, (self._network, self._files))
        self._network = [image for network, _ in ranks for image in network]
        self._files = [image for _, files in ranks for image in files]

    def get_stats(self) -> dict[str, Any]:
        """Returns the numbers of Ultralytics, then those of detmap by space."""
        stats: dict[str, Any] = super().get_stats()
        limits = {"limits.max_dets": [self.args.max_det]}
        self.network_result = self._evaluated(self._network, OWN_RULES, limits)
        self.files_result = self._evaluated(self._files, self.detmap_protocol)
        network = self.network_result.flat("detmap/network/")
        return {**stats, **network, **self.files_result.flat("detmap/files/")}

    def _evaluated(
        self, images: list[tuple[Any, Any]], protocol: Any, settings: Any = None
    ) -> detmap.Result:
        with value_errors("DetmapValidator"):
            evaluator = detmap.Evaluator(protocol, classes=self.names, settings=settings)
            evaluator.update([found for found, _ in images], [target for _, target in images])
            return evaluator.compute()
