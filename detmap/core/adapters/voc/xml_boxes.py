"""What the four numbers of ``bndbox`` in VOC XML mean: the devkit's pixels, or another tool's.

- the devkit, LabelImg, Roboflow: first and last pixel, counted from 1 (``voc``)
- CVAT, datumaro: continuous pixels from 0, with decimals (``xyxy``)
- Label Studio: the same, cut to whole pixels; the files name it as their owner
- detmap: the text ``source.annotation`` says which (`DECLARED`)

Source: the VOC devkit; save_voc of datumaro; convert_to_voc of label-studio-sdk.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions
from detmap.core.adapters.voc import annotation_xml
from detmap.core.adapters.voc.scan_voc import Objects
from detmap.core.tables import BoxFormat, Note
from detmap.errors import DataError, few

LABEL_STUDIO = "Label Studio"
DECLARED = {
    "detmap, continuous pixels from 0": "xyxy",
    "detmap, first and last pixel from 1": "voc",
}
CERTAIN = 0.5  # share of boxes with fractions of pixels from which none counts whole pixels
CHOICES = (
    "if it counts continuous pixels from 0, use --truth-box-format xyxy; if the first and last "
    "whole pixel from 0, 'voc from 0'; else voc"
)


def read(
    files: Sequence[Path], objects: Objects, box_format: str | None, source: str
) -> tuple[NDArray[np.float64], BoxFormat, tuple[Note, ...]]:
    """Returns the boxes of objects, their table format, and notes on an automatic choice.

    Raises `DataError` for a box format that VOC XML cannot have.
    """
    notes: tuple[Note, ...] = ()
    if box_format is None:
        box_format, notes = _guess(files, objects, source)
    box_conventions.require(box_format, box_conventions.VOC_XML)
    if box_format == "voc":
        return objects.boxes, "voc", notes
    boxes, table_format = box_conventions.table_boxes(
        objects.boxes,
        box_format,
        sizes=box_conventions.unknown_sizes(len(objects.boxes)),
        place=lambda row: f"{files[objects.page[row]]}: object",
    )
    return boxes, table_format, notes


def _guess(files: Sequence[Path], objects: Objects, source: str) -> tuple[str, tuple[Note, ...]]:
    """Returns the box format that the files show with certainty, else ``voc``, and notes."""
    boxes = objects.boxes
    first = annotation_xml.read_page(files[0]) if files else None
    if first is not None and first.written in DECLARED:
        others = [file for file in files if annotation_xml.read_page(file).written != first.written]
        if others:
            what = (
                f"some files declare '{first.written}', and others do not: {few(map(str, others))}"
            )
            raise DataError(source, what, f"choose one box format for all: {CHOICES}")
        return DECLARED[first.written], ()
    with_decimals = int((boxes != np.floor(boxes)).any(axis=1).sum())
    if len(boxes) and with_decimals > CERTAIN * len(boxes):
        text = (
            "boxes have fractions of pixels, as CVAT and datumaro write them: all boxes are read "
            "as continuous pixels from 0 (--truth-box-format xyxy); voc reads first and last pixels"
        )
        return "xyxy", (Note("box-continuous", text, with_decimals, source),)
    if len(boxes) and first is not None and first.owner == LABEL_STUDIO:
        others = [file for file in files if annotation_xml.read_page(file).owner != LABEL_STUDIO]
        if others:
            what = f"some files are Label Studio's, and others are not: {few(map(str, others))}"
            raise DataError(source, what, f"choose one box format for all: {CHOICES}")
        text = (
            "boxes are of Label Studio, which cuts continuous pixels from 0 to whole ones: read so "
            "(--truth-box-format xyxy); voc reads first and last pixels"
        )
        return "xyxy", (Note("box-continuous", text, len(boxes), source),)
    from_zero = (boxes[:, :2] < 1).any(axis=1)
    odd = int((from_zero | (boxes != np.floor(boxes)).any(axis=1)).sum())
    text = f"boxes begin before pixel 1 or have decimals, and are read as voc: {CHOICES}"
    total = (len(boxes),)
    note = Note("box-from-zero", text, odd, source, numbers=total, condition="odd")
    return "voc", (note,) * bool(len(boxes))
