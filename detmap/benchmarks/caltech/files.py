"""Reads Caltech's text: ground truth of Piotr's toolbox (bbGt version 3), and results per image.

A ground-truth line is ``label x y w h occluded xv yv wv hv ignore angle`` in whole numbers, a
result line ``x y w h score``; both files of an image have the same name.

Source: bbGt.m, bbLoad, and dbEval.m, loadGt and loadDt (liuwei16/CSP, eval_caltech).
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.joining import image_names, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base import arguments
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Truth
from detmap.errors import DataError

HEAD = "% bbGt version=3"
FIELDS = ("x", "y", "w", "h", "occluded", "xv", "yv", "wv", "hv", "ignore", "angle")
FRAME = re.compile(r".*I[0-9]+")
LABELS = ("person", "person?", "people", "ignore")
"""Objects of other labels are left out: dbEval.m, lbls."""
IGNORED = "ignore"  # dbEval.m, ilbls


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return 3 * any(words[:2] == HEAD.split()[:2] for words in label_files.look(path))


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    if not path.is_dir() or not any(
        FRAME.fullmatch(name[:-4]) for name in folder_files.names(path, label_files.TEXT)
    ):
        return 0
    rows = label_files.look(path)
    fits = all(len(words) == 5 and label_files.are_numbers(words) for words in rows)
    return fits * (1 + bool(rows))


def read_truth(path: Path) -> Truth:
    """Reads a folder of ground truth. Raises `DataError` for an invalid line."""
    files = label_files.required(path)
    lines = label_files.read(files)
    first = np.searchsorted(lines.file, np.arange(len(files)))
    for i, file in enumerate(files):
        here = first[i] < len(lines) and lines.file[first[i]] == i
        head = lines.text(int(first[i])) if here else ""
        if head != HEAD:
            fix = f"begin each file with {HEAD!r}"
            raise DataError(f"{shown(file)}: line 1", f"{text_fields.short(head)}", fix)
    listed = np.ones(len(lines), dtype=bool)
    listed[first] = False
    rows = lines.take(np.flatnonzero(listed))
    result_lines.require_columns(
        rows, (1 + len(FIELDS),), "label x y w h occluded xv yv wv hv ignore angle"
    )
    labels = np.array(rows.column(0), dtype=object)
    known = np.isin(labels.astype(str), LABELS) if len(rows) else np.zeros(0, dtype=bool)
    n_others = int((~known).sum())
    rows, labels = rows.take(np.flatnonzero(known)), labels[known]
    numbers = _whole(rows)
    boxes, size = np.ascontiguousarray(numbers[:, :4]), np.full(len(files), np.nan)
    images, place = image_names.table(shown(path), [file.stem for file in files], (size, size))
    ignored = (numbers[:, 9] != 0) | (labels == IGNORED)
    text = "objects have other labels and are left out"
    notes = result_lines.counted(shown(path), ("label-unknown", text, n_others))
    return Truth(
        images,
        Categories(np.array([1]), ("person",)),
        image=place[rows.file],
        label=np.zeros(len(boxes), dtype=np.int32),
        boxes=boxes,
        roles={"ignore": ignored.astype(bool)},
        attributes={
            "area": boxes[:, 2] * boxes[:, 3],
            "left": boxes[:, 0].copy(),
            "top": boxes[:, 1].copy(),
            "right": boxes[:, 0] + boxes[:, 2],
            "bottom": boxes[:, 1] + boxes[:, 3],
            "visible": _visible(boxes, numbers[:, 4], numbers[:, 5:9]),
        },
        box_format="xywh",
        family="coco",
        source=shown(path),
        notes=(*notes, *label_files.unread(path)),
    )


def _visible(
    boxes: NDArray[np.float64], occluded: NDArray[np.float64], seen: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n,) the visible share: 1 if not occluded, 0 if the visible box is the whole one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (seen[:, 2] * seen[:, 3]) / (boxes[:, 2] * boxes[:, 3])
    share[(seen == boxes).all(axis=1)] = 0.0
    share[(occluded == 0) | (seen == 0).all(axis=1)] = 1.0
    return np.asarray(share)


def _whole(rows: label_files.Lines) -> NDArray[np.float64]:
    """(n, 11) the numbers of objects."""
    numbers = rows.numbers(FIELDS, 1)
    for bad, what, fix in (
        (numbers % 1 != 0, "not a whole number", "bbGt.m reads whole numbers: round them"),
        (numbers[:, [10] * len(FIELDS)] != 0, "a rotated box", "Caltech has none: set angle to 0"),
        (
            ~np.isin(numbers, (0, 1)) & np.isin(FIELDS, ("occluded", "ignore")),
            "not a flag",
            arguments.FLAG_FIX,
        ),
        ((numbers < 0) & np.isin(FIELDS, ("w", "h", "wv", "hv")), "negative", "fix the box"),
    ):
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            where = f"{rows.place(row)}, {FIELDS[column] if bad[row].sum() == 1 else 'angle'}"
            raise DataError(where, f"{what}: {text_fields.short(rows.text(row))}", fix)
    return numbers


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of results. Raises `DataError` for an invalid line."""
    files = label_files.required(path)
    rows = label_files.read(files)
    result_lines.require_columns(rows, (5,), "x y w h score")
    numbers = rows.numbers(("x", "y", "w", "h", "score"))
    stems = [file.stem for file in files]
    image_of = join.images_by_stem(truth, stems, shown(path), policy.file_key)
    names, label = result_lines.single_class(truth, "person", len(rows), shown(path), policy)
    notes = result_lines.result_file_notes(
        truth.images.stems,
        image_of,
        stems,
        rows,
        shown(path),
        reference=", which stops the reference",
    )
    return join.joined(
        truth,
        image_of[rows.file],
        label,
        np.ascontiguousarray(numbers[:, :4]),
        np.ascontiguousarray(numbers[:, 4]),
        box_format="xywh",
        origin=join.Origin(shown(path), rows.place, rows.stems(), names),
        policy=policy,
        notes=(*notes, *label_files.unread(path)),
    )
