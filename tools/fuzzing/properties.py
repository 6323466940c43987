"""The suite's own properties at random: a drawn test of hypothesis' with a drawn seed.

In the suite they draw the same examples in every run; here they never do.
"""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
from _pytest.mark import ParameterSet
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = 10  # of a case, which may take no more than a few seconds


Property = tuple[Any, dict[str, Any]]
"""A test, and its parameters."""


def prepare() -> None:
    """Import the tests and compile what they need."""
    properties()


@cache
def properties() -> list[Property]:
    """The tests that hypothesis draws for and that need no fixture."""
    importlib.import_module("tests.conftest")
    found: list[Property] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "@given" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name, test in sorted(vars(module).items()):
            if name.startswith("test_") and getattr(test, "is_hypothesis_test", False):
                needed = inspect.signature(test).parameters.keys()
                found += [(test, each) for each in parameters(test) if each.keys() == needed]
    assert found
    return found


def parameters(test: Any) -> list[dict[str, Any]]:
    """What `pytest.mark.parametrize` gives to a test."""
    every: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, values = mark.args[0], mark.args[1]
            names = re.findall(r"\w+", names) if isinstance(names, str) else names
            one = len(names) == 1
            sets = [ParameterSet.extract_from(each, force_tuple=one).values for each in values]
            every = [
                {**known, **dict(zip(names, each, strict=True))} for known in every for each in sets
            ]
    return every


def case(seed: int) -> str | None:
    """What a property says on examples of its own."""
    every = properties()
    test, given = every[seed % len(every)]
    chosen = test._hypothesis_internal_use_settings  # there is no public way to draw anew
    test._hypothesis_internal_use_settings = settings(
        chosen, max_examples=EXAMPLES, derandomize=False, database=None, print_blob=False
    )
    hypothesis.seed(seed)(test)
    try:
        test(**given)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        where = f"{test.__module__}.{test.__name__} {given or ''}"
        return f"{where}: {type(error).__name__}: {lines[0] if lines else ''}"
    return None
