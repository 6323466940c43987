"""A part of the battery: each kind of mistake on a generated set is the first finding, and its fix
gives the right number. docs/doctor.md has the table of the whole battery.
"""

from pathlib import Path

import pytest

from tools.doctor_battery import Tried, kinds_table, try_kind
from tools.doctor_kinds import KINDS

NOWHERE = Path("no data")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_mistake_is_the_first_finding_and_its_fix_is_right(kind: str) -> None:
    tried = try_kind(kind, f"{KINDS[kind].shapes[-1]} 4", NOWHERE, None)
    if tried is None:
        pytest.skip("this set has no such mistake")
    assert tried.first, tried
    assert tried.fixed in (True, None)
    assert set(tried.others) <= {"truth-outside"}  # beside boxes that are read wrong


def test_the_table_counts() -> None:
    rows = [
        Tried("corners", "boxes", "boxes 0", True, (), True),
        Tried("corners", "boxes", "boxes 1", False, ("unexplained",), None),
        Tried("corners", "boxes", "sample", True, ("scores-cut",), False),
    ]
    table = kinds_table(rows)
    assert "| corners | `boxes-xyxy` | 1 of 2 |  |  | 1 of 1 | 1 of 2 |" in table
    assert "first in 66.7 % (2 of 3)" in table
    assert "right number in 50.0 % (1 of 2)" in table
    assert "another cause is stated instead in 33.3 % (1 of 3)" in table
