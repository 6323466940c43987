"""Decodes JSON files as typed records; errors name the record and the field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import msgspec

from detmap.adapters.coco import record_errors
from detmap.base import open_files
from detmap.base.open_files import shown
from detmap.errors import DataError

DECODED = 8  # bytes of memory that a byte of the file takes
Record = TypeVar("Record")
_EXPECTED = re.compile(r"Expected (.+), got (.+)")
_MISSING = re.compile(r"Object missing required field (.+)")


def decoded(path: Path, kind: type[Record], shape: str) -> Record:
    """Returns the content of a JSON file.

    Parameters
    ----------
    path : the file
    kind : its type, of msgspec's structs
    shape : the type in words, for messages

    Raises `DataError` for files that cannot be read, invalid JSON and other types.
    """
    data = open_files.read_bytes(path, times=DECODED).removeprefix(b"\xef\xbb\xbf")
    try:
        if not data.isascii():
            data.decode()  # of what is not in a record, too
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(shown(path), error, shape) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_list = data.lstrip()[:1] == b"["
        expected: record_errors.Expected = (shape, {"records": {}} if is_list else {})
        raise record_errors.explain(path, data, expected, error) from None


def invalid(where: str, error: msgspec.ValidationError, shape: str) -> DataError:
    """Returns the error for a value of another type than expected."""
    what, _, at = str(error).replace("`", "").partition(" - at ")
    at = at.removeprefix("key in ").removeprefix("$")
    if missing := _MISSING.fullmatch(what):
        return DataError(f"{where}{at}.{missing[1]}", "missing", shape)
    if expected := _EXPECTED.fullmatch(what):
        what = f"type {expected[2]}, the field needs {expected[1].replace(' | ', ' or ')}"
    return DataError(f"{where}{at}", what, shape)
