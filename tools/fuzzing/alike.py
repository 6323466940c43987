"""Lists of records that are alike, damaged and cut: both stages of the scanner of COCO JSON read
what record by record is read, and what Python reads.
"""

from __future__ import annotations

import random

from tests.support.alike_lists import accepted, draw
from tests.support.mutation import damaged

COUNTS = {"read": 0, "refused": 0}


def case(seed: int) -> str | None:
    """Whether one list is read differently."""
    rng = random.Random(seed)
    data = draw(rng)
    if seed % 3 == 0:
        data = damaged(rng, data)
    if seed % 16 == 0:
        data = data[: rng.randrange(len(data) + 1)]
    try:
        COUNTS["read" if accepted(data, rng.choice([64, 128, 1 << 15])) else "refused"] += 1
    except AssertionError as error:
        return f"{error} {data[:80]!r}"
    return None
