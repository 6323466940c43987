"""Strict scanners of VOC files: annotation XML, and detection text.

As in `detmap.kernels.scanning.json_scan`, they parse a subset of the format; a negative result
falls back to the full reader.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.scanning.ascii import (
    AMPERSAND,
    CR,
    GREATER,
    LAST_PRINTABLE,
    LESS,
    LF,
    LOWER_A,
    LOWER_Z,
    NINE,
    ONE,
    SLASH,
    SPACE,
    TAB,
    UNDERSCORE,
    UPPER_A,
    UPPER_Z,
    ZERO,
)
from detmap.kernels.scanning.json_scan import Floats, Ints, read_number
from detmap.kernels.scanning.json_skip import HAND_BACK, Bytes, equals

MAX_DEPTH = 8  # of nested elements

FNV_BASIS, FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)

# Bits of what has been there: in an object, and in a page.
HAS_NAME, HAS_DIFFICULT, HAS_BOX, HAS_SIDE = 1, 2, 4, 8  # of HAS_SIDE four, shifted by the side
COMPLETE = HAS_NAME | HAS_BOX | HAS_SIDE << 0 | HAS_SIDE << 1 | HAS_SIDE << 2 | HAS_SIDE << 3
HAS_SIZE, HAS_WIDTH, HAS_HEIGHT = 1, 2, 4


class Stems(NamedTuple):
    """Concatenated image stems, text (n,) uint8 and off (I + 1,) int64; table (a power of two,)
    int32 of hashes.
    """

    text: NDArray[np.uint8]
    off: NDArray[np.int64]
    table: NDArray[np.int32]


@kernel
def hash_name(text: Bytes, begin: int, end: int) -> np.uint64:
    """FNV-1a hash of some bytes.

    Source: FNV-1a, Fowler, Noll and Vo.
    """
    state = FNV_BASIS
    for i in range(begin, end):
        state = (state ^ np.uint64(text[i])) * FNV_PRIME
    return state ^ (state >> np.uint64(29))


@kernel
def fill_table(stems: Stems) -> None:
    """Insert every stem into the hash table, which is at least twice as large.

    Source: Knuth, TAOCP 3, section 6.4, linear probing.
    """
    stems.table[:] = -1
    mask = np.uint64(stems.table.size - 1)
    for i in range(stems.off.size - 1):
        place = hash_name(stems.text, stems.off[i], stems.off[i + 1]) & mask
        while stems.table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        stems.table[place] = i


@kernel
def find_stem(text: Bytes, begin: int, end: int, stems: Stems) -> int:
    """The index of the stem equal to text[begin:end]; -1 if unknown.

    Source: Knuth, TAOCP 3, section 6.4, linear probing.
    """
    mask = np.uint64(stems.table.size - 1)
    place = hash_name(text, begin, end) & mask
    while stems.table[place] >= 0:
        i = stems.table[place]
        first, last = stems.off[i], stems.off[i + 1]
        if last - first == end - begin and equals(text, begin, stems.text[first:last]):
            return int(i)
        place = (place + np.uint64(1)) & mask
    return -1


@kernel
def scan_lines(
    text: Bytes, stems: Stems, image: NDArray[np.int32], score: Floats, boxes: Floats
) -> int:
    """Parse lines ``image score x1 y1 x2 y2``.

    text (n,) uint8; out: image (m,) int32, score (m,) and boxes (m, 4) float64. Returns the number
    of rows, or a negative number to fall back to the full reader, or if an image is unknown.

    Source: VOC devkit, section 8, detection results.
    """
    at, row = 0, 0
    while True:
        while at < text.size and (
            text[at] == SPACE or text[at] == TAB or text[at] == LF or text[at] == CR
        ):
            at += 1
        if at == text.size:
            return row
        if row == image.size:
            return HAND_BACK
        begin = at
        while at < text.size and SPACE < text[at] <= LAST_PRINTABLE:
            at += 1
        image[row] = find_stem(text, begin, at, stems)
        if image[row] < 0:
            return HAND_BACK
        for column in range(5):
            begin = at
            while at < text.size and (text[at] == SPACE or text[at] == TAB):
                at += 1
            if at == begin:
                return HAND_BACK
            value, at = read_number(text, at)
            if at < 0:
                return HAND_BACK
            if column == 0:
                score[row] = value
            else:
                boxes[row, column - 1] = value
        while at < text.size and (text[at] == SPACE or text[at] == TAB):
            at += 1
        if at < text.size and text[at] == CR:
            at += 1
        if at < text.size and text[at] != LF:
            return HAND_BACK
        row += 1


WORDS = (
    b"annotation",
    b"size",
    b"object",
    b"width",
    b"height",
    b"name",
    b"difficult",
    b"bndbox",
    b"xmin",
    b"ymin",
    b"xmax",
    b"ymax",
)
WORD_TEXT = np.frombuffer(b"".join(WORDS), np.uint8)
WORD_OFF = np.cumsum([0, *map(len, WORDS)])
ANNOTATION, SIZE, OBJECT, WIDTH, HEIGHT, NAME, DIFFICULT, BNDBOX, XMIN, YMIN, XMAX, YMAX = range(
    len(WORDS)
)


@kernel
def name_tag(text: Bytes, begin: int, end: int) -> int:
    """The index of a tag in WORDS; -1 for a tag that is not needed.

    Source: VOC devkit, annotation format.
    """
    for w in range(WORD_OFF.size - 1):
        first, last = WORD_OFF[w], WORD_OFF[w + 1]
        if last - first == end - begin and equals(text, begin, WORD_TEXT[first:last]):
            return w
    return -1


class Pages(NamedTuple):
    """The content of annotation files: size (P, 2) of each page, NaN if missing; for n objects
    their page, name, box and flag.

    page (n,); name (n, 2), a range of the text; box (n, 4); difficult (n,), -1 for a missing flag.
    """

    size: NDArray[np.float64]
    page: NDArray[np.int32]
    name: NDArray[np.int64]
    box: NDArray[np.float64]
    difficult: NDArray[np.int8]


class OpenTags(NamedTuple):
    """The stack of a page's open tags: begin and end (MAX_DEPTH, 2), kind (MAX_DEPTH,)."""

    tag: NDArray[np.int64]
    kind: NDArray[np.int64]


