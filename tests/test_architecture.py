"""The plan of the house, as tests: imports run one way, and each kind of work has its place."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import detmap
from detmap import warmup, wings
from detmap.cli import dispatch
from detmap.core import protocol
from detmap.core.adapters import formats
from detmap.core.overlaps import KINDS
from detmap.core.protocol.benchmark_rules import EXTRA, RULES
from detmap.errors import DetmapError
from tests.support.budgets import budget_table, code_lines
from tests.support.package_source import MODULES, PACKAGE, nodes
from tests.support.running import python

# A module imports only from layers above its own.
LAYERS = (
    ("errors", "version"),
    ("wings",),
    ("base",),
    ("kernels", "output"),
    ("tables",),
    ("protocol",),
    ("overlaps",),
    ("adapters", "matching"),
    ("curves",),
    ("statistics",),
    ("results",),
    ("bounded",),
    ("evaluate",),
    ("compare", "streaming"),
    ("files",),
    ("warmup",),
    ("cli",),
    ("annotation_tools", "benchmarks", "compat", "ranking"),
    ("analysis",),
    ("reproducibility",),
    ("integrations",),
)
WINGS = (
    *("detmap.analysis", "detmap.annotation_tools", "detmap.benchmarks", "detmap.compat"),
    *("detmap.integrations", "detmap.ranking", "detmap.reproducibility"),
)
"""Packages that the core does not import."""
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def module_name(path: Path) -> str:
    """The dotted name of a module; of a package with ``.__init__``."""
    return ".".join(("detmap", *path.relative_to(PACKAGE).with_suffix("").parts))


def part(name: str) -> str:
    """The package or module of `LAYERS` that a dotted name belongs to."""
    return name.removeprefix("detmap.").removeprefix("core.").split(".")[0]


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
        if (here := part(module_name(path))) not in ("__init__", "__main__")
        for name in imported(path)
        if name.startswith("detmap.")
        and (there := part(name)) != here
        and LEVEL[there] >= LEVEL[here]
    ]
    assert not upward


def in_wing(name: str) -> bool:
    """Whether a module, or what it defines, belongs to a wing."""
    return any(f"{name}.".startswith(f"{wing}.") for wing in WINGS)


@pytest.mark.slow
def test_the_core_imports_no_wing() -> None:
    """Neither at module level nor in a function: wings enter by the tables of `detmap.wings`."""
    for path in MODULES:
        if not in_wing(module_name(path)):
            assert not [name for name in imported(path) if in_wing(name)], path


@pytest.mark.slow
def test_the_tables_of_places_name_what_is_there() -> None:
    public = {place for module, names in detmap._HOMES.items() for place in [f"{module}:"] if names}
    places = {
        *wings.HOOKS.values(),
        *formats.TABLES,
        *(rule.place for rule in (*RULES.values(), *EXTRA.values())),
        *(kind.producer_name for kind in KINDS if ":" in kind.producer_name),
        *(step for step in warmup.STEPS if "compat" not in step),  # needs pycocotools
    }
    assert all(callable(wings.load(place)) or place in formats.TABLES for place in places)
    assert all(find_spec(place.rstrip(":")) for place in public)
    assert {*dispatch.COMMANDS} == {*dispatch.ALL_COMMANDS}
    assert all(find_spec(command.module) for command in dispatch.ALL_COMMANDS.values())


def test_a_package_that_is_not_installed_is_reported() -> None:
    place = "detmap.no_such_wing.module:function"
    assert not wings.is_installed(place)
    with pytest.raises(DetmapError, match=r"detmap.no_such_wing: .* not installed"):
        wings.load(place)


def test_the_stub_has_the_public_names() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    names = {
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names - {"_load"} | {"load_protocol"} == {*detmap.__all__}


@pytest.mark.slow
def test_each_kind_of_work_has_its_place() -> None:
    printing = {"print", "sys.stdout.write", "sys.stderr.write", "sys.exit", "exit"}
    for path in MODULES:
        roots = {name.split(".")[0] for name in imported(path)}
        here = {*module_name(path).split(".")}
        drawing = roots & {"rich", "matplotlib", "pandas", "cv2"}
        assert not roots & {"numba", "llvmlite"} or "kernels" in here, path
        assert not drawing or here & {"output", "html_report"}, path
        assert "pycocotools" not in roots or here & {"peers", "compat", "overlaps"}, path
        calls = {ast.unparse(node.func) for node in nodes(path) if isinstance(node, ast.Call)}
        assert not calls & printing or here & {"cli", "__main__", "compat"}, path


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
        "classes.renamed": "classes.new_names",
        "classes.ignored_as": "classes.new_names",
    }
    read = set()
    for path in MODULES:
        if part(module_name(path)) == "protocol":
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
    heavy = {"numba", "llvmlite", "cv2", "matplotlib", "pycocotools", "rich", "torch", "dask"}
    done = python("-c", f"import sys, detmap, detmap.cli; print({heavy} & {{*sys.modules}})")
    assert done == (0, "set()\n", "")


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
        for path in MODULES
        if "kernels" in path.parts
        for kernel in kernels_of(path)
    ]
    assert len(kernels) > 50
    for name, kernel in kernels:
        source = (ast.get_docstring(kernel) or "").partition("Source:")[2].strip()
        cited = re.match(r"none; \w+ \w+|(?!none)\S+\s\S+|\S+\.\w+", source)
        assert cited, f"{name}: {kernel.name}"


@pytest.mark.slow
def test_each_package_keeps_its_budget() -> None:
    """A change that needs more lines of code raises the number in `tests/support/budgets.toml`."""
    budgets, lines = budget_table(), code_lines()
    assert not {name: n for name, n in lines.items() if n > budgets[name]}
    assert {*budgets} == {*lines}


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
            has_reason = "60 lines" in text or "kernels" in path.parts
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
    `detmap.core.base.sums` adds floats from left to right, and refuses them among integers.
    """
    for path in MODULES:
        text = path.read_text()
        suspicious = re.search(r"\bsum\b", text) or DIFFERENT.search(text)
        lines = sums_of_floats(text) if suspicious else []
        allowed = path == PACKAGE / "core" / "base" / "sums.py"
        assert allowed or not lines, f"{path}, lines {lines}: use detmap.core.base.sums"


OF_FLOATS = (
    *("sum(x.values)", "sum(numbers)", "sum(x / 2 for x in n)", "sum(len(x) / 2 for x in n)"),
    *("sum((1 for x in n), 0.0)", "sum((1 for x in n), start=0.5)", "add = sum", "map(sum, rows)"),
    *("sorted(rows, key=sum)", "import builtins", "from builtins import sum as add"),
    *("from statistics import fmean", "import math; math.sumprod(a, b)"),
)
OF_INTEGERS = (
    *("sum(map(len, rows))", "sum(x > 0 for x in n)", "sum(x is None for x in n)"),
    *("sum(1 for x in n if x)", "sum(each, Fraction(0))", "values.sum()"),
    "np.sum(values); math.fsum(values)",
)


@pytest.mark.parametrize("source", OF_FLOATS + OF_INTEGERS)
def test_sums_of_floats_are_found(source: str) -> None:
    assert bool(sums_of_floats(source)) == (source in OF_FLOATS)


def test_no_annotation_reads_the_attribute_that_it_annotates() -> None:
    """``detmap: detmap.Result = None`` in a class reads None; a host that is not here hides it."""
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
                read = {each.id for each in ast.walk(node.annotation) if isinstance(each, ast.Name)}
                assert node.target.id not in read, f"{path.name}:{node.lineno}"
