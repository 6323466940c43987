"""Reads the shape of a JSON record: COCO's run lengths into numbers, other values as a span.

As in `detmap.kernels.scanning.json_scan`, HAND_BACK in place of a position falls back to the full
decoder.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.runs import WIDEST, put_run
from detmap.kernels.scanning.ascii import (
    BACKSLASH,
    CLOSE_LIST,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    MINUS,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
)
from detmap.kernels.scanning.json_skip import (
    HAND_BACK,
    Bytes,
    begins,
    read_integer,
    skip_space,
    skip_value,
)
from detmap.kernels.scanning.words import WORD, load_word, trailing_zeros

Counts = NDArray[np.uint16]
FIRST = 48  # the character that stands for 0
MORE, SIGN, BITS = 32, 16, 5  # another character follows; the number is negative; bits of each
LONGEST = 7  # characters of a number of 32 bits
MOST = 2**31 - 1  # pixels of an image, and of a run
WORD_SIZE, WORD_COUNTS = (np.frombuffer(word, np.uint8) for word in (b'size"', b'counts"'))

LOW_BIT, HIGH_BIT, CLOSE_LISTS = (
    np.uint64(int.from_bytes(bytes([byte] * WORD), "little")) for byte in (0x01, 0x80, CLOSE_LIST)
)


class ShapeColumns(NamedTuple):
    """Segmentations or keypoints of N records, of which n are in use."""

    size: NDArray[np.int64]  # (N, 2) height and width of run lengths
    end: NDArray[np.int64]  # (N,) entries of all records up to this one
    counts: Counts  # (R,) entries, as of `detmap.kernels.runs.Runs`
    span: NDArray[np.int64]  # (N, 2) begin and end of the text of another value; zeros for runs
    labelled: NDArray[np.int64]  # (N,) num_keypoints, -1 without it; of keypoints only


@kernel
def read_compressed(text: Bytes, at: int, first: int, counts: Counts) -> tuple[int, int, np.int64]:
    """Parse a string of compressed run lengths whose first character is at `at`.

    Out: counts, from `first` on. Returns the end of the entries, the position after the quotation
    mark, and the sum of the runs. Source: rleFrString of pycocotools' maskApi.c, which does not
    check the end of the text: numbers are in base 32, from the fourth on as the difference to the
    one two before.
    """
    entry, most = first, counts.size - WIDEST
    total, before, last, n_runs = np.int64(0), np.int64(0), np.int64(0), 0
    while at < text.size and text[at] != QUOTE:
        value, shift, word = np.int64(0), 0, np.int64(MORE)
        while word & MORE != 0:
            if at >= text.size or shift == BITS * LONGEST:
                return entry, HAND_BACK, total
            word = np.int64(text[at]) - FIRST
            if word < 0 or word >= 64:
                return entry, HAND_BACK, total
            at += 1
            if word == BACKSLASH - FIRST:  # JSON has it twice
                if at >= text.size or text[at] != BACKSLASH:
                    return entry, HAND_BACK, total
                at += 1
            value |= (word & 31) << shift
            shift += BITS
        value -= (word & SIGN) << (shift - BITS + 1)
        if n_runs > 2:
            value += before
        if value < 0 or value > MOST or entry > most:
            return entry, HAND_BACK, total
        before, last = last, value
        total += value
        entry = put_run(value, counts, entry)
        n_runs += 1
    return entry, at + 1 if at < text.size else HAND_BACK, total


@kernel
def read_texts(
    text: Bytes,
    off: NDArray[np.int64],
    pixels: NDArray[np.int64],
    new_off: NDArray[np.int64],
    counts: Counts,
) -> int:
    """Parse n strings of compressed run lengths, each with its quotation mark at the end. Returns
    the first whose runs do not fill its mask, -1 for none.

    off (n + 1,): where each string begins; pixels (n,). Out: new_off (n + 1,) and counts, the
    entries, of which there are up to three a character.

    Source: as `read_compressed`.
    """
    new_off[0] = entry = 0
    for i in range(pixels.size):
        entry, at, total = read_compressed(text, off[i], entry, counts)
        if at != off[i + 1] or total != pixels[i]:
            return i
        new_off[i + 1] = entry
    return -1


@kernel
def read_listed(text: Bytes, at: int, first: int, counts: Counts) -> tuple[int, int, np.int64]:
    """Parse a list of run lengths whose first number is at `at`; see `read_compressed`.

    Source: frUncompressedRLE of pycocotools' _mask.pyx.
    """
    entry, most, total = first, counts.size - WIDEST, np.int64(0)
    while True:
        if at >= text.size or text[at] == MINUS:
            return entry, HAND_BACK, total
        value, at = read_integer(text, at)
        if at < 0 or value > MOST or entry > most:
            return entry, HAND_BACK, total
        total += value
        entry = put_run(np.int64(value), counts, entry)
        at = skip_space(text, at)
        if at < text.size and text[at] == CLOSE_LIST:
            return entry, at + 1, total
        if at >= text.size or text[at] != COMMA:
            return entry, HAND_BACK, total
        at = skip_space(text, at + 1)


@kernel
def read_size(text: Bytes, at: int, row: int, columns: ShapeColumns) -> int:
    """Parse a list of height and width at `at`. Returns the position after it.

    Source: COCO data format, ``size`` of run lengths.
    """
    for i in range(2):
        if at >= text.size or text[at] != (COMMA if i else OPEN_LIST):
            return HAND_BACK
        side, at = read_integer(text, skip_space(text, at + 1))
        if at < 0 or side < 1 or side > MOST:
            return HAND_BACK
        columns.size[row, i] = side
        at = skip_space(text, at)
    if at >= text.size or text[at] != CLOSE_LIST:
        return HAND_BACK
    return at + 1


@kernel
def read_runs_object(text: Bytes, at: int, row: int, first: int, columns: ShapeColumns) -> int:
    """Parse an object of size and counts, in any order, whose brace is at `at`. Returns the
    position after it; the runs have to fill the size.

    Out: size, end and, from `first` on, counts. Source: COCO data format, ``segmentation``.
    """
    end, sized, total = first, False, np.int64(0)
    for i in range(2):
        at = skip_space(text, at + 1)
        if at >= text.size or text[at] != QUOTE:
            return HAND_BACK
        is_size = begins(text, at + 1, WORD_SIZE)
        if is_size:
            at += 1 + WORD_SIZE.size
        elif begins(text, at + 1, WORD_COUNTS):
            at += 1 + WORD_COUNTS.size
        else:
            return HAND_BACK
        at = skip_space(text, at)
        if at >= text.size or text[at] != COLON:
            return HAND_BACK
        at = skip_space(text, at + 1)
        if is_size:
            at = read_size(text, at, row, columns)
            sized = True
        elif at < text.size and text[at] == QUOTE:
            end, at, total = read_compressed(text, at + 1, first, columns.counts)
        elif at < text.size and text[at] == OPEN_LIST:
            end, at, total = read_listed(text, skip_space(text, at + 1), first, columns.counts)
        else:
            return HAND_BACK
        if at < 0:
            return HAND_BACK
        at = skip_space(text, at)
        if at >= text.size or text[at] != (CLOSE_OBJECT if i else COMMA):
            return HAND_BACK
    height, width = columns.size[row, 0], columns.size[row, 1]
    if not sized or end == first or height > MOST // width or total != height * width:
        return HAND_BACK
    columns.end[row] = end
    return at + 1


@kernel
def read_segmentation(text: Bytes, at: int, row: int, columns: ShapeColumns) -> int:
    """Read the segmentation at `at` into a row: run lengths that fill their size as numbers,
    anything else as its span. Returns the position after it.

    Source: COCO data format, ``segmentation``.
    """
    first = int(columns.end[row - 1]) if row else 0
    columns.span[row, 0] = columns.span[row, 1] = 0
    if at < text.size and text[at] == OPEN_OBJECT:
        after = read_runs_object(text, at, row, first, columns)
        if after >= 0:
            return after
    columns.end[row] = first
    return read_span(text, at, row, columns)


@kernel
def read_span(text: Bytes, at: int, row: int, columns: ShapeColumns) -> int:
    """Note where the value at `at` begins and ends. Returns the position after it.

    Source: COCO data format, ``segmentation`` and ``keypoints``.
    """
    after = skip_value(text, at)
    columns.span[row, 0], columns.span[row, 1] = at, after
    return after


@kernel
def read_flat_span(text: Bytes, at: int, row: int, columns: ShapeColumns) -> int:
    """As `read_span`, for a list without further lists, whose text is not validated: it ends at the
    first closing bracket. `detmap.kernels.scanning.number_lists` refuses any other list.

    Source: COCO data format, ``keypoints``.
    """
    if at >= text.size or text[at] != OPEN_LIST:
        return read_span(text, at, row, columns)
    after = skip_to_bracket(text, at) + 1
    if after > text.size:
        return HAND_BACK
    columns.span[row, 0], columns.span[row, 1] = at, after
    return after


@kernel
def skip_to_bracket(text: Bytes, at: int) -> int:
    """The position of the next closing bracket, or the end of the text.

    Source: A. Mycroft's test for a byte that is zero (1987), eight bytes at once.
    """
    while at + WORD <= text.size:
        word = load_word(text, at) ^ CLOSE_LISTS
        found = (word - LOW_BIT) & ~word & HIGH_BIT
        if found != np.uint64(0):
            return at + (trailing_zeros(found) >> 3)
        at += WORD
    while at < text.size and text[at] != CLOSE_LIST:
        at += 1
    return at
