"""Options of all tests: hypothesis profiles, tiers and the number of workers.

The suite samples the same examples in every run, so that a failure points at the change under
test. ``pytest --hypothesis-profile random`` samples new ones; ``tools/fuzz.py`` samples many.
Tiers: ``pytest`` runs the quick tests and samples few examples (`tests.support.tier`); ``pytest -m
slow`` runs the others; ``pytest -m ""`` runs all, with all examples. A test that is selected by its
name (``path::test``) runs in one process, whatever its tier.
"""

import gc
import os
import shutil
import stat
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, settings

from tests.support import tier
from tests.support.real_data import data_path

CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # files are written anew
NO_CLOCK = {"deadline": None, "suppress_health_check": CHECKS}  # shared machines
settings.register_profile("suite", derandomize=True, **NO_CLOCK)
settings.register_profile("random", derandomize=False, **NO_CLOCK)
settings.load_profile("suite")

if sys.dont_write_bytecode:  # else each of hundreds of processes compiles all of detmap
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def writable(copy: Callable[..., None]) -> Callable[..., None]:
    """Copies the mode of a file as `shutil` does; the owner may write to the copy."""

    def copied(source: Any, target: Any, *, follow_symlinks: bool = True) -> None:
        copy(source, target, follow_symlinks=follow_symlinks)
        if not os.path.islink(target):
            os.chmod(target, os.stat(target).st_mode | stat.S_IWUSR)

    return copied


# Tests change copies of the sample, also those of a checkout that is read-only.
shutil.copystat, shutil.copymode = writable(shutil.copystat), writable(shutil.copymode)

LIMIT = 0.5  # seconds of processor time, with child processes, above which a test is slow
TIER = 120.0  # seconds of processor time of the quick tier: a minute on two cores
over: list[tuple[float, str]] = []
total: list[float] = []


def by_name(config: pytest.Config) -> bool:
    """Whether the command line selects single tests."""
    return any("::" in word for word in config.invocation_params.args if isinstance(word, str))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start no workers for single tests, so that they start quickly and can be debugged."""
    return 0 if by_name(config) else None


def pytest_configure(config: pytest.Config) -> None:
    """Set the tier before any test module reads the number of examples."""
    if by_name(config) and config.option.markexpr == "not slow":
        config.option.markexpr = ""
    tier.quick = config.option.markexpr == "not slow"
    tier.share = tier.SHARES.get(config.option.markexpr, 1)
    if not config.getoption("--hypothesis-profile"):
        settings.register_profile("tier", settings(max_examples=tier.drawn(tier.EXAMPLES)))
        settings.load_profile("tier")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Another place can run what one place cannot: it has the data, or a browser."""
    text = "run the tests that a run with --junitxml=FILE skipped; write it with ="
    parser.addoption("--skipped-in", metavar="FILE", action="append", default=[], help=text)


def skipped_in(report: Path) -> set[tuple[str, str]]:
    """Module and function of skipped tests; "" for a whole module. Other parameters may be there in
    another place.
    """
    cases = ElementTree.parse(report).iter("testcase")
    skipped = [case.attrib for case in cases if case.find("skipped") is not None]
    names = [(case["classname"], case["name"].partition("[")[0]) for case in skipped]
    return {(module or name, name if module else "") for module, name in names}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Select what another run skipped, if asked."""
    if reports := config.getoption("--skipped-in"):
        chosen: list[pytest.Function] = []
        others: list[pytest.Function] = []
        skipped = set[tuple[str, str]]().union(*map(skipped_in, reports))
        for item in items:
            module = item.module.__name__
            known = {(module, item.originalname), (module, "")} & skipped
            (chosen if known else others).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


@pytest.fixture(scope="module")
def small_pages() -> Iterator[None]:
    """Reports of the module have few subsets of the images."""
    from tests.support.small_pages import few_subsets

    with few_subsets():
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the data with known answers; skips the test without it."""
    return data_path()


@pytest.fixture(scope="session")
def voc2007(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with VOCdevkit and one folder a detector."""
    folder = tmp_path_factory.mktemp("voc2007")
    for archive in sorted((data / "voc2007-test").glob("*.tar.xz")):
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    return folder


def pytest_collection_finish() -> None:
    """Thousands of tests live to the end: the garbage collector need not visit them each time."""
    gc.collect()
    gc.freeze()


def spent() -> float:
    """Seconds of processor time so far, of this process and those that it waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure each test itself; the report takes the figure to the main process."""
    begin = spent()
    try:
        return (yield)
    finally:
        item.user_properties.append(("seconds", spent() - begin))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect what the tests took, in the main process."""
    if report.when == "call":
        seconds = dict(report.user_properties).get("seconds", 0.0)
        total.append(seconds)
        if seconds > LIMIT:
            over.append((seconds, report.nodeid))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of the quick tier, and its tests that should be marked slow."""
    if tier.quick:
        title = f"quick tier: {sum(total):.0f} of {TIER:.0f} s of processor time"
        terminalreporter.section(title)
        for seconds, name in sorted(over, reverse=True):
            terminalreporter.write_line(f"over {LIMIT} s, mark it slow: {seconds:5.1f} s  {name}")
