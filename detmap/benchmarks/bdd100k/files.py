"""Reads BDD100K: Scalabel JSON, a list of frames with labels, or ``{"frames": [...]}``.

A box is ``x1 y1 x2 y2`` and has the width x2 - x1 + 1. Labels with the attribute crowd or ignored
are crowds. Classes are those of ``config.categories`` in the file, else the ten of BDD100K
detection, and those that the protocol renames, if they occur; labels of other classes or without
a box2d are not objects. Images are joined by name. Results of 2018 have a record per box, ``name``,
``category``, ``bbox`` (x1 y1 x2 y2) and ``score``.

Source: scalabel label/to_coco.py, label/transforms.py (box2d_to_bbox), label/utils.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.core.adapters import box_conventions, text_fields
from detmap.core.adapters.joining import image_names, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base import arguments, column_checks, json_faults, open_files, unique_keys
from detmap.core.base.flat_rows import first_repeated, first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import MAX_PIXEL, Categories, Detections, Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, few

CLASSES = (
    *("pedestrian", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle"),
    *("traffic light", "traffic sign"),
)
"""Source: bdd100k configs/det.toml."""

SIDES = ("x1", "y1", "x2", "y2")
ALONE = -1
"""The position of a label that is a record of its own, as in results of 2018."""


class Box(msgspec.Struct):
    """One ``box2d``."""

    x1: float
    y1: float
    x2: float
    y2: float


class Label(msgspec.Struct):
    """One object or detection."""

    category: str = ""
    attributes: dict[str, Any] | None = None
    box2d: Box | None = None
    score: float | None = None


class Size(msgspec.Struct):
    """Pixels of an image."""

    width: float
    height: float


class Frame(msgspec.Struct):
    """One image, or one detection in results of 2018, which have a ``bbox``."""

    name: str
    labels: list[Label] | None = None
    size: Size | None = None
    category: str = ""
    bbox: tuple[float, float, float, float] | None = None
    score: float | None = None


class Class(msgspec.Struct):
    """One class, with those below it."""

    name: str
    subcategories: list[Class] | None = None


class Config(msgspec.Struct):
    """Common properties of the frames."""

    categories: list[Class] | None = None
    imageSize: Size | None = None  # noqa: N815  # as in the file


class Dataset(msgspec.Struct):
    """A file with a configuration."""

    frames: list[Frame]
    config: Config | None = None


def read_truth(path: Path, *, classes: Sequence[str] = ()) -> Truth:
    """Reads the objects of all frames.

    Parameters
    ----------
    classes : names of classes to read besides those of the file's configuration or of BDD100K, if
        they occur

    Raises `DataError` for invalid JSON and boxes, repeated frames, and no object of a known class.
    """
    frames, config = _read(path)
    single = next((i for i, frame in enumerate(frames) if frame.bbox is not None), None)
    if single is not None:
        what = "a record with bbox is a detection of the format of 2018"
        raise DataError(_place(path, single), what, "give frames with labels as ground truth")
    _refuse_repeated(path, frames)
    names = [frame.name for frame in frames]
    known = _leaves(config.categories) if config.categories else list(CLASSES)
    if len(set(known)) < len(known):
        raise DataError(f"{shown(path)}: config.categories", "a class twice", "name it once")
    present = {label.category for _, _, label, _ in _boxed(frames)}
    known += [name for name in classes if name in present and name not in known]
    rows, boxes, label = _rows(path, frames, known)
    keep = label >= 0
    other = sorted({_labels(frames[f])[i].category for f, i in rows[~keep].tolist()})
    if other and not keep.any():
        what = f"no label of a known class; there are {few(other)}"
        raise DataError(shown(path), what, f"the classes are {', '.join(known)}")
    notes = list(_frame_notes(path, frames))
    if other:
        text = "labels of other classes are not evaluated: {names}"
        count = int((~keep).sum())
        notes.append(Note("class-excluded", text, count, shown(path), listed_names(other)))
    ids = column_checks.id_array(f"{shown(path)}: name", names)
    sizes = [frame.size or config.imageSize or Size(np.nan, np.nan) for frame in frames]
    sides = np.array([msgspec.structs.astuple(each) for each in sizes], dtype=np.float64)
    width, height = sides.reshape(-1, 2).T
    stems = list(map(image_names.stem, names))
    images, order = image_names.ordered(ids, stems, (width, height))
    rows, boxes, label = rows[keep], boxes[keep], label[keep]
    crowd = np.array([_is_crowd(path, frames, f, i) for f, i in rows.tolist()], dtype=bool)
    return Truth(
        images,
        Categories(np.arange(1, len(known) + 1), tuple(known)),
        image=order[rows[:, 0]],
        label=label,
        boxes=boxes,
        roles={"crowd": crowd},
        attributes={"area": boxes[:, 2] * boxes[:, 3]},
        box_format="xywh",
        family="coco",
        source=shown(path),
        notes=tuple(notes),
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads the detections of all frames; labels have a score.

    Raises `DataError` for invalid JSON and boxes, missing scores, repeated frames, unknown images
    and classes.
    """
    policy.refuse_class_names(shown(path))
    frames, _ = _read(path)
    frames = _with_single_boxes(path, frames)
    _refuse_repeated(path, frames)
    rows, boxes, label = _rows(path, frames, list(truth.categories.names))
    labels = [_labels(frames[f])[i] for f, i in rows.tolist()]
    bare = next((i for i, each in enumerate(labels) if each.score is None), None)
    if bare is not None:
        raise DataError(_place(path, *rows[bare].tolist()), "no score", "give every label a score")
    named = [frames[f].name for f in rows[:, 0].tolist()]
    in_file = join.images_named(
        truth, [frame.name for frame in frames], lambda row: _place(path, row), ""
    )[0]
    absent = np.setdiff1d(np.arange(len(truth.images)), in_file).tolist()
    n_boxless = sum(label.box2d is None for frame in frames for label in _labels(frame))
    text = "labels have no box2d: they are not detections"
    lacking = "images have no frame in the results: they have no detections ({names})"
    names = listed_names(truth.images.ids[i] for i in absent)
    return join.joined(
        truth,
        join.images_named(truth, named, lambda row: _place(path, *rows[row].tolist()), "")[0],
        label,
        boxes,
        np.array([each.score for each in labels], dtype=np.float64),
        box_format="xywh",
        origin=join.Origin(
            shown(path),
            lambda row: _place(path, *rows[row].tolist()),
            named,
            [each.category for each in labels],
        ),
        policy=policy,
        notes=(
            *((Note("frame-missing", lacking, len(absent), shown(path), names),) * bool(absent)),
            *_frame_notes(path, frames),
            *result_lines.counted(shown(path), ("box-missing", text, n_boxless)),
        ),
    )


