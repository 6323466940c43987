"""A strict JSON scanner: reads flat records of boxes into columns.

It parses a subset of JSON: printable ASCII without characters by number, ids as integers, numbers
of at most 19 digits. On anything else it returns a negative position, and the caller falls back to
the full decoder, which supports all legal files and reports all errors. It reads no byte outside
``text``: every access follows a comparison with its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.scanning.ascii import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    LOWER_E,
    MINUS,
    NINE,
    OPEN_LIST,
    OPEN_OBJECT,
    PLUS,
    POINT,
    QUOTE,
    UPPER_E,
    ZERO,
)
from detmap.kernels.scanning.decimal import nearest_double
from detmap.kernels.scanning.json_skip import (
    HAND_BACK,
    Bytes,
    begins,
    read_integer,
    skip_digits,
    skip_space,
    skip_string,
    skip_value,
)
from detmap.kernels.scanning.mask_scan import ShapeColumns, read_flat_span, read_segmentation

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


(IMAGE_ID, CATEGORY_ID, BBOX, SCORE, AREA, ISCROWD, ID, CROWD, IGNORE, SEGMENTATION, ATTRIBUTES) = (
    1 << bit for bit in range(11)
)
KEYPOINTS, NUM_KEYPOINTS = 1 << 11, 1 << 12
ROWS, LAST, MORE = range(3)
"""Indices of `state` in `scan_records`."""
KEPT = 255  # the number of bits in `seen`
"""Bits of the keys of a record; CROWD is set with ISCROWD if the flag is 1."""
IMAGE, CATEGORY, NUMBER, BOX = range(4)
VALUE, SKIPPED = BOX + 4, BOX + 5
"""Where a number of a record goes: a column, four of boxes, or none."""


@kernel
def read_number(text: Bytes, at: int) -> tuple[float, int]:
    """Parse a number at `at`: the nearest double, and the position after it.

    Source: RFC 8259, section 6; the double as in `detmap.kernels.scanning.decimal`.
    """
    negative = at < text.size and text[at] == MINUS
    if negative:
        at += 1
    digits, exponent = np.uint64(0), 0
    first = at
    begin = at
    while at < text.size and ZERO <= text[at] <= NINE:
        digits = digits * np.uint64(10) + np.uint64(text[at] - ZERO)
        at += 1
    if at == first or (text[first] == ZERO and at > first + 1):
        return 0.0, HAND_BACK
    whole = True
    if at < text.size and text[at] == POINT:
        whole = False
        first = at + 1
        at = first
        while at < text.size and ZERO <= text[at] <= NINE:
            digits = digits * np.uint64(10) + np.uint64(text[at] - ZERO)
            at += 1
        if at == first:
            return 0.0, HAND_BACK
        exponent = first - at
    if at > begin + 19:  # perhaps too many for 64 bits; leading zeros do not count
        while text[begin] == ZERO or text[begin] == POINT:
            begin += 1
            if begin == at:
                break
        if at - begin > (
            20 if begin < at + exponent < at else 19
        ):  # nineteen digits, and a decimal point among them
            return 0.0, HAND_BACK
    if at < text.size and (text[at] == UPPER_E or text[at] == LOWER_E):
        whole = False
        first = at + 1
        sign = 1
        if first < text.size and (text[first] == PLUS or text[first] == MINUS):
            sign = -1 if text[first] == MINUS else 1
            first += 1
        at = skip_digits(text, first)
        if at == first or at > first + 4:
            return 0.0, HAND_BACK
        power = 0
        for i in range(first, at):
            power = 10 * power + int(text[i]) - ZERO
        exponent += sign * power
    value = nearest_double(digits, exponent)
    if value < 0.0 or (
        negative and whole and digits == np.uint64(0)
    ):  # the integer -0: 0.0 for some readers, -0.0 for others
        return 0.0, HAND_BACK
    return -value if negative else value, at


@kernel
def is_integer(text: Bytes, at: int, end: int) -> bool:
    """Whether a legal number from `at` to `end` has neither a point nor an exponent.

    Source: RFC 8259, section 6; Python's `json`, which makes an int of such a number.
    """
    for i in range(at, end):
        if text[i] == POINT or text[i] == LOWER_E or text[i] == UPPER_E:
            return False
    return True


@kernel
def is_whole(value: float) -> bool:
    """Whether a number has no fraction, without `np.floor`, which needs a C library function on old
    processors.

    Source: none; a test of one number.
    """
    return abs(value) >= 4503599627370496.0 or value == float(np.int64(value))


@inline_kernel
def note_number(numbers: Ints, slot: int, begin: int, end: int) -> None:
    """Append a number of a record and its place to `numbers` (M, 3), whose last row counts them.

    Source: none; it only writes.
    """
    n = numbers[numbers.shape[0] - 1, 0]
    if n + 1 < numbers.shape[0]:
        numbers[n, 0], numbers[n, 1], numbers[n, 2] = slot, begin, end
        numbers[numbers.shape[0] - 1, 0] = n + 1


@inline_kernel
def read_box(text: Bytes, at: int, box: Floats, state: Ints, numbers: Ints) -> int:
    """Parse a list of four numbers at `at`, the last two not negative, into `box` (4,). Returns the
    position after it; state[MORE] counts the integers.

    Source: COCO data format, ``bbox``.
    """
    if at >= text.size or text[at] != OPEN_LIST:
        return HAND_BACK
    at += 1
    for i in range(4):
        begin = skip_space(text, at)
        value, at = read_number(text, begin)
        if at < 0 or (i >= 2 and value < 0.0):
            return HAND_BACK
        box[i] = value
        note_number(numbers, BOX + i, begin, at)
        if is_whole(value) and is_integer(text, begin, at):
            state[MORE] += 1
        at = skip_space(text, at)
        if at >= text.size or text[at] != (COMMA if i < 3 else CLOSE_LIST):
            return HAND_BACK
        at += 1
    return at


WORD_IMAGE_ID, WORD_CATEGORY_ID, WORD_BBOX, WORD_SCORE, WORD_AREA, WORD_ISCROWD, WORD_ID = (
    np.frombuffer(word + b'"', np.uint8)
    for word in (b"image_id", b"category_id", b"bbox", b"score", b"area", b"iscrowd", b"id")
)
WORD_IGNORE, WORD_SEGMENTATION, WORD_ATTRIBUTES, WORD_KEYPOINTS, WORD_NUM_KEYPOINTS = (
    np.frombuffer(word + b'"', np.uint8)
    for word in (b"ignore", b"segmentation", b"attributes", b"keypoints", b"num_keypoints")
)


LETTER_A, LETTER_B, LETTER_C, LETTER_I, LETTER_K, LETTER_N, LETTER_S = b"abcikns"
"""The first characters of the keys."""


@inline_kernel
def read_key(text: Bytes, at: int) -> tuple[int, int]:
    """The bit of the key whose first character is at `at`, 0 for a key that is not needed; and the
    position after it.

    Source: COCO data format, object detection and results.
    """
    c = text[at] if at < text.size else np.uint8(0)
    if c == LETTER_I:
        if begins(text, at, WORD_IMAGE_ID):
            return IMAGE_ID, at + WORD_IMAGE_ID.size
        if begins(text, at, WORD_ID):
            return ID, at + WORD_ID.size
        if begins(text, at, WORD_ISCROWD):
            return ISCROWD, at + WORD_ISCROWD.size
        if begins(text, at, WORD_IGNORE):
            return IGNORE, at + WORD_IGNORE.size
    elif c == LETTER_C and begins(text, at, WORD_CATEGORY_ID):
        return CATEGORY_ID, at + WORD_CATEGORY_ID.size
    elif c == LETTER_B and begins(text, at, WORD_BBOX):
        return BBOX, at + WORD_BBOX.size
    elif c == LETTER_S:
        if begins(text, at, WORD_SCORE):
            return SCORE, at + WORD_SCORE.size
        if begins(text, at, WORD_SEGMENTATION):
            return SEGMENTATION, at + WORD_SEGMENTATION.size
    elif c == LETTER_A:
        if begins(text, at, WORD_AREA):
            return AREA, at + WORD_AREA.size
        if begins(text, at, WORD_ATTRIBUTES):
            return ATTRIBUTES, at + WORD_ATTRIBUTES.size
    elif c == LETTER_K and begins(text, at, WORD_KEYPOINTS):
        return KEYPOINTS, at + WORD_KEYPOINTS.size
    elif c == LETTER_N and begins(text, at, WORD_NUM_KEYPOINTS):
        return NUM_KEYPOINTS, at + WORD_NUM_KEYPOINTS.size
    return 0, skip_string(text, at)


@kernel
def find_record(text: Bytes, at: int) -> int:
    """The first ``{`` after a ``},`` from `at` on: probably the start of a record.

    Source: none; a guess that `scan_records` verifies.
    """
    while at < text.size:
        if text[at] == CLOSE_OBJECT:
            after = skip_space(text, at + 1)
            if after < text.size and text[after] == COMMA:
                after = skip_space(text, after + 1)
                if after < text.size and text[after] == OPEN_OBJECT:
                    return after
        at += 1
    return HAND_BACK


class Records(NamedTuple):
    """Columns of N records: image, category and the record's id (N,) int64; boxes (N, 4) float64;
    value (N,) float64, score or area; seen (N,) uint8, bits of the keys found; masks, with N rows
    if SEGMENTATION or KEYPOINTS is wanted.
    """

    image: Ints
    category: Ints
    number: Ints
    boxes: Floats
    value: Floats
    seen: Bytes
    masks: ShapeColumns


@inline_kernel
def read_field(
    text: Bytes, at: int, key: int, row: int, out: Records, state: Ints, numbers: Ints
) -> tuple[int, int]:
    """Parse the value of a wanted key into a row. Returns the bits of the key and the position
    after the value.

    Source: COCO data format, object detection and results.
    """
    begin = at
    if key == BBOX:
        return key, read_box(text, at, out.boxes[row], state, numbers)
    if key in (SCORE, AREA):
        out.value[row], at = read_number(text, begin)
        note_number(numbers, VALUE, begin, at)
        if is_whole(out.value[row]) and is_integer(text, begin, at):
            state[MORE] += 1
        return key, at
    if key == SEGMENTATION:
        return key, read_segmentation(text, at, row, out.masks)
    if key == KEYPOINTS:
        out.masks.end[row] = 0
        return key, read_flat_span(text, at, row, out.masks)
    if key == ATTRIBUTES:  # it may hold a further area or segmentation
        return key, HAND_BACK
    whole, at = read_integer(text, at)
    if key == IMAGE_ID:
        out.image[row] = whole
        note_number(numbers, IMAGE, begin, at)
    elif key == CATEGORY_ID:
        out.category[row] = whole
        note_number(numbers, CATEGORY, begin, at)
    elif key == ID:
        out.number[row] = whole
        note_number(numbers, NUMBER, begin, at)
    elif key == NUM_KEYPOINTS:
        if whole < 0:
            return key, HAND_BACK
        out.masks.labelled[row] = whole
    elif key == IGNORE:
        if whole != 0:  # a flag of LVIS, for which `seen` has no bit
            return key, HAND_BACK
    elif whole == 1:
        return key | CROWD, at
    elif whole != 0:
        return key, HAND_BACK
    return key, at


@inline_kernel
def scan_record(
    text: Bytes, at: int, wanted: int, row: int, out: Records, state: Ints, numbers: Ints
) -> int:
    """Parse the record at `at` into a row.

    text (n,) uint8; wanted: bits of the keys to read, others are skipped; out: the columns;
    state[MORE] counts what the text has more than the columns: further keys, and integers in
    float64 columns; numbers (M, 3) int64: slot, begin and end of each number of the record itself,
    in its last row their count. The record must have SEGMENTATION and KEYPOINTS if they are wanted,
    and must not have ATTRIBUTES.

    Returns the position after the closing brace, or a negative one to fall back to the full
    decoder.

    Source: RFC 8259, section 4; COCO data format, object detection and results.
    """
    if at >= text.size or text[at] != OPEN_OBJECT or row == out.seen.size:
        return HAND_BACK
    keys = 0
    numbers[numbers.shape[0] - 1, 0] = 0
    if wanted & NUM_KEYPOINTS != 0:
        out.masks.labelled[row] = -1
    at = skip_space(text, at + 1)
    while True:
        if at >= text.size or text[at] != QUOTE:
            return HAND_BACK
        key, at = read_key(text, at + 1)
        if at < 0:
            return HAND_BACK
        at = skip_space(text, at)
        if at >= text.size or text[at] != COLON:
            return HAND_BACK
        at = skip_space(text, at + 1)
        if key & keys:
            return HAND_BACK
        if key & wanted == 0:
            begin = at
            at = skip_value(text, begin)
            state[MORE] += 1
            if begin < text.size and text[begin] <= NINE and text[begin] != QUOTE:
                note_number(numbers, SKIPPED, begin, at)
        else:
            key, at = read_field(text, at, key, row, out, state, numbers)
            keys |= key
        if at < 0:
            return HAND_BACK
        at = skip_space(text, at)
        if at >= text.size:
            return HAND_BACK
        if text[at] == CLOSE_OBJECT:
            break
        if text[at] != COMMA:
            return HAND_BACK
        at = skip_space(text, at + 1)
    if wanted & ~keys & (SEGMENTATION | KEYPOINTS) != 0:
        return HAND_BACK
    out.seen[row] = keys & KEPT
    return at + 1
