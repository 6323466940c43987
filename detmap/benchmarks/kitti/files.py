"""Reads KITTI text, one file per image: ``label_2`` and results, and how other tools write them.

A line has the class, truncated, occluded, alpha, left, top, right, bottom, seven numbers of the 3D
box, which are not read, and in results the score. Boxes are continuous pixels from 0. A
``DontCare`` region is read as a crowd region of every class: it ignores detections that overlap it,
whatever their class.

Writers differ. datumaro writes class names with their spaces, a 16th column 1.0 in the ground truth
and no file for an image without objects. FiftyOne writes ``_`` for a space. DeepStream names files
by stream and frame.

Source: readme.txt of KITTI's object development kit; datumaro 1.13 kitti/exporter.py; FiftyOne
1.22 utils/kitti.py; the format string of DeepStream's write_kitti_output.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.core.adapters import box_conventions, folder_files, text_fields
from detmap.core.adapters.coded_names import CodedNames, coded
from detmap.core.adapters.joining import image_names, image_sizes, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy, positions_by_unique_name
from detmap.core.adapters.text_per_image import column_layouts, label_files
from detmap.core.adapters.text_per_image.label_files import Lines
from detmap.core.base import memory
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.errors import DataError, counted

NUMBERS = 14  # of a line, after the class; results add the score
READ = ("truncated", "occluded", "alpha", "left", "top", "right", "bottom")
ATTRIBUTES = READ[:3]
TRACKING = ("frame", "track")  # before the class, in labels of KITTI tracking
UNREAD = NUMBERS - len(READ)  # of the 3D box
DONT_CARE = "dontcare"
ROW = 100  # bytes of memory that an object takes
LABELS = ("label_2", "labels")  # folders of a data set
RESULTS = ("data", "results")
IMAGES = ("image_2", "images", "data")  # beside the labels
_FRAME = re.compile(r"([0-9]{2}_[0-9]{3})_([0-9]{6})")  # DeepStream's names: stream and frame
FOLDERS = "give the folder label_2, or that of the results"
SECOND_SCORE = (
    "it looks like class score truncated occluded alpha left top right bottom and 7 numbers: write "
    "the score as the last number"
)
FORM = "a line is: class truncated occluded alpha left top right bottom and 7 numbers of the 3D box"
OCCLUDED = (-1, 0, 1, 2, 3)  # states
UNKNOWN_ANGLE = -10


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return _looks(path, LABELS, scored=False)


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return _looks(path, RESULTS, scored=True)


def _looks(path: Path, folders: Sequence[str], *, scored: bool) -> int:
    rows = label_files.look(_folder(path, folders))
    return 2 * bool(rows) and 2 * all(_fits(words, scored) for words in rows)


def _fits(words: list[str], scored: bool) -> bool:
    """Checks for a class and 14 numbers; 15 in results, or if the last is datumaro's 1.0."""
    for n in (NUMBERS + 1,) if scored else (NUMBERS, NUMBERS + 1):
        name, numbers = words[:-n], words[-n:]
        if name and label_files.are_numbers(numbers) and _is_class(name, numbers):
            return scored or n == NUMBERS or float(numbers[-1]) == 1
    return False


def _is_class(name: list[str], numbers: list[str]) -> bool:
    """Checks for a class name; one of digits alone is known by pixels, since YOLO has fractions."""
    pixels = any(float(number) > 1 for number in numbers[3:7])
    named = not label_files.are_numbers(name) or name[0].isalpha()  # such as nan
    return named or (len(name) == 1 and name[0].isdigit() and pixels)


def _folder(path: Path, names: Sequence[str]) -> Path:
    """Returns a folder of text files, which may be inside the given one."""
    places = (path, *(path / name for name in names))
    return next((place for place in places if folder_files.has(place, label_files.TEXT)), path)


