"""What an index and an installer are told: the name, the extras and the hints that install them."""

import re
import tomllib
from pathlib import Path

import pytest

from detmap import errors

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
SOURCES = [
    path
    for folder in ("detmap", "docs", "tests", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".md") and path != Path(__file__)
] + [ROOT / "README.md"]


def test_the_distribution_and_the_command() -> None:
    assert PROJECT["name"] == errors.DISTRIBUTION == "detmap-eval"
    assert PROJECT["scripts"] == {"detmap": "detmap.cli:entry"}
    assert PROJECT["urls"]
    assert {"Programming Language :: Python :: 3.11", "Typing :: Typed"} <= set(
        PROJECT["classifiers"]
    )


@pytest.mark.slow
def test_every_hint_installs_an_extra_of_this_project() -> None:
    named = set()
    for path in SOURCES:
        text = path.read_text()
        assert not re.search(r"['\"]detmap\[", text), path
        assert not re.search(r"pip install (-q )?detmap\b(?!-eval)", text), path
        named |= {
            extra
            for group in re.findall(r"detmap-eval\[([a-z,-]+)\]", text)
            for extra in group.split(",")
        }
        named |= set(re.findall(r'\brequire\(\s*"[\w.]+",\s*"(\w+)"', text))
        named |= set(re.findall(r'\bhint\("(\w+)"\)', text))
    assert {"plot", "parity", "frames", "completion", "dask"} <= named
    assert named <= set(EXTRAS)


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"test", "test-torch", "bench", "all"}))
def test_an_extra_pulls_nothing_of_another(extra: str) -> None:
    """Each package stands in one extra, so that nobody gets what he does not use; an extra may
    name another.
    """
    others = [
        name
        for name in EXTRAS
        if name not in (extra, "test", "test-torch", "bench", "release", "all")
    ]
    packages = {re.split(r"[\[<>=]", each)[0] for each in EXTRAS[extra]} - {errors.DISTRIBUTION}
    assert packages
    for other in others:
        assert not packages & {re.split(r"[\[<>=]", each)[0] for each in EXTRAS[other]}, other


def test_all_is_complete() -> None:
    """Every feature of detmap itself, without hosts, PyTorch, peers and developers' tools."""
    features = {"plot", "report", "parity", "frames", "yolo", "parquet", "dask", "completion"}
    (every,) = EXTRAS["all"]
    named = set(every.partition("[")[2].rstrip("]").split(","))
    assert named == features
    hosts = {path.stem for path in (ROOT / "detmap" / "integrations").glob("*.py")}
    others = {"torch", "docs", "all", "bench", "peers", "release", "test", "test-torch", "images"}
    others |= {"lightning", "mlflow", "wandb", "tensorboard", "huggingface", "sahi", "ray", "spark"}
    assert set(EXTRAS) - hosts - others == features


def test_nothing_asks_for_the_metadata_of_an_installation() -> None:
    """The code runs from a checkout that nobody installed, under whatever name."""
    for path in (ROOT / "detmap").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"(version|metadata|distribution|requires)\([\"']detmap", text), path
