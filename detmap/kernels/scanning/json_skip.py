"""Skips and validates JSON values that are not needed.

As in `detmap.kernels.scanning.json_scan`, it accepts a subset of JSON; HAND_BACK in place of a
position falls back to the full decoder.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.scanning.ascii import (
    BACKSLASH,
    CLOSE_LIST,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    CR,
    LAST_PRINTABLE,
    LF,
    LOWER_E,
    MINUS,
    NINE,
    OPEN_LIST,
    OPEN_OBJECT,
    PLUS,
    POINT,
    QUOTE,
    SPACE,
    TAB,
    UPPER_E,
    ZERO,
)
from detmap.kernels.scanning.short_numbers import BYTE, ONE, ZEROS, find_others
from detmap.kernels.scanning.words import WORD, load_word, trailing_zeros

Bytes = NDArray[np.uint8]

HAND_BACK = -1
MAX_DEPTH = 64  # of nested lists and objects in skipped values


@kernel
def skip_space(text: Bytes, at: int) -> int:
    """The next position that is not white space.

    Source: RFC 8259, section 2.
    """
    while at < text.size and (
        text[at] == SPACE or text[at] == LF or text[at] == CR or text[at] == TAB
    ):
        at += 1
    return at


ESCAPED = np.zeros(256, dtype=np.bool_)
ESCAPED[np.frombuffer(b'"\\/bfnrt', np.uint8)] = True


@kernel
def is_escaped(c: np.uint8) -> bool:
    """Whether a backslash and this character are one character of a string.

    Source: RFC 8259, section 7, without ``u``.
    """
    return bool(ESCAPED[c])


@kernel
def skip_string(text: Bytes, at: int) -> int:
    """The position after a string whose first character is at `at`, and after its closing quotation
    mark.

    Source: RFC 8259, section 7, without escapes by number: those may be no characters. No other
    escape is a character of a key that is read.
    """
    while at < text.size:
        c = text[at]
        if c == QUOTE:
            return at + 1
        if c == BACKSLASH:
            at += 1
            if at >= text.size or not is_escaped(text[at]):
                return HAND_BACK
        elif c < SPACE or c > LAST_PRINTABLE:
            return HAND_BACK
        at += 1
    return HAND_BACK


@kernel
def skip_digits(text: Bytes, at: int) -> int:
    """The next position that is not a digit.

    Source: RFC 8259, section 6.
    """
    while at < text.size and ZERO <= text[at] <= NINE:
        at += 1
    return at


@kernel
def read_integer(text: Bytes, at: int) -> tuple[int, int]:
    """Parse an integer of at most 18 digits at `at`: the value, and the position after it.

    Source: RFC 8259, section 6.
    """
    negative = at < text.size and text[at] == MINUS
    if negative:
        at += 1
    first = at
    value = 0
    while at < text.size and ZERO <= text[at] <= NINE and at < first + 19:
        value = 10 * value + int(text[at]) - ZERO
        at += 1
    if at == first or at > first + 18 or (text[first] == ZERO and at > first + 1):
        return 0, HAND_BACK
    if at < text.size and (text[at] == POINT or text[at] == UPPER_E or text[at] == LOWER_E):
        return 0, HAND_BACK
    return -value if negative else value, at


@inline_kernel
def skip_decimal(text: Bytes, at: int) -> int:
    """The position after a number that has no sign and no exponent, and ends within eight bytes;
    HAND_BACK for another form.

    Source: RFC 8259, section 6; eight bytes at once as in
    `detmap.kernels.scanning.short_numbers`.
    """
    if at + WORD > text.size:
        return HAND_BACK
    digits = load_word(text, at) ^ ZEROS
    others = find_others(digits)
    end = trailing_zeros(others) >> 3
    if end == 0 or end == WORD or (end > 1 and digits & BYTE == np.uint64(0)):
        return HAND_BACK
    if text[at + end] == POINT:
        first = end + 1
        end = trailing_zeros(others & (others - ONE)) >> 3
        if end in (first, WORD):
            return HAND_BACK
    c = text[at + end]
    return HAND_BACK if c in (LOWER_E, UPPER_E) else at + end


@kernel
def skip_number(text: Bytes, at: int) -> int:
    """The position after a number.

    Source: RFC 8259, section 6.
    """
    if at < text.size and text[at] == MINUS:
        at += 1
    first = at
    at = skip_decimal(text, first)
    if at >= 0:
        return at
    at = first
    at = skip_digits(text, at)
    if at == first or (text[first] == ZERO and at > first + 1):  # no digit, or a leading zero
        return HAND_BACK
    if at < text.size and text[at] == POINT:
        first = at + 1
        at = skip_digits(text, first)
        if at == first:
            return HAND_BACK
    if at < text.size and (text[at] == UPPER_E or text[at] == LOWER_E):
        first = at + 1
        if first < text.size and (text[first] == PLUS or text[first] == MINUS):
            first += 1
        at = skip_digits(text, first)
        if at == first:
            return HAND_BACK
    return at


WORD_TRUE, WORD_FALSE, WORD_NULL = (
    np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null")
)


@kernel
def equals(text: Bytes, at: int, word: Bytes) -> bool:
    """Whether the text at `at` is the word; there must be room for it.

    Source: none; it compares bytes.
    """
    for i in range(word.size):  # noqa: SIM110
        if text[at + i] != word[i]:
            return False
    return True


@kernel
def begins(text: Bytes, at: int, word: Bytes) -> bool:
    """Whether the text continues with the word.

    Source: none; it compares bytes.
    """
    return at + word.size <= text.size and equals(text, at, word)


@kernel
def skip_word(text: Bytes, at: int) -> int:
    """The position after true, false or null.

    Source: RFC 8259, section 3.
    """
    if begins(text, at, WORD_TRUE) or begins(text, at, WORD_NULL):
        return at + 4
    if begins(text, at, WORD_FALSE):
        return at + 5
    return HAND_BACK


@kernel
def skip_key(text: Bytes, at: int) -> int:
    """The position of the value after a key whose first character is at `at`.

    Source: RFC 8259, section 4.
    """
    at = skip_string(text, at)
    if at < 0:
        return HAND_BACK
    at = skip_space(text, at)
    if at >= text.size or text[at] != COLON:
        return HAND_BACK
    return skip_space(text, at + 1)


@kernel
def skip_value(text: Bytes, at: int) -> int:
    """The position after the value at `at`.

    Source: RFC 8259, section 3.
    """
    objects = np.uint64(0)  # which open brackets are braces, innermost last
    depth = 0
    while at < text.size:
        c = text[at]
        opened = c in (OPEN_LIST, OPEN_OBJECT)
        if opened:
            if depth == MAX_DEPTH:
                return HAND_BACK
            objects = (objects << np.uint64(1)) | np.uint64(c == OPEN_OBJECT)
            depth += 1
            at = skip_space(text, at + 1)
            if at >= text.size:
                return HAND_BACK
            if text[at] != (
                CLOSE_OBJECT if objects & np.uint64(1) else CLOSE_LIST
            ):  # not empty: go to the first element
                if objects & np.uint64(1):
                    if text[at] != QUOTE:
                        return HAND_BACK
                    at = skip_key(text, at + 1)
                    if at < 0:
                        return HAND_BACK
                continue
        elif c == QUOTE:
            at = skip_string(text, at + 1)
        elif c == MINUS or ZERO <= c <= NINE:
            at = skip_number(text, at)
        else:
            at = skip_word(text, at)
        if at < 0:
            return HAND_BACK
        # after a value or in an empty list: close brackets, or continue after a comma
        while True:
            if depth == 0:
                return at
            at = skip_space(text, at)
            if at >= text.size:
                return HAND_BACK
            if text[at] == (CLOSE_OBJECT if objects & np.uint64(1) else CLOSE_LIST):
                depth -= 1
                objects >>= np.uint64(1)
                opened = False
                at += 1
                continue
            if text[at] != COMMA or opened:
                return HAND_BACK
            at = skip_space(text, at + 1)
            if objects & np.uint64(1):
                if at >= text.size or text[at] != QUOTE:
                    return HAND_BACK
                at = skip_key(text, at + 1)
                if at < 0:
                    return HAND_BACK
            break
    return HAND_BACK
