"""An evaluator for detectron2's `inference_on_dataset`, with the keys of its `COCOEvaluator`.

>>> from detmap.integrations.detectron2 import DetmapEvaluator           # doctest: +SKIP
>>> evaluator = DetmapEvaluator("instances_val2017.json")                # doctest: +SKIP
>>> inference_on_dataset(model, loader, evaluator)["bbox"]["AP"]         # doctest: +SKIP
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import detmap
from detmap.errors import DataError, MissingError
from detmap.integrations import host_errors
from detmap.integrations.host_errors import HostError, value_errors
from detmap.integrations.inputs import coco_rows, field_values

try:
    from detectron2.evaluation import DatasetEvaluator
    from detectron2.utils import comm
except ImportError as error:
    fix = "install detectron2 from its source"
    raise MissingError("detmap.integrations.detectron2", str(error), fix) from None

FIELDS = {"bbox": "pred_boxes", "segm": "pred_masks", "keypoints": "pred_keypoints"}
NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl")


class DetmapEvaluator(DatasetEvaluator):  # type: ignore[misc]
    """COCO AP of boxes, masks and keypoints, from 0 to 100; NaN where undefined.

    In a training run (`TrainerBase.train`) an error is one warning, and the run continues: the
    evaluator returns empty results from then on. Elsewhere errors are `ValueError`.

    Parameters
    ----------
    truth : a COCO file; its images have the ids of ``image_id``
    class_names : names of labels 0, 1, 2 ...; by default classes by ascending id
    tasks : of ``bbox``, ``segm``, ``keypoints``
    protocol : other rules, for a single task
    """

    def __init__(
        self,
        truth: str | Path,
        class_names: Sequence[str] | None = None,
        tasks: Sequence[str] = ("bbox",),
        protocol: str | None = None,
    ) -> None:
        unknown = set(tasks) - set(coco_rows.PROTOCOLS)
        if unknown or isinstance(tasks, str):
            fix = f"give a tuple of {', '.join(coco_rows.PROTOCOLS)}"
            raise HostError("DetmapEvaluator: tasks", f"{tasks!r}", fix)
        self.truth, self.tasks, self.protocol = truth, tuple(tasks), protocol
        with value_errors("DetmapEvaluator"):
            self._ids = coco_rows.class_ids(detmap.read_truth(truth), class_names)
        self.results: dict[str, detmap.Result] = {}
        warn = logging.getLogger("detectron2.detmap").warning
        self._guard = host_errors.TrainingGuard("DetmapEvaluator", warn)
        self.reset()

    def reset(self) -> None:
        """Removes all images."""
        self._rows: dict[Any, dict[str, list[coco_rows.Row]]] = {}
        self._incomplete = False

    def process(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Adds a batch."""
        training = host_errors.is_training("detectron2")
        if training and self._guard.failed:
            self._incomplete = True
            return
        with self._guard.running(training):
            try:
                self._add(inputs, outputs)
            except Exception:
                self._incomplete = training
                raise

    def _add(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if len(inputs) != len(outputs):
            what = f"{len(outputs)} for {len(inputs)} inputs"
            raise HostError("DetmapEvaluator.process: outputs", what, "give one per image")
        for given, output in zip(inputs, outputs, strict=True):
            found, image = output["instances"].to("cpu"), given["image_id"]
            where = f"image {image!r}"
            with value_errors("instances"):
                labels = field_values.field(found, "pred_classes", where)
                labels = field_values.label_list(labels, f"{where}: pred_classes")
                fix = "give the names of all classes as class_names"
                categories = coco_rows.categories(labels, self._ids, f"{where}: pred_classes", fix)
                scores = field_values.field(found, "scores", where)
                self._rows[image] = {
                    task: coco_rows.rows(image, scores, categories, task, _shapes(found, task))
                    for task in self.tasks
                }

    def evaluate(self) -> OrderedDict[str, dict[str, float]] | None:
        """Evaluates the images of all ranks, each once; None except on the main rank.

        After a failure in a training run the results are empty.
        """
        # Every rank takes part, also one that failed: the others wait for it.
        gathered = comm.gather(None if self._incomplete else self._rows, dst=0)
        if not comm.is_main_process():
            return None
        training = host_errors.is_training("detectron2")
        if not (training and self._guard.failed):
            with self._guard.running(training):
                if None in gathered:
                    raise DataError("ranks", "a rank failed", "see its warning")
                return self._numbers(gathered)
        return OrderedDict()

    def _numbers(self, gathered: Sequence[Any]) -> OrderedDict[str, dict[str, float]]:
        images = {image: rows for rank in gathered for image, rows in rank.items()}
        metrics: OrderedDict[str, dict[str, float]] = OrderedDict()
        for task in self.tasks:
            rows = [row for image in sorted(images) for row in images[image][task]]
            result = coco_rows.evaluate(self.truth, rows, task, self.protocol)
            self.results[task] = result
            names = NAMES if self.protocol is None else tuple(result.metrics)
            metrics[task] = {
                name: 100 * value for name, value in result.metrics.items() if name in names
            } | {f"AP-{row['name']}": 100 * row["AP"] for row in result.per_class if "AP" in row}
        return metrics


def _shapes(found: Any, task: str) -> Any:
    """The boxes, masks or keypoints of an image."""
    shapes = field_values.field(found, FIELDS[task], "outputs")
    return shapes.tensor if task == "bbox" else shapes
