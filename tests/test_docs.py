"""What the pages in docs/ print is what happens, and CITATION.cff can be cited."""

import contextlib
import doctest
import functools
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy._core._multiarray_umath import __cpu_features__

import detmap
from detmap.core.protocol import keys
from tests.support.drawing import CocoData, coco_data, many_detections, round_recall
from tests.support.drawn_tables import read_coco
from tests.support.running import python
from tests.support.tier import drawn

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page that are marked with this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """The names that the page of the algorithm defines."""
    names: dict[str, Any] = {}
    exec(blocks(DOCS / "algorithm.md", "python")[0], names)
    return names


def test_the_algorithm_takes_forty_lines() -> None:
    lines = blocks(DOCS / "algorithm.md", "python")[0].splitlines()
    code = [line.strip() for line in lines if line.strip()]
    counted = [line for line in code if not line.startswith(('"""', "from ", "import "))]
    assert len(counted) <= 40


def twelve(plain: dict[str, Any], truth: Any, results: Any) -> list[float]:
    """COCO's numbers, in its order."""

    def run(**changes: Any) -> list[float]:
        return plain["evaluate"](truth, results, **changes)

    ious = plain["IOUS"]
    whole, *sized = (run(area=area) for area in ((0, 1e10), (0, 1024), (1024, 9216), (9216, 1e10)))
    aps = [whole[0], run(ious=ious[:1])[0], run(ious=ious[5:6])[0], *(size[0] for size in sized)]
    return [*aps, run(limit=1)[1], run(limit=10)[1], whole[1], *(size[1] for size in sized)]


@pytest.mark.slow
@settings(max_examples=drawn(60))
@given(data=coco_data() | round_recall() | many_detections())
def test_the_algorithm_gives_the_bits_of_the_engine(plain: dict[str, Any], data: CocoData) -> None:
    found = detmap.evaluate(*read_coco(*data), protocol="coco-bbox").metrics
    np.testing.assert_array_equal(twelve(plain, *data), list(found.values()))


PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]


REFERENCE = {"protocols.md", "CHANGELOG.md"}
"""Pages to look things up in; they may be long."""


def test_pages_are_short() -> None:
    long = {page.name for page in DOCS.rglob("*.md") if page.stat().st_size > 25 * 1024}
    assert long <= REFERENCE
    assert (DOCS / "statistics.md").stat().st_size <= 12 * 1024


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    text = re.sub(r"^```py\n.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    named = re.findall(r"(?:detmap|tests|tools|configs|docs|datasets)/[\w./]*\w", text)
    missing = {name for name in named if not list(ROOT.glob(f"{name}*"))}
    assert not missing
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if ":" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_citation_can_be_cited() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads CITATION.cff")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert citation["authors"] == [{"name": "the detmap contributors"}]
    assert citation["version"] == detmap.__version__
    assert citation["license"] == "MIT"


EXPLAINED = ("parity.restated_tools", "reproducing.search")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(f"detmap.reproducibility.{each}" for each in EXPLAINED), "detmap.ranking"]
)
def test_a_module_opens_with_an_example_that_runs(name: str) -> None:
    if name != "detmap.ranking" and not __cpu_features__["AVX512_SKX"]:
        pytest.skip("NumPy sorts ties otherwise without AVX-512: two tools give other numbers")
    module = importlib.import_module(name)
    examples = doctest.DocTestFinder(recurse=False).find(module, name, globs={})
    assert examples
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0


def resolved(name: str) -> Any:
    """What a dotted name stands for; modules go before what a package shows under their name."""
    module, parts = None, name.split(".")
    for end in range(1, len(parts) + 1):
        with contextlib.suppress(ModuleNotFoundError):
            module, rest = importlib.import_module(".".join(parts[:end])), parts[end:]
    return functools.reduce(getattr, rest, module)


def test_the_table_of_rules_names_functions_that_are_there_and_every_group_of_keys() -> None:
    table = (ROOT / "docs" / "CONTRIBUTING.md").read_text().split("## Which function holds")[1]
    rows = [line.split("|")[1:-1] for line in table.split("\n## ")[0].splitlines()[4:] if line]
    for _, _, functions in rows:
        for name in re.findall(r"`(detmap[\w.]+)`", functions):
            assert resolved(name) is not None, name
    named = {key for _, own, _ in rows for key in re.findall(r"`([\w.]+)`", own)}
    known = {key.partition(".")[0] for key in keys()}
    assert {key.partition(".")[0] for key in named} <= known
    assert {key for key in named if "." in key} <= set(keys())
    prose = {"name", "version", "summary", "source"}
    assert known - {key.partition(".")[0] for key in named} <= prose


def test_the_table_of_what_to_add_names_files_and_what_is_in_them() -> None:
    table = (ROOT / "docs" / "CONTRIBUTING.md").read_text().split("## To add")[1].split("\n## ")[0]
    for path in re.findall(r"`((?:detmap|docs|tests|tools)/[\w/]+\.\w+)`", table):
        assert (ROOT / path).is_file(), path
    inside = r"`(\w+)`(?: (?:and|or) (?:at the end of )?`(\w+)`)? of `([\w/]+\.py)`"
    found = re.findall(inside, table)
    assert len(found) >= 5
    for *names, path in found:
        assert all(name in (ROOT / path).read_text() for name in names), (names, path)


def test_the_functions_for_clusters_are_there_after_the_import_of_the_package() -> None:
    """In a fresh process: a module that another test imports would hide a wrong name."""
    text = "".join(page.read_text() for page in (ROOT / "README.md", *DOCS.glob("*.md")))
    names = sorted(set(re.findall(r"detmap\.(?:\w+\.)*distributed\.\w+", text)))
    assert "detmap.distributed.evaluate" in names
    done = python("-c", f"import detmap; print(*map(callable, [{', '.join(names)}]))")
    assert done.out.split() == ["True"] * len(names), done.err