def read_truth(path: Path, image_sizes: Path | None = None) -> Truth:
    """Reads a folder of labels, or the folder with ``label_2`` or ``labels``.

    Images without a label file have no objects; they come from the folder of images beside the
    labels, or from the file of image sizes. Raises `DataError` for invalid files and lines.
    """
    folder = _folder(path, LABELS)
    files = label_files.required(folder, FOLDERS)
    lines = label_files.read(files)
    numbers_at = _name_lengths(lines)
    numbers = replace(lines, first=lines.first + numbers_at).numbers(READ)
    images, place, note = _images(folder, [file.stem for file in files], image_sizes)
    boxes, table_format = box_conventions.table_boxes(
        numbers[:, 3:],
        "xyxy",
        sizes=(images.width[place[lines.file]], images.height[place[lines.file]]),
        place=lines.place,
    )
    names = _names(lines, numbers_at)
    known = sorted(name for name in names.names if name.lower() != DONT_CARE)
    written = names.positions({name: label for label, name in enumerate(known)})
    rows, label = _regions_of_every_class(written, len(known), shown(path))
    attributes = {name: numbers[rows, i] for i, name in enumerate(ATTRIBUTES)}
    areas = box_conventions.areas(boxes, table_format)
    text = "regions are DontCare: crowd regions of every class"
    regions = "regions-of-every-class", text, int((written < 0).sum())
    return Truth(
        images,
        Categories(np.arange(1, len(known) + 1, dtype=np.int64), tuple(known)),
        image=place[lines.file[rows]],
        label=label,
        boxes=boxes[rows],
        roles={"crowd": written[rows] < 0},
        attributes=attributes | {"area": areas[rows]},
        box_format=table_format,
        family="coco",
        source=shown(path),
        notes=(
            *note,
            *result_lines.counted(shown(path), regions),
            *_unread_note(lines, numbers_at, shown(path)),
            *label_files.unread(folder),
        ),
    )


def _require_score_last(
    numbers: NDArray[np.float64], score: NDArray[np.float64], place: Callable[[int], str], fix: str
) -> None:
    """Raises `DataError` for KITTI rows with the score before the other numbers.

    Parameters
    ----------
    numbers : (n, 7) truncated, occluded, alpha and the box, by the layout of the format
    score : (n,) the last number of each row
    """
    first, occluded, angle = numbers[:, 0], numbers[:, 2], numbers[:, 3]
    angles = (np.abs(angle) <= np.pi + column_layouts.SLACK) | (angle == UNKNOWN_ANGLE)
    moved = _are_fractions(first) and np.isin(occluded, OCCLUDED).all() and angles.all()
    if moved and not _are_fractions(score):
        what = f"the score is {score[0]:g}, and the number after the class is {first[0]:g}"
        raise DataError(place(0), what, fix)


