"""Reads COCO results in pieces: a list of records, or JSON lines.

The fast reader reads each piece. What it refuses is cut exactly at the end of a record and read by
the reference reader, so every legal record is read as in `detmap.core.adapters.coco.instances`.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from detmap.core.adapters.coco import (
    instances,
    json_lines,
    record_errors,
    scan_json,
    second_keys,
    shapes,
    tool_results,
)
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.pieces import Piece, moved
from detmap.core.base import json_faults, open_files
from detmap.core.base.open_files import InputFile, shown
from detmap.core.base.sums import add_integers
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import Positions
from detmap.core.tables.join_keys import Earlier
from detmap.core.tables.notes import DROPPED
from detmap.errors import DataError

PIECE = json_lines.PIECE  # bytes of text that are read at a time
FIXED, PER_BYTE = (16 << 20, 14)  # bytes that reading takes, and those per byte of a piece
LIST = "give a list of records or JSON lines with image_id and without file_name, or Parquet"

Fast = Callable[[bytes], Detections | None]
Strict = Callable[[bytes, int], Detections]


def memory(size: int) -> int:
    """Returns the bytes of memory that reading a file of `size` bytes takes."""
    return FIXED + PER_BYTE * min(size, PIECE)


def read(path: Path, truth: Truth, policy: Policy) -> Iterator[Piece]:
    """Yields the rows of a results file.

    Raises
    ------
    DataError : not a list of records or JSON lines; an invalid record, with its number
    """
    policy = policy._replace(earlier=Earlier())
    fast = _fast_reader(path, truth, policy)

    def strictly(text: bytes, row: int) -> Detections:
        first = record_errors.first_of_list(text) or {}
        if scan_json.has_second_keys(text):
            _require_all_plain(path, text, row, truth, policy)
        try:
            return instances.decode_text(path, tool_results.Text(text, first), truth, policy)
        except DataError as error:
            raise moved(error, str(path), row) from None

    with open_files.opened(path) as file:
        begin, head = json_lines.start(file)
        if head[:1] == b"[":
            first = record_errors.first_record(path)
            pieces = _list(file, begin + 1, fast, strictly)
        elif head[:1] == b"{":
            first = _first_line(path, file, begin)
            pieces = _lines(path, file, begin, fast, strictly)
        else:
            raise record_errors.explain(path, head, record_errors.RESULTS, ValueError("no list"))
        _require_plain(path, first)
        for detections, done in pieces:
            yield Piece(shapes.with_boxes(path, first, detections), done)


def _require_plain(path: Path, first: Any) -> None:
    if not tool_results.is_plain(first):
        what = "records without image_id and category_id, or with file_name, are read as a whole"
        if (
            not first.keys() & {"file_name", "score"}
            and {"image_id", "category_id"} <= first.keys()
        ):
            what = "records with poly or with another key in place of score are read as a whole"
        raise DataError(shown(path), what, f"leave out --memory, or {LIST}")


def _require_all_plain(path: Path, text: bytes, row: int, truth: Truth, policy: Policy) -> None:
    """Raises `DataError` for a record that names its image or class, or contradicts itself, in a
    list from `row` on.
    """
    try:
        records = json.loads(text)
    except (ValueError, RecursionError):
        return  # the reader reports it
    for i, record in enumerate(records, start=row):
        if isinstance(record, dict):
            _require_plain(Path(f"{path}[{i}]"), record)
    if isinstance(records, list) and all(isinstance(record, dict) for record in records):
        second_keys.require_agreement(path, truth, policy, "", records, row)


def _first_line(path: Path, file: InputFile, begin: int) -> dict[str, Any]:
    """The first record of JSON lines."""
    record = json_lines.first_record(file.read(begin, json_lines.FIRST_LINE))
    if record is None:
        raise DataError(shown(path), "neither a list of records nor JSON lines", LIST)
    return record


def _fast_reader(path: Path, truth: Truth, policy: Policy) -> Fast:
    """Returns the reader of plain records; it returns None for others."""
    if truth.images.ids.dtype.kind != "i":
        return lambda text: None
    ids, labels = policy.class_ids(truth, str(path))
    images, classes = Positions(truth.images.ids), Positions(ids)
    origin = join.Origin(shown(path), str)

    def scanned(text: bytes) -> Detections | None:
        memory = cast(InputFile, json_lines.Text(path, text))
        rows = scan_json.scan_detections(scan_json.JsonFile(memory), images, classes)
        if rows is None:
            return None
        label = rows.category if labels is None else labels[rows.category]
        for column in ("image", "class"):  # names are no key of this file any more
            if (evidence := policy.evidence(column)) is not None and len(rows.image):
                evidence.missed.setdefault("name", f"of record 0, an id of {column}")
        try:
            return join.joined(
                truth,
                rows.image,
                label,
                rows.boxes,
                rows.value,
                box_format="xywh",
                origin=origin,
                policy=policy,
            )
        except DataError:
            return None  # the reference reader names the record

    return scanned


# --- a list ---------------------------------------------------------------------------------------


def _list(file: InputFile, at: int, fast: Fast, strictly: Strict) -> Iterator[Piece]:
    """Yields the records of a list whose opening bracket is just before `at`."""
    path, row, text, size, before = Path(file.path), 0, b"", PIECE, b"["
    while True:
        text += file.read(at, size)
        at = min(at + size, file.size)
        body = text.lstrip(json_lines.SPACE)
        if before == b"}" and body[:1] == b",":
            before, body = b",", body[1:].lstrip(json_lines.SPACE)
        if body[:1] == b"]" and before != b",":
            _require_end(file, at, body[1:], row)
            return
        if body and (before == b"}" or body[:1] != b"{"):
            what = f"not JSON: {_short(body)} where a record or the end of the list is expected"
            raise DataError(f"{path}[{row}]", what, "write it with a JSON library")
        end = body.rfind(b"}") + 1
        made = fast(_listed(body[:end])) if end else None
        if made is None:
            end = _whole_records(path, body[:end], row)
            made = strictly(_listed(body[:end]), row) if end else None
        if made is not None:
            row += _n_records(made)
            yield Piece(made, at)
            text, size, before = body[end:], PIECE, b"}"
        elif at >= file.size or len(body) > json_lines.MOST_RECORD:
            raise _unfinished(path, body, row)
        else:
            text, size = body, 2 * size


def _listed(records: bytes) -> bytes:
    return b"[%b]" % records


def _n_records(made: Detections) -> int:
    """The number of records of a piece, with those that were dropped."""
    dropped = (*DROPPED, "region-ignored")
    return len(made) + add_integers(note.count for note in made.notes if note.code in dropped)


def _whole_records(path: Path, body: bytes, row: int) -> int:
    """Returns where the last whole record ends; 0 if there is none."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        what = f"not UTF-8: {error.reason}"
        raise DataError(f"{path}: after record {row}", what, "write the file as UTF-8") from None
    decoder, at, end = json.JSONDecoder(), 0, 0
    while text[at : at + 1] == "{":
        try:
            end = decoder.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            break
        at = _after_space(text, end)
        if text[at : at + 1] != ",":
            break
        at = _after_space(text, at + 1)
    return len(text[:end].encode())


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _short(body: bytes) -> str:
    return repr(body[:20].decode(errors="replace"))


