"""What lies in the repository, and where: files of the root, of tests and of tools."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.builders import ROOT

KNOWN = {
    *(".ci", ".github", "configs", "datasets", "detmap", "docs", "tests", "tools"),
    *(".gitignore", ".pre-commit-hooks.yaml", "CITATION.cff", "LICENSE", "README.md"),
    *("action.yml", "pyproject.toml", "Dockerfile", "conda"),
}
UNTRACKED = {".git", ".venv", "build", "dist", ".coverage", "htmlcov", "site", "PKG-INFO"}
"""What git, environments, builds and editors add; PKG-INFO is in a source distribution."""
UNTRACKED |= {".idea", ".vscode", ".DS_Store", "__pycache__", ".hypothesis"}
CACHES = re.compile(r"\.\w+_cache|\.coverage\..+|.+\.egg-info|\.?v?env.*|\.python-version|.*~")


def unknown_names(names: set[str]) -> set[str]:
    """Names that have no place in the root."""
    return {each for each in names - KNOWN - UNTRACKED if not CACHES.fullmatch(each)}


def test_the_root_has_known_files_only() -> None:
    """Listed from the folder: it works without git, and finds a file before it is committed."""
    names = {path.name for path in ROOT.iterdir()}
    assert names >= KNOWN - {".ci", ".github"}  # which a source distribution leaves out
    assert not unknown_names(names), "a test or a tool wrote here, or add it to KNOWN"


def test_a_file_in_the_root_is_noticed() -> None:
    wanted = {"mutated.parquet", "a.json"}
    assert unknown_names({"mutated.parquet", "README.md", ".mypy_cache", "a.json"}) == wanted


# ---- the data with known answers

GUARD = ROOT / "tests" / "support" / "real_data.py"
PLACE = re.compile(r"(^|[/\\\"'])shared([/\\\"']|$)|DETMAP_DATA")


def places_of_data(source: str) -> list[int]:
    """Lines with a string that names the place of the data; docstrings may."""
    tree = list(ast.walk(ast.parse(source)))
    prose = {id(node.value) for node in tree if isinstance(node, ast.Expr)}
    texts = [n for n in tree if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [n.lineno for n in texts if id(n) not in prose and PLACE.search(str(n.value))]


def test_only_the_guard_knows_where_the_data_are() -> None:
    """Else a test fails where the data are absent, instead of being skipped."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        guarded = path in (GUARD, Path(__file__)) or not PLACE.search(text)
        lines = [] if guarded else places_of_data(text)
        assert not lines, f"{path}, lines {lines}: use tests.support.real_data"


@pytest.mark.parametrize(
    "source",
    [
        'ROOT.parent / "shared" / "data"',
        'Path("../shared/data/benchmarks")',
        'f"{ROOT}/../shared/data"',
        'os.environ["DETMAP_DATA"]',
        "os.path.join('..', 'shared')",
    ],
)
def test_a_place_of_the_data_is_noticed(source: str) -> None:
    assert places_of_data(source) == [1]
    assert places_of_data('"""Cases of ../shared/data."""\nshared = x.shared') == []


# ---- tools


def test_cases_of_fuzz_targets_do_not_write_into_the_working_folder() -> None:
    """A case that is called by hand left a file in the repository once."""
    for path in sorted((ROOT / "tools" / "fuzzing").glob("*.py")):
        text = path.read_text()
        relative = re.search(r"\bPath\((\)|kind|[\"'][^/\"'])", text)
        assert not relative or 'os.chdir(scratch("."))' in text, f"{path}: use scratch"
