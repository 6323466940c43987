"""The modules of the package as syntax trees, which are parsed once."""

import ast
from functools import cache
from pathlib import Path

import detmap

PACKAGE = Path(detmap.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in a module."""
    return list(ast.walk(ast.parse(path.read_text())))