def _unfinished(path: Path, body: bytes, row: int) -> DataError:
    """The error of a record that does not end, or is not JSON."""
    try:
        json.JSONDecoder().raw_decode(body.decode(errors="replace"))
        what = "the list does not end"
    except RecursionError:
        what = "nested too deeply"
    except ValueError as error:
        what = f"the record is not JSON: {error}" if body else "the list does not end"
        if json_faults.last_line(body):
            what = "truncated: the list ends in the middle of a record"
            return DataError(f"{path}[{row}]", what, json_faults.WRITE_AGAIN)
    fix = "write it with a JSON library; if it is truncated, write or copy it again"
    return DataError(f"{path}[{row}]", what, fix)


def _require_end(file: InputFile, at: int, text: bytes, row: int) -> None:
    """Raises `DataError` for text after the list."""
    while not text.strip(json_lines.SPACE) and at < file.size:
        text = file.read(at, PIECE)
        at += len(text)
    if text.strip(json_lines.SPACE):
        rest = _short(text.lstrip(json_lines.SPACE))
        what = f"not JSON: text after the list of {row} records: {rest}"
        raise DataError(str(file.path), what, "write it with a JSON library")


# --- JSON lines -----------------------------------------------------------------------------------


def _lines(path: Path, file: InputFile, at: int, fast: Fast, strictly: Strict) -> Iterator[Piece]:
    """Yields the records of JSON lines that begin at `at`."""
    row = 0
    for records, read in json_lines.pieces(file, at, PIECE):
        listed = json_lines.listed(records)
        made = fast(listed)
        if made is None or _n_records(made) != len(records):
            json_lines.require_objects(path, records, row)
            made = strictly(listed, row)
        row += len(records)
        yield Piece(made, read)
