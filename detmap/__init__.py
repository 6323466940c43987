"""detmap evaluates object detectors, VOC and COCO style: files in, the published number out.

>>> import detmap
>>> truth = detmap.read_truth("instances_val2017.json")          # doctest: +SKIP
>>> detections = detmap.read_detections("results.json", truth)   # doctest: +SKIP
>>> result = detmap.evaluate(truth, detections)                  # doctest: +SKIP
>>> result.metrics["AP"]                                         # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from detmap.adapters import read_detections, read_truth
from detmap.adapters.arrays import detections_from_arrays, truth_from_arrays
from detmap.errors import DataError, DetmapError, MergeError, ProtocolError
from detmap.evaluate import evaluate, summarize
from detmap.matches import Matches
from detmap.matching import match
from detmap.protocol import Protocol
from detmap.protocol import load as load_protocol
from detmap.result import Result
from detmap.tables import Categories, Detections, Images, Note, Truth
from detmap.version import __version__

if TYPE_CHECKING:
    from detmap import distributed, ranking
    from detmap.evaluator import Evaluator

__all__ = [
    "Categories",
    "DataError",
    "Detections",
    "DetmapError",
    "Evaluator",
    "Images",
    "Matches",
    "MergeError",
    "Note",
    "Protocol",
    "ProtocolError",
    "Result",
    "Truth",
    "__version__",
    "detections_from_arrays",
    "distributed",
    "evaluate",
    "load_protocol",
    "match",
    "ranking",
    "read_detections",
    "read_truth",
    "summarize",
    "truth_from_arrays",
]


def __getattr__(name: str) -> Any:
    """What one evaluation of files does not need is imported when it is asked for."""
    if name in ("distributed", "ranking"):
        return import_module(f"detmap.{name}")
    if name == "Evaluator":
        return import_module("detmap.evaluator").Evaluator
    raise AttributeError(f"module 'detmap' has no attribute {name!r}")
