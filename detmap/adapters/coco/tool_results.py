"""COCO results as tools write them, made plain: the text of a list of records with ``image_id`` and
``category_id``, which the readers of plain files take.

- gzip, JSON lines; the list as ``annotations`` or ``predictions`` of an object
- ``file_name`` in place of ``image_id``, or beside it; ``category_name`` in place of
  ``category_id``
- an object with its own ``images`` and ``categories``: names decide, for ids may count otherwise
- pickles are refused: reading one runs what is in it

What the first record has decides for all.

Source: what mmdetection (``.bbox.json``), detectron2 (``coco_instances_results.json``), Ultralytics
(``predictions.json``), FiftyOne and CVAT (instances with scores) write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from detmap.adapters.coco import record_errors as coco_errors
from detmap.adapters.joining import image_lookup
from detmap.adapters.joining.unknown_policy import Policy
from detmap.base import open_files as opening
from detmap.base.open_files import shown
from detmap.errors import DataError
from detmap.tables import Note, Truth

DECODED = 6  # bytes of memory that a byte of JSON takes as typed records and columns
LISTS = ("annotations", "predictions")
READ = ("image_id", "file_name", "category_id", "category_name", "bbox", "score", "segmentation")
PICKLED = (".pkl", ".pickle")


@dataclass(frozen=True, slots=True)
class Text:
    """A results file in plain form.

    Parameters
    ----------
    data : JSON, a list of records or an object with ``annotations``
    first : its first record; empty where that is not plain to see
    notes : what was done to it
    """

    data: bytes
    first: Mapping[str, Any]
    notes: tuple[Note, ...] = ()


class _Wrapper(msgspec.Struct, gc=False):
    annotations: msgspec.Raw = msgspec.Raw(b"")
    predictions: msgspec.Raw = msgspec.Raw(b"")
    images: msgspec.Raw = msgspec.Raw(b"")
    categories: msgspec.Raw = msgspec.Raw(b"")


def read_bytes(path: Path) -> bytes:
    """The JSON of a file, unpacked, without a byte order mark.

    Raises
    ------
    DataError : it cannot be read, or is a pickle
    """
    if path.suffix.lower() in PICKLED:
        raise DataError(
            shown(path),
            "a pickle: reading it would run what is in it",
            "let its tool write JSON; mmdetection: python tools/analysis_tools/eval_metric.py "
            f"CONFIG {shown(path)} --cfg-options val_evaluator.outfile_prefix=results, then give "
            "results.bbox.json",
        )
    data = opening.unpacked(path, times=DECODED, what="decoding the file")
    return data.removeprefix(b"\xef\xbb\xbf")


def results(path: Path, truth: Truth, policy: Policy) -> Text:
    """A results file in plain form; one that is no such file stays as it is, for its reader to
    say what is wrong.

    Raises
    ------
    DataError : a key that is there twice, records without a name; names that may be two images
    """
    data = read_bytes(path)
    begin = data[:64].lstrip()[:1]
    if begin == b"[":
        first = coco_errors.first_of_list(data) or {}
        if is_plain(first):
            return Text(data, first)
        return _made_plain(path, truth, policy, data, "", _loads(path, data), {})
    if begin != b"{":
        return Text(data, {})
    try:
        wrapper = msgspec.json.decode(data, type=_Wrapper)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        rows = _lines(path, data)
        return _made_plain(path, truth, policy, data, "", rows, {})
    lists = [name for name in LISTS if bytes(getattr(wrapper, name))]
    if len(lists) != 1:
        rows = None if lists else _lines(path, data)
        return _made_plain(path, truth, policy, data, "", rows, {})
    records: msgspec.Raw = getattr(wrapper, lists[0])
    first = coco_errors.first_of_list(bytes(records)) or {}
    own = bytes(wrapper.images) or bytes(wrapper.categories)
    if lists == ["annotations"] and not own and is_plain(first):
        return Text(data, first)
    tree = _loads(path, data)
    if not isinstance(tree, dict):
        return Text(data, {})
    return _made_plain(path, truth, policy, data, lists[0], tree[lists[0]], tree)


def is_plain(first: Mapping[str, Any]) -> bool:
    """Whether a file whose first record this is need not be looked at further."""
    return not first or ("file_name" not in first and {"image_id", "category_id"} <= first.keys())


def _loads(path: Path, data: bytes) -> Any:
    """The tree of a JSON file; None for one that is none. A key that is read may be there once."""

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            for name in (*READ, *LISTS, "images", "categories", "id", "name"):
                if names.count(name) > 1:
                    raise DataError(f"{shown(path)}: {name}", "there twice", "keep the right one")
        return record

    try:
        return json.loads(data, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return None


def _lines(path: Path, data: bytes) -> list[Any] | None:
    """The records of JSON lines; None for another file.

    Raises
    ------
    DataError : a line that is none, after a first that is one
    """
    lines = data.splitlines()
    rows: list[Any] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _loads(path, line)
        if not isinstance(row, dict):
            if not rows:
                return None
            where = f"{shown(path)}: line {number}"
            raise DataError(where, "not a JSON object", "JSON lines have one record a line")
        if not rows and not row.keys() & {"image_id", "file_name"}:
            return None
        rows.append(row)
    return rows


def _made_plain(
    path: Path,
    truth: Truth,
    policy: Policy,
    data: bytes,
    group: str,
    rows: Any,
    tree: Mapping[str, Any],
) -> Text:
    """The same records with ``image_id`` and ``category_id``."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Text(data, {})
    if tree.get("images") is not None and not any("score" in row for row in rows):
        return Text(data, {})  # a truth, which the reader says
    rows = [dict(row) for row in rows]
    notes = _name_images(path, truth, group, rows, tree.get("images"))
    notes += _name_classes(path, truth, policy, group, rows, tree.get("categories"))
    plain = {"annotations": rows} if group == "annotations" else rows
    return Text(json.dumps(plain).encode(), rows[0] if rows else {}, notes)


