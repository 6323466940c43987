"""Limits for crowded images."""

import pytest

from detmap.core.base import pair_limits
from detmap.errors import CrowdedError


@pytest.mark.parametrize("n_rows", [10, 10_000_000])
def test_limits_grow_with_the_rows(n_rows: int) -> None:
    most = max(pair_limits.MOST_LISTED, pair_limits.LISTED_PER_ROW * n_rows)
    assert pair_limits.most_listed(n_rows) == most
    pair_limits.limit_listed("here", most, n_rows)
    with pytest.raises(CrowdedError, match=f"^here: .* more than {most:,} pairs overlap"):
        pair_limits.limit_listed("here", most + 1, n_rows)
    most = max(pair_limits.MOST_COMPARED, pair_limits.COMPARED_PER_ROW * n_rows)
    pair_limits.limit_compared("here", most // 5, n_rows, 5)
    with pytest.raises(CrowdedError, match=rf"{most + 1:,} pairs of boxes \(the limit is"):
        pair_limits.limit_compared("here", most + 1, n_rows)
    with pytest.raises(CrowdedError, match=rf"the limit is {most // 5:,}\)"):
        pair_limits.limit_compared("here", most // 5 + 1, n_rows, 5)
