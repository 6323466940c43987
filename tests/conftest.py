"""What all tests share: how hypothesis draws, and what the quick tier is.

The suite draws the same examples in every run, so that a failure says something about the change
at hand. ``pytest --hypothesis-profile random`` draws anew; ``tools/fuzz.py`` does so at length.
``pytest -m "not slow"`` draws few of them (`tests.support.tier`).
"""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support import tier

NO_CLOCK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # shared machines
settings.register_profile("suite", derandomize=True, **NO_CLOCK)
settings.register_profile("random", derandomize=False, **NO_CLOCK)
settings.load_profile("suite")

if sys.dont_write_bytecode:  # else each of hundreds of processes compiles all of detmap
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

LIMIT = 0.5  # seconds of processor time, its own processes included, from which a test is slow
TIER = 60.0  # and those of the quick tier
over: list[tuple[float, str]] = []


def pytest_configure(config: pytest.Config) -> None:
    """Before any module of tests is imported, and so any number of examples is read."""
    tier.quick = config.option.markexpr == "not slow"
    if tier.quick and not config.getoption("--hypothesis-profile"):
        settings.register_profile("quick", settings(max_examples=tier.drawn(tier.EXAMPLES)))
        settings.load_profile("quick")


def spent() -> float:
    """Seconds of processor time so far, of this process and those that it waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch for slow tests without the marker: the quick tier grows by them."""
    begin = spent()
    try:
        return (yield)
    finally:
        if tier.quick and spent() - begin > LIMIT:
            over.append((spent() - begin, item.nodeid))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the quick tier takes, and name them."""
    if tier.quick:
        terminalreporter.section(f"quick tier: {spent():.0f} of {TIER:.0f} s of processor time")
        for took, name in sorted(over, reverse=True):
            terminalreporter.write_line(f"over {LIMIT} s, mark it slow: {took:5.1f} s  {name}")
