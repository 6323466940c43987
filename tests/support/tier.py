"""How much is drawn: an eighth in the quick tier, a quarter in the slow one, all with ``-m ""``.

`tests/conftest.py` says which of them runs, before any test is imported.
"""

from collections.abc import Iterable
from typing import Any

import pytest

SHARES, LEAST = {"not slow": 8, "slow": 4}, 3
EXAMPLES = 100  # of a test that names no number; also hypothesis' own
quick = False
share = 1


def drawn(n: int) -> int:
    """How many of n examples, or of n seeds, are drawn."""
    return max(n // share, min(n, LEAST))


def some(cases: Iterable[Any], every: int) -> list[Any]:
    """Parameters of a test; all but each `every`-th are slow."""
    return [
        pytest.param(case, marks=pytest.mark.slow) if i % every else pytest.param(case)
        for i, case in enumerate(cases)
    ]
