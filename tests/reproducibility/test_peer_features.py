"""The README's table of evaluators: a capability has a name in the installed package, and "-" means
that no public name or parameter of the package is about it.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import evaluators

NAMES = {
    "Boundary AP": "boundary",
    "LVIS": "lvis",
    "mAP of VOC 2007 and 2012": "eleven|11.?point|voc_?(2007|2012|ap)",
    "AP per class": "per_category|extended_metrics|class_metrics",
    "plots": "plot|chart|reliability_diagram",
    "confusion matrix": "confusion",
    "TIDE errors, also without masks": "tide",
    "confidence intervals": "bootstrap|interval|jackknife",
    "p-value of a difference": "p_?value|permutation|significan",
    "rules of 54 other tools": "explain|reproduce|protocols",
    "drop-in for pycocotools": "init_as_pycocotools",
}
"""Row of the table -> regular expression of the names that do it."""
MODULES = {name: name.replace("-", "_") for name in evaluators.table()[0][1:]}
MODULES["torchmetrics"] = "torchmetrics.detection.mean_ap"
SEMANTIC = r"Semantic|pixel_|semantic_|Panoptic"
"""Names about other tasks than detection."""


def public_names(module: Any) -> Iterator[str]:
    """Names and parameters of a module, its modules and the classes in them."""
    modules = [module]
    for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
        try:
            modules.append(importlib.import_module(each.name))
        except (ImportError, RuntimeError):  # it needs what is not installed
            yield each.name
    package = module.__name__.partition(".")[0]
    for each in modules:
        for name, value in vars(each).items():
            home = getattr(value, "__module__", "") or ""
            if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            if home.partition(".")[0] not in (package, "builtins", ""):
                continue
            yield name
            members = [getattr(value, m) for m in dir(value) if not m.startswith("_")]
            yield from (m for m in dir(value) if inspect.isclass(value) and not m.startswith("_"))
            for one in (value, *filter(inspect.isroutine, members)):
                try:
                    yield from inspect.signature(one).parameters
                except (TypeError, ValueError):
                    continue


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", MODULES)
def test_the_capabilities_of_an_evaluator(peer: str) -> None:
    module = pytest.importorskip(MODULES[peer], reason=f"{peer}: pip install 'detmap-eval[bench]'")
    names = {name for name in public_names(module) if not re.search(SEMANTIC, name)}
    column = evaluators.table()[0].index(peer)
    for row, cells in evaluators.table()[1].items():
        if row in NAMES:
            found = {name for name in names if re.search(NAMES[row], name, re.IGNORECASE)}
            assert bool(found) == (cells[column] != "-"), (row, sorted(found))


def test_every_row_has_a_check() -> None:
    names, rows = evaluators.table()
    assert all(
        len(cells) == len(names) + 1 and cells[-1].startswith("`") for cells in rows.values()
    )
    assert set(NAMES) <= set(rows)
