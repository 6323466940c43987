"""Reads CSV without a line of names, as keras-retinanet and Roboflow's RetinaNet export have it.

A row of ground truth is ``path,x1,y1,x2,y2,class``, one of detections has the score as its last
cell. ``path,,,,,`` is an image without objects. Boxes are continuous pixels from 0. Classes and
their ids come from ``classes.csv`` or ``_classes.csv`` beside the file, rows ``name,id``, if it is
there.

Source: fizyr/keras-retinanet, keras_retinanet/preprocessing/csv_generator.py.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.tabular import column_tables, csv_parquet
from detmap.core.adapters.text_per_image import column_layouts
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

COLUMNS = ("image", "xmin", "ymin", "xmax", "ymax", "class")
SCORED = (*COLUMNS, "score")
CLASSES = ("_classes.csv", "classes.csv")


def read_truth(
    path: Path, box_format: str | None = None, image_sizes: Path | None = None, **named: Any
) -> Truth:
    """Reads a file of ground truth; the options are those of CSV files with a header.

    Raises `DataError` for invalid rows and classes.
    """
    sheet = csv_parquet.read_csv(path, COLUMNS)
    if not (len(sheet) and sheet.whole("class") is not None):  # else numbers are the names
        named["categories"] = _classes(path)
    return column_tables.read_truth(sheet, box_format, image_sizes, **named)


def read_detections(
    path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """Reads a file of detections. Raises `DataError` for invalid rows and unknown images."""
    sheet = csv_parquet.read_csv(path, SCORED)
    found = column_tables.read_detections(sheet, truth, box_format, policy)
    score, image = sheet.numbers("score"), sheet.names("image").code
    column_layouts.require_confidences(score, image, sheet.place, column_layouts.LAST_TRACK_IDS)
    notes = column_layouts.equal_scores(score, sheet.source)
    return replace(found, notes=(*notes, *found.notes))


def _classes(path: Path) -> dict[int, str] | None:
    """Returns class names by id, from the file beside; None without one."""
    file = next((path.parent / name for name in CLASSES if (path.parent / name).is_file()), None)
    if file is None:
        return None
    sheet = csv_parquet.read_csv(file, ("class", "id"))
    names, ids = sheet.texts("class"), sheet.whole("id")
    if ids is None:
        raise DataError(shown(file), "class ids that are not whole numbers", "a row is: class,id")
    if len(set(names)) < len(names) or len(set(ids.tolist())) < len(names):
        raise DataError(shown(file), "a class or an id occurs twice", "list every class once")
    return dict(zip(ids.tolist(), names, strict=True))
