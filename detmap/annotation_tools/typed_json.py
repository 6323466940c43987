"""Decodes JSON files as typed records; errors name the record and the field."""

import re
from pathlib import Path
from typing import TypeVar

import msgspec

from detmap.core.adapters.coco import record_errors
from detmap.core.base import open_files, unique_keys
from detmap.core.base.open_files import shown
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
        content = msgspec.json.decode(data, type=kind)
        unique_keys.require(data, shown(path))
        return content
    except msgspec.ValidationError as error:
        refused = invalid(shown(path), error, shape)
        raise (refused if " - at " in str(error) else _other_format(data, refused)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_list = data.lstrip()[:1] == b"["
        expected: record_errors.Expected = (shape, {"records": {}} if is_list else {})
        raise record_errors.explain(path, data, expected, error) from None


def _other_format(data: bytes, error: DataError) -> DataError:
    """Returns the error that names what a file of another shape is, if that is known."""
    from detmap.core.adapters import recognition  # only an error needs it

    try:
        seen = recognition.recognized(msgspec.json.decode(data))
    except (msgspec.DecodeError, RecursionError):
        return error
    if seen is None:
        return error
    fix = f"{error.fix}; if the file is of another format, move it out of the folder"
    return DataError(error.where, f"{error.what}; the file looks like {seen.name}", fix)


def invalid(where: str, error: msgspec.ValidationError, shape: str) -> DataError:
    """Returns the error for a value of another type than expected."""
    what, _, at = str(error).replace("`", "").partition(" - at ")
    at = at.removeprefix("key in ").removeprefix("$")
    if missing := _MISSING.fullmatch(what):
        return DataError(f"{where}{at}.{missing[1]}", "missing", shape)
    if expected := _EXPECTED.fullmatch(what):
        what = f"type {expected[2]}, the field needs {expected[1].replace(' | ', ' or ')}"
    return DataError(f"{where}{at}", what, shape)