def _name_images(
    path: Path, truth: Truth, group: str, rows: list[dict[str, Any]], own: Any
) -> tuple[Note, ...]:
    """Give each record an image id: its own, or the file name where names decide."""
    listed = _own(path, "images", own, "file_name")
    for row in rows:
        if "file_name" not in row and _key(row.get("image_id")) in listed:
            row["file_name"] = listed[_key(row["image_id"])]
    named = [isinstance(row.get("file_name"), str) for row in rows]
    if not any(named):
        return ()
    for i, row in enumerate(rows):
        if not named[i] and row.get("image_id") is None:
            return ()  # the reader says that it is missing
    if not all(named):
        where = f"{coco_errors.place(path, group, named.index(True))}.file_name"
        what = "some records name their image by file_name, some do not"
        raise DataError(where, what, "name all images in one way")
    if not all("image_id" in row for row in rows):
        for row in rows:
            row["image_id"] = row["file_name"]
        return ()
    return _choose_image_key(path, truth, group, rows)


def _choose_image_key(
    path: Path, truth: Truth, group: str, rows: list[dict[str, Any]]
) -> tuple[Note, ...]:
    """Decide between the image id and the file name that each record has: where they do not say the
    same, the names are right, for ids are often the number of a stem or a count of their own.
    """
    lookup = image_lookup.Lookup(truth)
    if not lookup.by_last:
        return ()
    meant: list[int] = []
    other = 0
    for i, row in enumerate(rows):
        name, own = row["file_name"], lookup.by_id.get(_key(row["image_id"]), -1)
        places = lookup.exact(name) or lookup.named(name)[0]
        if own in places:
            meant.append(own)
            continue
        if len(places) > 1:
            where = f"{coco_errors.place(path, group, i)}.file_name"
            raise lookup.ambiguous(where, row["file_name"], places)
        meant.append(places[0] if places else -1)
        other += 1
    if not other:
        return ()
    strange = -1 in meant
    for row, at in zip(rows, meant, strict=True):
        name = row["file_name"] if at < 0 else lookup.files[at]
        row["image_id"] = name if strange else lookup.ids[at]
    text = "detections have an image_id that is not that of their file_name in the truth: the file "
    return (Note("image-joined", f"{text}name was taken", other, shown(path)),)


def _name_classes(
    path: Path, truth: Truth, policy: Policy, group: str, rows: list[dict[str, Any]], own: Any
) -> tuple[Note, ...]:
    """Give each record a category id: its own, or its name where names decide."""
    if policy.class_names is not None:
        return ()
    listed = _own(path, "categories", own, "name")
    categories = truth.categories
    pairs = zip(categories.ids.tolist(), categories.names, strict=True)
    theirs = dict(pairs) if truth.family == "coco" else {}
    for row in rows:
        if "category_id" not in row and isinstance(row.get("category_name"), str):
            row["category_id"] = row["category_name"]
    used = {_key(row.get("category_id")) for row in rows if row.get("category_id") is not None}
    if not listed or all(listed.get(each) == theirs.get(each, 0) for each in used):
        return ()
    for i, row in enumerate(rows):
        if row.get("category_id") is None or isinstance(row["category_id"], str):
            continue
        if _key(row["category_id"]) not in listed:
            where = f"{coco_errors.place(path, group, i)}.category_id"
            what = f"{row['category_id']!r:.60} is not in the file's own categories"
            raise DataError(where, what, "list it there, or leave categories out")
    count = 0
    for row in rows:
        if not isinstance(row.get("category_id"), str | None):
            row["category_id"] = listed[_key(row["category_id"])]
            count += 1
    text = "detections name their class by the file's own categories, whose ids are not the truth's"
    return (Note("class-joined", text, count, shown(path)),)


def _own(path: Path, group: str, given: Any, field: str) -> dict[Any, str]:
    """Names by id, of a file's own images or categories.

    Raises
    ------
    DataError : no list of records, an id that is there twice
    """
    if given is None:
        return {}
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise DataError(f"{shown(path)}: {group}", "not a list of records", "leave it out")
    names: dict[Any, str] = {}
    for i, each in enumerate(given):
        key = _key(each.get("id"))
        if key in names:
            where = f"{coco_errors.place(path, group, i)}.id"
            raise DataError(where, f"{each['id']!r:.60} is there twice", "give each id one name")
        if isinstance(each.get(field), str) and key is not None:
            names[key] = each[field]
    return names


def _key(value: Any) -> Any:
    """An id as a key: whole floats are whole numbers; None for what is no id."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
