"""Reads LabelMe: a JSON file an image, in a folder with the images or without them.

A rectangle has two corners in the order of the mouse, or four (X-AnyLabeling), in continuous pixels
from 0. Polygons, masks and circles (center, point on the edge) are read as the boxes around them;
points and lines have no box. Notes count both. ``imagePath`` names the image, also by a relative
path or one of Windows. Flags of a shape are roles by name. A shape with ``score`` (AnyLabeling) may
be a detection.

Source: wkentaro/labelme, labelme/label_file.py and shape.py.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from detmap.annotation_tools import export_tables, typed_json
from detmap.annotation_tools.export_tables import Export
from detmap.core.adapters import folder_files
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a LabelMe file has shapes (each with label and points), imagePath, imageWidth, imageHeight"
AROUND = ("polygon", "mask", "circle")
OTHERS = ("point", "points", "line", "linestrip")
NOTES = {
    "shape-around": "shapes are polygons, masks or circles: the boxes around them are used",
    "shape-without-box": "shapes are points or lines and are ignored",
    "images-unannotated": "images in the folder have no JSON file: read as images without objects",
}
LOOKED_AT, FILES_LOOKED_AT = 1 << 12, 40  # bytes, files
_SHAPES = re.compile(rb'^\s*\{.*"shapes"\s*:\s*\[', re.DOTALL)


class _Shape(msgspec.Struct, gc=False):
    label: str
    points: list[tuple[float, float]]
    shape_type: str | None = None
    flags: dict[str, Any] | None = None
    score: float | None = None


class _File(msgspec.Struct, gc=False, rename="camel"):
    shapes: list[_Shape]
    image_path: str | None = None
    image_width: float | None = None
    image_height: float | None = None


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    return 3 * bool(_SHAPES.search(next(_heads(path), b"")))


def detections_look(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    heads = itertools.takewhile(_SHAPES.search, itertools.islice(_heads(path), FILES_LOOKED_AT))
    drawn = next((head for head in heads if b'"points"' in head), b"")  # an image may have none
    return 3 * (b'"score"' in drawn)


def _heads(path: Path) -> Iterator[bytes]:
    """Yields the beginning of the file, or of the JSON files of a folder."""
    names = sorted(folder_files.names(path, ".json"))
    for file in [path / name for name in names] if path.is_dir() else [path]:
        if file.suffix.lower() == ".json":
            yield open_files.head(file, LOOKED_AT)


def read_truth(path: Path, roles: Sequence[str] = (), attributes: Sequence[str] = ()) -> Truth:
    """Reads the shapes of all files as ground truth.

    Images of the folder without a file have no objects; a note counts them.

    Parameters
    ----------
    path : the folder, or one file
    roles, attributes : names of shape flags to read

    Raises `DataError` for invalid files and shapes.
    """
    export, shapes = _read(path, with_images=True)
    flags = [shape.flags or {} for shape in shapes]
    return export.truth((), *export_tables.named_values(flags, roles, attributes, export.place))


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads shapes with a score as detections.

    Raises `DataError` for shapes without a score and as `read_truth`.
    """
    export, shapes = _read(path, with_images=False)
    score = np.array([shape.score for shape in shapes], dtype=np.float64)
    return export.detections(truth, score, policy)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return folder_files.listed(path, ".json")


def _read(path: Path, *, with_images: bool) -> tuple[Export, list[_Shape]]:
    """Returns the boxes of all files, and the shape of each."""
    files = _files(path)
    if not files:
        raise DataError(shown(path), "no .json files", "give the folder with LabelMe's files")
    pages = [typed_json.decoded(file, _File, FORM) for file in files]
    names = [_name(page, file) for page, file in zip(pages, files, strict=True)]
    _refuse_repeated(names, files)
    more = _without_file(path, names) if with_images and path.is_dir() else []
    source = shown(path)
    unknown = [math.nan] * len(more)
    width = [math.nan if p.image_width is None else p.image_width for p in pages]
    height = [math.nan if p.image_height is None else p.image_height for p in pages]
    counts = Counter({"images-unannotated": len(more)})
    boxes, image, kept, spots = [], [], [], []
    for i, page in enumerate(pages):
        for j, shape in enumerate(page.shapes):
            where = f"{shown(files[i])}: shapes[{j}]"
            kind = shape.shape_type or ("rectangle" if len(shape.points) == 2 else "polygon")
            if kind in OTHERS:
                counts["shape-without-box"] += 1
                continue
            counts["shape-around"] += kind in AROUND
            boxes.append(_box(shape, kind, where))
            image.append(i)
            kept.append(shape)
            spots.append(where)
    noted = ((code, text, counts[code]) for code, text in NOTES.items())
    export = Export(
        source,
        [*names, *more],
        export_tables.sides([*names, *more], [*width, *unknown], [*height, *unknown], source),
        image,
        [shape.label for shape in kept],
        np.array(boxes, dtype=np.float64).reshape(-1, 4),
        "xyxy",
        spots.__getitem__,
        (*export_tables.notes(source, noted), *folder_files.unread(path, ".json")),
    )
    return export, kept


def _name(page: _File, file: Path) -> str:
    """Returns the name of a file's image: the last part of imagePath, else that of the file."""
    last = (page.image_path or "").replace("\\", "/").rpartition("/")[2]
    return last or shown(file.with_suffix("").name)


def _refuse_repeated(names: Sequence[str], files: Sequence[Path]) -> None:
    """Raises `DataError` if two files have one image."""
    file_of: dict[str, Path] = {}
    for name, file in zip(names, files, strict=True):
        other = file_of.setdefault(image_names.stem(name), file)
        if other != file:
            what = f"imagePath {name!r:.200} is that of {shown(other)} too"
            raise DataError(shown(file), what, "remove one, or correct its imagePath")


def _without_file(folder: Path, names: Sequence[str]) -> list[str]:
    """Returns images of a folder that no JSON file names."""
    stems = set(map(image_names.stem, names))
    images = [file.name for file in folder_files.images(folder)]
    return [name for name in images if image_names.stem(name) not in stems]


def _box(shape: _Shape, kind: str, where: str) -> tuple[float, float, float, float]:
    """Returns left, top, right and bottom of a shape."""
    if not shape.label.strip():
        raise DataError(f"{where}.label", "empty", "give every shape a label")
    if kind not in ("rectangle", *AROUND):
        fix = f"the types are rectangle, {', '.join((*AROUND, *OTHERS))}"
        raise DataError(f"{where}.shape_type", f"{kind!r:.60} is not known", fix)
    count = len(shape.points)
    least = 3 if kind == "polygon" else 2
    corners = kind == "rectangle" and count == 4  # of X-AnyLabeling
    if count < least or (kind != "polygon" and count != least and not corners):
        needed = "at least 3 points" if kind == "polygon" else "2 points"
        what = f"{len(shape.points)} points, a {kind} has {needed}"
        raise DataError(f"{where}.points", what, "draw the shape again or remove it")
    x, y = zip(*shape.points, strict=True)
    if kind == "circle":
        radius = math.hypot(x[1] - x[0], y[1] - y[0])
        return x[0] - radius, y[0] - radius, x[0] + radius, y[0] + radius
    return min(x), min(y), max(x), max(y)
