"""Reads the folder ``preds`` of mmdetection's inferencer: a JSON file per image.

``bboxes`` are corners in continuous pixels from 0, ``labels`` count classes from 0, without names:
the classes of the ground truth count from 0, or --class-names defines them. Images are joined by
file stem.

Source: open-mmlab/mmdetection 3, mmdet/apis/det_inferencer.py (pred2dict).
"""

from pathlib import Path

import msgspec
import numpy as np

from detmap.annotation_tools import collected_boxes, looks, typed_json
from detmap.core.adapters import box_conventions, folder_files
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image.predictions_json import counts_from_zero
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a file has labels, scores and bboxes of four numbers, as many of each"


class _File(msgspec.Struct, gc=False):
    labels: list[int]
    scores: list[float]
    bboxes: list[tuple[float, float, float, float]]


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of predictions. Raises `DataError` for invalid files and unknown classes."""
    source = shown(path)
    if policy.class_names is None and not counts_from_zero(truth):
        what = f"labels count classes from 0, and those of {truth.source} do not: no names to join"
        raise DataError(source, what, "give the names of the model's classes: --class-names FILE")
    folder = looks.mmdet_folder(path)
    files = folder_files.required(folder, collected_boxes.JSON, collected_boxes.HOLDER)
    pages = [_decoded(file) for file in files]
    counts = [len(page.labels) for page in pages]
    owner = np.repeat(np.arange(len(files)), counts)
    first = np.cumsum([0, *counts])

    def place(row: int) -> str:
        return f"{shown(files[owner[row]])}: row {row - first[owner[row]]}"

    stems = [files[i].stem for i in owner.tolist()]
    classes = np.array([label for page in pages for label in page.labels], dtype=np.int64)
    image, notes = join.images_named(truth, stems, place, source)
    values = np.array([box for page in pages for box in page.bboxes], dtype=np.float64)
    boxes, table_format = box_conventions.table_boxes(
        values.reshape(-1, 4), "xyxy", sizes=box_conventions.sizes_of(truth, image), place=place
    )
    return join.joined(
        truth,
        image,
        join.classes_by_id(truth, classes, source, policy),
        boxes,
        np.array([score for page in pages for score in page.scores], dtype=np.float64),
        box_format=table_format,
        origin=join.Origin(source, place, stems, classes),
        policy=policy,
        notes=(*notes, *folder_files.unread(folder, collected_boxes.JSON)),
    )


def _decoded(file: Path) -> _File:
    page = typed_json.decoded(file, _File, FORM)
    n = len(page.labels)
    if not n == len(page.scores) == len(page.bboxes):
        what = f"{n} labels, {len(page.scores)} scores, {len(page.bboxes)} bboxes"
        raise DataError(shown(file), what, FORM)
    if not all(abs(label) < 2**63 for label in page.labels):
        raise DataError(f"{shown(file)}: labels", "a label of more than 64 bits", FORM)
    if not np.isfinite(page.scores).all():
        raise DataError(f"{shown(file)}: scores", "a score is not finite", "write numbers")
    return page
