"""Callbacks and a validator for Ultralytics, for its tasks detect, segment, pose and obb.

>>> from detmap.integrations import ultralytics                   # doctest: +SKIP
>>> model.add_callback("on_val_start", ultralytics.coco_metrics()) # doctest: +SKIP
>>> model.train(data="data.yaml")                                 # doctest: +SKIP

`coco_metrics` adds COCO's AP, AP50, APs and so on to ``results.csv`` and to the loggers.
`callback` evaluates the rows of ``predictions.json``. `val` matches boxes in the space of the
network, where they are not clipped to the image; the files have clipped boxes, and give another
number. `DetmapValidator` gives both. In a training run nothing here raises: an error is a
warning, and the run continues. Tested with 8.4.190.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from json import dumps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import detmap
from detmap.core.adapters import read_truth_for
from detmap.core.protocol.default_protocol import prepare
from detmap.core.results.flat_metrics import flat
from detmap.errors import DataError, require
from detmap.integrations.host_errors import HostError, TrainingGuard, require_protocol
from detmap.integrations.inputs import ultralytics_images as images
from detmap.integrations.inputs.ultralytics_images import Kind

_val = require("ultralytics.models.yolo.detect.val", "ultralytics")
_DetectionValidator: Any = _val.DetectionValidator
_log = require("ultralytics.utils", "ultralytics").LOGGER

OWN_RULES = "ultralytics-8.4"
ROTATED_RULES = "ultralytics-obb"
"""Ultralytics' own rules, of boxes and of rotated boxes."""

Results = dict[Kind, detmap.Result]


def callback(
    protocol: str | detmap.Protocol = "coco-bbox",
    *,
    truth: str | Path | None = None,
    intervals: bool = True,
    report: str | None = "detmap.html",
    prefix: str = "detmap/",
) -> Callable[[Any], None]:
    """Returns a callback for ``on_val_end`` that evaluates the rows of ``predictions.json``.

    It logs the first metric of boxes, masks, keypoints or rotated boxes, writes the report beside
    the other results, and sets ``validator.detmap_results`` (by ``boxes``, ``masks`` ...),
    ``validator.detmap_result`` (the first of them) and ``validator.detmap`` (a flat dict of
    numbers; names of masks end in ``(M)``, of keypoints in ``(P)``).

    Parameters
    ----------
    protocol : rules of boxes; masks and keypoints have COCO's
    truth : ground truth for COCO and LVIS, where Ultralytics has none in memory
    intervals : whether to compute 95 % confidence intervals
    report : file name of the HTML report; None for none
    prefix : of the keys of ``validator.detmap``

    The callback does nothing in a training run unless `save_json` is set; there, errors are
    warnings. It raises `ValueError` in a validation without ``save_json=True``. Other tasks, such
    as ``classify``, are skipped with a line in the log.
    """
    require_protocol("detmap callback", protocol)
    # A trainer validates its best weights at the end: with the validator of its epochs, which then
    # is no longer `training`.
    trained: WeakKeyDictionary[Any, TrainingGuard] = WeakKeyDictionary()

    def evaluate_predictions(validator: Any) -> None:
        if validator.training and validator not in trained:
            trained[validator] = TrainingGuard("detmap callback", _log.warning)
        guard = trained.get(validator) or TrainingGuard("detmap callback", _log.warning)
        with guard.running(validator in trained):
            kinds = _kinds_or_skip(validator)
            if not kinds or guard.failed:
                return
            if validator.args.save_json:
                results = {}
                for kind in kinds:
                    rules = _rules(kind, protocol)
                    objects, found = _tables(validator, kind, rules, truth)
                    results[kind] = detmap.evaluate(objects, found, rules)
                    if report and kind is kinds[0]:
                        _write_report(Path(validator.save_dir, report), objects, found, rules)
                _publish(validator, results, prefix, intervals)
            elif validator not in trained:
                fix = "call model.val(save_json=True)"
                raise HostError("detmap callback", "save_json is off, so there are no rows", fix)
            elif not validator.training:
                advice = "call model.train(save_json=True), or use coco_metrics()"
                _log.warning(f"detmap: save_json is off, so there are no numbers ({advice})")

    return evaluate_predictions


