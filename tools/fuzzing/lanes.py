"""Damaged files: the fast lane of a format reads what its reference lane reads, or nothing."""

from tests.support.lanes import LANES, taken, write_mutated
from tools.fuzzing._files import scratch

COUNTS = dict.fromkeys(LANES, 0)  # files that the fast lane took
SCRATCH = scratch("damaged")


def case(seed: int) -> str | None:
    """Whether the two lanes read one damaged file differently."""
    kind = tuple(LANES)[seed % len(LANES)]
    write_mutated(kind, seed, SCRATCH)
    try:
        COUNTS[kind] += taken(kind, SCRATCH)
    except AssertionError as error:
        return f"{kind}: {error}"
    return None
