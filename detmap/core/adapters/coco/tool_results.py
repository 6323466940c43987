"""Converts COCO results of tools to plain JSON: records with ``image_id`` and ``category_id``.

- gzip, JSON lines; the list as ``annotations`` or ``predictions`` of an object
- ``file_name`` instead of ``image_id``, or besides it; ``category_name`` instead of ``category_id``
- an object with its own ``images`` and ``categories``: names decide, since ids may differ
- one of ``confidence``, ``conf``, ``prob``, ``probability`` or ``scores`` instead of ``score``
- ``poly`` of a rotated box instead of ``bbox``: the upright box around it
- pickles are rejected, since reading one runs its code

The keys of the first record decide for all.

Source: what mmdetection (``.bbox.json``), detectron2 (``coco_instances_results.json``), Ultralytics
(``predictions.json``), FiftyOne and CVAT (instances with scores) write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import json_lines, record_errors
from detmap.core.adapters.coco.ids import Ids
from detmap.core.adapters.coco.scan_json import has_second_keys
from detmap.core.adapters.coco.second_keys import id_of, is_scored, require_agreement, set_scores
from detmap.core.adapters.joining import class_keys, image_names, join, unknown_policy
from detmap.core.adapters.joining.join import SCORES
from detmap.core.adapters.joining.unknown_policy import FLAG, Policy
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.tables import MAX_PIXEL, Note, Truth
from detmap.core.tables.join_keys import Key
from detmap.errors import DataError

if TYPE_CHECKING:
    from detmap.core.adapters.joining.image_lookup import Lookup

DECODED = 6  # bytes of memory that a byte of JSON takes as typed records and columns
LISTS = ("annotations", "predictions")
READ = (*("image_id", "file_name", "category_id", "category_name", "bbox", "segmentation"), *SCORES)
PICKLED = (".pkl", ".pickle")


class Text(NamedTuple):
    """A results file as plain JSON.

    Parameters
    ----------
    data : JSON, a list of records or an object with ``annotations``
    first : its first record; empty if not found quickly
    notes : what was converted
    image_field : the field of the file's records that ``image_id`` was read from
    class_field : the same of ``category_id``
    """

    data: bytes
    first: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    image_field: str = "image_id"
    class_field: str = "category_id"

    def images(
        self, truth: Truth, given: Ids, place: Callable[[int], str], where: str, policy: Policy
    ) -> tuple[NDArray[np.int32], tuple[Note, ...]]:
        """Finds the images of the records; see `join.images_named`. Numbers are ids."""
        named = self.image_field != "image_id" and isinstance(given, list)
        key: Key = "name" if named else "id"
        evidence = policy.evidence("image")
        return join.images_named(truth, given, place, where, key=key, evidence=evidence)

    def classes(self, truth: Truth, given: Ids, where: str, policy: Policy) -> class_keys.Found:
        """Finds the classes of the records. Numbers are ids; texts are names."""
        if isinstance(given, list):
            if self.class_field == "category_id":
                class_keys.refuse_ids(truth, given, where)
            return class_keys.Found(join.classes_by_id(truth, given, where, policy), given)
        return class_keys.find(truth, given, where, policy, "categoryid")


class _Wrapper(msgspec.Struct, gc=False):
    annotations: msgspec.Raw = msgspec.Raw(b"")
    predictions: msgspec.Raw = msgspec.Raw(b"")
    images: msgspec.Raw = msgspec.Raw(b"")
    categories: msgspec.Raw = msgspec.Raw(b"")


def read_bytes(path: Path) -> bytes:
    """Reads the JSON of a file, decompressed and without byte order mark. Rejects pickles."""
    if path.suffix.lower() in PICKLED:
        raise DataError(
            shown(path),
            "a pickle: reading it would run its code",
            "export JSON from its tool; mmdetection: python tools/analysis_tools/eval_metric.py "
            f"CONFIG {shown(path)} --cfg-options val_evaluator.outfile_prefix=results, then give "
            "results.bbox.json",
        )
    data = open_files.unpacked(path, times=DECODED, what="decoding the file")
    return data.removeprefix(b"\xef\xbb\xbf")


def results(path: Path, truth: Truth, policy: Policy) -> Text:
    """Converts a results file to plain JSON. Invalid files are unchanged; their reader reports the
    error.

    Raises `DataError` for repeated keys, missing or ambiguous image names.
    """
    data = read_bytes(path)
    begin = data[:64].lstrip()[:1]
    if begin == b"[":
        first = record_errors.first_of_list(data) or {}
        if is_plain(first) and not has_second_keys(data):
            return Text(data, first)
        return _made_plain(path, truth, policy, data, "", _loads(path, data), {})
    if begin != b"{":
        return Text(data, {})
    try:
        wrapper = msgspec.json.decode(data, type=_Wrapper)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _convert_lines(path, truth, policy, data)
    lists = [name for name in LISTS if bytes(getattr(wrapper, name))]
    if len(lists) != 1:
        return Text(data, {}) if lists else _convert_lines(path, truth, policy, data)
    records: msgspec.Raw = getattr(wrapper, lists[0])
    first = record_errors.first_of_list(bytes(records)) or {}
    own = bytes(wrapper.images) or bytes(wrapper.categories)
    if lists == ["annotations"] and not own and is_plain(first) and not has_second_keys(data):
        return Text(data, first)
    tree = _loads(path, data)
    if not isinstance(tree, dict):
        return Text(data, {})
    return _made_plain(path, truth, policy, data, lists[0], tree[lists[0]], tree)


def is_plain(first: Mapping[str, Any]) -> bool:
    """Checks by the first record if a file needs no conversion."""
    named = "file_name" not in first and {"image_id", "category_id"} <= first.keys()
    return not first or (named and not _is_rotated(first) and is_scored(first))


def _is_rotated(row: Mapping[str, Any]) -> bool:
    return "poly" in row and "bbox" not in row


def _loads(path: Path, data: bytes) -> Any:
    """Parses JSON, None if invalid. Rejects repeated keys that are used."""

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            for name in (*READ, *LISTS, "images", "categories", "id", "name"):
                if names.count(name) > 1:
                    raise DataError(f"{shown(path)}: {name}", "occurs twice", "keep the right one")
        return record

    try:
        return json.loads(data, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return None


def _convert_lines(path: Path, truth: Truth, policy: Policy, data: bytes) -> Text:
    """Converts JSON lines; other files are unchanged.

    Raises `DataError` for a line that is not one record.
    """
    first = json_lines.first_record(data[: json_lines.FIRST_LINE])
    if first is None:
        return Text(data, {})
    records = json_lines.split(data)
    json_lines.require_objects(path, records)
    text = json_lines.listed(records)
    if is_plain(first) and not has_second_keys(data):
        return Text(text, first)
    return _made_plain(path, truth, policy, text, "", _loads(path, text), {})


def _made_plain(
    path: Path,
    truth: Truth,
    policy: Policy,
    data: bytes,
    group: str,
    rows: Any,
    tree: Mapping[str, Any],
) -> Text:
    """Converts records to ``image_id`` and ``category_id``."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Text(data, {})
    scored = any("score" in row or not is_scored(row) for row in rows)
    if tree.get("images") is not None and not scored:
        return Text(data, {})  # a ground truth, as the reader reports
    rows = [dict(row) for row in rows]
    image_field, notes = _name_images(path, truth, policy, group, rows, tree.get("images"))
    if tree.get("categories") is None:
        require_agreement(path, truth, policy, group, rows)
    by_name = not any("category_id" in row for row in rows)
    joined = _name_classes(path, truth, policy, group, rows, tree.get("categories"))
    notes += joined + set_scores(path, group, rows) + _set_boxes(path, group, rows)
    plain = {"annotations": rows} if group == "annotations" else rows
    class_field = "category_name" if by_name or joined else "category_id"
    first = rows[0] if rows else {}
    return Text(json.dumps(plain).encode(), first, notes, image_field, class_field)


