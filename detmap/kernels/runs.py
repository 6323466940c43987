"""Run lengths of masks as COCO packs them into text, looked at before anybody follows them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

FIRST = 48  # the character that stands for 0
MORE, SIGN, BITS = 32, 16, 5  # another character follows; the number is negative; bits of each
LONGEST = 7  # characters of a number of 32 bits


@kernel
def find_bad_runs(
    text: NDArray[np.uint8], off: NDArray[np.int64], pixels: NDArray[np.int64]
) -> int:
    """The first of n texts whose run lengths do not fill the pixels of their mask; -1 for none.

    text: all of them, one after the other; off (n + 1,), pixels (n,). Source: rleFrString of
    pycocotools' maskApi.c, which follows a text without looking where it ends: a number is
    written in base 32, from the third on as the difference to the one two before.
    """
    for i in range(pixels.size):
        at, end = off[i], off[i + 1]
        total, n_runs = np.int64(0), 0
        before, last = np.int64(0), np.int64(0)  # the run two before, and the one before
        while at < end:
            value, n_characters, more = np.int64(0), 0, True
            while more:
                if at == end or n_characters == LONGEST:
                    return i
                word = np.int64(text[at]) - FIRST
                if word < 0 or word >= 64:
                    return i
                value |= (word & 31) << (BITS * n_characters)
                more = word & MORE != 0
                n_characters += 1
                at += 1
                if not more and word & SIGN:
                    value |= np.int64(-1) << (BITS * n_characters)
            if n_runs > 2:
                value += before
            before, last = last, value
            n_runs += 1
            total += value
            if value < 0 or total > pixels[i]:
                return i
        if total != pixels[i]:
            return i
    return -1
