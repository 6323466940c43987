"""A data.yaml that is mutated: read or refused in words, within limits of time and memory."""

import random

from detmap.core.adapters.text_per_image import plain_yaml
from tools.fuzzing import _bounds

WHOLE = b"path: .\nval: images/val\nnc: 2\nnames: {0: &a cat, 1: dog}\nkpt_shape: [17, 3]\nx: *a\n"
PIECES = [b"[", b"{", b"]", b"}", b"- ", b"? ", b": ", b"&a ", b"*a, ", b"<<: *a\n", b"59:", b"x,"]
PIECES += [b"!!set ", b"'", b'"', b"|\n ", b"#", b"\n", b" ", b"---\n", b"\xff", b"\0", b"k: 1\n"]


def case(seed: int) -> str | None:
    """What is wrong with one mutated file."""
    rng = random.Random(seed)
    return _bounds.checked(plain_yaml.load, _bounds.mutated(rng, WHOLE, PIECES), ".yaml")
