"""Mutation testing: change one operator, number, condition or statement at a time, and see whether
a test fails.

    python tools/mutate.py                     # every mutant of every module: long
    python tools/mutate.py --sample 20         # the same twenty of each module in every run
    python tools/mutate.py counts --sample 50  # modules whose path contains the word
    python tools/mutate.py --kills FILE        # go on where an earlier run of this ended
    python tools/mutate.py --check             # run none; see whether each one listed exists

The bodies of functions and methods are changed. `tools/mutants.toml` names the modules with their
tests, and the mutants that no test can kill, each with the reason; where a test kills one of these,
the reason is wrong, and the run fails as it does where a mutant survives, or where one that is
listed does not exist, because the code has changed.

pytest collects the tests once. A first pass sees which of them pass, how long each takes and which
functions it enters; then each mutant is a fork of that process, in which the code of one function
is replaced and the tests that enter it are run until one fails: first the quick ones and those that
have killed other mutants of the function.

More than 400 lines: making, running and reporting mutants is one tool, which runs without detmap.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib
import inspect
import io
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

SECONDS = 5  # of processor time beyond ten times what the tests take: an endless loop is killed
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One change; without `code` its key is what `tools/mutants.toml` lists."""

    module: str
    function: str
    line: str
    mutation: str
    number: int
    code: CodeType = field(repr=False)

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.function, self.line, self.mutation

    @property
    def place(self) -> tuple[str, str]:
        return self.module, self.function

    def __str__(self) -> str:
        return f"{self.module}:{self.number} {self.function}: {self.mutation}\n    {self.line}"


# --- mutants --------------------------------------------------------------------------------------