def coco_metrics(
    protocol: str | detmap.Protocol = "coco-bbox", *, prefix: str = "detmap/"
) -> Callable[[Any], None]:
    """Returns a callback for ``on_val_start`` that adds COCO's metrics to every validation.

    In a training run they are columns of ``results.csv``: ``detmap/AP``, ``detmap/AP50`` ...
    ``detmap/ARl`` of boxes, the same with ``(M)`` of masks and ``(P)`` of keypoints. Undefined
    numbers are ``nan``. The columns do not change Ultralytics' own numbers, its choice of the best
    weights, or its plots. ``metrics.detmap`` of ``metrics = model.val()`` has the same numbers.

    The boxes are those of the files: clipped to the image, in its pixels. `save_json` is not
    needed. Without it Ultralytics predicts masks at a quarter of the resolution.

    Parameters
    ----------
    protocol : rules of boxes; masks and keypoints have COCO's
    prefix : of the names
    """
    require_protocol("coco_metrics", protocol)
    trained: WeakKeyDictionary[Any, TrainingGuard] = WeakKeyDictionary()

    def add_metrics(validator: Any) -> None:
        if isinstance(validator, _Metrics):
            return
        if validator.training and validator not in trained:
            trained[validator] = TrainingGuard("coco_metrics", _log.warning)
        guard = trained.get(validator) or TrainingGuard("coco_metrics", _log.warning)
        if guard.failed:
            return
        with guard.running(validator in trained):
            if validator.args.task not in images.TASKS:
                _kinds_or_skip(validator)
            elif isinstance(validator, _DetectionValidator):
                validator.__class__ = _mixed(_Metrics, type(validator))
                validator.detmap_protocol, validator.detmap_prefix = protocol, prefix

    return add_metrics


