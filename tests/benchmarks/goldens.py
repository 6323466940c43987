"""Goldens of benchmarks' own evaluation code, in the data."""

import json
from pathlib import Path
from typing import Any

from tests.support.real_data import data_path

CASES = ("1", "2")
WITHIN = 1e-9


def folder(name: str) -> Path:
    """The folder of a benchmark's cases; skips the test if it is not there."""
    return data_path("benchmarks", name)


def of_case(name: str, case: str, file: str = "goldens.json") -> Any:
    """The goldens of a case."""
    tree = json.loads((folder(name) / file).read_text())
    return tree.get("cases", tree)[case]
