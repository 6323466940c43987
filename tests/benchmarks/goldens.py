"""Goldens of benchmarks' own evaluation code, in ../shared/data beside the checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("DETMAP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
CASES = ("1", "2")
WITHIN = 1e-9


def folder(name: str) -> Path:
    """The folder of a benchmark's cases; skips the test if it is not there."""
    path = DATA / "benchmarks" / name
    if not path.is_dir():
        pytest.skip(f"no {path}: the goldens are not part of the repository")
    return path


def of_case(name: str, case: str, file: str = "goldens.json") -> Any:
    """The goldens of a case."""
    tree = json.loads((folder(name) / file).read_text())
    return tree.get("cases", tree)[case]
