"""Reads Open Images: boxes and verified labels in CSV, a label map, a class hierarchy.

Beside the boxes are ``labels.csv`` (verified classes: 1 present, 0 absent), ``labelmap.pbtxt`` and
``hierarchy.json``, or one file each under its official name. Boxes are fractions of the image; they
are not converted to pixels, since an IoU needs none. The ground truth is expanded by the hierarchy
(`detmap.benchmarks.open_images.label_hierarchy`); detections are not.

Source: TensorFlow Object Detection API, metrics/oid_challenge_evaluation.py.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.open_images import label_hierarchy
from detmap.core.adapters import text_fields
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.tabular.csv_parquet import Sheet
from detmap.core.base import arguments, column_checks, open_files
from detmap.core.base.flat_rows import first_repeated, first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import ABSENT, DERIVED, Categories, Detections, Images, Note, Scope, Truth
from detmap.core.tables.grouping import positions, runs
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, few

BESIDE = {
    "labels": ("labels.csv", "*imagelabels*.csv"),
    "label map": ("labelmap.pbtxt", "*.pbtxt"),
    "hierarchy": ("hierarchy.json", "*hierarchy*.json"),
}
"""What is found beside the boxes: its name, else the only file of the official pattern."""

SIDES = ("XMin", "YMin", "XMax", "YMax")
HEADER = re.compile(rb"\xef?\xbb?\xbf?ImageID,.*LabelName.*XMin", re.IGNORECASE)
ITEM = re.compile(r"item\s*:?\s*\{([^{}]*)\}\s*,?")
FIELD = re.compile(r"(\w+)\s*:\s*(?:\"([^\"]*)\"|'([^']*)'|(-?[0-9]+))")
LOOKED_AT = 2000  # derived objects that are looked up among the written ones


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    if path.is_dir() or path.suffix.lower() != ".csv":
        return 0
    with open_files.opened(path) as file:
        return int(bool(HEADER.match(file.read(0, 1 << 10))))


def read_truth(path: Path) -> Truth:
    """Reads the boxes of a split with the files beside them, and expands them.

    Objects made by the hierarchy have the role "derived".

    Raises `DataError` for missing files and columns, invalid cells and unknown classes.
    """
    sheet = csv_parquet.read_csv(path)
    categories = _read_label_map(_beside(path, "label map"))
    hierarchy_file = _beside(path, "hierarchy")
    hierarchy = label_hierarchy.read_hierarchy(hierarchy_file)
    listed = csv_parquet.read_csv(_beside(path, "labels"))
    names, image = _images(sheet, listed)
    label, boxes = _classes(sheet, categories), _boxes(sheet)
    column = sheet.find(("isgroupof",), "IsGroupOf")
    group_of = arguments.flags(f"{shown(path)}: column {column}", sheet.numbers(column))
    above = label_hierarchy.positions(hierarchy.above, categories.names)
    below = label_hierarchy.positions(hierarchy.below, categories.names)
    rows = image[: len(sheet)]
    source, classes, derived = label_hierarchy.expand(label, above, shown(hierarchy_file))
    _refuse_expanded(path, hierarchy_file, (rows, label, boxes), (source, classes, derived))
    boxes = boxes[source]
    missing = {each for each in hierarchy.above if each not in set(categories.names)}
    text = f"classes of {hierarchy_file.name} are not in the label map: {{names}}"
    unlisted = Note(
        *("class-unlisted", text, len(missing), shown(path), listed_names(missing)), adding="names"
    )
    verified = _classes(listed, categories, some=True)  # lists of labels have many more classes
    strange = np.flatnonzero(verified < 0)
    named_in = listed.names(listed.find(("labelname",), "LabelName"))
    text = "verified labels are of classes that are not in the label map: {names}"
    named = listed_names(named_in[i] for i in strange.tolist())
    left_out = Note("label-unlisted", text, len(strange), listed.source, named)
    shape = (len(names), len(categories))
    unknown = np.full(len(names), np.nan)
    return Truth(
        Images(names, tuple(names.tolist()), unknown, unknown.copy()),
        categories,
        image=rows[source],
        label=classes,
        boxes=boxes,
        roles={"group_of": group_of[source], "derived": derived},
        attributes={"area": (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])},
        box_format="voc",  # corners as written: see boxes.extent in the protocols
        family="coco",
        source=shown(path),
        notes=tuple(note for note in (unlisted, left_out) if note.count),
        scope=_scope(listed, image[len(sheet) :], verified, (above, below), shape),
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads ``ImageID,LabelName,Score,XMin,XMax,YMin,YMax``.

    Raises `DataError` for missing columns, invalid cells, unknown images and classes.
    """
    policy.refuse_class_names(shown(path))
    sheet = csv_parquet.read_csv(path)
    column = sheet.find(("score", "conf", "confidence"), "Score")
    score = sheet.numbers(column)
    if (row := first_true(~np.isfinite(score))) is not None:
        where = f"{sheet.place(row)}, column {column}"
        raise DataError(where, f"{score[row]} is not a finite number", "correct the row")
    images = sheet.names(sheet.find(("imageid",), "ImageID"))
    classes = sheet.names(sheet.find(("labelname",), "LabelName"))
    return join.joined(
        truth,
        join.places(truth.images.ids, images),
        join.classes_by_id(truth, classes, shown(path), policy),
        _boxes(sheet),
        score,
        box_format="voc",
        origin=join.Origin(shown(path), sheet.place, images, classes),
        policy=policy,
    )


