"""Reads PASCAL VOC: a devkit folder (truth) and comp3/comp4 text (detections).

Boxes stay as written: x1, y1, x2, y2 of the first and last pixel, counted from 1. Other tools
write other numbers into the same elements (`detmap.core.adapters.voc.xml_boxes`).
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions, text_fields
from detmap.core.adapters.coded_names import CodedNames
from detmap.core.adapters.joining import image_lookup, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import column_layouts
from detmap.core.adapters.voc import (
    annotation_xml,
    folder_layout,
    result_files,
    scan_voc,
    xml_boxes,
)
from detmap.core.adapters.voc.folder_layout import folder_with as folder_with
from detmap.core.adapters.voc.result_files import DETECTION_FILE as DETECTION_FILE
from detmap.core.base.open_files import shown
from detmap.core.base.parallel import map_ordered
from detmap.core.base.sums import add_integers
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError


def read_truth(path: Path, split: str | None = None, box_format: str | None = None) -> Truth:
    """Reads a VOC folder: ``Annotations/*.xml`` of the images listed in
    ``ImageSets/Main/<split>.txt``, or another layout (`detmap.core.adapters.voc.folder_layout`).

    Source: the VOC devkit's annotation format. Classes are those of the split's objects and of the
    lists ``ImageSets/Main/<class>_<split>.txt``, in alphabetical order with ids from 1. An object's
    area is that of its box. ``box_format`` is one of `box_conventions.VOC_XML`.
    """
    layout = folder_layout.find(path, split)
    root, stems = layout.root, layout.stems
    there = [i for i, file in enumerate(layout.files) if file is not None]
    files = [file for file in layout.files if file is not None]
    objects, year = scan_pages(root, files) or decode_pages(root, files)
    names = sorted({*objects.name, *layout.classes})
    label_of = {name: label for label, name in enumerate(names)}
    size = np.full((len(stems), 2), np.nan)
    size[there] = objects.size
    odd = ~(size > 0) & ~np.isnan(size)
    width, height = np.ascontiguousarray(np.where(odd, np.nan, size).T)
    image = np.array(there, dtype=np.int32)[objects.page]
    boxes, table_format, meaning = xml_boxes.read(files, objects, box_format, shown(root))
    return Truth(
        Images(np.array(stems, dtype=str), tuple(stems), width, height),
        Categories(np.arange(1, len(names) + 1, dtype=np.int64), tuple(names)),
        image=image,
        label=np.array([label_of[name] for name in objects.name], dtype=np.int32),
        boxes=boxes,
        roles={"difficult": objects.difficult > 0},
        attributes={"area": box_conventions.areas(boxes, table_format)},
        box_format=table_format,
        family="voc",
        year=year,
        split=layout.split,
        source=shown(root),
        notes=(*layout.notes, *meaning, *_truth_notes(root, objects, int(odd.any(axis=1).sum()))),
    )


def _truth_notes(root: Path, objects: scan_voc.Objects, odd_sizes: int) -> tuple[Note, ...]:
    notes = [
        (
            "difficult-missing",
            "objects have no difficult flag: read as 0",
            int((objects.difficult < 0).sum()),
        ),
        (
            "image-size-odd",
            "images have a width or height that is not above 0: read as unknown",
            odd_sizes,
        ),
        ("element-repeated", "XML elements are repeated with the same content", objects.repeats),
    ]
    return tuple(Note(code, text, count, shown(root)) for code, text, count in notes if count)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of ``comp3_det_<split>_<class>.txt`` or ``comp4_...`` files, lines ``image
    score x1 y1 x2 y2``.

    Source: the VOC devkit's detection results format. Files are read in order of their names; tied
    scores of a class keep line order.
    """
    policy.refuse_class_names(shown(path))
    files, notes = result_files.find(path, truth, policy)
    detections = scan_files(path, files, truth, policy) or decode_files(path, files, truth, policy)
    given = {label for _, label in files}
    detections = replace(detections, notes=(*detections.notes, *notes))
    missing = [name for label, name in enumerate(truth.categories.names) if label not in given]
    text = "classes have no file and no detections: {names}"
    names = listed_names(missing)
    note = Note("file-missing", text, len(names), shown(path), names, adding="missing")
    return replace(detections, notes=(*detections.notes, note))


SCORE_LAST = (
    "it looks like image x1 y1 x2 y2 score: write image score x1 y1 x2 y2, the score in column 2"
)


class _Scanned(NamedTuple):
    """The rows of detection files: positions in `names`, classes, boxes and scores."""

    names: Sequence[str]
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]


# --- readers -------------------------------------------------------------------------------------


def scan_pages(root: Path, files: list[Path]) -> tuple[scan_voc.Objects, int] | None:
    """Fast reader of annotations: returns objects and year, or None for the reference reader."""
    objects = scan_voc.scan_pages(files)
    if objects is None:
        return None
    return objects, folder_layout.year_of(root, annotation_xml.read_page(files[0]).folder)


def decode_pages(root: Path, files: list[Path]) -> tuple[scan_voc.Objects, int]:
    """Reference reader of annotation files."""
    pages = [annotation_xml.read_page(file) for file in files]
    objects = [(p, obj) for p, page in enumerate(pages) for obj in page.objects]
    return scan_voc.Objects(
        np.array([(page.width, page.height) for page in pages]),
        np.array([p for p, _ in objects], dtype=np.int32),
        [obj.name for _, obj in objects],
        np.array([obj.box for _, obj in objects], dtype=np.float64).reshape(-1, 4),
        np.array(
            [-1 if obj.difficult is None else obj.difficult for _, obj in objects], dtype=np.int8
        ),
        add_integers(page.repeats for page in pages),
    ), folder_layout.year_of(root, pages[0].folder)


def scan_files(
    path: Path, files: list[tuple[Path, int]], truth: Truth, policy: Policy = STRICT
) -> Detections | None:
    """Fast reader of detection files: returns None for the reference reader."""
    size = add_integers(file.stat().st_size for file, _ in files)
    if size < scan_voc.LEAST_SIZE or any(label < 0 for _, label in files):
        return None
    ids = truth.images.ids
    tables = [truth.images.stems] + [tuple(map(str, ids.tolist()))] * (ids.dtype.kind == "i")
    found = next((rows for rows in map(partial(_scan_all, files), tables) if rows), None)
    if found is None or not _are_joined_so(truth, found, policy):
        return None
    names, image, labels, boxes, score = found
    if not column_layouts.is_score_first(score, boxes[:, 3]):
        return None
    used = CodedNames(names, image)
    return join.joined(
        truth,
        image,
        labels,
        boxes,
        score,
        box_format="voc",
        origin=join.Origin(shown(path), str),
        notes=image_lookup.two_meanings(truth, used, image, shown(path)),
    )


def _scan_all(files: list[tuple[Path, int]], names: Sequence[str]) -> _Scanned | None:
    """The rows of all files, whose images have these names; None if a file is not read."""
    stems = scan_voc.stems_table(names)
    columns = []
    for (_, label), rows in zip(
        files, map_ordered(lambda each: scan_voc.scan_lines(each[0], stems), files), strict=True
    ):
        if rows is None:
            return None
        columns.append((np.full(len(rows[0]), label, dtype=np.int32), *rows))
    labels, image, score, boxes = (np.concatenate(column) for column in zip(*columns, strict=True))
    return _Scanned(names, image, labels, boxes, score)


def _are_joined_so(truth: Truth, scanned: _Scanned, policy: Policy) -> bool:
    """Whether the reference reader finds the images of these names at the same places."""
    used = np.unique(scanned.image)
    names = [scanned.names[i] for i in used.tolist()]
    try:
        return bool((join.images_by_stem(truth, names, "", policy.file_key) == used).all())
    except DataError:  # it reports the place
        return False


def decode_files(
    path: Path, files: list[tuple[Path, int]], truth: Truth, policy: Policy = STRICT
) -> Detections:
    """Reference reader of detection files."""
    columns, places, classes = [], [], []
    for file, label in files:
        lines, names, numbers = _lines(file, set(truth.images.stems))
        columns.append((names, np.full(len(names), label, dtype=np.int32), numbers))
        places.append((file, lines))
        classes += [file.name] * len(names)
    named = [name for names, _, _ in columns for name in names]
    labels = np.concatenate([label for _, label, _ in columns])
    numbers = np.concatenate([values for _, _, values in columns])

    def place(row: int) -> str:
        file, line = [(file, line) for file, lines in places for line in lines][row]
        return f"{file}: line {line}, image"

    column_layouts.require_score_first(numbers[:, 0], numbers[:, 4], place, SCORE_LAST)
    image = join.images_by_stem(truth, named, str(path), policy.file_key)
    return join.joined(
        truth,
        image,
        labels,
        np.ascontiguousarray(numbers[:, 1:]),
        np.ascontiguousarray(numbers[:, 0]),
        box_format="voc",
        origin=join.Origin(shown(path), place, named, classes),
        policy=policy,
    )


# --- detections -----------------------------------------------------------------------------------


def _lines(file: Path, stems: set[str]) -> tuple[list[int], list[str], NDArray[np.float64]]:
    """Returns line numbers, image names and (n, 5) score, x1, y1, x2, y2 of a file.

    `stems` are the images of the ground truth, whose names may have spaces.
    """
    rows = [(line, _joined(words, stems)) for line, words in text_fields.lines(file)]
    for line, words in rows:
        if len(words) != 6:
            raise DataError(
                f"{file}: line {line}",
                f"{len(words)} columns: {' '.join(words)[:60]!r}",
                "a line is: image score x1 y1 x2 y2",
            )
    try:
        table = [text_fields.numbers(words[1:]) for _, words in rows]
    except ValueError:
        raise _not_a_number(file, rows) from None
    numbers = np.array(table, dtype=np.float64).reshape(-1, 5)
    if not ((np.abs(numbers[:, 1:]) <= join.MAX_PIXEL).all() and np.isfinite(numbers).all()):
        raise _not_a_number(file, rows)
    return [line for line, _ in rows], [words[0] for _, words in rows], numbers


def _joined(words: list[str], stems: set[str]) -> list[str]:
    """Returns the words of a line with the known name of its image as one word."""
    name = " ".join(words[:-5])
    return [name, *words[-5:]] if len(words) > 6 and name in stems else words


def _not_a_number(file: Path, rows: list[tuple[int, list[str]]]) -> DataError:
    for line, words in rows:
        for column, word in zip(("score", "x1", "y1", "x2", "y2"), words[1:], strict=True):
            number = text_fields.number(word)
            most = sys.float_info.max if column == "score" else join.MAX_PIXEL
            if number is None or not abs(number) <= most:
                return DataError(
                    f"{file}: line {line}, {column}",
                    text_fields.not_finite(word),
                    "write a plain number",
                )
    raise AssertionError("called for a file whose numbers are all finite")
