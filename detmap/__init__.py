"""detmap evaluates object detectors, VOC and COCO style: files in, the published number out.

>>> import detmap
>>> truth = detmap.read_truth("instances_val2017.json")          # doctest: +SKIP
>>> detections = detmap.read_detections("results.json", truth)   # doctest: +SKIP
>>> result = detmap.evaluate(truth, detections)                  # doctest: +SKIP
>>> result.metrics["AP"]                                         # doctest: +SKIP
"""

from detmap import distributed, ranking
from detmap.adapters import read_detections, read_truth
from detmap.adapters.arrays import detections_from_arrays, truth_from_arrays
from detmap.errors import DataError, DetmapError, MergeError, ProtocolError
from detmap.evaluate import evaluate, summarize
from detmap.evaluator import Evaluator
from detmap.matching import Matches, match
from detmap.protocol import Protocol
from detmap.protocol import load as load_protocol
from detmap.result import Result
from detmap.tables import Categories, Detections, Images, Note, Truth
from detmap.version import __version__

__all__ = [
    "Categories", "DataError", "Detections", "DetmapError", "Evaluator", "Images", "Matches", "MergeError", "Note",
    "Protocol", "ProtocolError", "Result", "Truth", "__version__", "detections_from_arrays", "distributed",
    "evaluate", "load_protocol", "match", "ranking", "read_detections", "read_truth", "summarize",
    "truth_from_arrays",
]  # fmt: skip