class _Metrics:
    """Evaluates the images of a validator with detmap, and adds the numbers to its own."""

    detmap_protocol: str | detmap.Protocol | None = None
    detmap_prefix = "detmap/"
    detmap_network = False
    """Whether to evaluate Ultralytics' rules in the space of the network, too."""
    _guard: TrainingGuard | None = None
    _in_training_run = False
    _dataset: Any = None

    def _guarded(self) -> AbstractContextManager[None]:
        assert self._guard is not None
        return self._guard.running(self._in_training_run)

    def init_metrics(self, model: Any) -> None:
        """Starts a validation."""
        host: Any = super()
        host.init_metrics(model)
        validator: Any = self
        self._in_training_run |= validator.training
        if self._guard is None or not self._in_training_run:
            self._guard = TrainingGuard(type(self).__name__, _log.warning)
        self._files: dict[Kind, detmap.Evaluator] = {}
        self._network: detmap.Evaluator | None = None
        self._columns: dict[str, float] = {}
        with self._guarded():
            self._prepare(validator)

    def _prepare(self, validator: Any) -> None:
        """Makes an evaluator per kind, and the columns, which are the same in every epoch."""
        require_protocol("detmap_protocol", self.detmap_protocol)
        kinds = _kinds_or_skip(validator)
        own = ROTATED_RULES if images.ROTATED in kinds else OWN_RULES
        rules = {kind: _rules(kind, self.detmap_protocol or own) for kind in kinds}
        files = self.detmap_prefix + ("files/" if self.detmap_network else "")
        if kinds and self.detmap_network:
            network = prepare(own, {"limits.max_dets": [validator.args.max_det]})
            self._columns |= _undefined(network, self.detmap_prefix + "network/", "")
        for kind in kinds:
            self._columns |= _undefined(rules[kind], files, kind.suffix)
        images.require_classes(validator)
        dataset = validator.dataloader.dataset
        if self._dataset is not dataset:  # once in a training run
            self._dataset, self._labels = dataset, images.labelled(dataset, kinds)
        if kinds and self.detmap_network:
            self._network = detmap.Evaluator(network, classes=validator.names)
        self._files = {
            kind: detmap.Evaluator(rules[kind], classes=validator.names) for kind in kinds
        }

    def update_metrics(self, preds: list[dict[str, Any]], batch: dict[str, Any]) -> None:
        """Adds a batch to the metrics of Ultralytics and of detmap."""
        host: Any = super()
        host.update_metrics(preds, batch)
        assert self._guard is not None
        if not self._guard.failed:
            with self._guarded():
                self._add(preds, batch)

    def _add(self, preds: list[dict[str, Any]], batch: dict[str, Any]) -> None:
        validator: Any = self
        kinds = tuple(self._files)
        for i, pred in enumerate(preds if kinds else []):
            target, found = validator._prepare_batch(i, batch), validator._prepare_pred(pred)
            full = _resize_masks(found, target["imgsz"])
            scaled = validator.scale_preds(full, target) if len(full["cls"]) else full
            name = str(target["im_file"])
            if self._network is not None:
                shapes = images.BOXES if images.BOXES in kinds else images.ROTATED
                pair = (images.image_of(each, (shapes,)) for each in (found, target))
                self._network.update(*([each] for each in pair))
            # The id orders tied scores as files do.
            image = {**images.image_of(scaled, kinds), "image_id": name}
            image["orig_size"] = self._labels[name]["orig_size"]
            for kind, evaluator in self._files.items():
                label = images.for_kind(kind, self._labels[name])
                evaluator.update([images.for_kind(kind, image)], [label])

    def gather_stats(self) -> None:
        """Gathers the images of all ranks, rank after rank."""
        host: Any = super()
        host.gather_stats()
        dist = _val.dist
        assert self._guard is not None
        if not dist.is_initialized():
            return
        # Every rank takes part, also one that failed: the others wait for it.
        own = None if self._guard.failed else (self._network, self._files)
        ranks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, own)
        with self._guarded():
            if None in ranks:
                raise DataError("ranks", "another rank failed", "see its warning")
            self._network, self._files = ranks[0]
            for network, files in ranks[1:]:
                if self._network is not None:
                    self._network.merge(network)
                for kind, evaluator in self._files.items():
                    evaluator.merge(files[kind])

    def get_stats(self) -> dict[str, Any]:
        """Returns the numbers of Ultralytics, then those of detmap."""
        host: Any = super()
        stats: dict[str, Any] = host.get_stats()
        columns = dict(self._columns)
        assert self._guard is not None
        if not self._guard.failed:
            with self._guarded():
                columns |= self._numbers()
        return {**stats, **columns}

    def _numbers(self) -> dict[str, float]:
        """Evaluates, and sets the results."""
        validator: Any = self
        results = {kind: each.compute() for kind, each in self._files.items()}
        if not results:
            return {}
        numbers: dict[str, float] = {}
        if self._network is not None:
            self.network_result = self._network.compute()
            numbers |= self.network_result.flat(self.detmap_prefix + "network/")
        files = self.detmap_prefix + ("files/" if self.detmap_network else "")
        self.files_result = next(iter(results.values()))
        numbers |= _publish(self, results, files, False, log=not validator.training)
        validator.metrics.detmap = validator.detmap
        return numbers


class DetmapValidator(_Metrics, _DetectionValidator):  # type: ignore[misc]
    """Validates a model and adds detmap's numbers: ``model.val(validator=DetmapValidator)``.

    The task of the model (detect, segment, pose, obb) decides what is validated; for other tasks
    it makes Ultralytics' own validator.

    ``network_result`` has the rules of Ultralytics on the boxes that `val` matches: the number that
    it prints. ``files_result`` has the rules of `detmap_protocol` (default: the same rules) on
    boxes clipped to the image, as in files. ``detmap_results`` adds masks and keypoints, by COCO's
    rules. Subclass to change the protocol.
    """

    detmap_network = True

    def __new__(
        cls, dataloader: Any = None, save_dir: Any = None, args: Any = None, _callbacks: Any = None
    ) -> Any:
        """Makes the validator of the task of `args`."""
        task = args.get("task") if isinstance(args, Mapping) else getattr(args, "task", None)
        if task is None or task == "detect":
            return super().__new__(cls)
        own = _validator_of(task)
        if task in images.TASKS:
            return super().__new__(_mixed(cls, own))
        _log.info(f"detmap: the task {task} has no boxes, so there are no numbers of detmap")
        return own(dataloader, save_dir, args, _callbacks)


