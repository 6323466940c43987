"""Small numbered copies of the images, or links to them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
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


@dataclass(eq=False)
class Copies:
    """The pictures of a report.

    Parameters
    ----------
    wanted : how they get into the folder
    shown : each detector
    """

    wanted: Wanted
    shown: Sequence[Shown]
    notes: list[str] = field(default_factory=list)

    def content(self, place: Path) -> dict[str, Any]:
        """Returns how the browser finds the pictures of a report at `place`, before copying.

        Raises
        ------
        DataError : there is no folder of images; or there is no relative path to it
        """
        if self.wanted.folder is None:
            return {"kind": "none"}
        if self.wanted.link:
            return {"kind": "links", "links": list(self._links(place))}
        return {"kind": "copies"}

    def _links(self, place: Path) -> Iterator[str]:
        files = Pictures(self.wanted.folder)
        images = self.shown[0].diagnosis.truth.images
        for k in range(len(images)):
            paths = files.paths(images, k)
            if len(paths) != 1:
                yield ""
                continue
            try:
                path = os.path.relpath(paths[0].resolve(), place.resolve())
            except ValueError:  # another drive on Windows
                what = "is on another drive than the report, so a link to it cannot be relative"
                raise DataError(str(paths[0]), what, "leave out --link to copy") from None
            yield "/".join(quote(part, errors="surrogateescape") for part in Path(path).parts)

    def write(self, place: Path, say: Say, count: Count) -> dict[str, Any]:
        """Writes the copies into a folder and returns which images have one."""
        images = self.shown[0].diagnosis.truth.images
        order = self._order()[:MOST_COPIES]
        if len(order) < len(images):
            self.notes.append(
                f"{len(order):,} of {len(images):,} images are copied, those with most errors; "
                "the others are shown as sketches (--link shows all)"
            )
        files, have = Pictures(self.wanted.folder), np.zeros(len(images), dtype=np.uint8)
        place.mkdir()
        size, done = 0, 0
        for n, k in enumerate(order.tolist(), 1):
            data = small_jpeg(files.read(images, k, self.wanted.side), self.wanted.side)
            if data:
                (place / f"{k + 1:06d}.jpg").write_bytes(data)
                size, done = size + len(data), done + 1
                have[k] = 1
            if n == min(SAMPLED, len(order)) and done:
                about = size / done * len(order) / 1e6
                say(f"copying {len(order):,} images, about {about:.2g} MB")
            count(n, len(order))
        self.notes += files.notes()
        return {"kind": "copies", "have": packed(have)}

    def _order(self) -> NDArray[np.int64]:
        """(I,) images with most errors of a detector first, then with most objects that only one
        detector matches.
        """
        truth = self.shown[0].diagnosis.truth
        n = len(truth.images)
        matched = [found_from(each.diagnosis, each.best) for each in self.shown]
        errors, apart = np.zeros(n, dtype=np.int64), matched[0] != matched[-1]
        for each, found in zip(self.shown, matched, strict=True):
            diagnosis = each.diagnosis
            wrong = ~diagnosis.ignored & (diagnosis.kind > 0)
            wrong &= diagnosis.detections.score >= each.best
            lost = truth.image[diagnosis.to_find & ~found]
            own = np.bincount(diagnosis.detections.image[wrong], minlength=n)
            errors = np.maximum(errors, own + np.bincount(lost, minlength=n))
        return np.lexsort((-np.bincount(truth.image[apart], minlength=n), -errors))
