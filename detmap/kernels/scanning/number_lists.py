"""Reads JSON lists of numbers, and lists of such lists: polygons and keypoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.scanning.ascii import CLOSE_LIST, COMMA, OPEN_LIST
from detmap.kernels.scanning.decimal import POWERS_OF_TEN
from detmap.kernels.scanning.json_scan import read_number
from detmap.kernels.scanning.json_skip import HAND_BACK, Bytes, skip_space
from detmap.kernels.scanning.short_numbers import (
    BYTE,
    EIGHT,
    ONE,
    POINT,
    TEN,
    ZEROS,
    find_others,
    join_digits,
)
from detmap.kernels.scanning.words import WORD, load_word, trailing_zeros

SECOND_TO_FOURTH = np.uint64(0xFFFFFF00)
POINT_ZERO_COMMA = np.uint64(int.from_bytes(b"0.0,", "little") ^ 0x30303030)


@kernel
def read_lists(
    text: Bytes,
    spans: NDArray[np.int64],
    depth: int,
    numbers: NDArray[np.float64],
    list_off: NDArray[np.int64],
    value_off: NDArray[np.int64],
) -> int:
    """Read n values, each a list of numbers (depth 1) or a list of lists of numbers (depth 2), of
    which none is empty. Returns the first value that is something else, -1 if there is none.

    spans (n, 2): where the values begin and end in the text. Out: numbers; list_off, where the
    numbers of each innermost list begin, and value_off (n + 1,), where the innermost lists of each
    value begin, both with their end. Source: RFC 8259, sections 5 and 6.
    """
    n_lists, n_numbers = 0, 0
    list_off[0] = value_off[0] = 0
    for i in range(spans.shape[0]):
        at, end = spans[i, 0], spans[i, 1]
        if depth == 2:
            at = enter_list(text, at, end)
        while at >= 0:
            n_numbers, at = read_list(text, at, end, n_numbers, numbers)
            if at < 0:
                return i
            n_lists += 1
            list_off[n_lists] = n_numbers
            if depth == 1:
                break
            at = skip_space(text, at)
            if at < end and text[at] == CLOSE_LIST:
                at += 1
                break
            at = skip_space(text, at + 1) if at < end and text[at] == COMMA else HAND_BACK
        if at != end:
            return i
        value_off[i + 1] = n_lists
    return -1


@kernel
def enter_list(text: Bytes, at: int, end: int) -> int:
    """The position of the first element of the list at `at`, HAND_BACK if there is no list.

    Source: RFC 8259, section 5.
    """
    return skip_space(text, at + 1) if at < end and text[at] == OPEN_LIST else HAND_BACK


@kernel
def read_list(
    text: Bytes, at: int, end: int, n: int, numbers: NDArray[np.float64]
) -> tuple[int, int]:
    """Read the list of numbers at `at`, from the position n of `numbers` on. Returns the position
    after the last number, and that after the bracket.

    Source: RFC 8259, section 5.
    """
    at = enter_list(text, at, end)
    while at >= 0:
        value, after = read_decimal(text, at)
        if after < 0:
            value, after = read_number(text, at)
        if after < 0 or n == numbers.size:
            return n, HAND_BACK
        numbers[n] = value
        n += 1
        at = skip_space(text, after)
        if at < end and text[at] == CLOSE_LIST:
            return n, at + 1
        at = skip_space(text, at + 1) if at < end and text[at] == COMMA else HAND_BACK
    return n, HAND_BACK


@inline_kernel
def read_decimal(text: Bytes, at: int) -> tuple[float, int]:
    """Read a number as `detmap.kernels.scanning.json_scan.read_number` does, in a third of the
    time, or return HAND_BACK: unless digits, a point and digits, seven characters at most, end at
    a comma or a bracket.

    Source: RFC 8259, section 6. At most six digits and their power of ten are exact, so the
    division rounds correctly.
    """
    if at + WORD > text.size:
        return 0.0, HAND_BACK
    digits = load_word(text, at) ^ ZEROS
    if digits & SECOND_TO_FOURTH == POINT_ZERO_COMMA and digits & BYTE < TEN:  # a visibility
        return float(np.int64(digits & BYTE)), at + 3
    others = find_others(digits)
    point, stop = trailing_zeros(others), trailing_zeros(others & (others - ONE))
    if digits >> (np.uint64(point) & np.uint64(56)) & BYTE != POINT or stop == 64:
        return 0.0, HAND_BACK
    before, end = point >> 3, stop >> 3
    behind = end - before - 1
    if before == 0 or behind == 0 or (before > 1 and digits & BYTE == np.uint64(0)):
        return 0.0, HAND_BACK
    if text[at + end] != COMMA and text[at + end] != CLOSE_LIST:
        return 0.0, HAND_BACK
    place = np.uint64(8 * before)
    lower = (ONE << place) - ONE
    digits = ((digits & lower) << EIGHT) | (digits & ~((BYTE << place) | lower))  # no point
    whole = join_digits(digits << np.uint64(64 - 8 * end))
    return float(np.int64(whole)) / POWERS_OF_TEN[behind], at + end
