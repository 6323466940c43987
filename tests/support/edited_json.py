"""Changes one value of a JSON file, for tests of what readers say about it."""

import json
from pathlib import Path
from typing import Any

GONE = object()


def edit(path: Path, keys: tuple[Any, ...], value: Any) -> Path:
    """Sets the value at `keys` of a file; `GONE` removes it."""
    tree = json.loads(path.read_text())
    node = tree
    for key in keys[:-1]:
        node = node[key]
    if value is GONE:
        del node[keys[-1]]
    else:
        node[keys[-1]] = value
    path.write_text(json.dumps(tree))
    return path
