"""The plan of the house, as tests: imports run one way, and each kind of work has its place."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import detmap
from detmap import protocol

PACKAGE = Path(detmap.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)

# A module imports only from layers above its own.
LAYERS = (
    ("errors", "version", "resources"),
    ("memory", "files"),
    ("opening",),
    ("protocol", "parallel", "kernels", "report"),
    ("rows",),
    ("tables",),
    ("signature", "adapters", "integrators", "overlaps"),
    ("matches",),
    ("matching",),
    ("curves",),
    ("aggregation",),
    ("result", "ranking"),
    ("evaluate",),
    ("evaluator", "distributed"),
    ("parity", "compat", "warmup"),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path: Path) -> list[str]:
    """Full names of everything that a module imports, in functions too."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    here = part_of(path)
    if here in ("__init__", "__main__"):
        return
    for name in imported(path):
        if name.startswith("detmap."):
            there = name.split(".")[1]
            assert there == here or LEVEL[there] < LEVEL[here], f"{here} imports {there}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_kind_of_work_has_its_place(path: Path) -> None:
    roots = {name.split(".")[0] for name in imported(path)}
    here, source = part_of(path), path.read_text()
    assert not roots & {"numba", "llvmlite"} or here == "kernels"
    assert not roots & {"rich", "matplotlib", "cv2"} or here == "report"
    assert "pycocotools" not in roots or here in ("parity", "compat")
    calls = {
        ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
    }
    printing = {"print", "sys.stdout.write", "sys.stderr.write", "sys.exit", "exit"}
    assert not calls & printing or here in ("cli", "__main__", "compat"), calls & printing


def test_every_key_of_the_protocol_is_read_somewhere() -> None:
    source = "".join(path.read_text() for path in MODULES if path.name != "protocol.py")
    read_by_protocol = {"iou.thresholds": "thresholds()", "limits.max_dets": "max_dets()"}
    for key in sorted(protocol.keys()):
        if key in ("summary", "source", "name", "version", "areas", "metrics"):
            key = f"protocol.{key}"
        assert read_by_protocol.get(key, key) in source or re.search(
            rf"\b{re.escape(key.split('.', 1)[1])}\b", source
        ), key


@pytest.mark.parametrize("name", protocol.names())
def test_every_protocol_names_its_source_and_survives_a_round_trip(name: str) -> None:
    loaded = protocol.load(name)
    assert loaded.name == name
    assert re.search(r"\.(py|m)\b", loaded.source), "the file of the reference"
    assert protocol.from_dict(loaded.as_dict(), where="round trip") == loaded


def test_a_light_import() -> None:
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


def test_every_kernel_cites_its_rule() -> None:
    for path in (PACKAGE / "kernels").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"
