"""Adapters: files of one format in, box tables out. The path decides which adapter reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import coco, joining, text, voc
from detmap.errors import DataError
from detmap.tables import Detections, Truth

FORMATS = ("coco", "voc")


def read_truth(path: str | Path, *, split: str | None = None, format: str | None = None) -> Truth:
    """Ground truth of a benchmark split.

    Parameters
    ----------
    path : a COCO instances JSON file, or a VOC folder (``VOCdevkit/VOC2007``, with ``Annotations``
        and ``ImageSets``)
    split : of a VOC folder; ``test`` where present, else ``val``, when left out
    format : "coco" or "voc", to override what the path looks like

    Raises
    ------
    DataError : what is wrong, in which file, record and field, and how to fix it
    """
    path = Path(path)
    with _readable(path):
        if _format(path, format) == "voc":
            return voc.read_truth(path, split)
        if split is not None:
            raise DataError(
                str(path),
                f"split {split!r} given for a COCO file",
                "a COCO file holds one split; leave it out",
            )
        return coco.read_truth(path)


def read_detections(path: str | Path, truth: Truth, *, format: str | None = None) -> Detections:
    """A detector's output, joined to the images and classes of its truth.

    Parameters
    ----------
    path : a COCO results JSON file, or a folder of VOC text (``comp4_det_<split>_<class>.txt``)
    truth : what the detections are of; it may come from the other family of files
    format : "coco" or "voc", to override what the path looks like

    Raises
    ------
    DataError : what is wrong, in which file, record and field, and how to fix it
    """
    path = Path(path)
    with _readable(path):
        read = {"coco": coco.read_detections, "voc": voc.read_detections}[_format(path, format)]
        return read(path, truth)


def read_images(path: str | Path, truth: Truth) -> NDArray[np.int32]:
    """Positions of the images that a text file names, one a line, by file stem or by id.

    Raises
    ------
    DataError : no such file, no name in it, a name twice, an image that the truth lacks
    """
    path = Path(path)
    places = {line: " ".join(words) for line, words in text.lines(path)}
    if not places:
        raise DataError(str(path), "names no image", "write one image a line, by file stem or id")
    found = joining.images_by_stem(truth, list(places.values()), str(path))
    seen: set[int] = set()
    for (line, name), image in zip(places.items(), found.tolist(), strict=True):
        if image < 0:
            raise DataError(
                f"{path}: line {line}",
                f"no image {name!r} in {truth.source}",
                "name images by stem or id",
            )
        if image in seen:
            raise DataError(
                f"{path}: line {line}", f"image {name!r} is there twice", "name each image once"
            )
        seen.add(image)
    return found


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What the system refuses to read is bad input."""
    try:
        yield
    except OSError as error:
        raise DataError(
            str(error.filename or path),
            f"cannot be read: {error.strerror}",
            "check the path and its permissions",
        ) from None


def _format(path: Path, wanted: str | None) -> str:
    if wanted is not None and wanted not in FORMATS:
        raise DataError("format", f"no format {wanted!r}", f"the formats are {', '.join(FORMATS)}")
    if not path.exists():
        raise DataError(str(path), "no such file or folder", "check the path")
    looks = "voc" if path.is_dir() else "coco"
    if wanted not in (None, looks):
        kinds = {"voc": "a folder", "coco": "a file"}
        raise DataError(
            str(path),
            f"format {wanted} is {kinds[wanted or looks]}, this is {kinds[looks]}",
            f"give {kinds[wanted or looks]}, or leave the format out",
        )
    return looks
