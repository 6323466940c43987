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


def test_a_folder_has_at_most_21_files_and_the_package_few_outside_of_folders() -> None:
    width = Counter(path.parent.relative_to(PACKAGE) for path in MODULES)
    wide = {str(folder): n for folder, n in width.items() if n > 21}
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


def is_integer(node: ast.AST) -> bool:
    """Whether an expression is an integer or a boolean, as its text shows."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BinOp(op=ast.LShift(), left=left):
            return is_integer(left)
        case ast.Call(func=ast.Name(id=name)):
            return name in ("len", "int", "ord")
    return False


def adds_integers(call: ast.Call) -> bool:
    """Whether the text shows that a call of ``sum`` adds integers, or fractions to a fraction."""
    match call:
        case ast.Call(args=[ast.GeneratorExp(elt=each) | ast.ListComp(elt=each)], keywords=[]):
            return is_integer(each)
        case ast.Call(args=[ast.Call(func=ast.Name(id="map"), args=[called, _])], keywords=[]):
            return ast.unparse(called) == "len"
        case ast.Call(args=[_, ast.Call(func=ast.Name(id="Fraction"))], keywords=[]):
            return True
    return False


DIFFERENT = re.compile(
    r"builtins\b|statistics\.(f?mean|linear|correlation|covar)|math\.(sumprod|fma)"
)
"""What Python versions compute in different ways, or only new versions have."""


def sums_of_floats(source: str) -> list[int]:
    """Lines whose sums may have other bits on another version of Python."""
    tree = list(ast.walk(ast.parse(source)))
    fine = {id(n.func) for n in tree if isinstance(n, ast.Call) and adds_integers(n)}
    found = [n for n in tree if isinstance(n, ast.Name) and n.id == "sum" and id(n) not in fine]
    loaded = [n.lineno for n in found if isinstance(n.ctx, ast.Load)]
    names = [n for n in tree if isinstance(n, ast.Attribute | ast.Import | ast.ImportFrom)]
    texts = {n.lineno: ast.unparse(n).replace(" import ", ".") for n in names}
    return loaded + [line for line, text in texts.items() if DIFFERENT.search(text)]


@pytest.mark.slow
def test_no_sum_depends_on_the_version_of_python() -> None:
    """The builtin ``sum`` of floats is compensated from Python 3.12 on, that of 3.11 is not.
    `detmap.base.sums` adds floats from left to right, and refuses them among integers.
    """
    for path in MODULES:
        text = path.read_text()
        suspicious = re.search(r"\bsum\b", text) or DIFFERENT.search(text)
        lines = sums_of_floats(text) if suspicious else []
        allowed = path == PACKAGE / "base" / "sums.py"
        assert allowed or not lines, f"{path}, lines {lines}: use detmap.base.sums"


@pytest.mark.parametrize(
    "source, bad",
    [
        ("sum(x.values)", True),
        ("sum(numbers)", True),
        ("sum(x / 2 for x in n)", True),
        ("sum(len(x) / 2 for x in n)", True),
        ("sum((1 for x in n), 0.0)", True),
        ("sum((1 for x in n), start=0.5)", True),
        ("add = sum", True),
        ("map(sum, rows)", True),
        ("sorted(rows, key=sum)", True),
        ("import builtins", True),
        ("from builtins import sum as add", True),
        ("from statistics import fmean", True),
        ("import math; math.sumprod(a, b)", True),
        ("sum(map(len, rows))", False),
        ("sum(x > 0 for x in n)", False),
        ("sum(x is None for x in n)", False),
        ("sum(1 for x in n if x)", False),
        ("sum(each, Fraction(0))", False),
        ("values.sum()", False),
        ("np.sum(values); math.fsum(values)", False),
    ],
)
def test_sums_of_floats_are_found(source: str, bad: bool) -> None:
    assert bool(sums_of_floats(source)) == bad
