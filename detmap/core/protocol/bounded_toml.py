"""Reads TOML of bounded size and depth. Python's parser stores every prefix of a dotted key: a key
with n parts needs memory for n * n / 2 parts.
"""

import re
import tomllib
from typing import Any

MOST_BYTES = 1 << 18
"""Of a file; a protocol with 10,000 classes in groups has fewer."""
MOST_PARTS = 16  # of a dotted key

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP = re.compile(rf"(?<![A-Za-z0-9_\\-])(?:{_PART}){{{MOST_PARTS}}}")


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML text.

    Raises
    ------
    ValueError : not TOML, too large, or a key with too many parts
    RecursionError : lists or tables nested too deeply
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"{len(text)} characters, where {MOST_BYTES} are plenty")
    deep = _DEEP.search(text)
    if deep is not None:
        line = text.count("\n", 0, deep.start()) + 1
        raise ValueError(f"line {line}: a key with more than {MOST_PARTS} parts")
    return tomllib.loads(text)