def _read(path: Path) -> tuple[list[Frame], Config]:
    data = open_files.unpacked(path, times=10).removeprefix(b"\xef\xbb\xbf")
    unique_keys.require(data, shown(path))
    fix = 'write frames: [{"name": ..., "labels": [{"category": ..., "box2d": {"x1": ...}}]}]'
    try:
        if data.lstrip()[:1] == b"{":
            whole = msgspec.json.decode(data, type=Dataset)
            return whole.frames, whole.config or Config()
        return msgspec.json.decode(data, type=list[Frame]), Config()
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at ")
        raise DataError(f"{shown(path)}: {at.strip('`') or '$'}", what, fix) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(shown(path), *json_faults.explain(data, error, fix)) from None


def _with_single_boxes(path: Path, frames: list[Frame]) -> list[Frame]:
    """Returns frames; a record of a single box becomes a frame with one label.

    Raises `DataError` for a file with both.
    """
    single = [i for i, frame in enumerate(frames) if frame.bbox is not None]
    if not single:
        return frames
    other = next((i for i, frame in enumerate(frames) if frame.bbox is None), None)
    other = next((i for i in single if frames[i].labels is not None), other)
    if other is not None:
        what = "the file has both frames with labels and records with one bbox"
        raise DataError(_place(path, other), what, "write one kind: frames with labels")
    return [
        Frame(
            frame.name,
            [Label(frame.category, box2d=Box(*frame.bbox or ()), score=frame.score)],
            bbox=frame.bbox,
        )
        for frame in frames
    ]


