"""The records of a list, fast where they are alike.

Most records differ from the one before in nothing but their numbers. The first stage lists the
separators of a block of text, 64 bytes at a time. So the second stage knows where each number of a
record ends before it has read any, if the text around the numbers is that of a model: the last
record that `detmap.kernels.scanning.json_scan.scan_record` has read. That kernel also reads every
record that differs, or has a number of a form that is not read here.

Source: G. Langdale and D. Lemire, "Parsing gigabytes of JSON per second" (2019), for the two
stages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.scanning.ascii import CLOSE_LIST, COMMA, MINUS, OPEN_OBJECT
from detmap.kernels.scanning.decimal import POWERS_OF_TEN, nearest_double
from detmap.kernels.scanning.json_scan import (
    BOX,
    CATEGORY,
    IMAGE,
    LAST,
    MORE,
    NUMBER,
    ROWS,
    SKIPPED,
    VALUE,
    Ints,
    Records,
    is_integer,
    read_number,
    scan_record,
)
from detmap.kernels.scanning.json_skip import HAND_BACK, Bytes, read_integer, skip_space
from detmap.kernels.scanning.short_numbers import read_long, read_short
from detmap.kernels.scanning.words import BLOCK, WORD, find_separators, load_word, trailing_zeros

Places = NDArray[np.int32]
SLOT, LITERAL, GAP, MARK = range(4)
"""Columns of `parts`: where a number goes; where the text before it begins in the model, and its
length; how many separators of the record are before the number's end."""
GIVE_UP = 64  # four times the records that are read in full before only a quarter of all may be


class Model(NamedTuple):
    """The last record that was read in full, and the separators of a block of text.

    places (P,) int32, positions of separators, P a multiple of 64, 0 to read every record in full;
    numbers (M + 1, 3) int64, see `scan_record`; parts (M + 1, 4) int64, see above, one row per
    number and one for the text behind the last.
    """

    places: Places
    numbers: Ints
    parts: Ints


@inline_kernel
def list_separators(text: Bytes, at: int, places: Places) -> tuple[int, int]:
    """List the separators from `at` on. Returns their number and the position up to which the list
    is complete: at least eight bytes before the end of the text.

    Source: Langdale and Lemire 2019, section 3.1.
    """
    n = 0
    end = min(at + places.size, text.size - WORD) - BLOCK
    while at <= end:
        bits = find_separators(text, at)
        while bits != np.uint64(0):
            places[n] = at + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            n += 1
        at += BLOCK
    return n, at


@kernel
def skip_places(places: Places, k: int, n: int, at: int) -> int:
    """The index of the first of n separators, from index k on, that is not before `at`.

    Source: none; a linear search.
    """
    while k < n and places[k] < at:
        k += 1
    return k


@kernel
def learn(at: int, after: int, k: int, n: int, model: Model) -> int:
    """Make the record from `at` up to the next one at `after` the model. Its separators are those
    from index k of n on. Returns the number of its numbers, 0 if one does not end at a separator.

    Source: none; places of the text.
    """
    places, numbers, parts = model
    first, end = k, at
    n_numbers = numbers[numbers.shape[0] - 1, 0]
    for i in range(n_numbers + 1):
        stop = after if i == n_numbers else numbers[i, 2]
        k = skip_places(places, k, n, stop)
        if i < n_numbers and (k == n or places[k] != stop):
            return 0
        parts[i, SLOT] = numbers[i, 0]
        parts[i, LITERAL] = end
        parts[i, GAP] = (after if i == n_numbers else numbers[i, 1]) - end
        parts[i, MARK] = k - first
        end = stop
    return int(n_numbers)


@inline_kernel
def same_text(text: Bytes, a: int, b: int, size: int) -> bool:
    """Whether the bytes from a and from b on are the same; eight more bytes must be there.

    Source: none; it compares words.
    """
    while size >= WORD:
        if load_word(text, a) != load_word(text, b):
            return False
        a, b, size = a + WORD, b + WORD, size - WORD
    difference = load_word(text, a) ^ load_word(text, b)
    return size == 0 or difference << np.uint64(64 - 8 * size) == np.uint64(0)