def variants(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The nodes that may take the place of this one, each with what is changed."""
    new: Any = copy.copy(node)
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            new = copy.copy(node)
            new.ops = [*node.ops[:i], SWAPPED[type(op)](), *node.ops[i + 1 :]]
            yield new, text(node, new)
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        new.op = SWAPPED[type(node.op)]()
        yield new, text(node, new)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, text(node, node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new.value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield new, text(node, new)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        new.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        yield new, f"condition {ast.unparse(node.test)} -> {ast.unparse(new.test)}"
    elif deletable(node):
        yield ast.copy_location(ast.Pass(), node), f"delete {ast.unparse(node)}"


def deletable(node: ast.AST) -> bool:
    """Whether a statement has an effect beyond the name that it binds, which would be missed."""
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return call or isinstance(node, ast.AugAssign | ast.Raise)


def text(old: ast.AST, new: ast.AST) -> str:
    return f"{ast.unparse(old)} -> {ast.unparse(new)}"


def places(node: ast.AST, skipped: list[str]) -> Iterator[tuple[Any, Any, ast.AST]]:
    """(holder, key, node) of all that a body executes: no annotation, default or skipped call."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        if name == "args" and not isinstance(node, ast.Call):
            continue
        holder: Any = value if isinstance(value, list) else vars(node)
        for key in range(len(value)) if isinstance(value, list) else [name]:
            child = holder[key]
            if not isinstance(child, ast.AST):
                continue
            call = child.value if isinstance(child, ast.Expr) else child
            if isinstance(call, ast.Call) and ast.unparse(call.func) in skipped:
                continue
            yield holder, key, child
            yield from places(child, skipped)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods; one inside of another is part of it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def changes(tree: ast.AST, lines: list[str], skipped: list[str]) -> Iterator[tuple[Any, ...]]:
    """Function, line, mutation and line number of each mutant, in the order of the text; the tree
    is that of the mutant until the next one is asked for.
    """
    for function, body in functions(tree):
        seen: Counter[tuple[str, str]] = Counter()
        for holder, key, node in places(body, skipped):
            for new, what in variants(node):
                number = node.lineno  # type: ignore[attr-defined]
                line = lines[number - 1].strip()
                seen[line, what] += 1
                if seen[line, what] > 1:
                    what += f" (number {seen[line, what]})"
                holder[key] = new
                yield function, line, what, number
                holder[key] = node


def parsed(module: str) -> tuple[ast.AST, list[str]]:
    """The tree and the lines of a module."""
    source = Path(module).read_text(encoding="utf-8")
    return ast.parse(source), source.splitlines()


def mutants(module: str, skipped: list[str]) -> Iterator[Mutant]:
    """All mutants of a module."""
    tree, lines = parsed(module)
    for function, *rest in changes(tree, lines, skipped):
        code: Any = compile(ast.fix_missing_locations(tree), module, "exec")
        yield Mutant(module, function, *rest, inner(code, function))


def missing(listed: dict[str, Any], words: list[str]) -> list[tuple[str, ...]]:
    """The mutants listed as equivalent that do not exist: their code has changed."""
    keys = [key for key in equivalent(listed) if any(word in key[0] for word in words)]
    there = {
        (module, *change[:3])
        for module in listed["modules"].keys() & {key[0] for key in keys}
        for change in changes(*parsed(module), listed.get("skip", []))
    }
    return sorted(key for key in keys if key not in there)


def equivalent(listed: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """The reasons of the mutants that no test can kill."""
    names = ("module", "function", "line", "mutation")
    entries = listed.get("equivalent", [])
    return {tuple(each[name] for name in names): each["reason"] for each in entries}


def inner(code: CodeType, name: str) -> CodeType:
    """The code of a function inside of the code of its module."""
    for part in name.split("."):
        parts = [c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part]
        code = parts[-1]
    return code


def replace_code(mutant: Mutant) -> None:
    """Make every caller run the mutant, however it imported the function."""
    found: Any = importlib.import_module(dotted(mutant.module))
    for part in mutant.function.split("."):
        found = inspect.getattr_static(found, part)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    inspect.unwrap(found).__code__ = mutant.code


def dotted(module: str) -> str:
    return module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def sample(found: list[Mutant], n: int | None, seed: int) -> list[Mutant]:
    """Draw n of them, the same in every run; a larger sample holds a smaller one."""
    if n is None:
        return found
    drawn = sorted(found, key=lambda m: hashlib.sha256(f"{seed}{m.key}".encode()).digest())[:n]
    return sorted(drawn, key=lambda m: found.index(m))


# --- runs -----------------------------------------------------------------------------------------


@dataclass
class Runner:
    """The pytest plugin that runs mutants in place of the tests that were collected."""

    modules: dict[str, list[str]]
    chosen: list[Mutant]
    jobs: int
    file: Path | None = None
    killed: set[Mutant] = field(default_factory=set)
    kills: Counter[tuple[tuple[str, str], str]] = field(default_factory=Counter)
    folder: str = ""
    entered: dict[str, tuple[float, bool, set[tuple[str, str]]]] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for module in self.modules:
            importlib.import_module(dotted(module))
        warnings.simplefilter("ignore")
        self.recall()
        with tempfile.TemporaryDirectory() as self.folder:
            self.first_pass(session)
            self.run_mutants(session)
        return True

    def run_mutants(self, session: pytest.Session) -> None:
        running: dict[int, Mutant] = {}
        for i, mutant in enumerate(self.chosen):
            if len(running) == self.jobs:
                self.reap(running)
            print(f"\r{i + 1} of {len(self.chosen)}", end="", file=sys.stderr, flush=True)
            items = [] if mutant in self.killed else self.tests(session, mutant)
            if items:
                running[self.fork(session, items, mutant)] = mutant
        while running:
            self.reap(running)
        print(file=sys.stderr)

    def recall(self) -> None:
        """Count as killed what the file lists, unless the module or the test has changed since."""
        if self.file is None or not self.file.exists():
            return
        rows = [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]
        known = {tuple(row["mutant"]): row for row in rows}
        for mutant in self.chosen:
            row = known.get(mutant.key)
            if row and row["digest"] == digest(mutant.module, row["test"]):
                self.killed.add(mutant)
                self.kills[mutant.place, row["test"]] += 1

    def remember(self, mutant: Mutant, test: str) -> None:
        """Count a kill, and add it to the file; without a test it is a crash or an endless loop."""
        self.killed.add(mutant)
        self.kills[mutant.place, test] += 1
        if self.file is not None:
            row = {"mutant": mutant.key, "test": test, "digest": digest(mutant.module, test)}
            with self.file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")

    def reap(self, running: dict[int, Mutant]) -> None:
        pid, status = os.wait()
        mutant = running.pop(pid)
        if status:
            said = Path(self.folder, str(pid))
            self.remember(mutant, said.read_text() if said.exists() else "")
        else:
            print(f"\rsurvived: {mutant}", file=sys.stderr)

    def fork(self, session: pytest.Session, items: list[Any], mutant: Mutant) -> int:
        pid = os.fork()
        if pid:
            return pid
        silence()
        took = sum(self.entered[item.nodeid][0] for item in items)
        limit = int(10 * took) + SECONDS + int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        signal.alarm(20 * limit)
        replace_code(mutant)
        for item, following in zip(items, [*items[1:], None], strict=True):
            run(item, following)
            if session.testsfailed:
                Path(self.folder, str(os.getpid())).write_text(item.nodeid)
                os._exit(1)
        os._exit(0)

    def tests(self, session: pytest.Session, mutant: Mutant) -> list[Any]:
        """Those of its module that pass and enter its function, in the order to run them in."""
        wanted = tuple(self.modules[mutant.module])
        items = [
            item
            for item in session.items
            if item.nodeid.startswith(wanted)
            and self.entered[item.nodeid][1]
            and mutant.place in self.entered[item.nodeid][2]
        ]

        def seconds_per_kill(item: Any) -> float:
            return self.entered[item.nodeid][0] / (1 + self.kills[mutant.place, item.nodeid])

        return sorted(items, key=seconds_per_kill)

    def first_pass(self, session: pytest.Session) -> None:
        """Time every test, and see what it enters, in forks: the state of this process stays."""
        paths = [Path(self.folder, f"pass-{job}") for job in range(self.jobs)]
        size = -(-len(session.items) // self.jobs)
        for job, path in enumerate(paths):
            if os.fork() == 0:
                silence()
                found = self.watch(session, session.items[job * size : (job + 1) * size])
                path.write_bytes(pickle.dumps(found))
                os._exit(0)
        for _ in paths:
            os.wait()
        for path in paths:
            self.entered |= pickle.loads(path.read_bytes())

    def watch(self, session: pytest.Session, items: list[Any]) -> dict[str, Any]:
        files = {str(Path(module).resolve()): module for module in self.modules}
        names: set[tuple[str, str]] = set()

        def note(frame: Any, event: str, _: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename in files:
                names.add((files[code.co_filename], code.co_qualname.split(".<locals>")[0]))

        found = {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            names.clear()
            begin, failed = time.process_time(), session.testsfailed
            threading.setprofile(note)
            sys.setprofile(note)
            run(item, following)
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            passed = session.testsfailed == failed
            found[item.nodeid] = time.process_time() - begin, passed, set(names)
        return found


def digest(module: str, test: str) -> str:
    """Of the texts of a module and of the file of a test."""
    files = [Path(name) for name in (module, test.split("::")[0]) if name]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files if f.exists())).hexdigest()


def run(item: Any, following: Any) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def silence() -> None:
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


# --- report ---------------------------------------------------------------------------------------


def report(modules: dict[str, list[str]], runner: Runner, reasons: dict[Any, str]) -> bool:
    """Print the table and what survived; whether nothing is left to do."""
    failing = sorted(test for test, (_, passed, _) in runner.entered.items() if not passed)
    for test in failing:
        print(f"left out, as it fails without a mutant: {test}")
    survived = [m for m in runner.chosen if m not in runner.killed]
    true = [m for m in survived if m.key not in reasons]
    wrong = [m for m in runner.killed if m.key in reasons]
    for m in survived:
        print(f"equivalent: {m}\n    {reasons[m.key]}" if m.key in reasons else f"survived: {m}")
    for m in sorted(wrong, key=str):
        print(f"listed as equivalent, but killed: {m}")
    print(f"{'module':40}{'mutants':>9}{'killed':>8}{'equivalent':>12}{'survived':>10}{'score':>8}")
    for name in [*modules, "all"]:
        n, k, s = (
            sum(name in (m.module, "all") for m in some)
            for some in (runner.chosen, runner.killed, true)
        )
        score = f"{100 * k / (k + s):.1f}" if k + s else "-"
        print(f"{name:40}{n:9}{k:8}{n - k - s:12}{s:10}{score:>8}")
    return not (true or wrong or failing)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("words", nargs="*", help="modules whose path contains one; all without")
    parser.add_argument("--list", type=Path, default=Path("tools/mutants.toml"))
    parser.add_argument("--sample", type=int, help="mutants of each module; all when left out")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument(
        "--check", action="store_true", help="run no mutant; see whether each one listed exists"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--kills", type=Path, help="file with the mutants killed so far: read, and appended to"
    )
    arguments = parser.parse_args()
    listed = tomllib.loads(arguments.list.read_text(encoding="utf-8"))
    words = arguments.words or [""]
    modules = {m: t for m, t in listed["modules"].items() if any(word in m for word in words)}
    stale = missing(listed, words)
    for key in stale:
        print(f"listed, but there is no such mutant: {', '.join(key)}")
    if arguments.check:
        return 1 if stale else 0
    every = {module: list(mutants(module, listed.get("skip", []))) for module in modules}
    chosen = [m for v in every.values() for m in sample(v, arguments.sample, arguments.seed)]
    runner = Runner(modules, chosen, arguments.jobs, arguments.kills)
    files = sorted({file for tests in modules.values() for file in tests})
    sys.path.insert(0, os.getcwd())
    plain = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:faulthandler"]  # no workers
    with contextlib.redirect_stdout(io.StringIO()) as said:
        pytest.main(["-s", "-m", "not slow", *plain, *files], [runner])
    if not runner.entered:
        print(said.getvalue())
        return 2
    return 0 if report(modules, runner, equivalent(listed)) and not stale else 1


if __name__ == "__main__":
    raise SystemExit(main())
