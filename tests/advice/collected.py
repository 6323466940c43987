"""The advices of the package: texts of messages that name a command, an option or a call.

An advice has a key: its module and its first words, ``cli/options: remove --memory``.
"""

import ast
import re
from functools import cache

from detmap.core.base import suggestions
from tests.support.package_source import MODULES, PACKAGE, nodes

ADVICE = re.compile(
    r"(?<![\w\-{`'/])--[a-z]"  # an option
    r"|`(?:detmap |\{\} )|(?<!\w)-p [a-z]"  # a command
    r"|\b[a-z_.]+=(?=[\"'\[{(\d.]|True|False|None|no\b|$|[ ,;)]|[a-z_]+$)"  # an argument
    r"|\b(?:detmap\.[A-Za-z_]+|[a-z_.]+\([^ )]*\))"  # a call
    r"|in Python |pip install|[Dd]id you mean"
)
HELP = {"add_argument", "add_parser", "add_argument_group", "add_option", "compile", "Key"}
"""Functions whose texts are help, patterns or documentation of keys."""
WORDS, MOST = 6, 60
"""Of a text, and characters of these, in its key."""
OTHERS = re.compile(r"<|DONE|Done|detmap (?!computes)|\w+=\"|\.detmap-|IoU=|--set \{|--set: ")
"""How texts begin that are no messages: HTML, examples of commands, logs, the place of an error."""


def _no_messages(module: list[ast.AST]) -> set[int]:
    """Docstrings, parts of f-strings, help and examples of commands."""
    found = set()
    for node in module:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found |= {id(each.value) for each in node.body if isinstance(each, ast.Expr)}
        elif isinstance(node, ast.JoinedStr):
            found |= {id(part) for part in node.values}
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            inside = [node] if name in HELP else []
            inside += [each.value for each in node.keywords if each.arg in ("help", "epilog")]
            found |= {id(each) for part in inside for each in ast.walk(part)}
    return found


def text_of(node: ast.AST) -> str:
    """A text, with ``{}`` where it has values."""
    if isinstance(node, ast.JoinedStr):
        values = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        return "".join(map(str, values))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cache
def advices() -> dict[str, str]:
    """By key the text of each advice."""
    found: dict[str, str] = {}

    def add(place: str, text: str) -> None:
        words = text.split()
        if len(words) > 1 and ADVICE.search(text) and not OTHERS.match(text):
            known = found.setdefault(f"{place}: {' '.join(words[:WORDS])[:MOST]}", text)
            if known != text:
                found[f"{place}: {' '.join(words[: 2 * WORDS])}"] = text

    for path in MODULES:
        module = nodes(path) if path.parent.name != "peers" else []  # calls of other programs
        skipped = _no_messages(module)
        place = path.relative_to(PACKAGE).with_suffix("").as_posix()
        for node in module:
            add(place, "" if id(node) in skipped else text_of(node))
    for kind in ("command", "option", "settings", "read", "returned"):
        for right in suggestions.words(kind):
            add("core/base/suggestions", right)
    return found
