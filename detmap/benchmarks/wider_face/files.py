"""Reads WIDER FACE: the four MAT files of the validation split, and results in EVENT/*.txt.

A result file has the name of the image, the number of faces, then ``x y width height score`` per
face, the highest score first.

Source: evaluation.py of WiderFace-Evaluation (wondervictor): get_gt_boxes, read_pred_file.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.benchmarks.shared.mat_file import read_variables
from detmap.core.adapters import box_conventions, folder_files, text_fields
from detmap.core.adapters.coded_names import CodedNames
from detmap.core.adapters.joining import image_names, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base.flat_rows import first_repeated
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Images, Scope, Truth
from detmap.errors import DataError

FACES = "wider_face_val.mat"
SUBSETS = ("easy", "medium", "hard")
NUMBERS = ("x", "y", "width", "height", "score")
FIX = "give the ground_truth folder of the evaluation code, unchanged"


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return 3 * (path.is_dir() and (path / FACES).is_file())


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    if not path.is_dir():
        return 0
    return 2 * any("--" in folder.name for folder in path.iterdir() if folder.is_dir())


class _Image(NamedTuple):
    """An image of the files: its name, its faces, and the listed ones of each subset."""

    name: str
    boxes: NDArray[np.float64]
    listed: list[NDArray[np.bool_]]


def read_truth(path: Path) -> Truth:
    """Reads the folder of the MAT files, or the one with it.

    Raises `DataError` for a missing or broken file.
    """
    path = folder_files.inside(path, "ground_truth", "gt")
    found = sorted(_images(path), key=lambda image: image.name)
    names = [image.name for image in found]
    if (row := first_repeated(names)) is not None:
        raise DataError(shown(path / FACES), f"image {names[row]!r:.80} occurs twice", FIX)
    if not found:
        raise DataError(shown(path / FACES), "no images", FIX)
    sizes = np.full(len(names), np.nan)
    boxes = np.ascontiguousarray(np.concatenate([image.boxes for image in found]))
    n_negative = int((boxes[:, 2:] < 0).any(axis=1).sum())  # the distributed file has one
    sides = np.maximum(boxes[:, 2:], -1.0)  # with the pixel that the evaluation code adds, nothing
    text = "faces have a negative width or height: they count, and nothing overlaps them"
    boxes[:, 2:] = boxes[:, :2] + sides  # corners; the evaluation code adds one pixel to both sides
    listed = {
        f"listed_{subset}": np.concatenate([image.listed[s] for image in found]).astype(np.float64)
        for s, subset in enumerate(SUBSETS)
    }
    pairs = np.zeros(len(names) + 1, dtype=np.int64)
    return Truth(
        Images(
            np.array(names, dtype=str),
            tuple(name.rpartition("/")[2] for name in names),
            sizes,
            sizes,
            tuple(f"{name}.jpg" for name in names),
        ),
        Categories(np.array([1]), ("face",)),
        image=np.repeat(np.arange(len(names), dtype=np.int32), [len(i.boxes) for i in found]),
        label=np.zeros(len(boxes), dtype=np.int32),
        boxes=boxes,
        roles={},
        attributes={"area": (sides + 1).prod(axis=1), **listed},
        box_format="voc",
        family="voc",
        source=shown(path),
        scope=Scope(pairs, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)),
        notes=result_lines.counted(shown(path / FACES), ("box-reversed", text, n_negative)),
    )


def _images(path: Path) -> list[_Image]:
    """The images of all events."""
    file = path / FACES
    found = read_variables(file, ("event_list", "file_list", "face_bbx_list"))
    events = _cells(found[0], file, "event_list")
    names = _cells(found[1], file, "file_list", len(events))
    boxes = _cells(found[2], file, "face_bbx_list", len(events))
    lists = []
    for subset in SUBSETS:
        place = path / f"wider_{subset}_val.mat"
        if not place.is_file():
            raise DataError(shown(place), "no such file", FIX)
        (listed,) = read_variables(place, ("gt_list",))
        lists.append((place, _cells(listed, place, "gt_list", len(events))))
    images = []
    for e, event in enumerate(events):
        where = f"file_list{{{e + 1}}}"
        of_event = _cells(names[e], file, where)
        faces = _cells(boxes[e], file, f"face_bbx_list{{{e + 1}}}", len(of_event))
        kept = [
            (place, _cells(each[e], place, f"gt_list{{{e + 1}}}", len(of_event)))
            for place, each in lists
        ]
        for i, name in enumerate(of_event):
            field = f"{{{e + 1}}}{{{i + 1}}}"
            whole = f"{_name(event, file, f'event_list{{{e + 1}}}')}/{_name(name, file, field)}"
            table = _boxes(faces[i], file, f"face_bbx_list{field}")
            chosen = [_listed(of[i], len(table), place, f"gt_list{field}") for place, of in kept]
            images.append(_Image(whole, table, chosen))
    return images


def _cells(value: Any, path: Path, field: str, count: int | None = None) -> list[Any]:
    if not isinstance(value, np.ndarray) or (value.dtype != object and value.size):
        raise DataError(f"{shown(path)}: {field}", "not a cell array", FIX)
    if count is not None and value.size != count:
        raise DataError(f"{shown(path)}: {field}", f"{value.size} cells, expected {count}", FIX)
    return list(value.ravel())


def _name(value: Any, path: Path, field: str) -> str:
    if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        value = value[0]  # text in a cell of its own
    if not isinstance(value, str) or not value or "/" in value or "\0" in value:
        raise DataError(f"{shown(path)}: {field}", "not a name", FIX)
    return value


def _boxes(value: Any, path: Path, field: str) -> NDArray[np.float64]:
    if isinstance(value, np.ndarray) and value.dtype != object:
        if not value.size:
            return np.zeros((0, 4))
        fits = value.ndim == 2 and value.shape[1] == 4 and not bool(np.isnan(value).any())
        if fits:
            where = f"{shown(path)}: {field}"
            box_conventions.require_pixels(value, lambda row: f"{where}, row {row + 1}")
            return value
    raise DataError(f"{shown(path)}: {field}", "not rows of x, y, width, height", FIX)


def _listed(value: Any, n_faces: int, path: Path, field: str) -> NDArray[np.bool_]:
    """(n,) whether each face is listed: `value` has their numbers, from 1."""
    listed = np.zeros(n_faces, dtype=bool)
    whole = isinstance(value, np.ndarray) and value.dtype != object
    numbers = value.ravel() if whole else np.zeros(1)
    if not ((numbers >= 1) & (numbers <= n_faces) & (numbers % 1 == 0)).all():
        raise DataError(f"{shown(path)}: {field}", f"not numbers of faces, 1 to {n_faces}", FIX)
    listed[numbers.astype(np.int64) - 1] = True
    if listed.sum() != len(numbers):
        raise DataError(f"{shown(path)}: {field}", "a face is listed twice", FIX)
    return listed


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of results, one folder per event. Raises `DataError` for an invalid line."""
    files = [
        file
        for event in sorted(path.iterdir())
        if event.is_dir()
        for file in label_files.listed(event)
    ]
    if not files:
        fix = "give a folder with one folder per event: 0--Parade/0_Parade_....txt"
        raise DataError(shown(path), "no EVENT/*.txt files", fix)
    lines = label_files.read(files)
    first = np.searchsorted(lines.file, np.arange(len(files)))
    names = _names(files, lines, first)
    stated = _stated(lines.take(first + 1))
    listed = np.ones(len(lines), dtype=bool)
    listed[first], listed[first + 1] = False, False
    rows = lines.take(np.flatnonzero(listed))
    more = rows.count > len(NUMBERS)  # the evaluation code does not read them
    result_lines.require_columns(
        rows.take(np.flatnonzero(~more)), (len(NUMBERS),), " ".join(NUMBERS)
    )
    numbers = rows.numbers(NUMBERS)
    box_conventions.require_pixels(numbers[:, :4], rows.place)
    boxes = numbers[:, :4].copy()
    boxes[:, 2:] += boxes[:, :2]
    image_of = join.places(truth.images.ids, names)
    faces, label = result_lines.single_class(truth, "face", len(rows), shown(path), policy)
    beyond = "lines have more than 5 numbers: the first 5 are read as x y width height score"
    differ = "files state another number of faces than they have; all their lines are read"
    n_differ = int((stated != np.bincount(rows.file, minlength=len(files))).sum())
    return join.joined(
        truth,
        image_of[rows.file],
        label,
        boxes,
        np.ascontiguousarray(numbers[:, 4]),
        box_format="voc",
        origin=join.Origin(shown(path), rows.place, CodedNames(names, rows.file), faces),
        policy=policy,
        notes=(
            *result_lines.result_file_notes(
                truth.images.ids.tolist(),
                image_of,
                names,
                rows,
                shown(path),
                reference=", which stops the reference",
            ),
            *result_lines.counted(
                shown(path),
                ("columns-unread", beyond, int(more.sum())),
                ("count-differs", differ, n_differ),
            ),
        ),
    )


