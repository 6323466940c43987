"""Reads LUNA16's CSV files: nodules and marks as spheres in world coordinates, in millimeters.

The ground truth is ``annotations.csv``; beside it are ``annotations_excluded.csv``, the findings
that are ignored, and ``seriesuids.csv``, the evaluated scans, one per line. Centers and diameters
are attributes; the box of a sphere is its square in the x-y plane.

Source: noduleCADEvaluationLUNA16.py, `collect` and `evaluateCAD`.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import text_fields
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.tabular.csv_parquet import Sheet, spelled
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base import open_files
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import MAX_PIXEL, Categories, Detections, Images, Note, Truth
from detmap.errors import DataError, few

SERIES, SCORE = "seriesuid", "probability"
AXES = ("coordx", "coordy", "coordz")
DIAMETER = "diametermm"
EXCLUDED, LIST = "annotations_excluded.csv", "seriesuids.csv"
UNKNOWN_DIAMETER = 10.0  # of a finding whose diameter is negative
HEADERS = {
    column: ("seriesuid", "coordX", "coordY", "coordZ", name)
    for column, name in ((SCORE, "probability"), (DIAMETER, "diameter_mm"))
}
"""By the last column."""
HEAD = 1 << 12  # bytes with the header


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return _looks(path, DIAMETER)


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return _looks(path, SCORE)


def _looks(path: Path, column: str) -> int:
    """1 for a header with one of LUNA16's own columns, and for a row of a file without a header:
    the general CSV reader reads no spheres.
    """
    if path.is_dir():
        return 0
    try:
        cells = _first_cells(path)
    except (OSError, DataError):
        return 0
    names = {spelled(cell) for cell in cells}
    is_row = len(cells) == len(HEADERS[column]) and label_files.are_numbers(cells[1:])
    return int(is_row or not names.isdisjoint((SERIES, *AXES, DIAMETER)))


def _first_cells(path: Path) -> list[str]:
    with open_files.opened(path) as file:
        head = file.read(0, HEAD).decode("utf-8", "replace")
    line = text_fields.LINE_END.split(head, maxsplit=1)[0]
    return [cell.strip(' "\ufeff') for cell in re.split("[,;\t]", line)]


def _sheet(path: Path, column: str) -> Sheet:
    """Reads a CSV file. Raises `DataError` if its first line lacks one of the columns."""
    header, cells = HEADERS[column], _first_cells(path)
    missing = [name for name in header if spelled(name) not in map(spelled, cells)]
    if missing:
        what = f"no column {', '.join(missing)}; there are {few(cells)}"
        fix = f"the first line names the columns: {','.join(header)}"
        raise DataError(f"{shown(path)}: line 1", what, fix)
    return csv_parquet.read_csv(path)


def read_truth(path: Path) -> Truth:
    """Reads nodules, and the excluded findings and the list of scans beside them."""
    scans = _scans(_beside(path, LIST))
    place = {scan: i for i, scan in enumerate(scans)}
    sheets = [_sheet(each, DIAMETER) for each in (path, _beside(path, EXCLUDED))]
    parts, notes = [], []
    for sheet, noun in zip(sheets, ("nodules", "excluded findings"), strict=True):
        image = np.array([place.get(name, -1) for name in _series(sheet)], dtype=np.int32)
        columns = [*_numbers(sheet, AXES), *_numbers(sheet, (DIAMETER,))]
        left = int((image < 0).sum())
        if left:
            text = f"{noun} are of scans that {LIST} does not list: they are left out"
            notes.append(Note("scan-unlisted", text, left, sheet.source))
        parts.append((image[image >= 0], np.stack(columns, axis=1)[image >= 0]))
    image = np.concatenate([part[0] for part in parts])
    spheres = np.concatenate([part[1] for part in parts])
    side = np.where(spheres[:, 3] < 0, UNKNOWN_DIAMETER, spheres[:, 3])
    return Truth(
        Images(np.array(scans, dtype=str), tuple(scans), *(np.full(len(scans), np.nan),) * 2),
        Categories(np.array([1], dtype=np.int64), ("nodule",)),
        image=image,
        label=np.zeros(len(image), dtype=np.int32),
        boxes=_squares(spheres, side),
        roles={"excluded": np.arange(len(image)) >= len(parts[0][0])},
        attributes=_attributes(spheres) | {"diameter": spheres[:, 3].copy(), "area": side * side},
        box_format="xywh",
        family="coco",
        source=shown(path),
        notes=tuple(notes),
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads marks: scan, center and probability."""
    sheet = _sheet(path, SCORE)
    names = _series(sheet)
    spheres = np.stack(_numbers(sheet, AXES), axis=1)
    column = sheet.find((SCORE,), SCORE)
    return join.joined(
        truth,
        join.places(truth.images.ids.astype(str), names),
        np.zeros(len(names), dtype=np.int32),
        _squares(spheres, np.zeros(len(names))),
        _finite(sheet, column, np.finfo(np.float64).max),
        box_format="xywh",
        origin=join.Origin(sheet.source, sheet.place, names),
        policy=policy,
        attributes=_attributes(spheres),
        in_pixels=False,  # millimeters, from the origin of the scanner
    )


def _beside(path: Path, name: str) -> Path:
    found = path.parent / name
    if not found.is_file():
        what = f"no {name} beside it"
        raise DataError(shown(path), what, f"put LUNA16's {name} into the same folder")
    return found


def _scans(path: Path) -> list[str]:
    """The scans of a list, sorted; a header is not required."""
    scans: list[str] = []
    for line, words in text_fields.lines(path):
        if words == [SERIES] and not scans:
            continue
        if len(words) != 1 or "," in words[0]:
            what = f"{len(words)} words: {text_fields.short(' '.join(words))}"
            raise DataError(f"{shown(path)}: line {line}", what, "write one scan per line")
        scans.append(words[0])
    twice = sorted(scan for scan, count in Counter(scans).items() if count > 1)
    if twice or not scans:
        what = f"lists scans twice: {few(twice)}" if twice else "lists no scan"
        raise DataError(shown(path), what, "write each scan once, one per line")
    return sorted(scans)


def _series(sheet: Sheet) -> list[str]:
    return sheet.texts(sheet.find((SERIES,), SERIES))


def _numbers(sheet: Sheet, names: tuple[str, ...]) -> list[NDArray[np.float64]]:
    return [_finite(sheet, sheet.find((name,), name), MAX_PIXEL) for name in names]


def _finite(sheet: Sheet, column: str, most: float) -> NDArray[np.float64]:
    values = sheet.numbers(column)
    bad = ~(np.abs(values) <= most)
    if (row := first_true(bad)) is not None:
        where = f"{sheet.place(row)}, column {column}"
        raise DataError(where, f"{values[row]} is out of range", "write a plain number")
    return np.ascontiguousarray(values)


def _squares(spheres: NDArray[Any], side: NDArray[np.float64]) -> NDArray[np.float64]:
    sides = np.stack([side, side], axis=1)
    return np.hstack([spheres[:, :2] - sides / 2, sides])


def _attributes(spheres: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {name: spheres[:, i].copy() for i, name in enumerate("xyz")}
