"""Run a notebook without Jupyter: its code cells in order, in one namespace.

python -m tests.support.notebook docs/tour.ipynb    # write what the cells print into the notebook
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def executed(cell: dict[str, Any], names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a cell: what it prints, and the value of its last expression."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = shown(value)
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def shown(value: Any) -> dict[str, Any]:
    """The forms of a value that Jupyter stores."""
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=50)
        encoded = base64.b64encode(picture.getvalue()).decode()
        return {"image/png": encoded, "text/plain": ["<Figure>"]}
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if html := getattr(value, "_repr_html_", None):
        data["text/html"] = html().splitlines(keepends=True)
    return data


def run(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of this run."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for i, cell in enumerate(code):
        cell["outputs"], cell["execution_count"] = executed(cell, names), i + 1
    return notebook  # type: ignore[no-any-return]


def texts(notebook: dict[str, Any]) -> list[str]:
    """What the code cells print, without pictures."""
    return [
        "".join(output.get("text", output.get("data", {}).get("text/plain", [])))
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    ]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    text = json.dumps(run(place), indent=1, ensure_ascii=False) + "\n"
    place.write_text(text, encoding="utf-8")
