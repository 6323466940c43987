"""detmap evaluates object detectors, VOC and COCO style: files in, the published number out.

>>> import detmap
>>> result = detmap.evaluate("shapes", "shapes/detections/contours", "coco-bbox")
>>> round(result["AP"], 4)
0.4478

``detmap demo --copy shapes`` writes these files, which the examples use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOMES = {
    "detmap.annotation_tools.conversion": ("convert",),
    "detmap.core.adapters": ("read_detections", "read_truth"),
    "detmap.core.adapters.in_memory.arrays": ("detections_from_arrays", "truth_from_arrays"),
    "detmap.core.adapters.tabular.slice_lists": ("read_slices",),
    "detmap.compare": ("compare",),
    "detmap.analysis.curve_plots": ("plot",),
    "detmap.analysis.diagnosis": ("Diagnosis", "diagnose"),
    "detmap.analysis.doctor": ("Finding", "doctor"),
    "detmap.analysis.inspection": ("inspect",),
    "detmap.analysis.report": ("report",),
    "detmap.errors": ("DataError", "DetmapError", "MergeError", "ProtocolError"),
    "detmap.evaluate": ("evaluate", "match", "summarize"),
    "detmap.files": ("show",),
    "detmap.reproducibility.explaining": ("explain",),
    "detmap.reproducibility.reproducing.search": ("reproduce",),
    "detmap.reproducibility.tool_numbers": ("tools",),
    "detmap.reproducibility.verification": ("verify",),
    "detmap.core.matching.matches": ("Matches",),
    "detmap.core.protocol": ("Protocol", "load as load_protocol"),
    "detmap.core.results.result": ("Result",),
    "detmap.core.streaming.evaluator": ("Evaluator",),
    "detmap.core.tables": ("Categories", "Detections", "Images", "Note", "Truth"),
    "detmap.version": ("__version__",),
}
"""Module -> its public names. `__init__.pyi` has the same names for type checkers."""
_MODULES = {"distributed": "detmap.integrations.distributed", "ranking": "detmap.ranking"}
_HOME = {
    public or name: (module, name)
    for module, names in _HOMES.items()
    for name, _, public in (each.partition(" as ") for each in names)
}
__all__ = sorted({*_HOME, *_MODULES})


def __getattr__(name: str) -> Any:
    """Everything is imported when it is asked for: the command line has to be able to answer a
    Ctrl-C before it has imported NumPy.
    """
    module, attribute = _HOME.get(name, (_MODULES.get(name, f"detmap.{name}"), ""))
    if module.startswith("detmap._"):
        raise _missing(name)
    try:
        value: Any = import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # a package that the module needs
            raise
        raise _missing(name) from None
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def _missing(name: str) -> AttributeError:
    """The error for a name that is not here; it proposes the right import or name."""
    text = f"module 'detmap' has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text)
    if name in __all__:
        return AttributeError(f"{text}: its package is not installed; install all of detmap-eval")
    from detmap.core.base.suggestions import did_you_mean, meanings, words

    if name in words("imports"):
        return AttributeError(f"{text}: write `from {words('imports')[name]} import {name}`")
    if name in words("result"):
        return AttributeError(f"{text}: write `detmap.evaluate(...).{name}`")
    hint = did_you_mean("python", name, __all__).strip()
    if not hint and (meant := meanings("result", name)):
        hint = f"did you mean detmap.evaluate(...).{meant[0]}?"
    return AttributeError(f"{text}; {hint}" if hint else text)


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


for _name, (_module, _) in _HOME.items():
    if _module == f"detmap.{_name}":
        setattr(_Package, _name, _function(_name))
sys.modules[__name__].__class__ = _Package