def _validator_of(task: str) -> Any:
    """Ultralytics' own validator of a task."""
    module = import_module(f"ultralytics.models.yolo.{task}")
    return next(value for name, value in vars(module).items() if name.endswith("Validator"))


def _resize_masks(found: Mapping[str, Any], size: Any) -> dict[str, Any]:
    """Predictions with masks in the size of the network's input; without `save_json` they have a
    quarter of it.
    """
    masks = found.get("masks")
    if masks is None or tuple(masks.shape[1:]) == tuple(size) or not len(masks):
        return dict(found)
    resize = _val.torch.nn.functional.interpolate
    large = resize(masks[None].float(), tuple(size), mode="bilinear", align_corners=False)[0]
    return {**found, "masks": (large > 0.5).to(masks.dtype)}


_MIXED: dict[tuple[Any, Any], Any] = {}


def _mixed(first: Any, own: Any) -> Any:
    """A subclass of `first` that validates as `own`, one for each pair."""
    if issubclass(first, own):
        return first
    if (first, own) not in _MIXED:
        name = own.__name__ if first is _Metrics else first.__name__
        _MIXED[first, own] = type(name, (first, own), {})
    return _MIXED[first, own]


def _kinds_or_skip(validator: Any) -> tuple[Kind, ...]:
    """What the task predicts; for a task without shapes nothing, with a line in the log."""
    kinds = images.kinds_of(validator)
    if not kinds and not getattr(validator, "_detmap_skipped", False):
        validator._detmap_skipped = True
        task = getattr(validator.args, "task", None)
        _log.info(f"detmap: the task {task} has no boxes, so there are no numbers of detmap")
    return kinds


def _rules(kind: Kind, protocol: str | detmap.Protocol) -> detmap.Protocol:
    """The rules of a kind: those of `protocol` for boxes, COCO's for masks and keypoints."""
    if kind.name not in ("boxes", "rotated boxes"):
        return prepare(kind.protocol, dict(kind.settings))
    given = prepare(protocol)
    boxes = given.iou.of == "boxes"
    return prepare(protocol, dict(kind.settings)) if boxes else given


def _undefined(protocol: detmap.Protocol, prefix: str, suffix: str) -> dict[str, float]:
    """The metrics of a protocol, all NaN."""
    rows, _ = protocol.rows()
    names = flat({row.name: 0.0 for row in rows}, [], prefix, None)
    return {name + suffix: float("nan") for name in names}


def _publish(
    validator: Any, results: Results, prefix: str, intervals: bool, log: bool = True
) -> dict[str, float]:
    """Sets and logs the results of a validator; returns the metrics of all kinds by name."""
    numbers: dict[str, float] = {}
    everything: dict[str, float] = {}
    for kind, result in results.items():
        sampled = result.intervals() if intervals else None
        named = result.flat(prefix, classes=True, intervals=sampled)
        everything |= {name + kind.suffix: value for name, value in named.items()}
        numbers |= {name + kind.suffix: value for name, value in result.flat(prefix).items()}
        name, value = next(iter(result.metrics.items()))
        text = sampled.sentence() if sampled else f"{name} {100 * value:.1f}"
        if log:
            _log.info(f"detmap: {kind.name} {text}; as in the files; {result.signature}")
    validator.detmap_results = {kind.name: result for kind, result in results.items()}
    validator.detmap_result = next(iter(results.values()))
    validator.detmap = everything
    return numbers


def _write_report(
    path: Path, truth: detmap.Truth, found: detmap.Detections, rules: detmap.Protocol
) -> None:
    from detmap.analysis import html_report

    path.write_bytes(html_report.report(truth, {"val": found}, rules))


def _tables(
    validator: Any, kind: Kind, rules: detmap.Protocol, path: str | Path | None
) -> tuple[detmap.Truth, detmap.Detections]:
    """The tables of a kind, with the ground truth of a file or that of the labels."""
    if path is None:
        if validator.is_coco or validator.is_lvis:
            what = "rows of COCO and LVIS have the image ids of their annotation file"
            raise HostError("truth", what, 'give callback(truth="instances_val2017.json")')
        return images.tables(validator, kind, rules)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "predictions.json")
        rows.write_text(dumps(validator.jdict))
        truth = read_truth_for(path, rules)
        return truth, detmap.read_detections(rows, truth)
