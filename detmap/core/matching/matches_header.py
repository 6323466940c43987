"""The JSON header of a file of matches."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from detmap.core import protocol as protocols
from detmap.core.base import npz_archive as archive
from detmap.core.protocol import Protocol
from detmap.core.tables import Categories, Note
from detmap.core.tables.notes import from_dict, is_written
from detmap.errors import DataError, ProtocolError

FORMAT = 4  # of the saved file; 1 had other digests of the data, 2 areas, 3 notes as sentences


def to_header(
    protocol: Protocol, categories: Categories, notes: tuple[Note, ...], remarks: dict[str, Any]
) -> dict[str, Any]:
    """Returns the header as plain values."""
    return {
        "format": FORMAT,
        "protocol": protocol.to_dict(),
        "changes": protocol.changes,
        "stock": protocol.stock,
        "categories": categories.names,
        "groups": categories.groups,
        "notes": [asdict(note) for note in notes],
        "remarks": remarks,
    }


class Header(NamedTuple):
    """The content of the header."""

    protocol: Protocol
    names: tuple[str, ...]
    groups: tuple[str, ...]
    notes: tuple[Note, ...]
    remarks: dict[str, Any]


def read(where: str, header: Any) -> Header:
    """Checks and parses the header.

    Raises
    ------
    DataError : names the part
    """

    def part(name: str, is_good: Callable[[Any], bool]) -> Any:
        if name not in header or not is_good(header[name]):
            what = "missing" if name not in header else f"malformed: {repr(header[name])[:60]}"
            raise DataError(f"{where}.{name}", what, archive.WRITE_AGAIN)
        return header[name]

    def is_texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)

    def is_changes(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in value
        )

    def is_note(value: Any) -> bool:
        return isinstance(value, dict) and is_written(value)

    if not isinstance(header, dict):
        raise DataError(where, f"a {type(header).__name__}", archive.WRITE_AGAIN)
    version = part("format", lambda value: type(value) is int)
    if version != FORMAT:
        fix = f"this detmap reads format {FORMAT}; match again"
        raise DataError(f"{where}.format", f"format {version}", fix)
    tree = part("protocol", lambda value: isinstance(value, dict))
    try:
        protocol = protocols.from_dict(tree, where=f"{where}.protocol")
    except Exception as error:  # a forged tree fails in many ways
        raise DataError(f"{where}.protocol", str(error), archive.WRITE_AGAIN) from None
    changes = part("changes", is_changes)
    stock = part("stock", lambda value: isinstance(value, bool))
    names, groups = tuple(part("categories", is_texts)), tuple(part("groups", is_texts))
    notes = part("notes", lambda value: isinstance(value, list) and all(map(is_note, value)))
    remarks = part("remarks", lambda value: isinstance(value, dict))
    try:
        protocol = protocols.from_file(protocol, changes, stock)
    except ProtocolError as error:
        raise DataError(f"{where}.{error.where}", error.what, archive.WRITE_AGAIN) from None
    return Header(protocol, names, groups, tuple(map(from_dict, notes)), remarks)
