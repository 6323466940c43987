"""Reads the rows of a Hugging Face Parquet file: images with a column ``objects``.

Images in the file are only opened for their sizes, and only without columns width and height.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from detmap.core.adapters.joining import image_sizes
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.tabular.csv_parquet import spelled
from detmap.core.base import open_files
from detmap.core.base.arguments import is_number
from detmap.core.base.open_files import shown
from detmap.errors import DataError

OBJECTS = "objects"
IMAGE = "image"
NAMES = ("file_name", "filename", "image_path", "image_name", "path")
IDS = ("image_id", "id")
SIDES = ("width", "height")
NESTING = ("list", "element", "item", "array", "bag")  # parts of a path that are not names
BATCH = 32  # images in memory
TIMES = 2  # bytes of memory that a byte of the file takes: most of it are images
LOOKED_AT = 1 << 20  # bytes at the end of a file


class Record(NamedTuple):
    """An image: its place for messages, name, id, size and objects."""

    where: str
    name: str
    image_id: int | None
    width: float | None
    height: float | None
    objects: Any


def has_objects(path: Path) -> bool:
    """Checks for a column ``objects`` of boxes, by the end of the file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        with open_files.opened(path) as file:  # the reader says that pyarrow is missing
            return OBJECTS.encode() in file.read(max(0, file.size - LOOKED_AT), LOOKED_AT)
    try:
        with open_files.opened(path):
            schema = parquet.read_schema(path)
        return OBJECTS in schema.names and pyarrow.types.is_nested(schema.field(OBJECTS).type)
    except Exception:  # the reader reports the error of the file
        return False


def read(path: Path, wanted: Collection[str]) -> tuple[list[Record], Sequence[str]]:
    """Returns the images of a file, and the names of its classes by number, () if unknown.

    Parameters
    ----------
    path : the file
    wanted : spelled names of the fields of ``objects`` to read

    Raises `DataError` for invalid files, or if pyarrow is missing.
    """
    with csv_parquet.parquet_file(path, times=TIMES) as file:
        schema = file.schema_arrow
        if OBJECTS not in schema.names:
            raise DataError(shown(path), f"no column {OBJECTS}", "give a detection data set")
        leaves = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)]
        rows = file.read(columns=[leaf for leaf in leaves if _is_read(leaf, wanted)]).to_pylist()
        sizes = []
        if not set(SIDES) <= set(schema.names) and f"{IMAGE}.bytes" in leaves:
            batches = file.iter_batches(BATCH, columns=[f"{IMAGE}.bytes"])
            sizes = list(_sizes(batches, shown(path)))
        names = _class_names(schema.metadata or {})
    records = []
    for i, row in enumerate(rows):
        where = f"{shown(path)}: row {i}"
        width, height = sizes[i] if sizes else (side(row, each, where) for each in SIDES)
        image_id = next((row[key] for key in IDS if isinstance(row.get(key), int)), None)
        name = _name(row, image_id, where)
        records.append(Record(where, name, image_id, width, height, row.get(OBJECTS)))
    repeated = len({record.name for record in records}) < len(records)  # "image.jpg" in every row
    if repeated and all(record.image_id is not None for record in records):
        records = [record._replace(name=str(record.image_id)) for record in records]
    return records, names


def _is_read(leaf: str, wanted: Collection[str]) -> bool:
    """Checks if a leaf of the schema has a name, a size, or a field of the objects."""
    top, *parts = leaf.split(".")
    inner = [part for part in parts if part not in NESTING]
    if top == OBJECTS:
        return bool(inner) and spelled(inner[0]) in wanted
    if top == IMAGE:
        return inner in ([], ["path"]) and parts[:1] != ["bytes"]
    return not parts and top in (*NAMES, *IDS, *SIDES)


def _name(row: Mapping[str, Any], image_id: int | None, where: str) -> str:
    """Returns the file name of an image, else its id."""
    image = row.get(IMAGE)
    given = [image.get("path") if isinstance(image, Mapping) else image]
    given += [row.get(key) for key in NAMES]
    name = next((each for each in given if isinstance(each, str) and each), None)
    if name is None and image_id is None:
        fix = f"add a column {NAMES[0]} or {IDS[0]}"
        raise DataError(where, "no path of the image, file name or id", fix)
    return str(image_id) if name is None else name


def side(row: Mapping[str, Any], name: str, where: str) -> float | None:
    """Returns the width or height of an image; None if missing."""
    value = row.get(name)
    if value is None:
        return None
    if not is_number(value):
        raise DataError(f"{where}.{name}", f"{value!r:.60} is not a number", "write pixels")
    return float(value)


def _sizes(batches: Any, source: str) -> Iterator[tuple[float | None, float | None]]:
    """Yields the sizes of images in batches of Parquet; None where there is no image."""
    row = 0
    for batch in batches:
        for image in batch.column(0).to_pylist():
            data = image.get("bytes") if isinstance(image, Mapping) else image
            where = f"{source}: row {row}, image"
            yield image_sizes.from_bytes(data, where) if data else (None, None)
            row += 1


def _class_names(metadata: Mapping[bytes, bytes]) -> Sequence[str]:
    """Returns the names of the only ClassLabel in ``objects``; () if there is none."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"][OBJECTS]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    found = list(_class_labels(features))
    return found[0] if len(found) == 1 else ()


def _class_labels(tree: Any) -> Iterator[list[str]]:
    if isinstance(tree, Mapping):
        names = tree.get("names")
        if tree.get("_type") == "ClassLabel" and isinstance(names, list):
            if all(isinstance(name, str) for name in names):
                yield names
            return
        for value in tree.values():
            yield from _class_labels(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _class_labels(value)
