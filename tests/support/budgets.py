"""The budgets of the packages in lines of code: without blank lines, comments and docstrings.

python -m tests.support.budgets            # print lines and budgets
python -m tests.support.budgets --write    # set each budget to the lines and 3 percent
"""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

from tests.support.package_source import MODULES, PACKAGE, nodes

TABLE = Path(__file__).with_suffix(".toml")
STEP = 50


def budget_table() -> dict[str, int]:
    """Package -> lines of code. Modules beside the packages share the row `detmap`."""
    budgets: dict[str, int] = tomllib.loads(TABLE.read_text())
    return budgets


def package_of(path: Path, packages: set[str]) -> str:
    """The innermost package with a row, or the outermost package."""
    folders = path.relative_to(PACKAGE).parts[:-1]
    names = [".".join(("detmap", *folders[:n])) for n in range(len(folders), 0, -1)]
    return next((name for name in names if name in packages), names[-1] if names else "detmap")


def code_lines() -> dict[str, int]:
    """The lines of code of each package."""
    lines: Counter[str] = Counter()
    packages = {*budget_table()}
    for path in MODULES:
        words = {
            line
            for node in nodes(path)
            if isinstance(node, ast.Expr)
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or 0) + 1)
        }
        source = enumerate(path.read_text().splitlines(), 1)
        code = [n for n, line in source if line.strip() and line.strip()[0] != "#"]
        lines[package_of(path, packages)] += len({*code} - words)
    return dict(lines)


def main() -> None:
    """Print the table, or write it."""
    budgets, lines = budget_table(), dict(sorted(code_lines().items()))
    if "--write" in sys.argv:
        rows = [f'"{name}" = {STEP * -(-n * 103 // (100 * STEP))}' for name, n in lines.items()]
        head = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
        TABLE.write_text("\n".join([*head, *rows]) + "\n")
    rows = [f"{name}: {n} of {budgets.get(name, 0)}\n" for name, n in lines.items()]
    sys.stdout.write("".join(rows))


if __name__ == "__main__":
    main()
