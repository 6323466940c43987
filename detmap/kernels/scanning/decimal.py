"""Decimal text to the nearest double, exactly like ``float()``.

Source: D. Lemire, "Number parsing at a gigabyte per second" (2021), and N. Mushtak and D. Lemire,
"Fast number parsing without fallback" (2023): the product of the digits and a 128-bit power of five
determines the double.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.scanning.words import leading_zeros, multiply

LEAST_EXPONENT, GREATEST_EXPONENT = (
    -100,
    60,
)  # other decimal exponents fall back to the full decoder


def _powers_of_five() -> NDArray[np.uint64]:
    """(n, 2) uint64: 5**q for every exponent, normalized to 128 bits; truncated, or rounded up for
    negative q.
    """
    rows = []
    for q in range(LEAST_EXPONENT, GREATEST_EXPONENT + 1):
        if q >= 0:
            power = 5**q
            shift = 128 - power.bit_length()
            bits = power << shift if shift >= 0 else power >> -shift
        else:
            divisor = 5**-q
            bits = (1 << (127 + divisor.bit_length())) // divisor + 1
            bits >>= bits.bit_length() - 128
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


POWERS_OF_FIVE = _powers_of_five()
LEAST_POWER = -400
POWERS_OF_TWO = np.ldexp(1.0, np.arange(LEAST_POWER, 230))
POWERS_OF_TEN = np.array([10.0**k for k in range(23)])  # those that a double represents exactly


@kernel
def nearest_double(digits: np.uint64, exponent: int) -> float:
    """The double nearest to digits * 10**exponent, ties to even; -1.0 if this table cannot decide.

    digits uint64, all digits of the number; exponent int64.

    Source: Lemire 2021 and Mushtak and Lemire 2023, as above.
    """
    if digits == np.uint64(0):
        return 0.0
    if (
        digits <= np.uint64(1 << 53) and -22 <= exponent <= 22
    ):  # both factors are exact, so one operation rounds correctly
        if exponent < 0:
            return float(float(digits) / POWERS_OF_TEN[-exponent])
        return float(float(digits) * POWERS_OF_TEN[exponent])
    if exponent < LEAST_EXPONENT or exponent > GREATEST_EXPONENT:
        return -1.0
    zeros = leading_zeros(digits)
    word = digits << np.uint64(zeros)
    row = exponent - LEAST_EXPONENT
    high, low = multiply(word, POWERS_OF_FIVE[row, 0])
    if high & np.uint64(0x1FF) == np.uint64(
        0x1FF
    ):  # the 64 bits of the power are too few to decide
        more, _ = multiply(word, POWERS_OF_FIVE[row, 1])
        low += more
        if more > low:
            high += np.uint64(1)
    top = high >> np.uint64(63)
    shift_right = top + np.uint64(9)
    mantissa = high >> shift_right  # 54 bits: one more than a double has, to round by
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - zeros
    exact_half = (
        low <= np.uint64(1) and -4 <= exponent <= 23 and mantissa & np.uint64(3) == np.uint64(1)
    )
    if exact_half and mantissa << shift_right == high:
        mantissa &= ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    # exact: 53 bits, and no subnormal is in reach
    return float(float(mantissa) * POWERS_OF_TWO[power - 52 - LEAST_POWER])
