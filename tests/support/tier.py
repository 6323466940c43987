"""How much is drawn: all of it in the whole suite, an eighth in the quick tier.

`tests/conftest.py` says which of them runs, before any test is imported.
"""

from __future__ import annotations

SHARE, LEAST = 8, 3
EXAMPLES = 100  # of a test that names no number; also hypothesis' own
quick = False


def drawn(n: int) -> int:
    """How many of n examples, or of n seeds, are drawn."""
    return max(n // SHARE, min(n, LEAST)) if quick else n
