"""The evaluation part of a Hugging Face model card, from a receipt of `detmap eval --receipt`.

>>> from detmap.integrations.huggingface_hub import eval_results          # doctest: +SKIP
>>> data = ModelCardData(model_name="my-detector",                        # doctest: +SKIP
...     eval_results=eval_results("run.json", "coco", "COCO val2017"))
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from detmap.core.base.open_files import read_bytes
from detmap.errors import require
from detmap.integrations.host_errors import HostError, value_errors
from detmap.reproducibility import receipt, receipt_contradictions

_hub = require("huggingface_hub", "huggingface")


def eval_results(
    path: str | Path,
    dataset_type: str,
    dataset_name: str,
    split: str | None = None,
    metrics: Sequence[str] | None = None,
) -> list[Any]:
    """Returns one `EvalResult` per metric, with protocol and signature.

    Parameters
    ----------
    path : a receipt
    dataset_type, dataset_name, split : id of the data set on the hub, its name, and its split
    metrics : names; by default the first metric of the receipt

    Raises `ValueError` if the file is not a receipt, was edited, or lacks a metric.
    """
    with value_errors():
        known = receipt.parse(read_bytes(path), str(path))
    odd = [name for name, *_ in receipt_contradictions.contradictions(known)]
    if odd:
        fix = "write the receipt again"
        raise HostError(str(path), f"was edited: {', '.join(odd)} do not agree", fix)
    values = known.content["metrics"]
    first = known.protocol.rows()[0][0].name
    names = [first] if metrics is None else list(metrics)
    for name in names:
        if values.get(name) is None:
            fix = f"metrics: {', '.join(values)}"
            raise HostError(str(path), f"metric {name!r} is missing or undefined", fix)
    return [
        _hub.EvalResult(
            task_type="object-detection",
            dataset_type=dataset_type,
            dataset_name=dataset_name,
            dataset_split=split,
            metric_type="mean_average_precision",
            metric_name=name,
            metric_value=values[name],
            metric_args={"protocol": known.protocol.name, "signature": known.content["signature"]},
            verified=False,
        )
        for name in names
    ]