@inline_kernel
def read_float(text: Bytes, begin: int, end: int, state: Ints) -> tuple[float, int]:
    """The number from `begin` to `end`, and `end`; or another position. state[MORE] counts
    integers.

    Source: RFC 8259, section 6; the double as in `detmap.kernels.scanning.decimal`.
    """
    first = begin + int(text[begin] == MINUS)
    size = end - first
    if 1 <= size <= WORD:
        digits, behind = read_short(text, first, end)
        value = float(np.int64(digits)) / POWERS_OF_TEN[behind]
    elif size > WORD:
        digits, behind = read_long(text, first, end)
        value = nearest_double(digits, -behind) if behind > 0 else -1.0
    else:
        return 0.0, HAND_BACK
    if behind <= 0 or value < 0.0:
        value, at = read_number(text, begin)
        state[MORE] += int(at == end and is_integer(text, begin, end))
        return value, at
    return -value if first > begin else value, end


@inline_kernel
def read_id(text: Bytes, begin: int, end: int) -> tuple[int, int]:
    """The integer from `begin` to `end`, and `end`; or another position.

    Source: RFC 8259, section 6.
    """
    if 1 <= end - begin <= WORD:
        digits, behind = read_short(text, begin, end)
        if behind == 0:
            return int(np.int64(digits)), end
    return read_integer(text, begin)


@inline_kernel
def read_alike(
    text: Bytes, at: int, k: int, model: Model, n: int, row: int, out: Records, state: Ints
) -> int:
    """Parse the record at `at` into a row if it has the text of the model and n other numbers; its
    separators are those from index k on. Returns the position of the next record, or HAND_BACK.

    Source: see above.
    """
    places, _, parts = model
    for i in range(n):
        begin = at + parts[i, GAP]
        end = int(places[k + parts[i, MARK]])
        if begin >= end or not same_text(text, at, parts[i, LITERAL], parts[i, GAP]):
            return HAND_BACK
        slot = parts[i, SLOT]
        if slot < BOX:
            whole, at = read_id(text, begin, end)
            if slot == IMAGE:
                out.image[row] = whole
            elif slot == CATEGORY:
                out.category[row] = whole
            elif slot == NUMBER:
                out.number[row] = whole
        else:
            value, at = read_float(text, begin, end, state)
            if slot == VALUE:
                out.value[row] = value
            elif slot != SKIPPED:
                out.boxes[row, slot - BOX] = value
                if slot >= BOX + 2 and value < 0.0:
                    return HAND_BACK
        if at != end:
            return HAND_BACK
    size = int(parts[n, GAP])
    if at + size > text.size - WORD or not same_text(text, at, parts[n, LITERAL], size):
        return HAND_BACK
    return at + size if text[at + size] == OPEN_OBJECT else HAND_BACK


@kernel
def scan_records(
    text: Bytes, at: int, stop: int, wanted: int, out: Records, state: Ints, model: Model
) -> int:
    """Parse the records of a list, from the one at `at` to the one at `stop`, or to the end of the
    list.

    text (n,) uint8; wanted: bits of the keys to read, others are skipped; out: the columns; state
    (3,) int64: rows written, 1 if the list has ended, and whether the text has more than the
    columns: further keys, and integers in float64 columns (0 if not); model: scratch.

    Returns the position reached (`stop`, or after the closing bracket), or a negative one to fall
    back to the full decoder.

    Source: RFC 8259, section 5; COCO data format, object detection and results.
    """
    row, n_full, keys = 0, 0, np.uint8(0)
    k, n, listed, n_numbers = 0, 0, at, 0  # of the listed separators, the next one and their number
    while at < stop:
        if n_numbers > 0 and row < out.seen.size:
            n_marks = model.parts[n_numbers, MARK]
            if k + n_marks > n:
                k = 0
                n, listed = list_separators(text, at, model.places)
            if k + n_marks <= n:
                after = read_alike(text, at, k, model, n_numbers, row, out, state)
                if after >= 0:
                    out.seen[row] = keys
                    at, k, row = after, k + n_marks, row + 1
                    continue
        begin = at
        at = scan_record(text, begin, wanted, row, out, state, model.numbers)
        if at < 0:
            return HAND_BACK
        keys = out.seen[row]
        row, n_full = row + 1, n_full + 1
        at = skip_space(text, at)
        if at >= text.size:
            return HAND_BACK
        if text[at] == CLOSE_LIST:
            state[ROWS], state[LAST] = row, 1
            return at + 1
        if text[at] != COMMA:
            return HAND_BACK
        at = skip_space(text, at + 1)
        n_numbers = 0
        if 4 * n_full <= row + GIVE_UP:
            if listed < at:
                k = 0
                n, listed = list_separators(text, begin, model.places)
            k = skip_places(model.places, k, n, begin)
            n_numbers = learn(begin, at, k, n, model) if listed >= at else 0
            k = skip_places(model.places, k, n, at)
    state[ROWS], state[LAST] = row, 0
    return at if at == stop else HAND_BACK
