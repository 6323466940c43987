"""Whole image weights under every protocol and tool: the numbers of files that repeat the images,
or a refusal by name. A case is one drawn set under one protocol.
"""

from detmap.core.protocol import names
from detmap.core.protocol.load_toml import tools
from tests.support.weighted_images import fault

NAMES = (*names(), *tools())
COUNTS = {"compared": 0, "refused": 0}


def case(seed: int) -> str | None:
    """What is wrong with the weighted numbers of one set."""
    return fault(NAMES[seed % len(NAMES)], seed // len(NAMES), COUNTS)
