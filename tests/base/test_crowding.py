"""Limits for crowded images."""

import pytest

from detmap.core.base import crowding
from detmap.errors import CrowdedError


@pytest.mark.parametrize("n_rows", [10, 10_000_000])
def test_limits_grow_with_the_rows(n_rows: int) -> None:
    most = max(crowding.MOST_LISTED, crowding.LISTED_PER_ROW * n_rows)
    assert crowding.most_listed(n_rows) == most
    crowding.limit_listed("here", most, n_rows)
    with pytest.raises(CrowdedError, match=f"^here: .* more than {most:,} pairs overlap"):
        crowding.limit_listed("here", most + 1, n_rows)
    most = max(crowding.MOST_COMPARED, crowding.COMPARED_PER_ROW * n_rows)
    crowding.limit_compared("here", most // 5, n_rows, 5)
    with pytest.raises(CrowdedError, match=rf"{most + 1:,} pairs of boxes \(the limit is"):
        crowding.limit_compared("here", most + 1, n_rows)
    with pytest.raises(CrowdedError, match=rf"the limit is {most // 5:,}\)"):
        crowding.limit_compared("here", most // 5 + 1, n_rows, 5)
