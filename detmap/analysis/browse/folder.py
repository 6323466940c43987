"""The files of the browser: data, code, page."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse import cases
from detmap.analysis.browse.cases import LARGEST, ORIGIN, Shown, scale_of
from detmap.analysis.browse.columns import packed, script
from detmap.analysis.browse.outlines import kind_of, outline_content, outlines
from detmap.analysis.diagnosis.analysis import BEYOND
from detmap.analysis.diagnosis.class_labels import told_apart
from detmap.analysis.html_report.image_files import name_of
from detmap.core.tables import Detections, Truth, boxes_as
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
    for k, begin in enumerate(range(0, n_images, IMAGES_PER_FILE)):
        some = range(begin, min(begin + IMAGES_PER_FILE, n_images))
        name = f"box{k:03d}"
        yield f"data/{name}.js", script(name, _box_content(shown, some))
    yield "data/meta.js", script("meta", _meta(every, title, pictures))


def _box_content(shown: list[Shown], images: range) -> dict[str, Any]:
    """Boxes of detections, and outlines of detections and objects, on some images."""
    content: dict[str, Any] = {"detectors": cases.box_content(shown, images)}
    truth = shown[0].diagnosis.truth
    if not kind_of(truth.shapes):
        return content
    frame = (scale_of(truth), ORIGIN, LARGEST)
    objects = _rows_on(truth.image, shown[0].objects, images)
    content["truth"] = outline_content(outlines(truth.shapes, objects), *frame)
    for each, columns in zip(shown, content["detectors"], strict=True):
        detections = each.diagnosis.detections
        if kind_of(detections.shapes):
            rows = _rows_on(detections.image, each.rows, images)
            columns["outline"] = outline_content(outlines(detections.shapes, rows), *frame)
    return content


def _rows_on(image: NDArray[np.int32], rows: NDArray[np.int64], images: range) -> NDArray[np.int64]:
    """Of rows by image those on some images."""
    return rows[slice(*np.searchsorted(image[rows], (images.start, images.stop)))]


def _meta(every: Mapping[str, Shown], title: str, pictures: Mapping[str, Any]) -> dict[str, Any]:
    first = next(iter(every.values()))
    diagnosis = first.diagnosis
    images = diagnosis.truth.images
    width, height = _sizes(list(every.values()))
    return {
        "title": title,
        "version": __version__,
        "detectors": [
            {"name": name, "best": each.best, "exact": each.exact}
            | {"floor": each.floor, "of": _listed(each)}
            for name, each in every.items()
        ],
        "classes": list(told_apart(diagnosis.truth.categories)),
        "files": shortened([name_of(images, k) for k in range(len(images))]),
        "ids": images.ids.tolist() if images.ids.dtype.kind in "iu" else None,
        "width": packed(width),
        "height": packed(height),
        "scale": scale_of(diagnosis.truth),
        "origin": ORIGIN,
        "perFile": IMAGES_PER_FILE,
        "properties": cases.property_content(first),
        "iou": diagnosis.iou,
        "overlap": diagnosis.overlap_name,
        "shape": kind_of(diagnosis.truth.shapes),
        "pictures": pictures,
    }


def _listed(some: Shown) -> int:
    return int(np.count_nonzero(some.diagnosis.kind != BEYOND))


def _sizes(shown: Sequence[Shown]) -> list[NDArray[np.int64]]:
    """Width and height of the images; where they are unknown, what the boxes need."""
    images, found = shown[0].diagnosis.truth.images, []
    tables: list[Truth | Detections] = [shown[0].diagnosis.truth]
    tables += [each.diagnosis.detections for each in shown]
    for axis, sides in enumerate((images.width, images.height)):
        side = np.nan_to_num(sides)
        if np.isnan(sides).any():
            needed = np.ones(len(images))
            for table in tables:
                box = boxes_as(table.boxes, table.box_format, "xywh")
                np.maximum.at(needed, table.image, box[:, axis] + box[:, axis + 2])
            side = np.where(np.isnan(sides), np.minimum(needed, LARGEST), sides)
        found.append(np.maximum(np.rint(side), 1).astype(np.int64))
    return found


def shortened(names: Sequence[str]) -> list[str]:
    """Names of files below their common folder: the others may be private."""
    parts = [PurePosixPath(name.replace("\\", "/")).parts for name in names]
    depth = 0
    folders = [part[:-1] for part in parts]
    shortest = min(folders, key=len, default=())
    while depth < len(shortest) and all(f[depth] == shortest[depth] for f in folders):
        depth += 1
    return ["/".join(part[depth:]) or name for part, name in zip(parts, names, strict=True)]