def _are_fractions(values: NDArray[np.float64]) -> bool:
    """Checks for numbers from 0 to 1, not all whole."""
    within = ((values >= 0) & (values <= 1)).all()
    return bool(within and (values != np.floor(values)).any())


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of results, or the folder with ``data``. Raises `DataError` for invalid files
    and lines.
    """
    folder = _folder(path, RESULTS)
    files = label_files.required(folder, f"{FOLDERS}; {label_files.NO_DETECTIONS}")
    lines = label_files.read(files)
    numbers_at = lines.count - (NUMBERS + 1)
    lines.refuse(numbers_at < 1, f"{FORM}, and the score")
    numbers = replace(lines, first=lines.first + numbers_at).numbers(READ)
    score = replace(lines, first=lines.first + numbers_at + NUMBERS).numbers(("score",))[:, 0]
    _require_score_last(numbers, score, lines.place, SECOND_SCORE)
    last_ids = column_layouts.LAST_TRACK_IDS
    column_layouts.require_confidences(score, lines.file, lines.place, last_ids)
    names, name_notes = _known_names(truth, _names(lines, numbers_at), shown(path))
    if policy.unknown != "drop":  # more words before the numbers are a class of the ground truth
        known = policy.positions_by_name(truth, shown(path))
        lines.refuse((numbers_at > 1) & (names.positions(known) < 0), f"{FORM}, and the score")
    image, image_notes = _found_images(truth, files, lines, shown(path), policy)
    boxes, table_format = box_conventions.table_boxes(
        numbers[:, 3:], "xyxy", sizes=box_conventions.sizes_of(truth, image), place=lines.place
    )
    return join.joined(
        truth,
        image,
        join.classes_by_id(truth, names, shown(path), policy),
        boxes,
        np.ascontiguousarray(score),
        box_format=table_format,
        origin=join.Origin(shown(path), lines.place, lines.stems(), names),
        policy=policy,
        notes=(
            *image_notes,
            *name_notes,
            *column_layouts.equal_scores(score, shown(path)),
            *_unread_note(lines, numbers_at, shown(path)),
            *label_files.unread(folder),
        ),
        attributes={"alpha": np.ascontiguousarray(numbers[:, READ.index("alpha")])},
    )


# --- lines ----------------------------------------------------------------------------------------


def _name_lengths(lines: Lines) -> NDArray[Any]:
    """Returns how many words the class of each line of a ground truth has.

    A 16th number is datumaro's 1.0. Raises `DataError` for short lines and for scores.
    """
    length = lines.count - NUMBERS
    lines.refuse(length < 1, FORM)
    more = np.flatnonzero(length > 1)
    before = lines.words.take(lines.first[more] + length[more] - 1).strings
    known = {word: text_fields.number(word) is not None for word in set(before)}
    scored = more[np.array([known[word] for word in before], dtype=bool)]
    length[scored] -= 1
    last = replace(lines.take(scored), first=lines.first[scored] + lines.count[scored] - 1)
    bad = last.numbers(("column 16",))[:, 0] != 1
    if bad.any():
        row = int(scored[np.argmax(bad)])
        text = text_fields.short(lines.text(row))
        what = f"{lines.count[row]} words, and the last is a score: {text}"
        fix = "give the ground truth, whose lines end with 14 numbers; one more may only be 1.0"
        raise DataError(lines.place(row), what, fix)
    _refuse_tracking(lines, length)
    return length


def _refuse_tracking(lines: Lines, length: NDArray[Any]) -> None:
    """Raises `DataError` for lines of KITTI tracking, which begin with frame and track."""
    rows = np.flatnonzero(length == len(TRACKING) + 1)
    begins = [lines.words.take(lines.first[rows] + i).strings for i in range(len(TRACKING))]
    bad = np.zeros(len(lines), dtype=bool)
    bad[rows] = [label_files.are_numbers(words) for words in zip(*begins, strict=True)]
    lines.refuse(bad, f"{FORM}: remove {' and '.join(TRACKING)}")


def _names(lines: Lines, length: NDArray[Any]) -> CodedNames:
    """Returns the class of each line; datumaro writes spaces in it."""
    several = np.flatnonzero(length > 1).tolist()
    if not several:
        return lines.column(0)
    names = list(lines.column(0))
    for row in several:
        names[row] = " ".join(lines.words.take(lines.first[row] + np.arange(length[row])))
    return coded(names)


# --- ignored regions ------------------------------------------------------------------------------


def _regions_of_every_class(
    label: NDArray[np.int32], n_classes: int, source: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Returns rows and their classes, with each region (class -1) once per class."""
    times = np.where(label < 0, n_classes, 1)
    memory.require(ROW * int(times.sum()), source, f"{DONT_CARE} regions of {n_classes} classes")
    rows = np.repeat(np.arange(len(label)), times)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, np.where(label[rows] < 0, nth, label[rows]).astype(np.int32)


def _unread_note(lines: Lines, numbers_at: NDArray[Any], source: str) -> tuple[Note, ...]:
    count = replace(lines, first=lines.first + numbers_at).n_unreadable(len(READ), UNREAD)
    text = "lines have a 3D box that is not of numbers: it is not read"
    return result_lines.counted(source, ("field-unread", text, count))


