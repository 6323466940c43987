"""Receipts changed by someone who knows how their digest is made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from detmap.reproducibility import receipt
from tests.support import builders as make


def forged(source: Path, folder: Path, change: Callable[[Any], object]) -> Path:
    """The receipt after a change, in a folder, with the digest of what it has then."""
    content = json.loads(source.read_text())
    change(content)
    return make.write(folder / "run.json", receipt.sealed(content))
