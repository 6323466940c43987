"""A strict scanner of plain JSON: flat records of boxes, straight into columns.

It accepts less than JSON is: printable ASCII without escapes, ids as plain integers, numbers of
at most 19 digits. Whatever else occurs, or is wrong, ends the scan with a negative position, and
the caller hands the file to the decoder that knows every legal file and every error. No byte
outside ``text`` is read: every look-up is behind a comparison with its size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.decimal import nearest_double

NOT_PLAIN = -1
MAX_DEPTH = 64  # of nested lists and objects in values that are passed over

IMAGE_ID, CATEGORY_ID, BBOX, SCORE, AREA, ISCROWD, ID, CROWD, IGNORE = (
    1 << bit for bit in range(9)
)
"""Bits of the keys of a record; CROWD is set beside ISCROWD where the flag is 1."""


@kernel
def skip_space(text: Any, at: int) -> int:
    """The next position that is not white space."""
    while at < text.size and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


@kernel
def skip_string(text: Any, at: int) -> int:
    """The position after a string whose first character is at `at`, behind the quotation mark."""
    while at < text.size:
        c = text[at]
        if c == 34:  # "
            return at + 1
        if c == 92 or c < 32 or c > 126:  # an escape, or not printable ASCII
            return NOT_PLAIN
        at += 1
    return NOT_PLAIN


@kernel
def skip_digits(text: Any, at: int) -> int:
    """The next position that is not a digit."""
    while at < text.size and 48 <= text[at] <= 57:
        at += 1
    return at


@kernel
def skip_number(text: Any, at: int) -> int:
    """The position after a number."""
    if at < text.size and text[at] == 45:  # -
        at += 1
    first = at
    at = skip_digits(text, at)
    if at == first or (text[first] == 48 and at > first + 1):  # no digit, or a leading zero
        return NOT_PLAIN
    if at < text.size and text[at] == 46:  # .
        first = at + 1
        at = skip_digits(text, first)
        if at == first:
            return NOT_PLAIN
    if at < text.size and (text[at] == 69 or text[at] == 101):  # e
        first = at + 1
        if first < text.size and (text[first] == 43 or text[first] == 45):
            first += 1
        at = skip_digits(text, first)
        if at == first:
            return NOT_PLAIN
    return at


@kernel
def skip_word(text: Any, at: int) -> int:
    """The position after true, false or null."""
    if at + 4 <= text.size:
        a, b, c, d = text[at], text[at + 1], text[at + 2], text[at + 3]
        if a == 116 and b == 114 and c == 117 and d == 101:
            return at + 4
        if a == 110 and b == 117 and c == 108 and d == 108:
            return at + 4
        if (
            a == 102
            and b == 97
            and c == 108
            and d == 115
            and at + 5 <= text.size
            and text[at + 4] == 101
        ):
            return at + 5
    return NOT_PLAIN


@kernel
def skip_key(text: Any, at: int) -> int:
    """The position of the value after a key whose first character is at `at`."""
    at = skip_string(text, at)
    if at < 0:
        return NOT_PLAIN
    at = skip_space(text, at)
    if at >= text.size or text[at] != 58:  # :
        return NOT_PLAIN
    return skip_space(text, at + 1)


@kernel
def skip_value(text: Any, at: int) -> int:
    """The position after any value that begins at `at`."""
    objects = np.uint64(0)  # which of the open brackets are braces, innermost last
    depth = 0
    while at < text.size:
        c = text[at]
        opened = c == 91 or c == 123  # [ {
        if opened:
            if depth == MAX_DEPTH:
                return NOT_PLAIN
            objects = (objects << np.uint64(1)) | np.uint64(c == 123)
            depth += 1
            at = skip_space(text, at + 1)
            if at >= text.size:
                return NOT_PLAIN
            if text[at] != (
                125 if objects & np.uint64(1) else 93
            ):  # not empty: on to the first element
                if objects & np.uint64(1):
                    if text[at] != 34:
                        return NOT_PLAIN
                    at = skip_key(text, at + 1)
                    if at < 0:
                        return NOT_PLAIN
                continue
        elif c == 34:
            at = skip_string(text, at + 1)
        elif c == 45 or 48 <= c <= 57:
            at = skip_number(text, at)
        else:
            at = skip_word(text, at)
        if at < 0:
            return NOT_PLAIN
        # a value has ended, or an empty list is about to: close what closes, or go on after a comma
        while True:
            if depth == 0:
                return at
            at = skip_space(text, at)
            if at >= text.size:
                return NOT_PLAIN
            if text[at] == (125 if objects & np.uint64(1) else 93):
                depth -= 1
                objects >>= np.uint64(1)
                opened = False
                at += 1
                continue
            if text[at] != 44 or opened:  # ,
                return NOT_PLAIN
            at = skip_space(text, at + 1)
            if objects & np.uint64(1):
                if at >= text.size or text[at] != 34:
                    return NOT_PLAIN
                at = skip_key(text, at + 1)
                if at < 0:
                    return NOT_PLAIN
            break
    return NOT_PLAIN


@kernel
def read_number(text: Any, at: int) -> Any:
    """A number at `at`: the nearest double and the position after it."""
    negative = at < text.size and text[at] == 45
    if negative:
        at += 1
    digits, exponent = np.uint64(0), 0
    first = at
    begin = at
    while at < text.size and 48 <= text[at] <= 57:
        digits = digits * np.uint64(10) + np.uint64(text[at] - 48)
        at += 1
    if at == first or (text[first] == 48 and at > first + 1):
        return 0.0, NOT_PLAIN
    whole = True
    if at < text.size and text[at] == 46:
        whole = False
        first = at + 1
        at = first
        while at < text.size and 48 <= text[at] <= 57:
            digits = digits * np.uint64(10) + np.uint64(text[at] - 48)
            at += 1
        if at == first:
            return 0.0, NOT_PLAIN
        exponent = first - at
    if at > begin + 19:  # perhaps too many for 64 bits: zeros in front do not count
        while text[begin] == 48 or text[begin] == 46:
            begin += 1
            if begin == at:
                break
        if at - begin > (
            20 if begin < at + exponent < at else 19
        ):  # nineteen digits, and the point where it is among them
            return 0.0, NOT_PLAIN
    if at < text.size and (text[at] == 69 or text[at] == 101):
        whole = False
        first = at + 1
        sign = 1
        if first < text.size and (text[first] == 43 or text[first] == 45):
            sign = 44 - int(text[first])
            first += 1
        at = skip_digits(text, first)
        if at == first or at > first + 4:
            return 0.0, NOT_PLAIN
        power = 0
        for i in range(first, at):
            power = 10 * power + int(text[i]) - 48
        exponent += sign * power
    value = nearest_double(digits, exponent)
    if value < 0.0 or (
        negative and whole and digits == np.uint64(0)
    ):  # the integer -0: 0.0 for some readers, -0.0 for others
        return 0.0, NOT_PLAIN
    return -value if negative else value, at


@kernel
def read_integer(text: Any, at: int) -> Any:
    """A plain integer of at most 18 digits at `at`, and the position after it."""
    negative = at < text.size and text[at] == 45
    if negative:
        at += 1
    first = at
    value = 0
    while at < text.size and 48 <= text[at] <= 57 and at < first + 19:
        value = 10 * value + int(text[at]) - 48
        at += 1
    if at == first or at > first + 18 or (text[first] == 48 and at > first + 1):
        return 0, NOT_PLAIN
    if at < text.size and (text[at] == 46 or text[at] == 69 or text[at] == 101):
        return 0, NOT_PLAIN
    return -value if negative else value, at


@kernel
def read_box(text: Any, at: int, box: Any) -> int:
    """A list of four numbers at `at`, the last two not negative, into `box` (4,); returns the
    position after it.
    """
    if at >= text.size or text[at] != 91:
        return NOT_PLAIN
    at += 1
    for i in range(4):
        value, at = read_number(text, skip_space(text, at))
        if at < 0 or (i >= 2 and value < 0.0):
            return NOT_PLAIN
        box[i] = value
        at = skip_space(text, at)
        if at >= text.size or text[at] != (44 if i < 3 else 93):
            return NOT_PLAIN
        at += 1
    return at


@kernel
def equals(text: Any, at: int, word: Any) -> bool:
    """Whether the text at `at` is the word, of which `at` is known to leave room."""
    for i in range(word.size):  # noqa: SIM110
        if text[at + i] != word[i]:
            return False
    return True


WORD_IMAGE_ID, WORD_CATEGORY_ID, WORD_BBOX, WORD_SCORE, WORD_AREA, WORD_ISCROWD, WORD_ID = (
    np.frombuffer(word + b'"', np.uint8)
    for word in (b"image_id", b"category_id", b"bbox", b"score", b"area", b"iscrowd", b"id")
)
WORD_IGNORE = np.frombuffer(b'ignore"', np.uint8)


@kernel
def begins(text: Any, at: int, word: Any) -> bool:
    """Whether the text goes on with the word."""
    return at + word.size <= text.size and equals(text, at, word)


@kernel
def read_key(text: Any, at: int) -> Any:
    """The bit of the key whose first character is at `at`, 0 for one that boxes do not need; and
    the position after it.
    """
    c = text[at] if at < text.size else np.uint8(0)
    if c == 105:  # i
        if begins(text, at, WORD_IMAGE_ID):
            return IMAGE_ID, at + WORD_IMAGE_ID.size
        if begins(text, at, WORD_ID):
            return ID, at + WORD_ID.size
        if begins(text, at, WORD_ISCROWD):
            return ISCROWD, at + WORD_ISCROWD.size
        if begins(text, at, WORD_IGNORE):
            return IGNORE, at + WORD_IGNORE.size
    elif c == 99 and begins(text, at, WORD_CATEGORY_ID):
        return CATEGORY_ID, at + WORD_CATEGORY_ID.size
    elif c == 98 and begins(text, at, WORD_BBOX):
        return BBOX, at + WORD_BBOX.size
    elif c == 115 and begins(text, at, WORD_SCORE):
        return SCORE, at + WORD_SCORE.size
    elif c == 97 and begins(text, at, WORD_AREA):
        return AREA, at + WORD_AREA.size
    return 0, skip_string(text, at)


@kernel
def find_record(text: Any, at: int) -> int:
    """The first ``{`` behind a ``},`` from `at` on: probably a record begins there."""
    while at < text.size:
        if text[at] == 125:  # }
            after = skip_space(text, at + 1)
            if after < text.size and text[after] == 44:
                after = skip_space(text, after + 1)
                if after < text.size and text[after] == 123:
                    return after
        at += 1
    return NOT_PLAIN


@kernel
def scan_records(
    text: Any,
    at: int,
    stop: int,
    wanted: int,
    image: Any,
    category: Any,
    number: Any,
    boxes: Any,
    value: Any,
    seen: Any,
    state: Any,
) -> int:
    """Records of a list, from the one that begins at `at` to the one that begins at `stop`, or to
    the list's end.

    text (n,) uint8; wanted: bits of the keys to read, others are passed over; out: image,
    category (N,) int64; number (N,) int64, the record's own id; boxes (N, 4) float64; value (N,)
    float64, score or area; seen (N,) uint8, bits of the keys that were there; state (2,) int64:
    rows written, 1 if the list has ended. Returns the position reached (`stop`, or behind the
    closing bracket), or a negative one where the text is not plain.
    """
    row = 0
    while True:
        if at >= text.size or text[at] != 123 or row == seen.size:
            return NOT_PLAIN
        keys = 0
        at = skip_space(text, at + 1)
        if at < text.size and text[at] == 125:
            return NOT_PLAIN
        while True:
            if at >= text.size or text[at] != 34:
                return NOT_PLAIN
            key, at = read_key(text, at + 1)
            if at < 0:
                return NOT_PLAIN
            at = skip_space(text, at)
            if at >= text.size or text[at] != 58:
                return NOT_PLAIN
            at = skip_space(text, at + 1)
            if key & wanted == 0:
                at = skip_value(text, at)
            elif key & keys:
                return NOT_PLAIN
            elif key == BBOX:
                at = read_box(text, at, boxes[row])
            elif key in (SCORE, AREA):
                value[row], at = read_number(text, at)
            elif key == IMAGE_ID:
                image[row], at = read_integer(text, at)
            elif key == CATEGORY_ID:
                category[row], at = read_integer(text, at)
            else:
                whole, at = read_integer(text, at)
                if key == ID:
                    number[row] = whole
                elif key == IGNORE:
                    if whole != 0:  # a flag of LVIS, for which `seen` has no bit
                        return NOT_PLAIN
                elif whole == 1:
                    keys |= CROWD
                elif whole != 0:
                    return NOT_PLAIN
            if at < 0:
                return NOT_PLAIN
            keys |= key & wanted
            at = skip_space(text, at)
            if at >= text.size:
                return NOT_PLAIN
            if text[at] == 125:
                break
            if text[at] != 44:
                return NOT_PLAIN
            at = skip_space(text, at + 1)
        seen[row] = keys & 255
        row += 1
        at = skip_space(text, at + 1)
        if at >= text.size:
            return NOT_PLAIN
        if text[at] == 93:  # ]
            state[0], state[1] = row, 1
            return at + 1
        if text[at] != 44:
            return NOT_PLAIN
        at = skip_space(text, at + 1)
        if at >= stop:
            state[0], state[1] = row, 0
            return at if at == stop else NOT_PLAIN
