"""Runs a tool of `detmap.reproducibility.peers` in this process without output, and reports its
errors.
"""

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from detmap.core.base import atomic_files, parallel
from detmap.core.tables import Detections, Truth, boxes_as
from detmap.errors import DataError, DetmapError, hint
from detmap.reproducibility.peers import Classes, Peer, Settings, numbers


class Found(NamedTuple):
    """The numbers of a tool.

    Parameters
    ----------
    stats : in the order of its protocol's metrics, -1 where undefined; empty with changed settings
    arrays : as in pycocotools
    classes : column -> class id or name -> value
    seconds : from files to numbers
    """

    stats: list[float]
    arrays: Mapping[str, Any]
    classes: Classes
    seconds: float


class StoppedError(Exception):
    """A tool raised an error."""


def imported(peer: Peer) -> str:
    """Imports a tool and returns its version.

    Raises
    ------
    DetmapError : it is not installed, cannot be imported, or is detmap's own drop-in
    """
    top = peer.module.partition(".")[0]
    try:
        with silence():
            import_module(peer.module)
    except Exception as error:
        fix = hint("parity") if peer.name == "pycocotools" else f"pip install {peer.name}"
        if isinstance(error, ModuleNotFoundError) and error.name == top:
            raise DetmapError(peer.name, "not installed, and this runs it", fix) from None
        what = f"is installed but cannot be imported ({_words(error)})"
        raise DetmapError(peer.name, what, f"pip install --force-reinstall {peer.name}") from None
    official = sys.modules.get("pycocotools.cocoeval")
    if getattr(getattr(official, "COCOeval", None), "__module__", "").startswith("detmap."):
        what = "pycocotools is replaced by detmap's drop-in"
        raise DetmapError("parity", what, "undo patch_pycocotools() first")
    return peer.installed() or "of unknown version"


def run(
    peer: Peer, files: tuple[str, str], kind: str, n_classes: int, settings: Settings | None
) -> Found:
    """Runs a tool on two COCO files.

    Raises
    ------
    StoppedError : the tool raised an error
    """
    try:
        with silence():
            begin = time.perf_counter()
            truth = files[0] if peer.paths else peer.truth(files[0])
            own = peer.run(truth, files[1], parallel.default_threads(), kind, settings)
            stats = numbers(peer.stats(own)) if settings is None else []
            seconds = time.perf_counter() - begin
            classes = peer.classes(own) if settings is None else {}
            return Found(stats, peer.arrays(own, n_classes), classes, seconds)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a panic of Rust code is no Exception, nor is sys.exit
        raise StoppedError(_words(error)) from None


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppresses warnings and output, that of compiled code included."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        nowhere = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        for stream in streams:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        for number in (1, 2):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(nowhere.fileno(), number)
        yield


@contextlib.contextmanager
def coco_files(truth: Truth, detections: Detections) -> Iterator[tuple[str, str]]:
    """Writes the tables as two temporary COCO files."""
    with atomic_files.temporary_folder() as folder:
        paths = folder / "truth.json", folder / "detections.json"
        for path, content in zip(paths, to_coco(truth, detections), strict=True):
            path.write_text(json.dumps(content, allow_nan=False), encoding="ascii")
        yield str(paths[0]), str(paths[1])


def to_coco(truth: Truth, detections: Detections) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Converts the tables to COCO instances and results.

    Images, classes and annotations count from 1, in table order; ignored objects become crowds.

    Raises
    ------
    DataError : masks or keypoints, whose original form is not kept
    """
    if truth.shapes is not None:
        what = "holds masks or keypoints, which tools get as COCO files only"
        raise DataError(truth.source, what, "write truth and detections as COCO does")
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh").tolist()
    crowd = (truth.crowd | truth.difficult).astype(int).tolist()
    objects = zip(truth.image, truth.label, boxes, truth.area.tolist(), crowd, strict=True)
    annotations = [
        {
            "id": i,
            "image_id": int(image) + 1,
            "category_id": int(label) + 1,
            "bbox": box,
            "area": area,
            "iscrowd": flag,
        }
        for i, (image, label, box, area, flag) in enumerate(objects, 1)
    ]
    found = zip(
        detections.image,
        detections.label,
        boxes_as(detections.boxes, detections.box_format, "xywh").tolist(),
        detections.score.tolist(),
        strict=True,
    )
    results = [
        {"image_id": int(image) + 1, "category_id": int(label) + 1, "bbox": box, "score": score}
        for image, label, box, score in found
    ]
    instances = {
        "images": [
            {"id": i, "file_name": f"{i}.jpg", "width": w, "height": h}
            for i, (w, h) in enumerate(_sizes(truth), 1)
        ],
        "annotations": annotations,
        "categories": [{"id": k, "name": name} for k, name in enumerate(truth.categories.names, 1)],
    }
    return instances, results


def _sizes(truth: Truth) -> list[tuple[int, int]]:
    """Width and height of each image; 1 if unknown, as boxes do not need them."""
    import numpy as np

    columns = (np.nan_to_num(side, nan=1.0) for side in (truth.images.width, truth.images.height))
    return [(int(w), int(h)) for w, h in zip(*columns, strict=True)]
