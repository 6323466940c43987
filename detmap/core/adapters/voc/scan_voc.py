"""The fast reader of simple VOC files: compiled scanners of annotation and text files.

Each function returns exactly what the reference reader (`detmap.core.adapters.voc.devkit`) would,
or None, and then that one reads the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.adapters.voc import annotation_xml
from detmap.core.base import open_files
from detmap.core.base.parallel import map_ordered
from detmap.core.tables import reversed_boxes

LEAST_FILES = 64  # fewer annotation files are not worth it
LEAST_SIZE = 1 << 16  # of a text file
SHORTEST_OBJECT = 100  # bytes of XML
SHORTEST_LINE = 12


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The objects of P annotation files, in order.

    Parameters
    ----------
    size : (P, 2) float64, width and height of each image; NaN if missing
    page : (n,) int32, the file of each object
    name : n class names
    boxes : (n, 4) float64
    difficult : (n,) int8, -1 if missing
    repeats : number of elements repeated with the same content
    """

    size: NDArray[np.float64]
    page: NDArray[np.int32]
    name: list[str]
    boxes: NDArray[np.float64]
    difficult: NDArray[np.int8]
    repeats: int = 0


def scan_pages(files: Sequence[Path]) -> Objects | None:
    """Returns the objects of annotation files, or None for the reference reader."""
    from detmap.kernels.scanning import voc_scan

    if len(files) < LEAST_FILES:
        return None
    batches = [files[i : i + 512] for i in range(0, len(files), 512)]
    try:
        texts = [text for batch in map_ordered(_read_all, batches) for text in batch]
    except open_files.UnreadableError:
        return None
    data = b"".join(texts)
    text = np.frombuffer(data, dtype=np.uint8)
    off = np.concatenate([[0], np.cumsum([len(page) for page in texts])]).astype(np.int64)
    capacity = len(data) // SHORTEST_OBJECT + 1
    pages, open_tags = _buffers(len(files), capacity)
    n = voc_scan.scan_pages(text, off, pages, open_tags)
    if n < 0 or not _good(pages.box[:n]) or reversed_boxes(pages.box[:n], "voc").any():
        return None
    name = [data[begin:end].decode("ascii") for begin, end in pages.name[:n].tolist()]
    return Objects(pages.size, pages.page[:n], name, pages.box[:n], pages.difficult[:n])


def stems_table(stems: Sequence[str]) -> Any:
    """Returns the image stems in the form that `scan_lines` uses."""
    from detmap.kernels.scanning import voc_scan

    spelled = [stem.encode() for stem in stems]
    off = np.concatenate([[0], np.cumsum([len(stem) for stem in spelled])]).astype(np.int64)
    size = 1 << (2 * len(stems)).bit_length()
    table = voc_scan.Stems(
        np.frombuffer(b"".join(spelled), dtype=np.uint8), off, np.empty(size, dtype=np.int32)
    )
    voc_scan.fill_table(table)
    return table


def scan_lines(
    file: Path, stems: Any
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]] | None:
    """Returns image positions, scores and boxes of a text file, or None."""
    from detmap.kernels.scanning import voc_scan

    try:
        data = open_files.read_bytes(file)
    except open_files.UnreadableError:
        return None
    capacity = len(data) // SHORTEST_LINE + 1
    image, score, boxes = (
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity),
        np.empty((capacity, 4)),
    )
    n = voc_scan.scan_lines(np.frombuffer(data, dtype=np.uint8), stems, image, score, boxes)
    if n < 0 or not _good(boxes[:n]):
        return None
    return image[:n], score[:n], boxes[:n]


def _good(boxes: NDArray[np.float64]) -> bool:
    """Checks that every number is a valid pixel coordinate."""
    return bool((np.abs(boxes) <= MAX_PIXEL).all())


def _read_all(files: Sequence[Path]) -> list[bytes]:
    return [open_files.read_bytes(file, most=annotation_xml.LARGEST) for file in files]


def read_nothing() -> None:
    """Calls every kernel of the fast reader once, on an empty text."""
    from detmap.kernels.scanning import voc_scan

    text = np.empty(0, dtype=np.uint8)
    voc_scan.scan_lines(
        text, stems_table(["a"]), np.empty(0, dtype=np.int32), np.empty(0), np.empty((0, 4))
    )
    voc_scan.scan_pages(text, np.zeros(1, dtype=np.int64), *_buffers(0, 0))


def _buffers(n_files: int, capacity: int) -> tuple[Any, Any]:
    """Returns the arrays of the scanner of annotation files: for objects, and for open tags."""
    from detmap.kernels.scanning import voc_scan

    pages = voc_scan.Pages(
        np.empty((n_files, 2)),
        np.empty(capacity, dtype=np.int32),
        np.empty((capacity, 2), dtype=np.int64),
        np.empty((capacity, 4)),
        np.empty(capacity, dtype=np.int8),
    )
    depth = voc_scan.MAX_DEPTH
    tags = voc_scan.OpenTags(np.empty((depth, 2), dtype=np.int64), np.empty(depth, dtype=np.int64))
    return pages, tags
