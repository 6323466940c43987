"""One reader of text: lines, words and numbers, the same for XML, VOC text and CSV.

Text is UTF-8, with or without a byte order mark. A line ends with LF, CR LF or CR. Words are
parted by spaces and tabs. A number is a decimal in ASCII::

    [+-] digits [. digits] [e [+-] digits]     digits before or after the point, at least one

Python's own ``float``, ``split`` and ``splitlines`` accept more: underscores, the digits of other
scripts, no-break spaces, form feeds. Here these are part of a word, and such a word is no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from detmap.base import open_files as opening
from detmap.errors import DataError

SPACE = " \t"
XML_SPACE = " \t\r\n"  # XML 1.0, section 2.3

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_ONLY_DECIMALS = re.compile(r"[0-9eE+\-. \t]*")
LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"[^ \t]+")
_PRINTED = re.compile(r"[ -~\t\r\n]*")
DECODED = 4  # bytes of memory that a byte of text takes as words


def short(word: str) -> str:
    """A word as a message can hold it."""
    return repr(word if len(word) <= 60 else f"{word[:57]}...")


def number(word: str) -> float | None:
    """The nearest double of one number; None for a word that is none.

    The words inf, infinity and nan, of any sign, are read as what they say, for the caller to
    refuse by name or, where the format has it, to take as "no prediction".
    """
    if _DECIMAL.fullmatch(word) or _NOT_FINITE.fullmatch(word):
        return float(word)
    return None


def numbers(words: Sequence[str]) -> list[float]:
    """The nearest doubles of many words, with space around each at most.

    Raises
    ------
    ValueError : one of them is no number
    """
    if _ONLY_DECIMALS.fullmatch(" ".join(words)):
        return list(map(float, words))  # of these characters alone, float() reads this grammar
    values = [number(word.strip(SPACE)) for word in words]
    if None in values:
        raise ValueError
    return values  # type: ignore[return-value]


def decoded(path: Path) -> str:
    """The text of a file.

    Raises
    ------
    DataError : not a file that can be read, not UTF-8
    """
    data = opening.read_bytes(path, times=DECODED).removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = len(LINE_END.findall(data[: error.start].decode())) + 1
        raise DataError(
            f"{opening.shown(path)}: line {line}",
            f"not UTF-8: {error.reason}",
            "write the file as plain text in UTF-8",
        ) from None


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number, from 1, and the words of each line that has any.

    Raises
    ------
    DataError : not a file that can be read, not UTF-8
    """
    content = decoded(path)
    # In text of these characters alone Python's quick splitting is this one.
    split = str.split if _PRINTED.fullmatch(content) else _WORD.findall
    parts = LINE_END.split(content) if "\r" in content else content.split("\n")
    for i, line in enumerate(parts, start=1):
        words = split(line)
        if words:
            yield i, words