@kernel
def strip(text: Bytes, begin: int, end: int) -> tuple[int, int]:
    """The range without surrounding white space.

    Source: XML 1.0, section 2.3.
    """
    while begin < end and text[begin] <= SPACE:
        begin += 1
    while end > begin and text[end - 1] <= SPACE:
        end -= 1
    return begin, end


@kernel
def scan_pages(text: Bytes, off: Ints, pages: Pages, open_tags: OpenTags) -> int:
    """Parse annotation files, concatenated in text (n,) uint8, file p from off[p] to off[p + 1].

    Returns the number of objects, or a negative number to fall back to the full reader: for an
    attribute, an entity, a comment, a character that is not printable ASCII, a duplicate or missing
    field, or any error.

    Source: XML 1.0, sections 2 and 3; VOC devkit, annotation format.
    """
    n_objects = 0
    for p in range(off.size - 1):
        # What is open is a stack of tags; what it means is known by its depth and its parent, so
        # that the name of a part is not taken for that of its object.
        at, stop = off[p], off[p + 1]
        depth, seen, size_seen, done = 0, 0, 0, False
        # Where the text of the innermost tag begins, and whether it has no tag inside.
        text_begin, leaf = at, False
        pages.size[p, 0], pages.size[p, 1] = np.nan, np.nan
        while at < stop:
            c = text[at]
            if c != LESS:
                if (
                    c == AMPERSAND
                    or c > LAST_PRINTABLE
                    or (c < SPACE and c != TAB and c != LF and c != CR)
                ):
                    return HAND_BACK
                if depth == 0 and c > SPACE:
                    return HAND_BACK
                at += 1
                continue
            text_end = at
            at += 1
            closing = at < stop and text[at] == SLASH
            if closing:
                at += 1
            begin = at
            while at < stop and (
                ZERO <= text[at] <= NINE
                or UPPER_A <= text[at] <= UPPER_Z
                or LOWER_A <= text[at] <= LOWER_Z
                or text[at] == UNDERSCORE
            ):
                at += 1
            if at == begin or ZERO <= text[begin] <= NINE or at >= stop or text[at] != GREATER:
                return HAND_BACK
            end = at
            at += 1
            if not closing:
                kind = name_tag(text, begin, end)
                if depth == MAX_DEPTH or done or (depth == 0 and kind != ANNOTATION):
                    return HAND_BACK
                open_tags.tag[depth, 0], open_tags.tag[depth, 1], open_tags.kind[depth] = (
                    begin,
                    end,
                    kind,
                )
                if depth == 1 and kind == OBJECT:
                    if n_objects == pages.page.size:
                        return HAND_BACK
                    seen = 0
                    pages.difficult[n_objects] = -1
                if depth == 1 and kind == SIZE:
                    if size_seen & HAS_SIZE:
                        return HAND_BACK
                    size_seen |= HAS_SIZE
                if depth == 2 and kind == BNDBOX and open_tags.kind[1] == OBJECT:
                    if seen & HAS_BOX:
                        return HAND_BACK
                    seen |= HAS_BOX
                depth += 1
                text_begin, leaf = at, True
                continue
            if depth == 0:
                return HAND_BACK
            depth -= 1
            opened = open_tags.tag[depth, 0]
            if open_tags.tag[depth, 1] - opened != end - begin or not equals(
                text, begin, text[opened : open_tags.tag[depth, 1]]
            ):
                return HAND_BACK
            kind = open_tags.kind[depth]
            if depth == 2 and open_tags.kind[1] == SIZE and kind in (WIDTH, HEIGHT):
                bit = HAS_WIDTH if kind == WIDTH else HAS_HEIGHT
                first, last = strip(text, text_begin, text_end)
                value, after = read_number(text, first)
                if not leaf or size_seen & bit or after != last:
                    return HAND_BACK
                size_seen |= bit
                pages.size[p, kind - WIDTH] = value
            elif depth == 2 and open_tags.kind[1] == OBJECT and kind == NAME:
                first, last = strip(text, text_begin, text_end)
                if not leaf or seen & HAS_NAME or first == last:
                    return HAND_BACK
                for i in range(first, last):
                    if text[i] < SPACE:  # XML normalizes line endings
                        return HAND_BACK
                seen |= HAS_NAME
                pages.name[n_objects, 0], pages.name[n_objects, 1] = first, last
            elif depth == 2 and open_tags.kind[1] == OBJECT and kind == DIFFICULT:
                first, last = strip(text, text_begin, text_end)
                if (
                    not leaf
                    or seen & HAS_DIFFICULT
                    or last != first + 1
                    or (text[first] != ZERO and text[first] != ONE)
                ):
                    return HAND_BACK
                seen |= HAS_DIFFICULT
                pages.difficult[n_objects] = text[first] - ZERO
            elif (
                depth == 3
                and open_tags.kind[2] == BNDBOX
                and open_tags.kind[1] == OBJECT
                and kind >= XMIN
            ):
                bit = HAS_SIDE << (kind - XMIN)
                first, last = strip(text, text_begin, text_end)
                value, after = read_number(text, first)
                if not leaf or seen & bit or after != last:
                    return HAND_BACK
                seen |= bit
                pages.box[n_objects, kind - XMIN] = value
            elif depth == 1 and kind == OBJECT:
                if seen & COMPLETE != COMPLETE:  # name, bndbox and its four sides
                    return HAND_BACK
                pages.page[n_objects] = p
                n_objects += 1
            elif depth == 0:
                done = True
            leaf = False
        if depth != 0 or not done:
            return HAND_BACK
    return n_objects
