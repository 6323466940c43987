"""What all tests share: how hypothesis draws.

The suite draws the same examples in every run, so that a failure says something about the change
at hand. ``pytest --hypothesis-profile random`` draws anew; ``tools/fuzz.py`` does so at length.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

NO_CLOCK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # shared machines
settings.register_profile("suite", derandomize=True, **NO_CLOCK)
settings.register_profile("random", derandomize=False, **NO_CLOCK)
settings.load_profile("suite")

LIMIT = 2.0  # seconds of processor time, its own processes included, from which a test is slow
over: list[tuple[float, str]] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch for slow tests without the marker: the quick tier grows by them."""
    begin = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        took = sum(os.times()[:4]) - begin
        if took > LIMIT and not item.get_closest_marker("slow"):
            over.append((took, item.nodeid))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name them."""
    if over:
        terminalreporter.section("over two seconds of processor time: mark them slow")
        for took, name in sorted(over, reverse=True):
            terminalreporter.write_line(f"{took:5.1f} s  {name}")
