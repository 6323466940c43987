"""The files of the browser: data, code, page."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse import cases, outlines
from detmap.analysis.browse.cases import Shown
from detmap.analysis.browse.columns import packed, script
from detmap.analysis.diagnosis.analysis import BEYOND, CLS, DUPE, LOC, TP
from detmap.analysis.diagnosis.class_labels import told_apart
from detmap.analysis.html_report.image_files import name_of
from detmap.core.tables import boxes_as
from detmap.version import __version__

VIEW = Path(__file__).with_name("view")
PARTS = ("data", "count", "state", "draw", "filters", "cards", "viewer", "lists", "main")
"""The files of the script, in the order in which they are joined."""
IMAGES_PER_FILE = 250
PAGE = "images.html"


def code_files() -> Iterator[tuple[str, bytes]]:
    """Path and content of the page and of its code."""
    parts = [(VIEW / f"{name}.js").read_text("utf-8") for name in PARTS]
    yield "view/app.js", "\n".join(['"use strict";', *parts]).encode()
    yield "view/app.css", (VIEW / "app.css").read_bytes()
    yield PAGE, (VIEW / PAGE).read_bytes()


def data_files(
    every: Mapping[str, Shown], title: str, pictures: Mapping[str, Any]
) -> Iterator[tuple[str, bytes]]:
    """Path and content of each data file.

    Parameters
    ----------
    every : what is shown of each detector, by its name
    title : of the report
    pictures : how the browser finds the pictures
    """
    shown = list(every.values())
    n_images = len(shown[0].diagnosis.truth.images)
    yield "data/truth.js", script("truth", cases.truth_content(shown[0]))
    for k, each in enumerate(shown):
        yield f"data/det{k}.js", script(f"det{k}", cases.detector_content(each))
    begins = np.arange(0, n_images, IMAGES_PER_FILE)
    tables: list[outlines.Table] = [shown[0].diagnosis.truth]
    tables += [each.diagnosis.detections for each in shown]
    every_row = [shown[0].objects, *(each.rows for each in shown)]
    parts = [
        np.split(rows, np.searchsorted(table.image[rows], begins[1:]))
        for table, rows in zip(tables, every_row, strict=True)
    ]
    scale = outlines.scale_of(shown[0].diagnosis.truth)
    for k in range(len(begins)):
        name = f"box{k:03d}"
        content = _box_content(shown, [part[k] for part in parts], scale)
        yield f"data/{name}.js", script(name, content)
    yield "data/meta.js", script("meta", _meta(every, title, pictures))


def _box_content(shown: list[Shown], parts: list[NDArray[np.int64]], scale: int) -> dict[str, Any]:
    """Boxes, overlaps and rows of each detector on some images, and outlines where there are any,
    of some rows of the ground truth and of each detector.
    """
    truth = shown[0].diagnosis.truth
    found: dict[str, Any] = {"detectors": []}
    if outlines.kind_of(truth.shapes):
        found["truth"] = outlines.outline_columns(truth, parts[0], scale)
    for each, rows in zip(shown, parts[1:], strict=True):
        diagnosis, detections = each.diagnosis, each.diagnosis.detections
        kind, same, other = diagnosis.kind[rows], diagnosis.same[rows], diagnosis.other[rows]
        overlap = np.where(kind == CLS, other, np.maximum(same, other))
        overlap = np.where(np.isin(kind, (TP, LOC, DUPE)), same, overlap)  # that makes the kind
        columns: dict[str, Any] = {"overlap": outlines.shares(overlap), "row": packed(rows)}
        columns["box"] = outlines.box_columns(detections, rows, scale)
        if outlines.kind_of(truth.shapes) and outlines.kind_of(detections.shapes):
            columns["outline"] = outlines.outline_columns(detections, rows, scale)
        found["detectors"].append(columns)
    return found


def _meta(every: Mapping[str, Shown], title: str, pictures: Mapping[str, Any]) -> dict[str, Any]:
    shown = list(every.values())
    diagnosis = shown[0].diagnosis
    images = diagnosis.truth.images
    sizes = _sizes(shown)
    return {
        "title": title,
        "version": __version__,
        "detectors": [
            {"name": name, "best": each.best, "exact": each.exact, "floor": each.floor}
            | {"of": int(np.count_nonzero(each.diagnosis.kind != BEYOND))}
            for name, each in every.items()
        ],
        "classes": list(told_apart(diagnosis.truth.categories)),
        "files": shortened([name_of(images, k) for k in range(len(images))]),
        "ids": images.ids.tolist() if images.ids.dtype.kind in "iu" else None,
        "width": packed(sizes[0]),
        "height": packed(sizes[1]),
        "scale": outlines.scale_of(diagnosis.truth),
        "origin": outlines.ORIGIN,
        "perFile": IMAGES_PER_FILE,
        "properties": cases.property_content(shown[0]),
        "overlap": diagnosis.overlap_name,
        "shape": outlines.kind_of(diagnosis.truth.shapes),
        "pictures": pictures,
    }


def _sizes(shown: Sequence[Shown]) -> NDArray[np.int64]:
    """(2, I) width and height of the images; where they are unknown, what the boxes need."""
    images = shown[0].diagnosis.truth.images
    sides = np.stack([images.width, images.height])
    needed = np.ones_like(sides)
    if np.isnan(sides).any():
        tables: list[outlines.Table] = [shown[0].diagnosis.truth]
        for table in [*tables, *(each.diagnosis.detections for each in shown)]:
            box = boxes_as(table.boxes, table.box_format, "xywh")
            np.maximum.at(needed.T, table.image, box[:, :2] + box[:, 2:])
    known = np.where(np.isnan(sides), np.minimum(needed, outlines.LARGEST), sides)
    return np.maximum(np.rint(known), 1).astype(np.int64)


def shortened(names: Sequence[str]) -> list[str]:
    """Names of files below their common folder: the others may be private."""
    parts = [PurePosixPath(name.replace("\\", "/")).parts for name in names]
    levels = zip(*(part[:-1] for part in parts), strict=False)
    depth = len(list(itertools.takewhile(lambda level: len(set(level)) == 1, levels)))
    return ["/".join(part[depth:]) or name for part, name in zip(parts, names, strict=True)]
