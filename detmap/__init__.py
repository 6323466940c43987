"""detmap evaluates object detectors, VOC and COCO style: files in, the published number out.

>>> import detmap
>>> truth = detmap.read_truth("instances_val2017.json")          # doctest: +SKIP
>>> detections = detmap.read_detections("results.json", truth)   # doctest: +SKIP
>>> result = detmap.evaluate(truth, detections)                  # doctest: +SKIP
>>> result.metrics["AP"]                                         # doctest: +SKIP
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detmap import ranking
    from detmap.adapters import read_detections, read_truth
    from detmap.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
    from detmap.adapters.tabular.slice_lists import read_slices
    from detmap.compare import compare
    from detmap.diagnosis import Diagnosis, diagnose
    from detmap.doctor import Finding, doctor
    from detmap.errors import DataError, DetmapError, MergeError, ProtocolError
    from detmap.evaluate import evaluate, match, summarize
    from detmap.explaining import explain
    from detmap.matching.matches import Matches
    from detmap.protocol import Protocol
    from detmap.protocol import load as load_protocol
    from detmap.results.result import Result
    from detmap.streaming import distributed
    from detmap.streaming.evaluator import Evaluator
    from detmap.tables import Categories, Detections, Images, Note, Truth
    from detmap.version import __version__

__all__ = [
    "Categories",
    "DataError",
    "Detections",
    "DetmapError",
    "Diagnosis",
    "Evaluator",
    "Finding",
    "Images",
    "Matches",
    "MergeError",
    "Note",
    "Protocol",
    "ProtocolError",
    "Result",
    "Truth",
    "__version__",
    "compare",
    "detections_from_arrays",
    "diagnose",
    "distributed",
    "doctor",
    "evaluate",
    "explain",
    "load_protocol",
    "match",
    "ranking",
    "read_detections",
    "read_slices",
    "read_truth",
    "summarize",
    "truth_from_arrays",
]

_HOMES = {
    "adapters": ("read_detections", "read_truth"),
    "adapters.in_memory.arrays": ("detections_from_arrays", "truth_from_arrays"),
    "adapters.tabular.slice_lists": ("read_slices",),
    "diagnosis": ("Diagnosis", "diagnose"),
    "doctor": ("Finding",),
    "errors": ("DataError", "DetmapError", "MergeError", "ProtocolError"),
    "evaluate": ("match", "summarize"),
    "explaining": ("explain",),
    "streaming.evaluator": ("Evaluator",),
    "matching.matches": ("Matches",),
    "protocol": ("Protocol",),
    "results.result": ("Result",),
    "tables": ("Categories", "Detections", "Images", "Note", "Truth"),
    "version": ("__version__",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Everything is imported when it is asked for: the command line has to be able to answer a
    Ctrl-C before it has imported NumPy.
    """
    if name in _HOME:
        value = getattr(import_module(f"detmap.{_HOME[name]}"), name)
    elif name == "load_protocol":
        value = import_module("detmap.protocol").load
    elif name == "distributed":
        value = import_module("detmap.streaming.distributed")
    else:
        value = _module(name)
    globals()[name] = value
    return value


def _module(name: str) -> ModuleType:
    """A module of the package, as an attribute of it."""
    from importlib.util import find_spec

    if name.startswith("_") or find_spec(f"detmap.{name}") is None:
        raise AttributeError(f"module 'detmap' has no attribute {name!r}")
    return import_module(f"detmap.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _function(name: str) -> property:
    """A function that has the name of its module: the import system cannot replace it."""

    def set_module(package: ModuleType, module: ModuleType) -> None:
        """Ignore the module that the import system sets; it stays in `sys.modules`."""

    return property(
        lambda package: getattr(import_module(f"detmap.{name}"), name), set_module, doc=name
    )


class _Package(ModuleType):
    """``detmap.evaluate`` stays the function after ``import detmap.evaluate``; likewise others."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name, so that functions that name ``detmap`` run on Ray, Spark and Dask."""
        return import_module, (__name__,)

    compare = _function("compare")
    doctor = _function("doctor")
    evaluate = _function("evaluate")


sys.modules[__name__].__class__ = _Package
