"""Small numbered copies of the images, or links to them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse.cases import Shown
from detmap.analysis.browse.columns import packed
from detmap.analysis.diagnosis.operating_sweep import found_from
from detmap.analysis.html_report.image_files import Pictures, small_jpeg
from detmap.errors import DataError

SIDE, SMALLEST, LARGEST = 480, 64, 8192
"""Longest side of a copy in pixels: default and limits."""
MOST_COPIES = 5000
SAMPLED = 8  # copies whose mean size estimates that of all
Say = Callable[[str], None]
Count = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How pictures get into the folder.

    Parameters
    ----------
    folder : of the images; None for sketches
    link : whether to link to the files instead of copying them
    side : longest side of a copy, in pixels
    """

    folder: Path | None = None
    link: bool = False
    side: int = SIDE


def write_pictures(
    wanted: Wanted, shown: Sequence[Shown], place: Path, draft: Path, say: Say, count: Count
) -> tuple[dict[str, Any], list[str]]:
    """Returns how the browser finds the pictures of a report at `place`, and notes; writes copies
    into `draft`.

    Raises
    ------
    DataError : there is no folder of images; or there is no relative path to it
    """
    if wanted.folder is None:
        return {"kind": "none"}, []
    files, images = Pictures(wanted.folder), shown[0].diagnosis.truth.images
    if wanted.link:
        found = [files.paths(images, k) for k in range(len(images))]
        return {"kind": "links", "links": [_link(each, place) for each in found]}, []
    order, notes = _most_errors_first(shown)[:MOST_COPIES], []
    if len(order) < len(images):
        notes = [
            f"{len(order):,} of {len(images):,} images are copied, those with most errors; "
            "the others are shown as sketches (--link shows all)"
        ]
    have, size = np.zeros(len(images), dtype=np.uint8), 0
    (draft / "img").mkdir()
    for n, k in enumerate(order.tolist(), 1):
        data = small_jpeg(files.read(images, k, wanted.side), wanted.side)
        if data:
            (draft / "img" / f"{k + 1:06d}.jpg").write_bytes(data)
            size, have[k] = size + len(data), 1
        if n == min(SAMPLED, len(order)) and size:
            about = size / int(have.sum()) * len(order) / 1e6
            say(f"copying {len(order):,} images, about {about:.2g} MB")
        if n >= SAMPLED:  # a line that is updated, below that of the size
            count(n, len(order))
    return {"kind": "copies", "have": packed(have)}, [*notes, *files.notes()]


def _link(paths: Sequence[Path], place: Path) -> str:
    """The relative address of an image, "" if it is missing or ambiguous."""
    if len(paths) != 1:
        return ""
    try:
        path = os.path.relpath(paths[0].resolve(), place.resolve())
    except ValueError:  # another drive on Windows
        what = "is on another drive than the report, so a link to it cannot be relative"
        raise DataError(str(paths[0]), what, "leave out --link to copy") from None
    return "/".join(quote(part, errors="surrogateescape") for part in Path(path).parts)


def _most_errors_first(shown: Sequence[Shown]) -> NDArray[np.int64]:
    """(I,) images by the errors of the detector that has most there, then by the objects that only
    one detector matches.
    """
    truth = shown[0].diagnosis.truth
    n = len(truth.images)
    matched = [found_from(each.diagnosis, each.best) for each in shown]
    errors = np.zeros(n, dtype=np.int64)
    for each, found in zip(shown, matched, strict=True):
        diagnosis, detections = each.diagnosis, each.diagnosis.detections
        wrong = ~diagnosis.ignored & (diagnosis.kind > 0) & (detections.score >= each.best)
        own = np.bincount(detections.image[wrong], minlength=n)
        lost = np.bincount(truth.image[diagnosis.to_find & ~found], minlength=n)
        errors = np.maximum(errors, own + lost)
    apart = np.bincount(truth.image[matched[0] != matched[-1]], minlength=n)
    return np.lexsort((-apart, -errors))
