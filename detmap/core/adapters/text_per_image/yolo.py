"""Reads YOLO labels like Ultralytics: ``class x y w h`` in fractions of the image.

Source: Ultralytics' verify_image_label (ultralytics/data/utils.py), segments2boxes
(ultralytics/utils/ops.py) and Results.save_txt (ultralytics/engine/results.py). Ultralytics skips
images with invalid rows; here they are an error.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions, folder_files, text_fields
from detmap.core.adapters.joining import image_names, image_sizes, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import (
    column_layouts,
    darknet_data,
    data_yaml,
    label_files,
    predictions_json,
)
from detmap.core.adapters.text_per_image.label_files import Lines
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Note, Truth
from detmap.errors import DataError, counted, few

BOX, SCORED = 5, 6  # words of a row
SHORTEST_POLYGON = 7
WORDS = ("class", "x", "y", "width", "height")
OUTSIDE = 0.01  # by which a fraction of a ground truth may lie outside of 0 to 1
FAR_OUTSIDE = 1.0  # and one of a detection
FOR_TRUTH = "a row is: class x_center y_center width height, in fractions of the image, from 0 to 1"
FOR_DETECTIONS = (
    "a row is: class x_center y_center width height confidence (save_txt=True save_conf=True)"
)
_CLASS = re.compile(r"[0-9]+(?:\.0*)?")  # arrays of floats are written as 0.0
TRACK_IDS = (
    "the last column looks like track ids (class x_center y_center width height id): save the "
    "labels with save_conf=True, and remove the column of ids after the confidence"
)


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    if any((path / name).is_file() for name in ("data.yaml", "data.yml", "dataset.yaml")):
        return 2
    if darknet_data.is_root(path):
        return 3
    rows = _rows_of(path)
    return 2 * bool(rows) and 2 * all(
        len(words) != SCORED and _fits(words, OUTSIDE) for words in rows
    )


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    rows = _rows_of(path)
    return 2 * bool(rows) and 2 * all(_fits(words, FAR_OUTSIDE) for words in rows)


def _rows_of(path: Path) -> list[list[str]]:
    for folder in (path, path / "labels", *(path / "labels" / name for name in data_yaml.SPLITS)):
        if folder.is_dir() and data_yaml.has_labels(folder):
            return label_files.look(folder, without=data_yaml.NAMES_FILES)
    return []


def _fits(words: list[str], outside: float) -> bool:
    """Checks for a class counted from 0, and fractions."""
    if len(words) < BOX or not label_files.are_numbers(words) or not _CLASS.fullmatch(words[0]):
        return False
    return all(-outside <= float(word) <= 1 + outside for word in words[1:BOX])


def read_truth(path: Path, split: str | None = None, image_sizes: Path | None = None) -> Truth:
    """Reads a data.yaml or obj.data, a folder with one, or a folder of labels.

    Parameters
    ----------
    path : the file or folder
    split : default ``val`` if present, else ``test``
    image_sizes : CSV file of image sizes; default: from the image headers, or without a folder
        ``images`` from ``sizes.csv``, as `detmap.convert` writes it

    Raises `DataError` for invalid paths, files and rows.
    """
    image_sizes = image_sizes or _written_sizes(path)
    found_by = darknet_data if darknet_data.is_root(path) else data_yaml
    data = found_by.find(path, split, image_sizes)
    width, height = _sizes(data, image_sizes)
    images, place = image_names.table(shown(path), list(map(str, data.images)), (width, height))
    labels = dict(enumerate(folder_files.existing(data.labels)))
    there = [i for i, label in labels.items() if label is not None]
    if not there:
        folders = data_yaml.label_folders(path if path.is_dir() else path.absolute().parent)
        raise DataError(
            shown(path),
            f"none of {counted(len(data.labels), 'image')} has a label file, such as "
            f"{shown(data.labels[0])}; there are other text files: {few(folders) or 'none'}",
            "correct the paths of the images, or put the label files there: the last folder "
            "images of a path becomes labels, and a label file has the stem of its image",
        )
    lines = label_files.read([label for label in labels.values() if label is not None])
    owner = np.array(there, dtype=np.int32)[lines.file]
    rows = _rows(lines, data.keypoints, scored=False)
    fractions = rows.fractions
    _refuse_outside(lines, fractions, OUTSIDE, FOR_TRUTH)
    classes = _classes(lines, rows.label, None if data.names is None else len(data.names))
    boxes, table_format = box_conventions.table_boxes(
        fractions, "normalized cxcywh", sizes=(width[owner], height[owner]), place=lines.place
    )
    if data.names is None:
        ids = np.unique(classes)
        categories = Categories(ids, tuple(map(str, ids.tolist())))
    else:
        categories = Categories(np.arange(len(data.names)), data.names)
    notes = [
        *data.notes,
        *_without_objects(path, len(data.labels), lines),
        *_notes(path, lines, rows),
        *_repeats(path, lines),
    ]
    return Truth(
        images,
        categories,
        image=place[owner],
        label=np.searchsorted(categories.ids, classes).astype(np.int32),
        boxes=boxes,
        roles={},
        attributes={"area": box_conventions.areas(boxes, table_format)},
        box_format=table_format,
        family="coco",
        split=data.name,
        source=shown(path),
        notes=tuple(notes),
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of labels with confidence (or its subfolder ``labels``), or predictions.json.

    Raises `DataError` for invalid files and rows and unknown images.
    """
    if not path.is_dir():
        return predictions_json.read_detections(path, truth, policy)
    folder = path
    if not data_yaml.has_labels(path) and (path / "labels").is_dir():
        folder = path / "labels"
    fix = f"save them with save_txt=True save_conf=True; {label_files.NO_DETECTIONS}"
    files = label_files.required(folder, fix)
    files = [file for file in files if file.name not in data_yaml.NAMES_FILES]
    lines = label_files.read(files)
    rows = _rows(lines, None, scored=True)
    _refuse_outside(lines, rows.fractions, FAR_OUTSIDE, FOR_DETECTIONS)
    if not (rows.polygons or rows.keypoints):
        column_layouts.require_centers(rows.fractions, rows.score, lines.place)
    column_layouts.require_confidences(rows.score, lines.file, lines.place, TRACK_IDS)
    classes = _classes(lines, rows.label, None)
    stems = lines.stems()
    image = join.images_by_stem(truth, stems, shown(path), policy.file_key)
    boxes, table_format = box_conventions.table_boxes(
        rows.fractions,
        "normalized cxcywh",
        sizes=box_conventions.sizes_of(truth, image),
        place=lines.place,
    )
    detections = join.joined(
        truth,
        image,
        _labels(path, folder, truth, classes, policy),
        boxes,
        rows.score,
        box_format=table_format,
        origin=join.Origin(shown(path), lines.place, stems, classes),
        policy=policy,
    )
    return replace(
        detections,
        notes=(
            *column_layouts.equal_scores(rows.score, shown(path)),
            *detections.notes,
            *_notes(path, lines, rows),
            *label_files.unread(folder),
        ),
    )


