"""JSON lines: one record per line, read as the text of a list.

Lines end in LF, CR LF or CR; blank lines are skipped. The first line decides whether a file is JSON
lines. In memory and in bounded memory, the same reader reads them.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from detmap.core.adapters.coco import record_errors, scan_json
from detmap.core.adapters.coco.scan_columns import ARRAYS, Columns
from detmap.core.base import json_faults, memory, open_files
from detmap.core.base.open_files import InputFile, shown
from detmap.errors import DataError

START = 4096  # bytes that most first records end in
FIRST_LINE = 1 << 22  # bytes that are searched for the first record
PIECE = 1 << 23  # bytes of text that are read at a time
MOST_RECORD = 1 << 26  # bytes of one record
ONE_EACH = "JSON lines have one record per line"
BOM, SPACE = b"\xef\xbb\xbf", b" \t\r\n"


class _AnyObject(msgspec.Struct):
    """A JSON object; its keys are checked, not kept."""


_OBJECT = msgspec.json.Decoder(_AnyObject)


class Text:
    """Text in memory, as `InputFile`."""

    def __init__(self, path: str | Path, text: bytes) -> None:
        self.path, self.text, self.size = path, text, len(text)

    def read(self, at: int, size: int) -> bytes:
        """Returns a part."""
        return self.text[at : at + size]


def start(file: InputFile) -> tuple[int, bytes]:
    """Returns the position of the first character, and some text from there on."""
    text = file.read(0, START)
    bare = text.removeprefix(BOM).lstrip(SPACE)
    return len(text) - len(bare), bare


def first_record(text: bytes) -> dict[str, Any] | None:
    """Returns the first record; None if the text does not begin with one of JSON lines."""
    line = next((line for line in text.splitlines() if line.strip()), b"")
    try:
        record = json.JSONDecoder().raw_decode(line.decode().strip())[0]
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not record.keys() & {"image_id", "file_name"}:
        return None
    return record


def first_of_file(path: Path) -> Mapping[str, Any]:
    """Returns the first record of a results list or of JSON lines, {} if not found quickly."""
    head = open_files.head(path, START).lstrip(SPACE)
    if head[:1] == b"{":
        found = first_record(head)
        return found or first_record(open_files.head(path, FIRST_LINE).lstrip(SPACE)) or {}
    return record_errors.first_record(path)


def split(text: bytes) -> list[bytes]:
    """Returns the lines that are not blank."""
    return [line for line in text.splitlines() if line.strip()]


def listed(records: list[bytes]) -> bytes:
    """Returns the text of a list, with one record per line."""
    return b"[%b]" % b",\n".join(records)


def pieces(file: InputFile, at: int, size: int) -> Iterator[tuple[list[bytes], int]]:
    """Yields the lines from `at` on, about `size` bytes at a time, and how far the file is read.

    Raises `DataError` for a line that does not end.
    """
    row, text, more = 0, b"", size
    while at < file.size or text:
        text += file.read(at, more)
        at = min(at + more, file.size)
        end = len(text) if at >= file.size else max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if not end:
            if len(text) > MOST_RECORD:
                raise DataError(f"{shown(file.path)}[{row}]", "the line does not end", ONE_EACH)
            more *= 2
            continue
        records, text, more = split(text[:end]), text[end:], size
        row += len(records)
        yield records, at


def scan_detections(
    path: Path, locate_image: scan_json.Locate, locate_category: scan_json.Locate
) -> Columns | None:
    """Fast reader: returns what `scan_json.scan_detections` does, None for the reference reader."""
    made: list[Columns] = []
    with open_files.opened(path) as file:
        begin, head = start(file)
        if head[:1] != b"{" or file.size < scan_json.LEAST_SIZE:
            return None
        n_rows = file.size // scan_json.USUAL_RECORD
        memory.require(2 * n_rows * scan_json.ROW, shown(path), "reading the file")
        for records, _ in pieces(file, begin, PIECE):
            text = scan_json.JsonFile(cast(InputFile, Text(path, listed(records))))
            rows = scan_json.scan_detections(text, locate_image, locate_category)
            if rows is None or len(rows.image) != len(records):
                return None
            made.append(rows)
    columns: Any = {name: np.concatenate([getattr(rows, name) for rows in made]) for name in ARRAYS}
    return Columns(**columns, whole=all(rows.whole for rows in made))


def require_objects(path: Path, lines: list[bytes], row: int = 0) -> None:
    """Raises `DataError` for the first line that is not one record; `row` is that of the first."""
    for number, line in enumerate(lines, start=row):
        try:
            _OBJECT.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            where = f"{shown(path)}[{number}]"
            if number == row + len(lines) - 1 and line.lstrip()[:1] == b"{":
                _require_whole(path, where, line)
            _require_object(where, line)


def _require_whole(path: Path, where: str, line: bytes) -> None:
    """Raises `DataError` for the last line if it ends in the middle of a record."""
    if json_faults.last_line(line):
        data = open_files.unpacked(path).rstrip()
        what = f"truncated: line {len(data.splitlines())} ends in the middle of a record"
        raise DataError(where, what, json_faults.WRITE_AGAIN)


def _require_object(where: str, line: bytes) -> None:
    """Raises `DataError` for a line that is not an object to Python's reader either."""
    what = f"not a JSON object: {line[:20].decode(errors='replace')!r}"
    try:
        if isinstance(json.loads(line.decode()), dict):
            return
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and error.doc.lstrip().startswith("{"):
            what = f"text after the object: {error.doc[error.pos :][:20]!r}"
    except (ValueError, RecursionError):
        pass
    raise DataError(where, what, ONE_EACH)
