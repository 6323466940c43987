"""Numbers whose end is known, eight digits at a time.

Source: D. Lemire, "Number parsing at a gigabyte per second" (2021), section 7: eight digits of a
word by three multiplications. Other forms than digits with at most one point are refused: the
caller has `detmap.kernels.scanning.json_scan.read_number` for them.
"""

from __future__ import annotations

import numpy as np

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.scanning.words import WORD, Bytes, load_word, trailing_zeros

REFUSED = -1
MOST_DIGITS = 19  # of 64 bits
ZEROS = np.uint64(0x3030303030303030)
HIGH_BITS = np.uint64(0x8080808080808080)
LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
ABOVE_NINE = np.uint64(0x7676767676767676)  # sets the high bit of each byte above 9
POINT = np.uint64(ord(".") ^ ord("0"))
PAIRS = np.uint64(0x000000FF000000FF)
BYTE, ONE, SEVEN, EIGHT, TEN = (np.uint64(n) for n in (0xFF, 1, 7, 8, 10))
UPPER, LOWER = np.uint64(100 + (1000000 << 32)), np.uint64(1 + (10000 << 32))
POWERS_OF_TEN = np.array([10**k for k in range(MOST_DIGITS + 1)], dtype=np.uint64)


@inline_kernel
def load_digits(text: Bytes, at: int, n: int) -> np.uint64:
    """The 1 to 8 bytes from `at` on as digits, the last one in the highest byte, zeros before them.

    Source: ASCII: a byte XOR 0x30 is its digit.
    """
    return (load_word(text, at) ^ ZEROS) << np.uint64(64 - 8 * n)


@inline_kernel
def find_others(digits: np.uint64) -> np.uint64:
    """The high bit of each byte that is above 9.

    Source: none; no carry leaves a byte.
    """
    return (((digits & LOW_BITS) + ABOVE_NINE) | digits) & HIGH_BITS


@inline_kernel
def join_digits(digits: np.uint64) -> np.uint64:
    """The number of eight digits, the first in the lowest byte.

    Source: Lemire 2021, section 7.
    """
    pairs = digits * TEN + (digits >> EIGHT)
    upper = (pairs & PAIRS) * UPPER
    lower = ((pairs >> np.uint64(16)) & PAIRS) * LOWER
    return (upper + lower) >> np.uint64(32)


@inline_kernel
def read_short(text: Bytes, begin: int, end: int) -> tuple[np.uint64, int]:
    """The digits of a number of 1 to 8 characters, and how many are behind its point; REFUSED in
    place of these for another form. `text` has eight bytes from `begin` on.

    Source: RFC 8259, section 6.
    """
    n = end - begin
    digits = load_digits(text, begin, n)
    unused = np.uint64(64 - 8 * n)
    leading_zero = (digits >> unused) & BYTE == np.uint64(0)
    others = find_others(digits)
    if others == np.uint64(0):
        return join_digits(digits), REFUSED if leading_zero and n > 1 else 0
    place = np.uint64(trailing_zeros(others)) - SEVEN  # of the point's lowest bit
    behind = int(np.int64((np.uint64(56) - place) >> np.uint64(3)))
    right = (
        others & (others - ONE) == np.uint64(0)
        and (digits >> place) & BYTE == POINT
        and place > unused
        and behind > 0
        and (not leading_zero or place == unused + EIGHT)
    )
    before = digits & ((ONE << place) - ONE)
    digits = (before << EIGHT) | (digits & ~((BYTE << place) | ((ONE << place) - ONE)))
    return join_digits(digits), behind if right else REFUSED


@kernel
def read_long(text: Bytes, begin: int, end: int) -> tuple[np.uint64, int]:
    """As `read_short`, of 9 and more characters: a number with a point among the first eight and
    at most 19 digits.

    Source: RFC 8259, section 6.
    """
    word = load_word(text, begin) ^ ZEROS
    others = find_others(word)
    if others == np.uint64(0):
        return others, REFUSED
    n = trailing_zeros(others) >> 3  # digits before the point
    first = begin + n + 1
    behind = end - first
    if n == 0 or behind < 1 or n + behind > MOST_DIGITS:
        return others, REFUSED
    if (word >> np.uint64(8 * n)) & BYTE != POINT or (n > 1 and word & BYTE == np.uint64(0)):
        return others, REFUSED
    whole = join_digits(word << np.uint64(64 - 8 * n))
    head = (behind - 1) & 7  # digits of the first group but one
    digits = load_digits(text, first, head + 1)
    others = find_others(digits)
    fraction = join_digits(digits)
    at = first + head + 1
    while at < end:
        digits = load_word(text, at) ^ ZEROS
        others |= find_others(digits)
        fraction = fraction * np.uint64(100000000) + join_digits(digits)
        at += WORD
    if others != np.uint64(0):
        return others, REFUSED
    return whole * POWERS_OF_TEN[behind] + fraction, behind
