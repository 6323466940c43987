"""Reads UAVDT detection: a folder of sequences, and one of results; it may be the same folder.

``M0203_gt_whole.txt`` has a line ``frame,target,x,y,width,height,...`` per object,
``M0203_gt_ignore.txt`` regions in the same form, if there is one. ``M0203.txt`` or
``M0203_det.txt`` has results, with the score as 7th number. All objects are of one class.
Detections strictly inside of an ignored region are dropped.

Source: UAV-benchmark-MOTD CalculateDetectionPR_overall.m.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.core.adapters import box_conventions, folder_files
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.core.tables.regions import Regions
from detmap.errors import DataError, few

TRUTH, IGNORED, RESULTS = "_gt_whole.txt", "_gt_ignore.txt", ("_det.txt", ".txt")
COLUMNS = ("frame", "target", "x", "y", "width", "height", "score")
WIDTHS = {6: (9,), 7: (7, 9, 10)}
"""Columns of a line of the ground truth and of results, of which the first are read."""
MOST_FRAMES = 500_000  # of all sequences
LENGTHS = {
    "M0203": 1007, "M0205": 646, "M0208": 265, "M0209": 1576, "M0403": 514, "M0601": 372,
    "M0602": 480, "M0606": 1374, "M0701": 1308, "M0801": 298, "M0802": 1101, "M1001": 1859,
    "M1004": 269, "M1007": 659, "M1009": 604, "M1101": 864, "M1301": 1182, "M1302": 719,
    "M1303": 445, "M1401": 1050,
}  # fmt: skip
"""Frames of the test sequences. Others end with the last frame of their ground truth."""
NO_REGIONS = ("M0209", "M0801")
"""Test sequences without ignored regions: the toolkit reads no file of regions of them (`pass`)."""


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return 2 * (path.is_dir() and folder_files.has(path, TRUTH))


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return -int(path.is_dir() and folder_files.has(path, ".txt"))


def read_truth(path: Path) -> Truth:
    """Reads the ground truth of all sequences of a folder.

    Raises `DataError` for invalid lines.
    """
    files = [file for file in label_files.listed(path) if file.name.endswith(TRUTH)]
    if not files:
        raise DataError(shown(path), f"no file *{TRUTH}", "give the folder of the ground truth")
    names = [file.name.removesuffix(TRUTH) for file in files]
    lines, frame, boxes = _read(files)[:3]
    places = [path / f"{name}{IGNORED}" for name in names]
    there = [i for i, place in enumerate(places) if place.is_file()]
    known = [i for i in there if names[i] not in NO_REGIONS]
    unread = [places[i].name for i in there if i not in known and places[i].stat().st_size]
    text = "files of ignored regions are not read, because the toolkit does not ({names})"
    note = Note("regions-unread", text, len(unread), shown(path), listed_names(unread))
    ignored, at, region_boxes = _read([places[i] for i in known])[:3]
    sequence = np.array(known, dtype=np.int32)[ignored.file]
    last = np.array([LENGTHS.get(name, 0) for name in names], dtype=np.int64)
    for rows, frames in ((lines.file, frame), (sequence, at)):
        np.maximum.at(last, rows, frames)
    begin = np.concatenate([[0], np.cumsum(last)])
    if begin[-1] > MOST_FRAMES:
        what = f"{last.max():,} frames, of {begin[-1]:,} of all sequences"
        fix = f"read up to {MOST_FRAMES:,} frames at a time"
        raise DataError(shown(files[int(np.argmax(last))]), what, fix)
    ids = [
        f"{name}/{i:06d}"
        for name, n in zip(names, last.tolist(), strict=True)
        for i in range(1, n + 1)
    ]
    unknown = box_conventions.unknown_sizes(len(ids))
    places_of_regions = (begin[sequence] + at - 1).astype(np.int32)
    order = np.argsort(places_of_regions, kind="stable")
    return Truth(
        Images(np.array(ids, dtype=str), tuple(ids), *unknown),
        Categories(np.array([1]), ("vehicle",)),
        image=(begin[lines.file] + frame - 1).astype(np.int32),
        label=np.zeros(len(lines), dtype=np.int32),
        boxes=boxes,
        roles={},
        attributes={"area": boxes[:, 2] * boxes[:, 3]},
        box_format="xywh",
        family="coco",
        source=shown(path),
        regions=Regions("inside", places_of_regions[order], region_boxes[order]),
        notes=(note,) * bool(unread),
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads the results of all sequences of the ground truth.

    Raises `DataError` for missing files, two files of a sequence, invalid lines and frames that do
    not exist.
    """
    names = list(dict.fromkeys(each.rpartition("/")[0] for each in truth.images.ids.tolist()))
    files, missing = [], []
    for name in names:
        found = [place for end in RESULTS if (place := path / f"{name}{end}").is_file()]
        if len(found) > 1:
            what = f"two files of results of {name}: {few(file.name for file in found)}"
            raise DataError(shown(path), what, "remove one")
        files += found
        missing += [] if found else [name]
    if missing:
        what = f"no results of {len(missing)} of {len(names)} sequences: {few(missing)}"
        raise DataError(shown(path), what, f"add {missing[0]}.txt or {missing[0]}_det.txt")
    known = {
        *files,
        *(path / f"{name}{end}" for name in names for end in (TRUTH, IGNORED, *RESULTS)),
    }
    others = [file.name for file in label_files.listed(path) if file not in known]
    text = "files are not of sequences of the ground truth and are not read ({names})"
    unread = listed_names(others)
    notes = (Note("file-unknown", text, len(others), shown(path), unread),) * bool(others)
    lines, frame, boxes, score = _read(files, len(COLUMNS))
    stems = [
        f"{names[i]}/{n:06d}" for i, n in zip(lines.file.tolist(), frame.tolist(), strict=True)
    ]
    return join.joined(
        truth,
        join.places(truth.images.ids, stems),
        np.zeros(len(lines), dtype=np.int32),
        boxes,
        score,
        box_format="xywh",
        origin=join.Origin(shown(path), lambda row: f"{lines.place(row)}, frame", stems),
        policy=policy,
        notes=notes,
    )


def _read(
    files: list[Path], n: int = len(COLUMNS) - 1
) -> tuple[label_files.Lines, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Returns lines, frames, boxes, and the n-th numbers."""
    lines = label_files.read(files, b",")
    result_lines.require_columns(lines, WIDTHS[n], f"{','.join(COLUMNS[:n])},...")
    values = lines.numbers(COLUMNS[:n])
    frame = values[:, 0]
    bad = ~((frame == np.round(frame)) & (frame >= 1) & (frame <= MOST_FRAMES))
    if (row := first_true(bad)) is not None:
        fix = f"frames count from 1, up to {MOST_FRAMES:,}"
        raise DataError(f"{lines.place(row)}, frame", f"{frame[row]:.9g}", fix)
    boxes, _ = box_conventions.table_boxes(
        values[:, 2:6], "xywh", sizes=box_conventions.unknown_sizes(len(values)), place=lines.place
    )
    return lines, frame.astype(np.int64), boxes, np.ascontiguousarray(values[:, n - 1])
