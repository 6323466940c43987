"""The suite's own properties at random: a drawn test of hypothesis' with a drawn seed.

In the suite they draw the same examples in every run; here they never do.
"""

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = 10  # of a case, which may take no more than a few seconds


def prepare() -> None:
    """Import the tests and compile what they need."""
    properties()


@cache
def properties() -> list[Callable[[], None]]:
    """The tests that hypothesis draws for and that need no fixture."""
    importlib.import_module("tests.conftest")
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "@given" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name, test in sorted(vars(module).items()):
            drawn = name.startswith("test_") and getattr(test, "is_hypothesis_test", False)
            if drawn and not inspect.signature(test).parameters:
                found.append(test)
    assert found
    return found


def case(seed: int) -> str | None:
    """What a property says on examples of its own."""
    tests = properties()
    test: Any = tests[seed % len(tests)]
    chosen = test._hypothesis_internal_use_settings  # there is no public way to draw anew
    test._hypothesis_internal_use_settings = settings(
        chosen, max_examples=EXAMPLES, derandomize=False, database=None, print_blob=False
    )
    hypothesis.seed(seed)(test)
    try:
        test()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        where = f"{test.__module__}.{test.__name__}"
        return f"{where}: {type(error).__name__}: {lines[0] if lines else ''}"
    return None