def _labels(
    path: Path, folder: Path, truth: Truth, classes: NDArray[np.int64], policy: Policy
) -> NDArray[np.int32]:
    """Returns positions of classes that count from 0; -1 if unknown."""
    known = policy.class_names is not None or predictions_json.counts_from_zero(truth)
    if known or not len(classes):
        return join.classes_by_id(truth, classes, shown(path), policy)
    names_files = [folder / name for name in data_yaml.NAMES_FILES if (folder / name).is_file()]
    if not names_files:
        first = truth.categories.ids[0] if len(truth.categories) else "none"
        raise DataError(
            shown(path),
            f"classes count from 0, but those of {truth.source} have ids from {first}: the "
            "mapping is unknown",
            "give --class-names FILE, read the ground truth from the data.yaml, or write the names "
            "to classes.txt in this folder, one per line",
        )
    names = data_yaml.names_in(names_files[0])
    place = join.classes_by_id(truth, list(names), shown(names_files[0]))
    labels = np.append(place, np.int32(-1))
    return labels[np.minimum(classes, len(names))]


# --- rows -----------------------------------------------------------------------------------------


def _written_sizes(path: Path) -> Path | None:
    """The sizes.csv of a data set without images; None if there is none."""
    root = path if path.is_dir() else path.parent
    sizes = root / "sizes.csv"
    return sizes if sizes.is_file() and not (root / "images").exists() else None


