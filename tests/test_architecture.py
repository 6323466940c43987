"""The plan of the house, as tests: imports run one way, and each kind of work has its place."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from detmap import protocol
from tests.support.package_source import MODULES, PACKAGE, nodes

# A module imports only from layers above its own.
LAYERS = (
    ("errors", "version", "peers"),
    ("base",),
    ("resources",),
    ("kernels", "output"),
    ("tables",),
    ("protocol",),
    ("overlaps",),
    ("adapters", "matching"),
    ("curves",),
    ("doctor", "statistics"),
    ("results",),
    ("benchmarks",),
    ("bounded",),
    ("evaluate", "ranking", "compat"),
    ("compare", "diagnosis", "streaming", "parity", "suites"),
    ("distributed",),
    ("explaining", "html_report"),
    ("reproducing", "warmup"),
    ("cli", "integrations"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path: Path) -> list[str]:
    """Full names of everything that a module imports, in functions too."""
    names = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.slow
def test_imports_run_one_way() -> None:
    upward = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        if (here := part_of(path)) not in ("__init__", "__main__")
        for name in imported(path)
        if name.startswith("detmap.")
        and (there := name.split(".")[1]) != here
        and LEVEL[there] >= LEVEL[here]
    ]
    assert not upward


@pytest.mark.slow
def test_each_kind_of_work_has_its_place() -> None:
    printing = {"print", "sys.stdout.write", "sys.stderr.write", "sys.exit", "exit"}
    for path in MODULES:
        roots = {name.split(".")[0] for name in imported(path)}
        here = part_of(path)
        drawing = roots & {"rich", "matplotlib", "pandas", "cv2"}
        assert not roots & {"numba", "llvmlite"} or here == "kernels", path
        assert not drawing or here in ("output", "html_report"), path
        assert "pycocotools" not in roots or here in ("peers", "compat", "overlaps"), path
        calls = {ast.unparse(node.func) for node in nodes(path) if isinstance(node, ast.Call)}
        assert not calls & printing or here in ("cli", "__main__", "compat"), path


@pytest.mark.slow
def test_every_key_of_the_protocol_is_read_as_an_attribute_of_its_group() -> None:
    """``matching.rule`` is read as ``<...>.matching.rule`` or ``matching.rule`` outside of the
    folder that defines it; ``protocol.subsets`` likewise. What the tree reads itself is read by
    the method named here.
    """
    by_method = {
        "protocol.metrics": "protocol.rows",
        "protocol.summary": "protocol.title",
        "ap.integrator": "ap.rule",
        "ap.grid": "ap.points",
        "ap.eleven": "ap.points",
        "limits.max_dets": "protocol.max_dets",
        "iou.thresholds": "protocol.thresholds",
    }
    read = set()
    for path in MODULES:
        if part_of(path) == "protocol":
            continue
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute | ast.Name):
                owner = node.value
                group = owner.attr if isinstance(owner, ast.Attribute) else owner.id
                read.add(f"{group}.{node.attr}")
    keys = {".".join(f"protocol.{key}".split(".")[-2:]) for key in sorted(protocol.keys())}
    assert set(by_method.values()) <= read
    assert keys - read - by_method.keys() == {"protocol.source"}  # for people: `detmap show`


@pytest.mark.parametrize("name", [*protocol.names(), *protocol.tools()])
def test_every_protocol_names_its_source_and_survives_a_round_trip(name: str) -> None:
    loaded = protocol.load(name)
    assert loaded.name == name
    assert re.search(r"\.(py|m|c|cpp)\b", loaded.source), "the file of the reference"
    assert protocol.from_dict(loaded.to_dict(), where="round trip") == loaded


def test_an_import_loads_nothing_heavy() -> None:
    heavy = (
        "numba",
        "llvmlite",
        "cv2",
        "matplotlib",
        "pycocotools",
        "rich",
        "torch",
        "dask",
        "distributed",
    )
    code = f"import sys, detmap, detmap.cli; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def kernels_of(path: Path) -> list[ast.FunctionDef]:
    """The functions of a file that are compiled."""
    return [
        node
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        and any("kernel" in ast.unparse(each) for each in node.decorator_list)
    ]


def test_every_kernel_cites_its_rule() -> None:
    """``Source:`` and a place: a function or file of the reference, a paper, a twin in
    tests/reference; or ``none`` and why there is no rule in it.
    """
    kernels = [
        (path.name, kernel)
        for path in sorted((PACKAGE / "kernels").rglob("*.py"))
        for kernel in kernels_of(path)
    ]
    assert len(kernels) > 50
    for name, kernel in kernels:
        source = (ast.get_docstring(kernel) or "").partition("Source:")[2].strip()
        cited = re.match(r"none; \w+ \w+|(?!none)\S+\s\S+|\S+\.\w+", source)
        assert cited, f"{name}: {kernel.name}"


def test_a_folder_has_at_most_20_files_and_the_package_few_outside_of_folders() -> None:
    width = Counter(path.parent.relative_to(PACKAGE) for path in MODULES)
    wide = {str(folder): n for folder, n in width.items() if n > 20}
    assert not wide
    assert width[Path()] <= 8


def test_a_file_has_at_most_400_lines_or_says_why() -> None:
    long = {path: path.read_text().splitlines() for path in MODULES}
    for path, lines in long.items():
        assert len(lines) <= 400 or "400 lines" in "\n".join(lines[:15]), path


@pytest.mark.slow
def test_a_function_has_at_most_60_lines_or_says_why() -> None:
    """Without its docstring. ``60 lines`` in a comment gives the reason; a kernel is one pass over
    rows with all state at hand, and has none.
    """
    for path in MODULES:
        lines = path.read_text().splitlines()
        for node in nodes(path):
            if not isinstance(node, ast.FunctionDef):
                continue
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            n_lines = text.count("\n") + 1 - len((ast.get_docstring(node) or "").splitlines())
            has_reason = "60 lines" in text or part_of(path) == "kernels"
            assert n_lines <= 60 or has_reason, f"{path.relative_to(PACKAGE)}: {node.name}"
