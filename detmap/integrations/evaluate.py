"""A metric module for Hugging Face `evaluate`. Tested with 0.4.6.

>>> import evaluate                                                       # doctest: +SKIP
>>> from detmap.integrations.evaluate import PATH                         # doctest: +SKIP
>>> metric = evaluate.load(PATH)                                          # doctest: +SKIP
>>> metric.compute(predictions=rows, references=rows)["AP"]               # doctest: +SKIP

`evaluate` copies this file, so it imports only installed packages.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import detmap
import detmap.errors
import detmap.integrations.host_errors

_host = detmap.errors.require("evaluate", "huggingface")
_data = detmap.errors.require("datasets", "huggingface")

PATH = __file__
OPTIONAL = ("iscrowd", "area")

_INPUTS = """
predictions, references: one row per image, with image_id, boxes (corners, pixels), labels;
    predictions have scores; references may have iscrowd and area
classes: names, or a dict from id to name; by default the labels seen
protocol: rules; per_class: whether to add AP/<class>
"""


def _features(kind: str) -> Any:
    """Columns of a row, with ids of this kind."""
    shared = {
        "image_id": _data.Value(kind),
        "boxes": _data.Sequence(_data.Sequence(_data.Value("float64"), length=4)),
        "labels": _data.Sequence(_data.Value("int64")),
    }
    numbers = _data.Sequence(_data.Value("float64"))
    references = {**shared, **dict.fromkeys(OPTIONAL, numbers)}
    return _data.Features({"predictions": {**shared, "scores": numbers}, "references": references})


class DetmapMetric(_host.Metric):  # type: ignore[name-defined,misc]
    """COCO AP and other protocols of detmap."""

    def _info(self) -> Any:
        return _host.MetricInfo(
            description="Object detection metrics of detmap: COCO, VOC, LVIS and others.",
            citation="",
            inputs_description=_INPUTS,
            features=[_features("int64"), _features("string")],
        )

    def add_batch(self, *, references: Any = None, **columns: Any) -> None:
        """Adds images; optional columns of references become empty, since none may be missing."""
        if isinstance(references, list):
            empty: dict[str, Any] = {name: [] for name in OPTIONAL}
            references = [{**empty, **row} for row in references]
        super().add_batch(references=references, **columns)

    def _compute(
        self,
        predictions: Sequence[Mapping[str, Any]],
        references: Sequence[Mapping[str, Any]],
        classes: Any = None,
        protocol: str = "coco-bbox",
        per_class: bool = False,
    ) -> dict[str, Any]:
        if classes is None:
            rows = (*predictions, *references)
            classes = sorted({label for row in rows for label in row["labels"]})
        elif isinstance(classes, Mapping):
            classes = {int(label): name for label, name in classes.items()}
        targets = [
            {key: value for key, value in row.items() if key not in OPTIONAL or value}
            for row in references
        ]
        with detmap.integrations.host_errors.value_errors():
            evaluator = detmap.Evaluator(protocol, classes=classes)
            evaluator.update(list(predictions), targets)
            result = evaluator.compute()
        return {**result.flat(classes=per_class), "signature": result.signature}