def _set_boxes(path: Path, group: str, rows: list[dict[str, Any]]) -> tuple[Note, ...]:
    """Sets the box of each rotated one, around its corners x1, y1, x2, y2, ..."""
    count = 0
    for i, row in enumerate(rows):
        if not _is_rotated(row):
            continue
        points = row["poly"]
        if not isinstance(points, list) or len(points) < 6 or len(points) % 2:
            where = f"{record_errors.place(path, group, i)}.poly"
            raise DataError(where, f"{points!r:.60} are no corners", "write x1, y1, x2, y2, ...")
        if all(isinstance(each, int | float) and abs(each) <= MAX_PIXEL for each in points):
            left, top = min(points[::2]), min(points[1::2])
            row["bbox"] = [left, top, max(points[::2]) - left, max(points[1::2]) - top]
            count += 1
    text = "detections are rotated boxes (poly): the upright boxes around them are used"
    return (Note("box-rotated", text, count, shown(path)),) * bool(count)


def _name_images(
    path: Path, truth: Truth, policy: Policy, group: str, rows: list[dict[str, Any]], own: Any
) -> tuple[str, tuple[Note, ...]]:
    """Sets the image id of each record, by file name if necessary. Returns the field that named the
    image, and notes. An empty file name is none, as null.
    """
    listed = _own(path, "images", own, "file_name")
    for row in rows:
        if row.get("file_name") in (None, "") and id_of(row.get("image_id")) in listed:
            row["file_name"] = listed[id_of(row["image_id"])]
    named = [isinstance(row.get("file_name"), str) and row["file_name"] != "" for row in rows]
    if not any(named):
        return "image_id", ()
    for i, row in enumerate(rows):
        if not named[i] and row.get("image_id") is None:
            return "image_id", ()  # the reader reports that it is missing
    if not all(named):
        other = named.index(not named[0])
        where = f"{record_errors.place(path, group, other)}.file_name"
        what = "a file_name, and earlier records have none"
        what = what if named[other] else "no file_name, and earlier records have one"
        raise DataError(where, what, "give all records a file_name, or none")
    if not all("image_id" in row for row in rows):
        for row in rows:
            row["image_id"] = row["file_name"]
        return "file_name", ()
    return _choose_imageid_of(path, truth, policy, group, rows, listed)