def _refuse_repeated(path: Path, frames: list[Frame]) -> None:
    """Raises `DataError` for the first frame whose name an earlier one has."""
    row = first_repeated(frame.name for frame in frames if frame.bbox is None)
    if row is not None:
        what = f"frame {text_fields.short(frames[row].name)} occurs twice"
        raise DataError(_place(path, row), what, "list it once")


def _frame_notes(path: Path, frames: list[Frame]) -> tuple[Note, ...]:
    count = sum(frame.labels is None for frame in frames)
    text = "frames have no key labels: they are read as frames without boxes"
    return result_lines.counted(shown(path), ("labels-missing", text, count))


def _leaves(classes: list[Class]) -> list[str]:
    """Returns the classes without others below them."""
    names: list[str] = []
    for each in classes:
        names += [each.name] if each.subcategories is None else _leaves(each.subcategories)
    return names


def _place(path: Path, frame: int, label: int | None = None) -> str:
    inside = "" if label in (None, ALONE) else f".labels[{label}]"
    return f"{shown(path)}: [{frame}]{inside}"


def _box_place(path: Path, row: NDArray[np.int64]) -> str:
    return f"{_place(path, *row.tolist())}.{'bbox' if row[1] == ALONE else 'box2d'}"


def _labels(frame: Frame) -> list[Label]:
    return frame.labels or []


def _boxed(frames: list[Frame]) -> Iterator[tuple[int, int, Label, Box]]:
    for f, frame in enumerate(frames):
        for i, label in enumerate(_labels(frame)):
            if label.box2d is not None:
                yield f, i if frame.bbox is None else ALONE, label, label.box2d


def _rows(
    path: Path, frames: list[Frame], known: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]:
    """Returns frame and label, box x y width height, and class (-1 if unknown) of each row."""
    class_of = {name: k for k, name in enumerate(known)}
    found = list(_boxed(frames))
    rows = np.array([each[:2] for each in found], dtype=np.int64).reshape(-1, 2)
    corners = np.array([msgspec.structs.astuple(box) for *_, box in found]).reshape(-1, 4)
    boxes = corners.copy()
    boxes[:, 2:] += 1 - corners[:, :2]
    bad = ~(np.abs(corners) <= MAX_PIXEL).all(axis=1) | (boxes[:, 2:] < 0).any(axis=1)
    if (row := first_true(bad)) is not None:
        what = " ".join(f"{s} {v:g}" for s, v in zip(SIDES, corners[row].tolist(), strict=True))
        where = _box_place(path, rows[row])
        raise DataError(where, f"{what} has a negative size or no finite one", "correct the box")
    box_conventions.require_pixels(corners, lambda row: _box_place(path, rows[row]))
    label = np.array([class_of.get(label.category, -1) for _, _, label, _ in found], dtype=np.int32)
    return rows, boxes, label


def _is_crowd(path: Path, frames: list[Frame], frame: int, label: int) -> bool:
    attributes = _labels(frames[frame])[label].attributes or {}
    flags = {name: arguments.flag(attributes.get(name, False)) for name in ("crowd", "ignored")}
    for name, flag in flags.items():
        if flag is None:
            where = f"{_place(path, frame, label)}.attributes.{name}"
            what = f"{attributes[name]!r:.60} is not a flag"
            raise DataError(where, what, arguments.FLAG_FIX)
    return any(flags.values())
