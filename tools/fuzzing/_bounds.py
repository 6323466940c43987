"""What the targets yaml, toml and parquet share: a case reads a mutated file within limits."""

import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

from detmap.errors import DetmapError
from tools.fuzzing._files import scratch

SECONDS = 20.0
MEGABYTES = 500
PLACE = scratch("mutated")
TIMES = [1] * 12 + [3] * 6 + [100] * 5 + [5000]
"""How often a piece is repeated. A tenth of the files get long: they take most of the time."""


def mutated(rng: random.Random, seed: bytes, pieces: list[bytes]) -> bytes:
    """Bytes with parts cut out, doubled, or replaced by pieces, now and then many times."""
    data = bytearray(seed)
    for _ in range(rng.randrange(1, 6)):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice([0, 1, 4, 40]))
        times = rng.choice(TIMES)
        data[a:b] = rng.choice([b"", bytes(data[a:b]), rng.choice(pieces)]) * times
    return bytes(data[:1_000_000])


def checked(read: Callable[[Path], object], data: bytes, suffix: str) -> str | None:
    """What is wrong with reading a file; a refusal in words is fine."""
    file = PLACE.with_suffix(suffix)
    file.unlink(missing_ok=True)  # file systems flush a file that is truncated and written again
    file.write_bytes(data)
    before, begin = peak(), time.process_time()
    try:
        read(file)
    except DetmapError as error:
        if len(str(error)) > 2000:
            return f"a message of {len(str(error))} characters"
    took, grown = time.process_time() - begin, peak() - before
    if took > SECONDS or grown > MEGABYTES:
        return f"{len(data)} bytes took {took:.1f} s and {grown:.0f} MB"
    return None


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