def _choose_imageid_of(
    path: Path,
    truth: Truth,
    policy: Policy,
    group: str,
    rows: list[dict[str, Any]],
    listed: Mapping[Any, str],
) -> tuple[str, tuple[Note, ...]]:
    """Chooses between image id and file name. If they differ, the file name is used, since ids are
    often counters.

    Raises `DataError` for an id that is another image of the ground truth, except if all ids of
    the file are stems of the names (as Ultralytics writes them), and an id of the file's own images
    (`listed`). So is the id of an image whose name the ground truth lacks, unless such names are
    dropped.
    """
    from detmap.core.adapters.joining import image_lookup

    lookup = image_lookup.Lookup(truth)
    if not lookup.by_last:
        return "image_id", ()
    places_of, lost = _places(lookup, {row["file_name"] for row in rows})
    by_stem = all(_is_stem(id_of(row["image_id"]), row["file_name"]) for row in rows)
    meant: list[int] = []
    n_differing = n_lost = 0
    for i, row in enumerate(rows):
        name, key = row["file_name"], id_of(row["image_id"])
        own, places = lookup.by_id.get(key, -1), places_of[name]
        if own in places:
            meant.append(own)
            continue
        where = record_errors.place(path, group, i)
        if len(places) > 1:
            raise lookup.ambiguous(f"{where}.file_name", name, places)
        if own >= 0 and key not in listed:
            if places and not by_stem:
                raise _contradiction(where, lookup, key, name, places[0])
            if name in lost and policy.unknown not in ("drop", "add"):
                raise _unknown_name(where, lookup, key, name)
        meant.append(places[0] if places else -1)
        n_differing += 1
        n_lost += name in lost
    if not n_differing:
        return "image_id", ()
    strange = -1 in meant
    for row, at in zip(rows, meant, strict=True):
        name = row["file_name"] if at < 0 else lookup.files[at]
        row["image_id"] = name if strange else lookup.ids[at]
    text = "detections have a file_name that has another id than their image_id in the ground truth"
    cause = " (Ultralytics writes the number of the stem)" if by_stem else ""
    n_joined = n_differing - n_lost  # the reader reports the others
    notes = (
        Note("image-by-file-name", f"{text}{cause}: joined by file_name", n_joined, shown(path)),
    ) * bool(n_joined)
    return "image_id" if listed else "file_name", notes