def _sizes(split: data_yaml.Split, path: Path | None) -> image_sizes.Sizes:
    if path is None:
        return image_sizes.from_headers(split.images)
    names = [(image.name, image.stem, str(image)) for image in split.images]
    return image_sizes.from_path(path, names)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Class, center and size in fractions, and score of n rows, and how many are not boxes."""

    label: NDArray[np.float64]
    fractions: NDArray[np.float64]
    score: NDArray[np.float64]
    polygons: int
    keypoints: int


def _rows(lines: Lines, keypoints: tuple[int, int] | None, *, scored: bool) -> _Rows:
    """The rows of label files.

    Raises
    ------
    DataError : a row that is neither a box, a polygon nor keypoints, or not of numbers
    """
    count = lines.count - scored
    table = np.empty((len(count), BOX + 1))
    kinds = {"boxes": 0, "polygons": 0, "keypoints": 0}
    for n in np.unique(count).tolist():
        rows = np.flatnonzero(count == n)
        some = lines if len(rows) == len(count) else lines.take(rows)
        kind = _kind(some, n, keypoints, scored, alone=not _has_polygons(count))
        kinds[kind] += len(rows)
        names = [*WORDS, *(f"number {i}" for i in range(BOX + 1, n + 1))]
        if kind == "polygons":
            names = ["class", *(f"{'xy'[i % 2]} of point {i // 2 + 1}" for i in range(n - 1))]
        values = some.numbers([*names, "score"] if scored else names)
        table[rows, 0], table[rows, BOX] = values[:, 0], values[:, -1]
        if kind == "polygons":
            points = values[:, 1:n].reshape(len(rows), -1, 2)
            low, high = points.min(axis=1), points.max(axis=1)
            table[rows, 1:BOX] = np.hstack([(low + high) / 2, high - low])
        else:
            table[rows, 1:BOX] = values[:, 1:BOX]
    label, fractions, score = table[:, 0], table[:, 1:BOX], np.ascontiguousarray(table[:, BOX])
    return _Rows(label, fractions, score, kinds["polygons"], kinds["keypoints"])


def _has_polygons(count: NDArray[Any]) -> bool:
    """Checks that rows have numbers of words, without a score, that only polygons have, and none
    that only keypoints have.
    """
    polygon, pose = (count >= SHORTEST_POLYGON) & (count % 2 == 1), (count - BOX) % 3 == 0
    return bool((polygon & ~pose).any() and not (pose & ~polygon & (count > BOX)).any())


def _kind(
    lines: Lines, n: int, keypoints: tuple[int, int] | None, scored: bool, *, alone: bool
) -> str:
    """Returns what rows of n words, without a score, are."""
    if n == BOX:
        return "boxes"
    if keypoints is not None and n == BOX + keypoints[0] * keypoints[1]:
        return "keypoints"
    polygon, pose = n >= SHORTEST_POLYGON and n % 2 == 1, n > BOX and (n - BOX) % 3 == 0
    if scored and polygon and pose and alone:
        raise DataError(
            lines.place(0),
            f"{n + 1} columns are ambiguous: a polygon or keypoints",
            "give predictions.json, or write the boxes alone",
        )
    if polygon:
        return "polygons"
    if scored and pose:
        return "keypoints"
    what = f"{n + scored} columns: {text_fields.short(lines.text(0))}"
    if scored and n == SCORED:
        fix = "class x_center y_center width height confidence id: remove the track id at the end"
        raise DataError(lines.place(0), what, f"it looks like {fix}")
    if scored and n + 1 == BOX:
        raise DataError(
            lines.place(0), f"{what}; no confidence", "save the labels with save_conf=True"
        )
    if not scored and n == SCORED:
        raise DataError(
            lines.place(0),
            f"{what}; a ground truth has no confidence",
            "give the labels of the data set, not those of a detector",
        )
    if not scored and pose:
        shape = "no kpt_shape" if keypoints is None else f"kpt_shape {list(keypoints)}"
        raise DataError(
            lines.place(0),
            f"{n} columns are read as keypoints, but there is {shape}",
            "write kpt_shape: [points, 3] into data.yaml",
        )
    raise DataError(lines.place(0), what, FOR_DETECTIONS if scored else FOR_TRUTH)


def _refuse_outside(lines: Lines, fractions: NDArray[np.float64], most: float, fix: str) -> None:
    bad = (fractions < -most) | (fractions > 1 + most)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"{lines.place(row)}, {WORDS[1 + column]}",
            f"{fractions[row, column]:g} is not a fraction of the image",
            fix,
        )


def _classes(
    lines: Lines, numbers: NDArray[np.float64], n_classes: int | None
) -> NDArray[np.int64]:
    """Returns (n,) classes, whole numbers from 0."""
    bad = (numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= 2**31)
    if n_classes is not None:
        bad |= numbers >= n_classes
    if (row := first_true(bad)) is not None:
        known = f"classes are 0 to {n_classes - 1}" if n_classes else "whole numbers from 0"
        raise DataError(f"{lines.place(row)}, class", f"no class {numbers[row]:g}", known)
    return numbers.astype(np.int64)


def _notes(path: Path, lines: Lines, rows: _Rows) -> Iterable[Note]:
    if rows.polygons:
        text = "rows are polygons: the boxes around them are used"
        yield Note("polygon", text, rows.polygons, shown(path))
    if rows.keypoints:
        text = "rows have keypoints: only their boxes are used"
        yield Note("keypoints", text, rows.keypoints, shown(path))


def _without_objects(path: Path, n_images: int, lines: Lines) -> Iterable[Note]:
    """Returns a note if most images have no label file or an empty one."""
    missing = n_images - len(lines.files)
    empty = len(lines.files) - len(np.unique(lines.file))
    text = "images are without objects: {1} of {0} have no label file, {2} an empty one"
    numbers = n_images, missing, empty
    yield Note(
        *("labels-missing", text, missing + empty, shown(path)), numbers=numbers, condition="most"
    )


def _repeats(path: Path, lines: Lines) -> Iterable[Note]:
    """A note of the objects of a ground truth that are there again."""
    words, first, end = lines.words.strings, lines.first.tolist(), (lines.first + lines.count)
    rows = zip(lines.file.tolist(), first, end.tolist(), strict=True)
    twice = len(lines) - len({(file, *words[a:b]) for file, a, b in rows})
    if twice:
        text = "rows are repeated in the same file: each is a box (Ultralytics drops them)"
        yield Note("row-twice", text, twice, shown(path))
