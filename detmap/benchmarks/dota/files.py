"""Reads DOTA's text: ``labelTxt`` with a file an image, and results in ``Task1_<class>.txt``.

A ground truth line is ``x1 y1 x2 y2 x3 y3 x4 y4 class [difficult]``; lines of fewer than 9 words
(``imagesource:``, ``gsd:``) are skipped. A result line is ``image score x1 y1 ... x4 y4``.

Source: DOTA_devkit dota_evaluation_task1.py, parse_gt and voc_eval (9938855).
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.dota import patches
from detmap.benchmarks.shared import result_lines
from detmap.core.adapters import box_conventions, folder_files, text_fields
from detmap.core.adapters.coded_names import CodedNames, coded
from detmap.core.adapters.joining import image_keys, image_names, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base.open_files import shown
from detmap.core.overlaps.rotated_boxes import corners_of, require_rotated, rotated_boxes, upright
from detmap.core.tables import Categories, Detections, Note, Truth
from detmap.errors import DataError

CORNERS = tuple(f"{axis}{i}" for i in (1, 2, 3, 4) for axis in "xy")
RESULT = "Task1_"
FOLDERS = ("labelTxt", "labelTxt-v1.0/labelTxt")
HEADERS = ("imagesource:", "gsd:")
LEAST, MOST = 9, 10  # words of an object


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    objects = [words for words in label_files.look(path) if len(words) >= LEAST]
    return 2 * (bool(objects) and all(_is_object(words) for words in objects))


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return 3 * any(map(_is_result, folder_files.names(path, label_files.TEXT)))


def _is_result(name: str) -> bool:
    return name.lower().startswith(RESULT.lower())


def _is_object(words: list[str]) -> bool:
    return label_files.are_numbers(words[:8]) and text_fields.number(words[8]) is None


def read_truth(path: Path, shapes: str = "boxes") -> Truth:
    """Reads a folder ``labelTxt``, or the folder with it. An image is a file, also an empty one.

    Raises `DataError` for invalid lines.
    """
    require_rotated(shapes, path, "DOTA")
    path = folder_files.inside(path, *FOLDERS)
    files = label_files.required(path, "give the folder labelTxt, which has a file per image")
    lines = label_files.read(files)
    objects = lines.take(np.flatnonzero(lines.count >= LEAST))
    fix = "a line is: x1 y1 x2 y2 x3 y3 x4 y4 class difficult; a class is one word"
    objects.refuse(objects.count > MOST, fix)
    boxes = rotated_boxes(objects.numbers(CORNERS), objects.place)
    names = objects.column(8)
    known = sorted(names.names)
    images, place = image_names.table(
        shown(path), [file.stem for file in files], box_conventions.unknown_sizes(len(files))
    )
    return Truth(
        images,
        Categories(np.arange(1, len(known) + 1, dtype=np.int64), tuple(known)),
        image=place[objects.file],
        label=names.positions({name: label for label, name in enumerate(known)}),
        boxes=upright(boxes.corners()),
        roles={"difficult": _difficult(objects)},
        attributes={"area": boxes.area},
        box_format="xywh",
        family="voc",
        source=shown(path),
        notes=(*_skipped(lines, shown(path)), *label_files.unread(path)),
        shapes=boxes,
    )


def _difficult(objects: label_files.Lines) -> NDArray[np.bool_]:
    """(n,) the flag of each line, a whole number; False if it is missing."""
    flags = objects.count == MOST
    rows = np.flatnonzero(flags)
    words = objects.take(rows).column(MOST - 1)
    strange = {word for word in set(words) if not word.isascii() or not word.isdigit()}
    for row, word in zip(rows.tolist(), words if strange else [], strict=False):
        if word in strange:
            what = f"{text_fields.short(word)} is no whole number"
            raise DataError(f"{objects.place(row)}, difficult", what, "write 0 or 1")
    flags[rows] = [word.strip("0") != "" for word in words]
    return np.asarray(flags)


def _skipped(lines: label_files.Lines, source: str) -> tuple[Note, ...]:
    """A note on skipped lines that are no headers."""
    short = lines.take(np.flatnonzero(lines.count < LEAST))
    count = sum(not word.startswith(HEADERS) for word in short.column(0)) if len(short) else 0
    text = "lines of fewer than 9 words were skipped, as in DOTA_devkit"
    return result_lines.counted(source, ("line-short", text, count))


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of ``Task1_<class>.txt``, and merges detections on patches of images.

    Raises `DataError` for invalid lines, unknown images and unknown classes.
    """
    files = [file for file in label_files.listed(path) if _is_result(file.name)]
    if not files:
        raise DataError(
            shown(path), f"no files such as {RESULT}ship.txt", "give a folder with a file per class"
        )
    lines = label_files.read(files)
    lines.refuse(lines.count != MOST, "a line is: image score x1 y1 x2 y2 x3 y3 x4 y4")
    numbers = lines.numbers(("score", *CORNERS), 1)
    names, score = lines.column(0), np.ascontiguousarray(numbers[:, 0])
    corners = np.ascontiguousarray(numbers[:, 1:])
    notes: tuple[Note, ...] = ()
    found = patches.find(names, truth, lines.place)
    if found is not None:
        names, corners = coded(found.names), found.whole(corners)
        rotated_boxes(corners, lines.place)
        kept = patches.kept(names, lines.file, score, corners)
        notes = (patches.note(len(names), len(kept), shown(path)),)
        lines, names = lines.take(kept), CodedNames(names.names, names.code[kept])
        score, corners = score[kept], corners[kept]
    classes = [file.stem[len(RESULT) :] for file in files]
    if "" in classes:
        raise DataError(shown(files[classes.index("")]), "names no class", f"{RESULT}ship.txt does")
    for file, name in zip(files, classes, strict=True):
        if classes.count(name) > 1:
            what = f"two files of results of class {text_fields.short(name)}"
            raise DataError(shown(file), what, "remove one")
    label = join.classes_by_id(truth, classes, shown(path), policy)
    notes += result_lines.result_file_notes(
        truth.categories.names, label, classes, lines, shown(path), noun="classes"
    )
    shapes = rotated_boxes(corners, lines.place)
    column = image_keys.column_of(truth, shown(path), policy.file_key or "name")
    images = image_keys.find(truth, names, column, spell=image_names.stem)
    return join.joined(
        truth,
        images.image,
        label[lines.file],
        upright(corners_of(corners)),
        score,
        box_format="xywh",
        origin=join.Origin(shown(path), lines.place, names, CodedNames(classes, lines.file)),
        policy=policy,
        notes=(*notes, *label_files.unread(path)),
        shapes=shapes,
    )
