"""A metric for mmengine, with the keys of mmdet's `CocoMetric`. Tested with mmengine 0.10.7.

In a configuration::

    custom_imports = dict(imports=["detmap.integrations.mmengine"])
    val_evaluator = dict(type="DetmapMetric", ann_file="instances_val2017.json")
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import detmap
from detmap.errors import DataError, require
from detmap.integrations import host_errors
from detmap.integrations.host_errors import HostError, require_protocol, value_errors
from detmap.integrations.inputs import coco_rows, field_values

_BaseMetric: Any = require("mmengine.evaluator", "mmengine").BaseMetric
_registry = require("mmengine.registry", "mmengine")
_print_log: Any = require("mmengine.logging", "mmengine").print_log

KEYS = {"AP": "", "AP50": "_50", "AP75": "_75", "APs": "_s", "APm": "_m", "APl": "_l"}
FIELDS = {"bbox": "bboxes", "segm": "masks", "keypoints": "keypoints"}


@_registry.METRICS.register_module()
class DetmapMetric(_BaseMetric):  # type: ignore[misc]
    """COCO AP of boxes, masks or keypoints.

    ``results_by_kind`` holds a `detmap.Result` per kind after an evaluation, on the main rank.

    In a training run (`Runner.train`) an error is one warning, and the run continues: the metrics
    of that run are NaN from then on. Elsewhere errors are `ValueError`.

    Parameters
    ----------
    ann_file : ground truth, a COCO file; its images have the ids of ``img_id``
    metric : ``bbox``, ``segm``, ``keypoints``, or several
    classwise : whether to add ``<class>_precision``
    protocol : other rules, for a single metric
    outfile_prefix : keeps the rows as ``<prefix>.<metric>.json``
    """

    default_prefix = "coco"

    def __init__(
        self,
        ann_file: str | Path,
        metric: str | Sequence[str] = "bbox",
        classwise: bool = False,
        protocol: str | None = None,
        outfile_prefix: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.ann_file, self.classwise = ann_file, classwise
        self.metrics = [metric] if isinstance(metric, str) else list(metric)
        for each in self.metrics:
            if each not in coco_rows.PROTOCOLS:
                fix = f"choose from {', '.join(coco_rows.PROTOCOLS)}"
                raise HostError("DetmapMetric: metric", f"no {each!r}", fix)
        require_protocol("DetmapMetric", protocol)
        if not Path(ann_file).is_file():
            raise HostError("DetmapMetric: ann_file", f"no file {ann_file}", "check the path")
        self.protocol, self.outfile_prefix = protocol, outfile_prefix
        self.results_by_kind: dict[str, detmap.Result] = {}
        self._ids: list[int] | None = None
        self._guard = host_errors.TrainingGuard("DetmapMetric", _warn)

    def process(self, data_batch: Any, data_samples: Sequence[Any]) -> None:
        """Adds a batch: one entry per image, since mmengine drops padded images by count."""
        training = host_errors.is_training("mmengine")
        if not (training and self._guard.failed):
            with self._guard.running(training), value_errors("pred_instances"):
                self.results += [self._entry(sample) for sample in data_samples]
                return
        # mmengine counts the entries. None also informs the main rank of the failure.
        self.results += [None] * len(data_samples)

    def _entry(self, sample: Any) -> dict[str, list[coco_rows.Row]]:
        found, image = sample["pred_instances"], sample["img_id"]
        where = f"image {image!r}"
        labels = field_values.field(found, "labels", where)
        labels = field_values.label_list(labels, f"{where}: labels")
        categories = self._categories(labels, f"{where}: labels")
        entry = {}
        for kind in self.metrics:
            scores = field_values.field(found, _scores(kind, found), where)
            shapes = field_values.field(found, FIELDS[kind], where)
            entry[kind] = coco_rows.rows(image, scores, categories, kind, shapes)
        return entry

    def _categories(self, labels: Sequence[int], where: str) -> list[int]:
        if self._ids is None:
            names = (self.dataset_meta or {}).get("classes")
            self._ids = coco_rows.class_ids(detmap.read_truth(self.ann_file), names)
        fix = "set the classes in the metainfo of the data set"
        return coco_rows.categories(labels, self._ids, where, fix)

    def compute_metrics(self, results: list[Any]) -> dict[str, float]:
        """Evaluates the rows of all ranks; undefined metrics are -1, as in mmdet.

        After a failure in a training run they are NaN, which is never the best checkpoint.
        """
        training = host_errors.is_training("mmengine")
        if not (training and self._guard.failed):
            with self._guard.running(training):
                if None in results:
                    raise DataError("results", "a rank failed", "see its warning")
                return self._numbers(results)
        return self._failed_numbers()

    def _numbers(self, results: list[dict[str, list[coco_rows.Row]]]) -> dict[str, float]:
        metrics: dict[str, float] = {}
        for kind in self.metrics:
            rows = [row for image in results for row in image[kind]]
            file = self.outfile_prefix and f"{self.outfile_prefix}.{kind}.json"
            result = coco_rows.evaluate(self.ann_file, rows, kind, self.protocol, file)
            self.results_by_kind[kind] = result
            named = self._named(kind, result.metrics)
            if self.classwise:
                named |= {f"{row['name']}_precision": row["AP"] for row in result.per_class}
            metrics |= {name: -1.0 if value != value else value for name, value in named.items()}
        return metrics

    def _named(self, kind: str, metrics: Mapping[str, float]) -> dict[str, float]:
        if self.protocol is not None:
            return {f"{kind}_{name}": value for name, value in metrics.items()}
        return {f"{kind}_mAP{KEYS[name]}": metrics[name] for name in KEYS if name in metrics}

    def _failed_numbers(self) -> dict[str, float]:
        """The names of the metrics, all NaN; without those of classes."""
        metrics: dict[str, float] = {}
        for kind in self.metrics:
            rules = self.protocol or coco_rows.PROTOCOLS[kind]
            metrics |= self._named(kind, host_errors.undefined_metrics(rules))
        return metrics


def _warn(text: str) -> None:
    _print_log(text, logger="current", level=logging.WARNING)


def _scores(kind: str, found: Any) -> str:
    """The key of the scores; mmdet has its own for masks in some models."""
    return "mask_scores" if kind == "segm" and "mask_scores" in found else "scores"