def _beside(path: Path, what: str) -> Path:
    name, pattern = BESIDE[what]
    file = path.parent / name
    if file.exists():
        return file
    found = sorted(path.parent.glob(pattern))
    if len(found) != 1:
        there = f"several are beside it: {few(each.name for each in found)}" if found else "missing"
        raise DataError(
            shown(path),
            f"the {what} ({name}) of Open Images: {there}",
            f"put one {name} or {pattern} beside it",
        )
    return found[0]


def _read_label_map(path: Path) -> Categories:
    """Returns the classes, by ascending id, under their names such as /m/01g317."""
    content = text_fields.decoded(path)
    items = []
    for item in ITEM.finditer(content):
        line = content.count("\n", 0, item.start()) + 1
        fields = {key: a or b or c for key, a, b, c in FIELD.findall(item[1])}
        name, number = fields.get("name", ""), fields.get("id", "")
        if not name or not re.fullmatch("[0-9]{1,9}", number):
            raise DataError(f"{shown(path)}: line {line}", "an item without name or id", _ITEM_FIX)
        items.append((int(number), name))
    if not items or ITEM.sub("", re.sub("#.*", "", content)).strip():
        raise DataError(shown(path), "not a label map", _ITEM_FIX)
    items.sort()
    ids, names = zip(*items, strict=True)
    for each in (ids, names):
        if (row := first_repeated(each)) is not None:
            raise DataError(shown(path), f"{each[row]!r} occurs twice", "list each class once")
    return Categories(np.array(ids, dtype=np.int64), names)


_ITEM_FIX = 'a class is: item { name: "/m/01g317" id: 1 display_name: "Person" }'


def _images(sheet: Sheet, listed: Sheet) -> tuple[NDArray[np.str_], NDArray[np.int32]]:
    """Returns the ids of the images, and the image of each row of boxes, then of labels."""
    both = [each.names(each.find(("imageid",), "ImageID")) for each in (sheet, listed)]
    known = sorted({name for rows in both for name in rows.names})
    if not known:
        raise DataError(sheet.source, "holds no row", "write one row per object")
    place = {name: i for i, name in enumerate(known)}
    image = [rows.positions(place) for rows in both]
    return column_checks.id_array(f"{sheet.source}: ImageID", known), np.concatenate(image)