def _places(lookup: Lookup, names: set[str]) -> tuple[dict[str, list[int]], set[str]]:
    """Returns the images that each file name may refer to, and the names that are found in no way,
    also not as they were before an upload.
    """
    places = {name: lookup.exact(name) or lookup.named(name)[0] for name in names}
    rest = [name for name in names if not places[name]]
    if not rest:
        return places, set()
    from detmap.core.adapters.joining import image_lookup

    found, _ = image_lookup.positions_by_name(lookup, rest, str)
    return places, {name for name, at in zip(rest, found.tolist(), strict=True) if at < 0}


def _contradiction(where: str, lookup: Lookup, key: Any, name: str, other: int) -> DataError:
    """Returns the error for an id and a file name of two images."""
    file = lookup.files[lookup.by_id[key]]
    what = f"image_id {key!r:.60} is {file!r:.60} in {lookup.truth.source}, but "
    what += f"file_name is {name!r:.60} (image {lookup.ids[other]!r:.60})"
    fix = "remove file_name to join by image_id as pycocotools does, or remove image_id"
    return DataError(where, what, fix)


def _unknown_name(where: str, lookup: Lookup, key: Any, name: str) -> DataError:
    """Returns the error for the id of an image beside a file name that the ground truth lacks."""
    file = lookup.files[lookup.by_id[key]]
    what = f"image_id {key!r:.60} is {file!r:.60} in {lookup.truth.source}, but "
    what += f"file_name {name!r:.60} is not in it"
    fix = "remove file_name to join by image_id, as pycocotools does; "
    return DataError(where, what, unknown_policy.nearest(name, lookup.files) + fix + FLAG)


def _is_stem(key: Any, name: str) -> bool:
    """Checks if an id is the stem of a file name, as a string or number."""
    stem = image_names.stem(name)
    return str(key) in (stem, stem.lstrip("0") or "0")


def _name_classes(
    path: Path, truth: Truth, policy: Policy, group: str, rows: list[dict[str, Any]], own: Any
) -> tuple[Note, ...]:
    """Sets the category id of each record, by name if necessary."""
    if policy.class_names is not None:
        return ()
    listed = _own(path, "categories", own, "name")
    categories = truth.categories
    pairs = zip(categories.ids.tolist(), categories.names, strict=True)
    theirs = dict(pairs) if truth.family == "coco" else {}
    for row in rows:
        if "category_id" not in row and isinstance(row.get("category_name"), str):
            row["category_id"] = row["category_name"]
    used = {id_of(row.get("category_id")) for row in rows if row.get("category_id") is not None}
    if not listed or all(listed.get(each) == theirs.get(each, 0) for each in used):
        return ()
    for i, row in enumerate(rows):
        if row.get("category_id") is None or isinstance(row["category_id"], str):
            continue
        if id_of(row["category_id"]) not in listed:
            where = f"{record_errors.place(path, group, i)}.category_id"
            what = f"{row['category_id']!r:.60} is not in the file's own categories"
            raise DataError(where, what, "list it there, or leave categories out")
    count = 0
    for row in rows:
        if not isinstance(row.get("category_id"), str | None):
            row["category_id"] = listed[id_of(row["category_id"])]
            count += 1
    text = "detections use the file's own category ids: joined by class name"
    return (Note("class-joined", text, count, shown(path)),)


def _own(path: Path, group: str, given: Any, field: str) -> dict[Any, str]:
    """Returns names by id, of a file's own images or categories."""
    if given is None:
        return {}
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise DataError(f"{shown(path)}: {group}", "not a list of records", "remove it")
    names: dict[Any, str] = {}
    for i, each in enumerate(given):
        key = id_of(each.get("id"))
        if key in names:
            where = f"{record_errors.place(path, group, i)}.id"
            raise DataError(where, f"{each['id']!r:.60} occurs twice", "give each id one name")
        if isinstance(each.get(field), str) and key is not None:
            names[key] = each[field]
    return names
