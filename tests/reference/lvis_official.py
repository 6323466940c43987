"""lvis-api itself, run on plain dicts; importing this needs the package ``lvis``."""

import copy
import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

if not hasattr(np, "float"):  # lvis 0.5.3 says np.float, which NumPy 1.24 took away
    np.float = float  # type: ignore[attr-defined]

from lvis import LVIS, LVISEval, LVISResults

METRICS = (
    *("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf"),
    *("AR@300", "ARs@300", "ARm@300", "ARl@300"),
)


class Truth(LVIS):
    """An ``LVIS`` of a dict that is already in memory."""

    def __init__(self, dataset: Mapping[str, Any]) -> None:
        self.logger = logging.getLogger(__name__)
        self.dataset = copy.deepcopy(dict(dataset))
        for annotation in self.dataset["annotations"]:
            annotation.setdefault("area", annotation["bbox"][2] * annotation["bbox"][3])
        self._create_index()


def run(
    instances: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    max_dets: int = 300,
    made: type[LVISEval] = LVISEval,
    kind: str = "bbox",
    **params: Any,
) -> LVISEval:
    """Evaluate boxes without a print, leaving the arguments as they are; there has to be a
    result. `made` is a subclass, `kind` its iou_type; `params` are attributes of ``params``.
    """
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its logger.warn
            truth = Truth(instances)
            found = LVISResults(truth, copy.deepcopy(list(results)), max_dets=max_dets)
            evaluation = made(truth, found, kind)
            for name, value in {"max_dets": max_dets, **params}.items():
                setattr(evaluation.params, name, value)
            evaluation.run()
    finally:
        logging.disable(logging.NOTSET)
    return evaluation