def _classes(sheet: Sheet, categories: Categories, *, some: bool = False) -> NDArray[np.int32]:
    """Returns the class of each row; -1 for classes not in the label map, if `some` are allowed."""
    column = sheet.find(("labelname",), "LabelName")
    rows = sheet.names(column)
    label = rows.positions({name: i for i, name in enumerate(categories.names)})
    if not some and (row := first_true(label < 0)) is not None:
        what = f"no class {rows[row]!r} in the label map"
        raise DataError(f"{sheet.place(row)}, column {column}", what, "complete the label map")
    return label


def _boxes(sheet: Sheet) -> NDArray[np.float64]:
    """Returns (n, 4) corners."""
    columns = [sheet.find((side.lower(),), side) for side in SIDES]
    boxes = np.column_stack([sheet.numbers(column) for column in columns])
    bad = ~((boxes >= -1) & (boxes <= 2)).all(axis=1) | (boxes[:, :2] > boxes[:, 2:]).any(axis=1)
    if (row := first_true(bad)) is not None:
        named = zip(columns, boxes[row].tolist(), strict=True)
        what = f"{', '.join(f'{name} {value:g}' for name, value in named)} is no box"
        fix = "corners are fractions of the image, the smaller one first"
        raise DataError(sheet.place(row), what, fix)
    return boxes


def _scope(
    listed: Sheet,
    image: NDArray[np.int32],
    label: NDArray[np.int32],
    relatives: tuple[Any, Any],
    shape: tuple[int, int],
) -> Scope:
    """Returns the verified pairs, those of the hierarchy included; `shape` is the number of images
    and of classes.
    """
    column = listed.find(("confidence",), "Confidence")
    present = listed.numbers(column)
    bad = ~np.isin(present, (0, 1))
    if (row := first_true(bad)) is not None:
        where = f"{listed.place(row)}, column {column}"
        raise DataError(where, f"{present[row]:g}", "1 for present, 0 for absent")
    (n_images, n_classes), pairs, own = shape, [], []
    for value, each in zip((1, 0), relatives, strict=True):
        rows = np.flatnonzero((present == value) & (label >= 0))
        source, classes, derived = label_hierarchy.expand(label[rows], each, listed.source)
        code = image[rows][source].astype(np.int64) * n_classes + classes
        pairs.append(code)
        own.append(code[~derived])
    known, written = (np.sort(np.concatenate(each)) for each in (pairs, own))
    known = known[runs(known)[:-1]]
    added = known[positions(written[runs(written)[:-1]], known) < 0]
    codes = np.sort(np.concatenate([known * 4 + ABSENT, added * 4 + DERIVED]))
    pair, kind = np.divmod(codes, 4)
    on, classes = np.divmod(pair, n_classes)
    off = np.searchsorted(on, np.arange(n_images + 1)).astype(np.int64)
    return Scope(off, classes.astype(np.int32), kind.astype(np.uint8))


def _refuse_expanded(path: Path, hierarchy: Path, written: Any, expanded: Any) -> None:
    """Raises `DataError` for boxes that the hierarchy has been applied to already."""
    image, label, boxes = written
    source, classes, derived = expanded
    some = np.flatnonzero(derived)[:LOOKED_AT]
    near = np.flatnonzero(image <= image[source[some]].max(initial=-1))
    near = near[np.isin(image[near], image[source[some]])]
    keys = zip(image[near].tolist(), label[near].tolist(), map(tuple, boxes[near]), strict=True)
    known = set(keys)
    rows = source[some]
    again = zip(image[rows].tolist(), classes[some].tolist(), map(tuple, boxes[rows]), strict=True)
    if len(some) and 2 * sum(key in known for key in again) > len(some):
        raise DataError(
            shown(path),
            f"has been expanded by {hierarchy.name} already: most objects occur in the classes "
            "above their own too",
            'give the boxes before the expansion, or a hierarchy of {"LabelName": "/m/0bl9f"}',
        )
