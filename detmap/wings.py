"""Wings: packages that the core works without. The core names them only as text.

A place is ``module:name``. Nine tables of the core have places of wings. Rows of a package that is
not installed have no effect:

- public names: `_HOMES` in `detmap/__init__.py`
- commands: `ALL_COMMANDS` in `detmap.cli.dispatch`
- formats: `TABLES` in `detmap.core.adapters.formats`; exports that no reader takes: `EXPORTS` in
  `detmap.core.adapters.recognition`
- overlaps: `KINDS` in `detmap.core.overlaps`; metrics with terms of their own: `METRICS` in
  `detmap.core.protocol.metric_rows`
- rules and metrics of benchmarks: `RULES` and `EXTRA` in `detmap.core.protocol.benchmark_rules`
- steps of the warm-up: `STEPS` in `detmap.warmup`
- functions that the core calls, most of them during an evaluation: `HOOKS`
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from detmap.errors import DetmapError

HOOKS = {
    "examine_given": "detmap.analysis.doctor:examine_given",
    "is_suspicious": "detmap.analysis.doctor.quick_checks:is_suspicious",
    "fixed_given": "detmap.analysis.doctor.fixes:fixed_given",
    "advised": "detmap.analysis.doctor:advised",
    "fixed": "detmap.analysis.commands.doctor_consultation:fixed",
    "consult": "detmap.analysis.commands.doctor_consultation:consult",
    "plot_curves": "detmap.analysis.curve_plots:plot",
    "confusion_matrix": "detmap.analysis.diagnosis.confusion:confusion_matrix",
    "write_errors": "detmap.analysis.commands.diagnose:write_errors",
    "evaluate_by_rule": "detmap.benchmarks.shared.own_rules:evaluate",
    "extra_metrics": "detmap.benchmarks.shared.own_rules:extra_metrics",
    "write_receipt": "detmap.reproducibility.receipt_files:write",
    "make_receipt": "detmap.reproducibility.receipt_files:made",
}
"""Functions of wings that the core, or another wing, calls."""


def package(place: str) -> str:
    """Returns the package of a place, ``detmap.<name>``."""
    return ".".join(place.partition(":")[0].split(".")[:2])


def is_installed(place: str) -> bool:
    """Checks if the package of a place is installed; a folder without modules is not."""
    spec = find_spec(package(place))
    return spec is not None and spec.origin is not None


def load(place: str) -> Any:
    """Imports the function of a place.

    Raises
    ------
    DetmapError : its package is not installed
    """
    if not is_installed(place):
        what = "this part of detmap is not installed"
        raise DetmapError(package(place), what, "install all of detmap-eval")
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def hook(name: str) -> Any:
    """Returns the function of one of `HOOKS`; None if its package is not installed."""
    place = HOOKS[name]
    return load(place) if is_installed(place) else None


def required_hook(name: str) -> Any:
    """Returns the function of one of `HOOKS`.

    Raises
    ------
    DetmapError : its package is not installed
    """
    return load(HOOKS[name])
