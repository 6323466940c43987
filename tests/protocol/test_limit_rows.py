"""Rows whose names hold the limit."""

import pytest

import detmap
from detmap import ProtocolError


def names(protocol: str, limits: list[int]) -> list[str]:
    rules = detmap.load_protocol(protocol).override({"limits.max_dets": limits})
    return [row.name for row in rules.rows()[0]]


@pytest.mark.parametrize("limits", [[1, 10, 100], [2, 5, 50], [7]], ids=str)
def test_torchmetrics_has_a_row_for_every_limit(limits: list[int]) -> None:
    rows = names("torchmetrics", limits)
    assert [each for each in rows if each[-1].isdigit() and each.startswith("mar")] == [
        f"mar_{limit}" for limit in limits
    ]
    assert {"map", "map_small", "mar_large"} <= set(rows)


@pytest.mark.parametrize("row", ["a*b*: AR@max_dets", "mar_*: AR", "mar: AR@max_dets", "x: y: AR"])
def test_names_that_cannot_hold_the_limit_are_refused(row: str) -> None:
    rules = detmap.load_protocol("coco-bbox")
    with pytest.raises(ProtocolError, match="no metric"):
        rules.override({"metrics": [row]}).rows()
