"""Reads ILSVRC: ImageNet DET and VID.

The ground truth is a folder of VOC's XML whose classes are WordNet ids. Beside or above it are:

- DET: ``val.txt`` (``name index``), ``synsets.txt`` (a WordNet id a line; the line number is the
  class number of detections) or the devkit's ``map_det.txt`` (``wnid number name``), and
  ``blacklist.txt`` (``index wnid``: pairs that are not evaluated), which may be missing
- VID: ``VID_val_frames.txt`` (``name index``), ``motion_iou.mat``, and ``synsets.txt`` for other
  classes than the 30 of VID

Detections are lines ``index class score x1 y1 x2 y2``.

Source: ILSVRC2014 devkit eval_detection.m; Flow-Guided-Feature-Aggregation
imagenet_vid_eval_motion.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.benchmarks.shared.mat_file import read_variables
from detmap.core.adapters import text_fields
from detmap.core.adapters.format_rows import begins_as_json
from detmap.core.adapters.joining import image_names, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.adapters.voc import devkit
from detmap.core.base.flat_rows import first_repeated, first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import NOT_EXHAUSTIVE, Categories, Detections, Note, Scope, Truth
from detmap.core.tables.grouping import positions
from detmap.errors import DataError, few

DET_LIST, VID_LIST, MOTION = "val.txt", "VID_val_frames.txt", "motion_iou.mat"
SYNSETS = ("synsets.txt", "map_det.txt")
BLACKLISTS = ("blacklist.txt", "ILSVRC2014_det_validation_blacklist.txt")
COLUMNS = ("image", "class", "score", "x1", "y1", "x2", "y2")
VID_CLASSES = (
    *("n02691156", "n02419796", "n02131653", "n02834778", "n01503061", "n02924116", "n02958343"),
    *("n02402425", "n02084071", "n02121808", "n02503517", "n02118333", "n02510455", "n02342885"),
    *("n02374451", "n02129165", "n01674464", "n02484322", "n03790512", "n02324045", "n02509815"),
    *("n02411705", "n01726692", "n02355227", "n02129604", "n04468005", "n01662784", "n04530566"),
    *("n02062744", "n02391049"),
)
"""The classes of VID, numbered from 1. Source: Flow-Guided-Feature-Aggregation imagenet_vid.py."""


def det_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return int(path.is_dir() and _found(path, DET_LIST, *SYNSETS) is not None)


def vid_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return int(path.is_dir() and _found(path, VID_LIST, MOTION) is not None)


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    text = not path.is_dir() and path.suffix.lower() == ".txt"
    return int(text and not begins_as_json(path))


def read_det(path: Path) -> Truth:
    """Reads ImageNet DET. Objects of blacklisted pairs are left out; their pairs are in the scope.

    Raises `DataError` for missing files and invalid lines.
    """
    names = _synsets(_needed(path, *SYNSETS))
    truth = _read(path, _listed(_needed(path, DET_LIST)), names)
    blacklist = _found(path, *BLACKLISTS)
    if blacklist is None:
        text = f"class lists of ImageNet DET are missing beside the ground truth: {BLACKLISTS[0]}"
        note = Note("blacklist-missing", text, 1, truth.source, adding="once")
        return replace(truth, notes=(*truth.notes, note))
    pairs = _blacklist(blacklist, truth)
    n_classes = len(truth.categories)
    code = truth.image.astype(np.int64) * n_classes + truth.label
    kept = truth.take(np.flatnonzero(~np.isin(code, pairs)))
    image, label = np.divmod(pairs, n_classes)
    off = np.searchsorted(image, np.arange(len(truth.images) + 1)).astype(np.int64)
    kind = np.full(len(pairs), NOT_EXHAUSTIVE, dtype=np.uint8)
    return replace(kept, scope=Scope(off, label.astype(np.int32), kind))


def read_vid(path: Path) -> Truth:
    """Reads ImageNet VID; objects have the attribute motion_iou.

    Raises `DataError` for missing files and invalid lines.
    """
    frames = _listed(_needed(path, VID_LIST))
    synsets = _found(path, "synsets.txt")
    folder = path / "VID" if (path / "VID").is_dir() else path
    truth = _read(folder, frames, VID_CLASSES if synsets is None else _synsets(synsets))
    file = _needed(path, MOTION)
    (motion,) = read_variables(file, ("motion_iou",))
    if isinstance(motion, str) or motion.dtype != object or motion.size != len(frames.number):
        what = f"motion_iou is not a cell per frame of {VID_LIST} ({len(frames.number)})"
        raise DataError(shown(file), what, "give the file of this list")
    cells = motion.ravel(order="F")
    n_objects = np.bincount(truth.image, minlength=len(cells))
    values = []
    for frame, place in enumerate(frames.order.tolist()):
        cell, n = cells[frame], int(n_objects[place])
        if isinstance(cell, str) or cell.dtype == object or len(cell) != n:
            what = f"cell {frame + 1} is not a column of {n} numbers, one per object"
            raise DataError(f"{shown(file)}: {frames.name[frame]}", what, "complete motion_iou")
        # A row without a number is 0: imagenet_vid_eval_motion.py.
        values.append((place, cell.reshape(n, -1)[:, 0] if cell.size else np.zeros(n)))
    column = np.zeros(len(truth))
    order = np.argsort(truth.image, kind="stable")
    values.sort(key=lambda each: each[0])
    column[order] = np.concatenate([np.zeros(0), *(each for _, each in values)])
    if not np.isfinite(column).all():
        raise DataError(shown(file), "motion_iou is not finite", "write or copy the file again")
    return replace(truth, attributes={**truth.attributes, "motion_iou": column})


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads ``index class score x1 y1 x2 y2``, of DET and VID.

    Raises `DataError` for invalid lines, unknown images and classes.
    """
    lines = label_files.read([path])
    result_lines.require_columns(lines, (len(COLUMNS),), " ".join(COLUMNS))
    values = lines.numbers(COLUMNS)
    image, label = (
        result_lines.whole_numbers(lines, values[:, place], COLUMNS[place]) for place in (0, 1)
    )
    classes = positions(truth.categories.ids, label)
    if policy.class_names is not None:
        classes = join.classes_by_id(truth, label, shown(path), policy)
    return join.joined(
        truth,
        join.images_by_id(truth, image, shown(path)),
        classes,
        np.ascontiguousarray(values[:, 3:]),
        np.ascontiguousarray(values[:, 2]),
        box_format="voc",
        origin=join.Origin(
            shown(path),
            lambda row: f"{lines.place(row)}, image",
            image,
            label,
            lambda row: f"{lines.place(row)}, class",
        ),
        policy=policy,
    )


