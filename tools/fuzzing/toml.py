"""A protocol's TOML that is mutated: read or refused in words, within limits."""

import random

from detmap.core import protocol
from detmap.core.base.resources import folder
from tools.fuzzing import _bounds

WHOLE = (folder("configs") / "coco-bbox.toml").read_bytes()
PIECES = [b"a.", b"[", b"{a=", b'"', b"'", b"[[a]]\n", b"1", b"=", b"\n", b'"""', b"1e9,", b"\\"]
PIECES += [b"[subsets.x]\n", b"subsets.a.b=[1,2]\n", b"\xff", b"nan", b"0xf", b"true", b"#"]


def case(seed: int) -> str | None:
    """What is wrong with one mutated file."""
    rng = random.Random(seed)
    return _bounds.checked(protocol.load, _bounds.mutated(rng, WHOLE, PIECES), ".toml")
