"""Refuses JSON in which an object has a key twice: RFC 8259 does not define which value counts."""

import json
import re
from typing import Any

from detmap.errors import DataError

_TOKEN = r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}\[\],]'


class _RepeatedError(Exception):
    """An object has a key twice."""


def require(data: str | bytes, where: str) -> None:
    """Raises `DataError` with place and line of the first repeated key.

    Text that is not JSON passes: its decoder knows more about it.
    """

    def look(pairs: list[tuple[str, Any]]) -> None:  # makes no tree, which would take memory
        if len(dict(pairs)) < len(pairs):
            raise _RepeatedError

    try:
        # bool makes no number of a number's text, which takes half of the time
        json.loads(data, object_pairs_hook=look, parse_float=bool, parse_int=bool)
    except (ValueError, RecursionError):
        return
    except _RepeatedError:
        raise _repeated(data if isinstance(data, str) else data.decode("utf-8"), where) from None


def _repeated(text: str, where: str) -> DataError:
    """Returns the error of the first repeated key of a text that has one."""
    keys: list[set[str] | None] = []  # of each open object; None for a list
    trail: list[str | int] = []  # the current key of each open object, or position in a list
    for match in re.finditer(_TOKEN, text, re.DOTALL):
        token, string, colon = match[0], match[1], match[2]
        if token in ("{", "["):
            keys.append(set() if token == "{" else None)
            trail.append("" if token == "{" else 0)
        elif token in ("}", "]"):
            keys.pop(), trail.pop()
        elif token == "," and isinstance(last := trail[-1], int):
            trail[-1] = last + 1
        elif colon and (seen := keys[-1]) is not None:
            trail[-1] = key = str(json.loads(string, strict=False))
            if key in seen:
                break
            seen.add(key)
    line = text.count("\n", 0, match.start()) + 1
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each:.60}" for each in trail)
    path = path.removeprefix(".").encode("utf-8", "backslashreplace").decode()
    return DataError(f"{where}: line {line}, {path}", "occurs twice", "keep the right one")