# --- the ground truth -----------------------------------------------------------------------------


class _List(NamedTuple):
    """A list of images: names and numbers in order of the file, and each one's place by number."""

    name: list[str]
    number: NDArray[np.int64]
    order: NDArray[np.int64]


def _found(path: Path, *names: str) -> Path | None:
    """Returns the first of these files in, beside or above a folder."""
    folder = path.resolve()
    places = [folder, folder.parent, folder.parent.parent]
    files = [each / name for each in places for name in names]
    return next((file for file in files if file.is_file()), None)


def _needed(path: Path, *names: str) -> Path:
    file = _found(path, *names)
    if file is None:
        what = f"no {' or '.join(names)} in, beside or above the folder"
        raise DataError(shown(path), what, f"put {names[0]} beside the folder")
    return file


def _words(file: Path, wanted: str, n: int) -> list[tuple[str, list[str]]]:
    """Returns place and words of each line; a line has at least n."""
    rows = [(f"{shown(file)}: line {line}", words) for line, words in text_fields.lines(file)]
    for where, words in rows:
        if len(words) < n:
            raise DataError(where, f"{len(words)} words", f"a line is: {wanted}")
    if not rows:
        raise DataError(shown(file), "is empty", f"a line is: {wanted}")
    return rows


def _number(where: str, word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        what = f"{text_fields.short(word)} is not a number of an image or class"
        raise DataError(where, what, "count from 1")
    return int(word)


def _listed(file: Path) -> _List:
    rows = _words(file, "name index", 2)
    names = [words[0] for _, words in rows]
    number = np.array([_number(where, words[1]) for where, words in rows], dtype=np.int64)
    for what, values in (("image", names), ("index", number.tolist())):
        if (row := first_repeated(values)) is not None:
            raise DataError(rows[row][0], f"{what} {values[row]} occurs twice", "list it once")
    order = np.empty(len(number), dtype=np.int64)
    order[np.argsort(number)] = np.arange(len(number))
    return _List(names, number, order)


def _synsets(file: Path) -> list[str]:
    """Returns the WordNet ids by class number, from 1."""
    rows = _words(file, "WordNet id", 1)
    names = [words[0] for _, words in rows]
    if file.name.startswith("map_"):
        rows = _words(file, "wnid number name", 2)
        numbers = [_number(where, words[1]) for where, words in rows]
        if sorted(numbers) != list(range(1, len(rows) + 1)):
            raise DataError(shown(file), "numbers are not 1, 2, 3 ...", "list every class once")
        names = [names[i] for i in np.argsort(numbers).tolist()]
    if (row := first_repeated(names)) is not None:
        raise DataError(rows[row][0], f"{names[row]} occurs twice", "list every class once")
    return names


def _read(folder: Path, images: _List, names: Sequence[str]) -> Truth:
    """Reads the XML files of a list; images have the numbers of the list as ids."""
    files = [folder / f"{name}.xml" for name in images.name]
    objects, _ = devkit.scan_pages(folder, files) or devkit.decode_pages(folder, files)
    place = {name: i for i, name in enumerate(names)}
    label = np.array([place.get(name, -1) for name in objects.name], dtype=np.int32)
    if (row := first_true(label < 0)) is not None:
        strange = sorted({objects.name[i] for i in np.flatnonzero(label < 0).tolist()})
        what = f"classes that are not listed: {few(strange)}"
        raise DataError(shown(files[objects.page[row]]), what, "complete synsets.txt")
    width, height = np.where(objects.size > 0, objects.size, np.nan).T  # 0: unknown
    stems = [Path(name).name for name in images.name]
    table, place_of = image_names.ordered(images.number, stems, (width, height), images.name)
    x1, y1, x2, y2 = objects.boxes.T
    return Truth(
        table,
        Categories(np.arange(1, len(names) + 1, dtype=np.int64), tuple(names)),
        image=place_of[objects.page],
        label=label,
        boxes=objects.boxes,
        roles={"difficult": objects.difficult > 0},
        attributes={"area": (x2 - x1 + 1) * (y2 - y1 + 1)},
        box_format="voc",
        family="coco",
        source=shown(folder),
    )


def _blacklist(file: Path, truth: Truth) -> NDArray[np.int64]:
    """Returns the pairs, image times the number of classes plus class, ascending."""
    image_of = {number: i for i, number in enumerate(truth.images.ids.tolist())}
    class_of = {name: i for i, name in enumerate(truth.categories.names)}
    pairs = set()
    for where, words in _words(file, "index wnid", 2):
        number = _number(where, words[0])
        if words[1] not in class_of:
            raise DataError(where, f"no class {text_fields.short(words[1])}", "see synsets.txt")
        if number in image_of:  # the list may be that of more images
            pairs.add(image_of[number] * len(class_of) + class_of[words[1]])
    return np.array(sorted(pairs), dtype=np.int64)
