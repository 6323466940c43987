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


def of_case(name: str, case: str | int) -> Any:
    """The goldens of a case, from the file that has it."""
    trees = [json.loads(file.read_text()) for file in sorted(folder(name).glob("goldens*.json"))]
    cases = [tree.get("cases", tree) for tree in trees]
    return next(each[str(case)] for each in cases if str(case) in each)
