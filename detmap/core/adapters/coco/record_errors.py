"""Finds the exact error in a COCO file with the standard library, record by record."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.base import json_faults, open_files
from detmap.core.base.arguments import is_number
from detmap.errors import DataError

Check = Callable[[Any], str]
"""Returns what is wrong with a value, or "" if it is valid."""

LF = b"\n"
JSON = json.JSONDecoder()


def _is_number(value: Any) -> str:
    if not is_number(value):
        return f"{short(value)} is not a number"
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    return "" if finite else f"{short(value)} is not a finite number"


def _is_positive(value: Any) -> str:
    return _is_number(value) or ("" if value >= 0 else f"{short(value)} is negative")


def _is_id(value: Any) -> str:
    return "" if isinstance(value, str) else _is_integer(value)


def _is_integer(value: Any) -> str:
    wrong = _is_number(value)
    if wrong:
        return wrong
    if value != int(value):
        return f"{short(value)} is not a whole number"
    return "" if -(2**63) <= value < 2**63 else f"{short(value)} does not fit 64 bits"


def _is_box(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return f"{short(value)} is not a list of four numbers"
    if len(value) != 4:
        return f"{len(value)} numbers where a box has 4"
    for i, number in enumerate(value):
        if _is_number(number):
            return f"number {i}: {_is_number(number)}"
        if abs(number) > MAX_PIXEL:
            return f"number {i}: {short(number)} is too large for pixels"
    for name, side in (("width", value[2]), ("height", value[3])):
        if side < 0:
            return f"{name} {short(side)} is negative"
    return ""


def _is_flag(value: Any) -> str:
    return "" if isinstance(value, bool) else _is_number(value)


def _is_ids(value: Any) -> str:
    if not isinstance(value, list):
        return f"{short(value)} is not a list of ids"
    for i, each in enumerate(value):
        wrong = _is_integer(each) or (
            "" if isinstance(each, int) else f"{short(each)} is not an integer"
        )
        if wrong:
            return f"number {i}: {wrong}"
    return ""


def _is_text(value: Any) -> str:
    return "" if isinstance(value, str) else f"{short(value)} is not a string"


def short(value: Any) -> str:
    """Returns a value as JSON, shortened for messages."""
    try:
        text = json.dumps(value)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= 60 else text[:57] + "..."


def place(path: Path, group: str, row: int) -> str:
    """Returns the place of a record: ``truth.json: annotations[7]``, or ``results.json[7]``."""
    return f"{path}: {group}[{row}]" if group else f"{path}[{row}]"


Fields = Mapping[str, tuple[Check, bool, str]]
"""Of each field of a record: its check, whether it is required, how to fix it."""

_BOX_FIX = (
    "a box is [x, y, width, height] in pixels; "
    "if yours are [x1, y1, x2, y2], write x2 - x1 and y2 - y1"
)
_SIZE: Fields = {"width": (_is_number, False, "pixels"), "height": (_is_number, False, "pixels")}
_IMAGE: Fields = {
    "id": (_is_id, True, "ids are integers"),
    "file_name": (_is_text, False, "the name of the image file"),
    **_SIZE,
    "neg_category_ids": (_is_ids, False, "ids of categories, or leave it out"),
    "not_exhaustive_category_ids": (_is_ids, False, "ids of categories, or leave it out"),
    "crowdIndex": (_is_number, False, "a number from 0 to 1, or leave it out"),
}
_CATEGORY: Fields = {
    "id": (_is_integer, True, "category ids are integers"),
    "name": (_is_text, False, "the name of the class"),
    "frequency": (_is_text, False, "the name of a group of classes, or leave it out"),
}
ANNOTATION: Fields = {
    "image_id": (_is_id, True, "the id of one of the images"),
    "category_id": (_is_integer, True, "the id of one of the categories"),
    "bbox": (_is_box, True, _BOX_FIX),
    "area": (_is_positive, False, "square pixels, or leave it out"),
    "iscrowd": (_is_flag, False, "0 or 1, or leave it out"),
    "id": (_is_id, False, "an integer, or leave it out"),
}
DETECTION: Fields = {
    "image_id": (_is_id, True, "the id of an image in the ground truth"),
    "category_id": (_is_id, True, "the id of a category in the ground truth"),
    "bbox": (_is_box, True, _BOX_FIX),
    "score": (_is_number, True, "a finite number; higher means more confident"),
}
Expected = tuple[str, dict[str, Fields]]
"""The shape of a file in words, and the fields of the records in its lists."""

IMAGES: Expected = ("a list of images", {"images": _IMAGE})
CATEGORIES: Expected = ("a list of categories", {"categories": _CATEGORY})
INSTANCES: Expected = (
    "an instances file is an object with images, annotations and categories",
    {"images": _IMAGE, "annotations": ANNOTATION, "categories": _CATEGORY},
)
BOXLESS: Expected = (
    INSTANCES[0],
    {**INSTANCES[1], "annotations": {**ANNOTATION, "bbox": (_is_box, False, _BOX_FIX)}},
)
"""An instances file whose objects may be without boxes."""
RESULTS: Expected = (
    "a results file is a list of records with image_id, category_id, bbox and score",
    {"annotations": DETECTION},
)
SHAPED: Expected = (
    "a results file is a list of records with image_id, category_id, score and a shape",
    {"annotations": {**DETECTION, "bbox": (_is_box, False, _BOX_FIX)}},
)
"""A results file whose detections may be without boxes."""


def record_error(where: str, record: Any, fields: Fields) -> DataError:
    """Returns the first error in a record."""
    for error in _record_errors(where, record, fields):
        return error
    return DataError(where, "not readable", "write it as plain JSON")


def _record_errors(where: str, record: Any, fields: Fields) -> Iterator[DataError]:
    if not isinstance(record, dict):
        yield DataError(
            where, f"{short(record)} is not an object", f"a record has {', '.join(fields)}"
        )
        return
    for name, (check, required, fix) in fields.items():
        if name not in record or (record[name] is None and not required):
            if required:
                yield DataError(f"{where}.{name}", "missing", _other_protocol(name, record) or fix)
        elif wrong := check(record[name]):
            yield DataError(f"{where}.{name}", wrong, _unquote(record[name]) or fix)


def _unquote(value: Any) -> str:
    """Returns the fix for numbers that are written as text, else ""."""
    texts = [each for each in (value if isinstance(value, list) else [value]) if type(each) is str]
    try:
        numbers = [float(each) for each in texts]
    except ValueError:
        return ""
    return "write numbers without quotation marks, such as float(value)" if numbers else ""


def _other_protocol(missing: str, record: Mapping[str, Any]) -> str:
    """Returns the fix for a record without a box that has masks or keypoints, else ""."""
    for key, what, protocol in (
        ("segmentation", "masks", "coco-segm"),
        ("keypoints", "keypoints", "coco-keypoints"),
    ):
        if missing == "bbox" and record.get(key) is not None:
            return f"the records have {what} only; use -p {protocol}, or give boxes"
    return ""


_HALF = r"\\u[dD][89a-fA-F]"  # how JSON spells half of a surrogate pair


RUNS = ("size", "counts")
"""The keys of a segmentation by run lengths."""

ESCAPED = (b"\\u005", b"\\u006", b"\\u007")
"""How escapes of the letters of keys begin."""


def surely_once(data: bytes, least: Mapping[str, int]) -> bool:
    """Checks that keys occur no more often than these lower bounds, and that none is escaped."""
    seldom = all(data.count(b'"%s"' % name.encode()) <= n for name, n in least.items())
    return seldom and (b"\\" not in data or not any(escape in data for escape in ESCAPED))


def require_once(path: Path, data: bytes, expected: Expected, least: Mapping[str, int]) -> None:
    """Rejects files in which a record has a used key twice: JSON does not define which one counts.

    Parameters
    ----------
    least : lower bounds of how often each key occurs; if they are exact and no key is escaped, the
        file is not read again
    """
    if surely_once(data, least):
        return
    groups = expected[1]
    twice = False

    def look(pairs: list[tuple[str, Any]]) -> None:  # makes no tree, which would take memory
        nonlocal twice
        twice = twice or len({name for name, _ in pairs}) < len(pairs)

    try:
        text = data.decode()
        json.loads(text, object_pairs_hook=look, parse_int=str)
        if not twice:
            return
        tree = json.loads(text, object_pairs_hook=_Pairs, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise explain(path, data, expected, error) from None
    lists = [(next(iter(groups)), tree)]
    if isinstance(tree, _Pairs):
        _refuse_twice(tree, groups, f"{path}: ")
        lists = [(name, value) for name, value in tree if name in groups]
    for group, records in lists:
        shown = group if isinstance(tree, _Pairs) else ""
        for i, record in enumerate(records):
            where = f"{place(path, shown, i)}."
            _refuse_twice(record, (*groups[group], *least), where)
            for name, value in record:
                if name == "attributes" and isinstance(value, _Pairs):
                    _refuse_twice(value, least, f"{where}{name}.")
                if name == "segmentation" and name in least and isinstance(value, _Pairs):
                    _refuse_twice(value, RUNS, f"{where}{name}.")


def least_runs(segmentations: Iterable[Any]) -> dict[str, int]:
    """Returns how often the keys of run lengths occur in segmentations, at least."""
    given = [each for each in segmentations if isinstance(each, dict)]
    return {name: sum(name in each for each in given) for name in RUNS}


def first_record(path: Path) -> Mapping[str, Any]:
    """Returns the first record of a results list, {} if it cannot be found quickly."""
    for size in (1 << 12, open_files.HEAD, 1 << 22):
        record = first_of_list(open_files.head(path, size))
        if record is not None:
            return record
    return {}


def first_of_list(data: bytes) -> Mapping[str, Any] | None:
    """Returns the first record of a list; {} if it starts with something else, None if it is cut
    off.
    """
    text = data[: 1 << 22].decode(errors="replace").lstrip().lstrip("\ufeff")
    begin = text.find("{")
    if not text.startswith("[") or text[1 : max(begin, 1)].strip():
        return {}
    try:
        record = JSON.raw_decode(text, begin)[0]
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else {}


class _Pairs(list[tuple[str, Any]]):
    """An object with all its pairs, including repeated keys."""


def _refuse_twice(record: list[tuple[str, Any]], names: Collection[str], where: str) -> None:
    seen = set()
    for name, _ in record:
        if name in seen and name in names:
            raise DataError(f"{where}{name}", "occurs twice", "keep the right one")
        seen.add(name)


def explain(path: Path, data: bytes, expected: Expected, refused: Exception) -> DataError:
    """Returns the error of a file that the decoder rejected."""
    shape, groups = expected
    if not data.strip():
        return DataError(str(path), "the file is empty", shape)
    if open_files.is_utf16(data):
        return DataError(str(path), "text in UTF-16", open_files.SAVE_UTF8)
    if data.startswith(b"\x1f\x8b"):
        return DataError(str(path), "compressed by gzip", "unpack it")
    try:
        text, not_utf8 = data.decode(), None
    except UnicodeDecodeError as error:  # each such byte becomes half of a surrogate pair
        text, not_utf8 = data.decode(errors="surrogateescape"), error
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        if not_utf8:
            return _not_utf8(f"{path}: line {1 + data.count(LF, 0, not_utf8.start)}", not_utf8)
        return _not_json(path, error)
    except RecursionError:
        return DataError(str(path), "nested too deeply", shape)
    except ValueError:  # a whole number of thousands of digits
        found = max(re.finditer("[0-9]+", text), key=lambda each: len(each[0]))
        what = f"a number of {len(found[0])} digits"
        return DataError(_line(path, text, found.start()), what, "write a shorter one")
    if isinstance(tree, list) and len(groups) == 1:
        tree = {"": tree}
        groups = {"": next(iter(groups.values()))}
    if not isinstance(tree, dict):
        kind = "a list, as of a results file" if isinstance(tree, list) else short(tree)
        return DataError(str(path), f"the top level is {kind}", shape)
    for where, value in _leaves(tree) if not_utf8 or re.search(_HALF, text) else ():
        if isinstance(value, str) and re.search("[\ud800-\udfff]", value):  # UTF-8 has none
            record = _path_in(path, tree, where)
            if not_utf8:
                return _not_utf8(record, not_utf8)
            return DataError(record, f"{short(value)} holds half of a surrogate pair", "write text")
    for group, fields in groups.items():
        if group not in tree:
            return DataError(f"{path}: {group}", "missing", shape)
        if not isinstance(tree[group], list):
            return DataError(f"{path}: {group}", f"{short(tree[group])} is not a list", shape)
        for i, record in enumerate(tree[group]):
            for wrong in _record_errors(place(path, group, i), record, fields):
                if fields is DETECTION and "images" in tree:
                    return DataError(
                        wrong.where,
                        wrong.what,
                        f"this looks like an instances file (ground truth); {shape}",
                    )
                return wrong
    for where, value in _leaves(tree):
        if isinstance(value, float) and not math.isfinite(value):
            return DataError(
                _path_in(path, tree, where),
                f"{short(value)} is not valid JSON, though Python writes it",
                "leave the field out or write a number",
            )
    return DataError(str(path), f"not readable: {refused}", "write it as plain JSON in UTF-8")


def _line(path: Path, text: str, at: int) -> str:
    column = at - text.rfind("\n", 0, at)
    return f"{path}: line {1 + text.count(chr(10), 0, at)}, column {column}"


def _not_json(path: Path, error: json.JSONDecodeError) -> DataError:
    fix = "write it with a JSON library"
    if error.msg == "Extra data":
        fix = "remove what follows the JSON value, or write the file with a JSON library"
    elif json_faults.is_truncated(error):
        fix = json_faults.WRITE_AGAIN
    return DataError(_line(path, error.doc, error.pos), f"not JSON: {error.msg}", fix)


def _not_utf8(where: str, error: UnicodeDecodeError) -> DataError:
    if json_faults.is_cut_character(error):
        what = "truncated: the file ends in the middle of a character"
        return DataError(where, what, json_faults.WRITE_AGAIN)
    return DataError(where, f"not UTF-8: {error.reason}", "write the file as UTF-8")


def _path_in(path: Path, tree: Mapping[str, Any], where: str) -> str:
    """Returns the printable, shortened path of a value in a file."""
    where = (
        (where if len(where) <= 100 else f"{where[:97]}...")
        .encode("ascii", "backslashreplace")
        .decode()
    )
    return f"{path}{where}" if "" in tree else f"{path}: {where[1:]}"


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields every scalar and key with its path."""
    open_ends: list[tuple[str, Any]] = [("", tree)]
    while open_ends:
        where, value = open_ends.pop()
        if isinstance(value, dict):
            for key, inner in reversed(value.items()):
                open_ends.append((f"{where}.{key}" if key else where, inner))
                if not key.isascii():
                    open_ends.append((f"{where}.{key}", key))
        elif isinstance(value, list):
            open_ends += [(f"{where}[{i}]", inner) for i, inner in reversed(list(enumerate(value)))]
        else:
            yield where, value