# --- names ----------------------------------------------------------------------------------------


def _images(
    folder: Path, stems: list[str], sizes_file: Path | None
) -> tuple[Images, NDArray[np.int32], tuple[Note, ...]]:
    """Returns the images, the position of each label file's image, and a note on images without
    a label file.
    """
    where = shown(folder)
    pictures: dict[str, Path] = {}
    if sizes_file is not None:
        listed = [image_names.stem(name) for name in image_sizes.listed(sizes_file)]
    else:
        places = [*(folder.absolute().parent / name for name in IMAGES), folder]
        pictures = folder_files.pictures(places, set(stems))
        listed = list(pictures)
    names = list(dict.fromkeys([*stems, *listed]))
    if sizes_file is not None:
        sizes = image_sizes.from_path(sizes_file, [(name,) for name in names])
    else:
        sizes = image_sizes.from_pictures([pictures.get(name) for name in names])
    images, place = image_names.table(where, names, sizes)
    text = "images have no label file: they are without objects"
    notes = result_lines.counted(where, ("labels-missing", text, len(names) - len(stems)))
    return images, place, notes


def _known_names(
    truth: Truth, names: CodedNames, source: str
) -> tuple[CodedNames, tuple[Note, ...]]:
    """Returns the names of the ground truth's classes where only ``_`` and spaces differ, and a
    note.
    """
    by_name = positions_by_unique_name(truth, source)
    spaced: dict[str, list[str]] = {}
    for name in by_name:
        spaced.setdefault(name.replace(" ", "_"), []).append(name)
    meant = {}
    for name in set(names.names) - by_name.keys():
        same = spaced.get(name.replace(" ", "_"), [])
        if len(same) == 1:
            meant[name] = same[0]
    if not meant:
        return names, ()
    count = int((names.positions(dict.fromkeys(meant, 0)) == 0).sum())
    text = "detections have a class name that differs from the ground truth's only in _ and spaces"
    note = Note("class-joined", text, count, source)
    return CodedNames([meant.get(name, name) for name in names.names], names.code), (note,)


def _found_images(
    truth: Truth, files: list[Path], lines: Lines, source: str, policy: Policy
) -> tuple[NDArray[np.int32], tuple[Note, ...]]:
    """Returns the image of each line, by stem; DeepStream's by the number of the frame; and notes,
    also on images without a file and files without an image.

    Raises `DataError` unless the frames are as many as the ground truth has images.
    """
    frames = [_FRAME.fullmatch(file.stem) for file in files]
    known = {*truth.images.stems, *map(str, truth.images.ids.tolist())}
    if not all(frames) or known & {file.stem for file in files}:
        stems = [file.stem for file in files]
        image_of = join.images_by_stem(truth, stems, source, policy.file_key)
        return image_of[lines.file], result_lines.result_file_notes(
            truth.images.stems, image_of, stems, lines, source
        )
    numbers = [int(frame[2]) for frame in frames if frame]
    n_images, streams = len(truth.images), {frame[1] for frame in frames if frame}
    if len(streams) > 1 or sorted(numbers) != list(range(n_images)):
        what = f"{counted(len(files), 'frame')} of {counted(len(streams), 'stream')}"
        raise DataError(
            source,
            f"files are named by DeepStream's stream and frame: {what}, and {truth.source} has "
            f"{counted(n_images, 'image')}",
            "rename the files as the images, or give one stream with every frame from 0",
        )
    names = truth.images.files or truth.images.stems
    order = sorted(range(n_images), key=lambda i: (names[i], i))
    text = "detections name DeepStream's frames: frame k is image k by file name"
    note = Note("image-joined", text, len(lines), source)
    image_of = np.array([order[number] for number in numbers], dtype=np.int32)
    return image_of[lines.file], (note,)
