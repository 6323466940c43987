"""Strict scanners of plain VOC files: annotation XML, and lines of detections.

As with `detmap.kernels.json_scan`, they accept less than is legal; a negative result hands the
files to the other lane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.json_scan import NOT_PLAIN, equals, read_number

MAX_DEPTH = 8


class Stems(NamedTuple):
    """Image stems one after the other, text (n,) uint8 and off (I + 1,) int64; table (a power of
    two,) int32 for a hash.
    """

    text: NDArray[np.uint8]
    off: NDArray[np.int64]
    table: NDArray[np.int32]


@kernel
def hash_name(text: Any, begin: int, end: int) -> Any:
    """FNV-1a of some bytes."""
    state = np.uint64(14695981039346656037)
    for i in range(begin, end):
        state = (state ^ np.uint64(text[i])) * np.uint64(1099511628211)
    return state ^ (state >> np.uint64(29))


@kernel
def fill_table(stems: Any) -> None:
    """Enter every stem into the hash table, which is at least twice as large."""
    stems.table[:] = -1
    mask = np.uint64(stems.table.size - 1)
    for i in range(stems.off.size - 1):
        place = hash_name(stems.text, stems.off[i], stems.off[i + 1]) & mask
        while stems.table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        stems.table[place] = i


@kernel
def find_stem(text: Any, begin: int, end: int, stems: Any) -> Any:
    """The number of the stem that is spelled by text[begin:end]; -1 where none is."""
    mask = np.uint64(stems.table.size - 1)
    place = hash_name(text, begin, end) & mask
    while stems.table[place] >= 0:
        i = stems.table[place]
        first, last = stems.off[i], stems.off[i + 1]
        if last - first == end - begin and equals(text, begin, stems.text[first:last]):
            return i
        place = (place + np.uint64(1)) & mask
    return -1


@kernel
def scan_lines(text: Any, stems: Any, image: Any, score: Any, boxes: Any) -> int:
    """Lines ``image score x1 y1 x2 y2``.

    text (n,) uint8; out: image (m,) int32, score (m,) and boxes (m, 4) float64. Returns the
    number of rows, or a negative number where the text is not plain or names an unknown image.
    """
    at, row = 0, 0
    while True:
        while at < text.size and (
            text[at] == 32 or text[at] == 9 or text[at] == 10 or text[at] == 13
        ):
            at += 1
        if at == text.size:
            return row
        if row == image.size:
            return NOT_PLAIN
        begin = at
        while at < text.size and 32 < text[at] < 127:
            at += 1
        image[row] = find_stem(text, begin, at, stems)
        if image[row] < 0:
            return NOT_PLAIN
        for column in range(5):
            begin = at
            while at < text.size and (text[at] == 32 or text[at] == 9):
                at += 1
            if at == begin:
                return NOT_PLAIN
            value, at = read_number(text, at)
            if at < 0:
                return NOT_PLAIN
            if column == 0:
                score[row] = value
            else:
                boxes[row, column - 1] = value
        while at < text.size and (text[at] == 32 or text[at] == 9):
            at += 1
        if at < text.size and text[at] == 13:
            at += 1
        if at < text.size and text[at] != 10:
            return NOT_PLAIN
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
def name_tag(text: Any, begin: int, end: int) -> Any:
    """Which of WORDS a tag is; -1 for one that boxes do not need."""
    for w in range(WORD_OFF.size - 1):
        first, last = WORD_OFF[w], WORD_OFF[w + 1]
        if last - first == end - begin and equals(text, begin, WORD_TEXT[first:last]):
            return w
    return -1


class Pages(NamedTuple):
    """What annotation files hold: size (P, 2) of each page, NaN where missing; of n objects their
    page and more.

    page (n,); name (n, 2), a range of the text; box (n, 4); difficult (n,), -1 for a missing flag.
    """

    size: NDArray[np.float64]
    page: NDArray[np.int32]
    name: NDArray[np.int64]
    box: NDArray[np.float64]
    difficult: NDArray[np.int8]


class PageRoom(NamedTuple):
    """Room for one page: begin and end (MAX_DEPTH, 2) and kind (MAX_DEPTH,) of the open tags."""

    tag: NDArray[np.int64]
    kind: NDArray[np.int64]


@kernel
def strip(text: Any, begin: int, end: int) -> Any:
    """The range without white space at its ends."""
    while begin < end and text[begin] <= 32:
        begin += 1
    while end > begin and text[end - 1] <= 32:
        end -= 1
    return begin, end


@kernel
def scan_pages(text: Any, off: Any, pages: Any, room: Any) -> int:
    """Annotation files, one after the other in text (n,) uint8, each from off[p] to off[p + 1].

    Returns the number of objects, or a negative number where a page is not plain: an attribute,
    an entity, a comment, a character that is not printable ASCII, a field twice or missing, or
    anything that is wrong.
    """
    n_objects = 0
    for p in range(off.size - 1):
        at, stop = off[p], off[p + 1]
        depth, seen, size_seen, done = 0, 0, 0, False
        text_begin, leaf = (
            at,
            False,
        )  # where the text of the innermost tag begins, and whether it has no tag inside
        pages.size[p, 0], pages.size[p, 1] = np.nan, np.nan
        while at < stop:
            c = text[at]
            if c != 60:  # <
                if c == 38 or c > 126 or (c < 32 and c != 9 and c != 10 and c != 13):  # &
                    return NOT_PLAIN
                if depth == 0 and c > 32:
                    return NOT_PLAIN
                at += 1
                continue
            text_end = at
            at += 1
            closing = at < stop and text[at] == 47  # /
            if closing:
                at += 1
            begin = at
            while at < stop and (
                48 <= text[at] <= 57
                or 65 <= text[at] <= 90
                or 97 <= text[at] <= 122
                or text[at] == 95
            ):
                at += 1
            if at == begin or 48 <= text[begin] <= 57 or at >= stop or text[at] != 62:  # >
                return NOT_PLAIN
            end = at
            at += 1
            if not closing:
                kind = name_tag(text, begin, end)
                if depth == MAX_DEPTH or done or (depth == 0 and kind != ANNOTATION):
                    return NOT_PLAIN
                room.tag[depth, 0], room.tag[depth, 1], room.kind[depth] = begin, end, kind
                if depth == 1 and kind == OBJECT:
                    if n_objects == pages.page.size:
                        return NOT_PLAIN
                    seen = 0
                    pages.difficult[n_objects] = -1
                if depth == 1 and kind == SIZE:
                    if size_seen & 1:
                        return NOT_PLAIN
                    size_seen |= 1
                if depth == 2 and kind == BNDBOX and room.kind[1] == OBJECT:
                    if seen & 4:
                        return NOT_PLAIN
                    seen |= 4
                depth += 1
                text_begin, leaf = at, True
                continue
            if depth == 0:
                return NOT_PLAIN
            depth -= 1
            opened = room.tag[depth, 0]
            if room.tag[depth, 1] - opened != end - begin or not equals(
                text, begin, text[opened : room.tag[depth, 1]]
            ):
                return NOT_PLAIN
            kind = room.kind[depth]
            if depth == 2 and room.kind[1] == SIZE and kind in (WIDTH, HEIGHT):
                bit = 2 if kind == WIDTH else 4
                first, last = strip(text, text_begin, text_end)
                value, after = read_number(text, first)
                if not leaf or size_seen & bit or after != last:
                    return NOT_PLAIN
                size_seen |= bit
                pages.size[p, kind - WIDTH] = value
            elif depth == 2 and room.kind[1] == OBJECT and kind == NAME:
                first, last = strip(text, text_begin, text_end)
                if not leaf or seen & 1 or first == last:
                    return NOT_PLAIN
                for i in range(first, last):
                    if text[i] < 32:  # XML reads a line's end in its own way
                        return NOT_PLAIN
                seen |= 1
                pages.name[n_objects, 0], pages.name[n_objects, 1] = first, last
            elif depth == 2 and room.kind[1] == OBJECT and kind == DIFFICULT:
                first, last = strip(text, text_begin, text_end)
                if (
                    not leaf
                    or seen & 2
                    or last != first + 1
                    or (text[first] != 48 and text[first] != 49)
                ):
                    return NOT_PLAIN
                seen |= 2
                pages.difficult[n_objects] = text[first] - 48
            elif depth == 3 and room.kind[2] == BNDBOX and room.kind[1] == OBJECT and kind >= XMIN:
                bit = 8 << (kind - XMIN)
                first, last = strip(text, text_begin, text_end)
                value, after = read_number(text, first)
                if not leaf or seen & bit or after != last:
                    return NOT_PLAIN
                seen |= bit
                pages.box[n_objects, kind - XMIN] = value
            elif depth == 1 and kind == OBJECT:
                if seen & 125 != 125:  # name, bndbox and its four sides
                    return NOT_PLAIN
                pages.page[n_objects] = p
                n_objects += 1
            elif depth == 0:
                done = True
            leaf = False
        if depth != 0 or not done:
            return NOT_PLAIN
    return n_objects