def _names(files: list[Path], lines: label_files.Lines, first: NDArray[np.int64]) -> list[str]:
    """EVENT/name of each file, by its first line, as the evaluation code reads it."""
    short = np.flatnonzero(np.diff(first, append=len(lines)) < 2)
    if len(short):
        what, fix = "no name and number of faces", "write both, also for an image without faces"
        raise DataError(shown(files[short[0]]), what, fix)
    heads = lines.take(first)
    words = heads.column(0)
    names: dict[str, Path] = {}
    for i, file in enumerate(files):
        called = words[i] if heads.count[i] == 1 else heads.text(i)
        name = f"{file.parent.name}/{image_names.stem(called)}"
        if name in names:
            what = f"image {name!r:.80} was read from {shown(names[name])} already"
            raise DataError(lines.place(int(first[i])), what, "write one file per image")
        names[name] = file
    return list(names)


def _stated(lines: label_files.Lines) -> NDArray[np.float64]:
    """Returns the number of faces in line 2 of each file."""
    stated = lines.numbers(("number of faces",))[:, 0]
    bad = np.flatnonzero((lines.count != 1) | (stated % 1 != 0) | (stated < 0))
    if len(bad):
        row = int(bad[0])
        what = f"{text_fields.short(lines.text(row))} is not a number of faces"
        raise DataError(lines.place(row), what, "write the number of faces in the second line")
    return stated
