"""Reads lines, words and numbers of XML, VOC text and CSV by one grammar.

Text is UTF-8, with or without a byte order mark. A line ends with LF, CR LF or CR. Words are
separated by spaces and tabs. A number is an ASCII decimal::

    [+-] digits [. digits] [e [+-] digits]     digits before or after the point, at least one

Python's own ``float``, ``split`` and ``splitlines`` accept more (underscores, other scripts'
digits, no-break spaces, form feeds); here these are part of a word that is not a number.
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from detmap.core.base import json_faults, open_files
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
    """Shortens a word for messages."""
    return repr(word if len(word) <= 60 else f"{word[:57]}...")


def number(word: str) -> float | None:
    """Returns the nearest double of a word, None if it is not a number.

    The words inf, infinity and nan, with any sign, are converted; callers handle them.
    """
    if _DECIMAL.fullmatch(word) or _NOT_FINITE.fullmatch(word):
        return float(word)
    return None


def not_finite(word: str) -> str:
    """Says what is wrong with a word that is no finite number, or too large a one."""
    value = number(word)
    kind = "a number" if value is None else "a finite number"
    if value is not None and math.isfinite(value):
        return f"{short(word)} is too large"
    return f"{short(word)} is not {kind}"


def numbers(words: Sequence[str]) -> list[float]:
    """Returns the nearest doubles of many words, or raises `ValueError`. Surrounding spaces are
    allowed.
    """
    if _ONLY_DECIMALS.fullmatch(" ".join(words)):
        return list(map(float, words))  # of these characters alone, float() reads this grammar
    values = [number(word.strip(SPACE)) for word in words]
    if None in values:
        raise ValueError
    return values  # type: ignore[return-value]


def decoded(path: Path) -> str:
    """Returns the text of a file. Raises `DataError` if it is not readable UTF-8."""
    data = open_files.read_bytes(path, times=DECODED).removeprefix(b"\xef\xbb\xbf")
    if open_files.is_utf16(data):
        raise DataError(open_files.shown(path), "text in UTF-16", open_files.SAVE_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = len(LINE_END.findall(data[: error.start].decode())) + 1
        where = f"{open_files.shown(path)}: line {line}"
        if json_faults.is_cut_character(error):
            what = "truncated: the file ends in the middle of a character"
            raise DataError(where, what, json_faults.WRITE_AGAIN) from None
        raise DataError(
            where, f"not UTF-8: {error.reason}", "write the file as plain text in UTF-8"
        ) from None


def split(content: str) -> list[str]:
    """Returns the lines of a text."""
    return LINE_END.split(content) if "\r" in content else content.split("\n")


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields number (from 1) and words of each line that has any."""
    content = decoded(path)
    # In text of these characters alone Python's quick splitting is this one.
    words_of = str.split if _PRINTED.fullmatch(content) else _WORD.findall
    for i, line in enumerate(split(content), start=1):
        words = words_of(line)
        if words:
            yield i, words
