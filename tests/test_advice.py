"""What messages tell to write exists: commands, options, fixes, protocols, keys, arguments, extras.

That advice leads to the right number is tested where the mistake is.
"""

import argparse
import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import detmap
from detmap.analysis.doctor.hypothesis_names import FIXES
from detmap.cli import dispatch
from detmap.core import protocol
from tests.support import builders as make

pytestmark = pytest.mark.slow
PACKAGE = Path(detmap.__file__).parent
OTHERS = {
    *("--upgrade", "--force-reinstall", "--cfg-options", "--allow-lossy", "--save-txt"),
    *("--save-conf", "--weighted-average", "--set-class-iou", "--help", "--version", "--compile"),
}
"""Options of other programs that messages name, and those of every command."""
BROWSER = "analysis/chromium.py"  # has those of Chromium


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Place and text of each string of the package that is no docstring; f-strings have ``{}``."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
            if isinstance(node.body[0], ast.Expr)
        }
        inside = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(tree):
            text = None
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
                )
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = None if id(node) in documented | inside else node.value
            if text:
                found.append((f"{path.relative_to(PACKAGE)}:{node.lineno}", text))
    return tuple(found)


def told(pattern: str) -> Iterator[tuple[str, str]]:
    """Place and first group of each match."""
    for place, text in texts():
        for found in re.finditer(pattern, text):
            yield place, found[1]


@cache
def options() -> dict[str, set[str]]:
    """By command its options."""
    parser = dispatch.parser(dispatch.COMMANDS)
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return {
        name: {option for action in command._actions for option in action.option_strings}
        for name, command in commands.choices.items()
    }


def wrong(pairs: Iterator[tuple[str, str]], known: set[str]) -> dict[str, str]:
    return {place: word for place, word in pairs if word not in known}


def test_options_in_messages_exist() -> None:
    known = {option for each in options().values() for option in each} | OTHERS
    pairs = [*told(r"(?<![\w\-{`'/])(--[a-z][a-z0-9-]*[a-z0-9])(?![\w{*-])")]
    assert len(pairs) > 100
    ours = (pair for pair in pairs if not pair[0].startswith(BROWSER))
    assert not wrong(ours, known)


def test_commands_in_messages_exist_and_have_their_options() -> None:
    lines = [*told(r"`detmap ([a-z][^`]*)`")]
    assert len(lines) > 20
    for place, line in lines:
        command = re.match(r"[a-z-]+", line)
        assert command, (place, line)
        assert command[0] in options(), (place, line)
        for option in re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", line):
            assert option in options()[command[0]], (place, line)


def test_fixes_protocols_and_keys_in_messages_exist() -> None:
    assert not wrong(told(r"--fix ([a-z][a-z-]+)"), {*FIXES})
    names = {*protocol.names(), *protocol.tools(), *protocol.NEWEST}
    assert not wrong(told(r"(?<!\w)-p ([a-z]+[0-9-][a-z0-9.-]*)"), names)
    tree = protocol.load("coco-bbox").to_dict()
    known = {f"{table}.{key}" for table in tree for key in _keys(tree[table])}
    pairs = [*told(r'(?:--set |settings=\{")([a-z_]+\.[a-z_]+)')]
    assert pairs
    assert not wrong(iter(pairs), known)


def _keys(table: object) -> list[str]:
    return list(table) if isinstance(table, dict) else []


def test_arguments_in_messages_exist() -> None:
    public = [getattr(detmap, name) for name in detmap.__all__]
    methods = [
        method
        for each in public
        if inspect.isclass(each)
        for _, method in inspect.getmembers(each, inspect.isfunction)
    ]
    known = set()
    for each in (*filter(callable, public), *methods):
        try:
            known |= {*inspect.signature(each).parameters}
        except (TypeError, ValueError):
            continue
    pairs = [*told(r"in Python (?:also )?([a-z_]+)=")]
    assert pairs
    assert not wrong(iter(pairs), known)


def test_extras_in_messages_exist() -> None:
    tree = tomllib.loads((make.ROOT / "pyproject.toml").read_text())
    pairs = [*told(r"detmap-eval\[([\w-]+)\]")]
    assert pairs
    assert not wrong(iter(pairs), {*tree["project"]["optional-dependencies"]})
