"""The modules of the package as syntax trees, which are parsed once, and copies of the package."""

import ast
import shutil
from functools import cache
from pathlib import Path

import detmap
from tests.support.builders import ROOT

PACKAGE = Path(detmap.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in a module."""
    return list(ast.walk(ast.parse(path.read_text())))


def copy_without(folder: Path, *wings: str) -> Path:
    """A copy of the package without some folders."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "detmap", folder / "detmap", ignore=ignored)
    for name in ("configs", "datasets"):
        (folder / name).symlink_to(ROOT / name)
    for wing in wings:
        shutil.rmtree(folder / "detmap" / wing)
    return folder
