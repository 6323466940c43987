"""Several bytes of a text at once.

`detmap.kernels.intrinsics` replaces these kernels by one to five instructions of any processor.
What is here is the definition: it runs without the JIT, and tests compare both. No bound is
checked: the caller has to know that the bytes are there. All supported processors are
little-endian.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Bytes = NDArray[np.uint8]

WORD, BLOCK = 8, 64  # bytes that `load_word` and `find_separators` read
ALL = 2**64 - 1
SEPARATORS = b",]}"


@kernel
def load_word(text: Bytes, at: int) -> np.uint64:
    """The eight bytes from `at` on; the first is the lowest.

    Source: none; a load.
    """
    return np.uint64(int.from_bytes(text[at : at + WORD].tobytes(), "little"))


@kernel
def find_separators(text: Bytes, at: int) -> np.uint64:
    """Which of the 64 bytes from `at` on are a comma or a closing bracket or brace, as bits; the
    first byte is the lowest.

    Source: RFC 8259, section 2: each value of a list or an object ends before one of these.
    """
    block = text[at : at + BLOCK].tobytes()
    return np.uint64(sum((byte in SEPARATORS) << i for i, byte in enumerate(block)))


@kernel
def trailing_zeros(word: np.uint64) -> int:
    """The position of the lowest bit that is set; 64 if none is.

    Source: none; an instruction.
    """
    return (int(word) & -int(word)).bit_length() - 1 if word else 64


@kernel
def leading_zeros(word: np.uint64) -> int:
    """The number of bits above the highest one that is set; 64 if none is.

    Source: none; an instruction.
    """
    return 64 - int(word).bit_length()


@kernel
def count_bits(word: np.uint64) -> int:
    """The number of bits that are set.

    Source: none; an instruction.
    """
    return int(word).bit_count()


@kernel
def multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The 128-bit product of two uint64, as (high, low).

    Source: none; an instruction.
    """
    product = int(a) * int(b)
    return np.uint64(product >> 64), np.uint64(product & ALL)
