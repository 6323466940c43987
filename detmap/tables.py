"""Columnar box tables: what the adapters produce and the matcher consumes.

A table is a handful of flat arrays with one row a box, in the order of the file it came from. It
is checked once, when it is made, and frozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError

BoxFormat = Literal["xywh", "voc"]
"""``xywh``: left, top, width, height in continuous coordinates from 0 (COCO). ``voc``: x1, y1,
x2, y2 of the first and last pixel, counted from 1 and both inside the box (PASCAL VOC)."""

MAX_ROWS = 2**31 - 1


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something a careful reader of the result wants to know.

    Parameters
    ----------
    code : stable name of the kind of remark (``area-missing``)
    text : what follows the count in a sentence
    count : how many records it is about
    source : the input that it was noticed in; "" for the evaluation as a whole
    """

    code: str
    text: str
    count: int
    source: str = ""

    def __str__(self) -> str:
        return f"{self.count} {self.text}"


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """The K classes of a data set, by ascending id.

    Parameters
    ----------
    ids : (K,) int64, ascending and unique
    names : K class names
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Categories):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.ids, other.ids)

    def index(self, name_or_id: str | int) -> int:
        """Position of a class by its unique name or its id; any other is a `DataError` that
        lists the known.
        """
        if isinstance(name_or_id, str):
            if self.names.count(name_or_id) == 1:
                return self.names.index(name_or_id)
        else:
            found = np.flatnonzero(self.ids == name_or_id)
            if found.size:
                return int(found[0])
        raise DataError(
            "class", f"no class {name_or_id!r}", f"the classes are {', '.join(self.names)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """The I images of a split, by ascending id.

    Parameters
    ----------
    ids : (I,) int64 or str, ascending and unique; a VOC image's id is its file stem
    stems : I file stems, by which text detections name an image ("" where the truth names no file)
    width, height : (I,) float64, pixels; NaN where the truth does not say
    """

    ids: NDArray[Any]
    stems: tuple[str, ...]
    width: NDArray[np.float64]
    height: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Ground truth of one split: G objects on I images in K classes, rows in file order.

    Parameters
    ----------
    images, categories : what `image` and `label` point into
    image, label : (G,) int32, positions in `images` and `categories`
    boxes : (G, 4) float64 in `box_format`, pixels
    area : (G,) float64, square pixels: the annotation's own area where it gives one
    crowd, difficult : (G,) bool, the neutral flags of COCO and of VOC
    box_format : see `BoxFormat`
    family : "coco" or "voc", the kind of files it came from
    year : of a VOC tree, 0 where unknown
    split : of a VOC tree, "" elsewhere
    source : the path it was read from, for messages
    notes : what the reader of the numbers should know about this truth
    """

    images: Images
    categories: Categories
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    area: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    difficult: NDArray[np.bool_]
    box_format: BoxFormat
    family: Literal["coco", "voc"]
    year: int = 0
    split: str = ""
    source: str = "truth"
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """A detector's output on the images of a `Truth`: D rows in file order.

    Parameters
    ----------
    image, label : (D,) int32, positions in the truth's images and categories
    boxes : (D, 4) float64 in `box_format`, pixels
    score : (D,) float64, finite; higher is surer
    box_format : see `BoxFormat`
    source : the path it was read from, for messages
    notes : what was dropped and why, what is odd
    """

    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]
    box_format: BoxFormat
    source: str = "detections"
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """Truth and scores of N samples in K classes: what an image classifier is judged by.

    Parameters
    ----------
    ids : N sample names, in the order of the truth
    classes : K class names, in the order of the truth
    positive : (N, K) bool, whether the sample shows the class
    score : (N, K) float64, finite or -inf (no prediction); higher is surer
    counted : (N, K) bool, False where the truth leaves the sample out of the class (VOC:
        difficult); None where nothing is
    family : "csv" or "voc", the kind of files it came from
    year : of a VOC tree, 0 where unknown
    split : of a VOC tree, "" elsewhere
    source : the path of the truth, for messages
    notes : what the reader of the numbers should know about these data
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    positive: NDArray[np.bool_]
    score: NDArray[np.float64]
    counted: NDArray[np.bool_] | None = None
    family: Literal["csv", "voc"] = "csv"
    year: int = 0
    split: str = ""
    source: str = "truth"
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


class Positions:
    """Where wanted ids stand in an ascending array of known ids; -1 where they do not.

    Parameters
    ----------
    known : (n,) ids, ascending and unique, integers or strings
    """

    def __init__(self, known: NDArray[Any]) -> None:
        self.known = known
        self.table: NDArray[np.int32] | None = None
        if (
            known.dtype.kind in "iu"
            and len(known)
            and int(known[-1]) - int(known[0]) < (1 << 20) + 64 * len(known)
        ):
            self.low = int(known[0])  # a table beats a binary search
            self.table = np.full(int(known[-1]) - self.low + 1, -1, dtype=np.int32)
            self.table[known - self.low] = np.arange(len(known), dtype=np.int32)

    def __call__(self, wanted: NDArray[Any]) -> NDArray[np.int32]:
        """(m,) int32 positions of (m,) ids."""
        if not len(self.known) or not len(wanted):
            return np.full(len(wanted), -1, dtype=np.int32)
        if self.table is not None and wanted.dtype.kind in "iu":
            place = self.table.take(wanted - self.low, mode="clip")
            if wanted.min() < self.low or wanted.max() > self.known[-1]:
                place[(wanted < self.low) | (wanted > self.known[-1])] = -1
            return place
        nearest = np.minimum(np.searchsorted(self.known, wanted), len(self.known) - 1)
        return np.where(self.known[nearest] == wanted, nearest, -1).astype(np.int32)


def positions(known: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int32]:
    """`Positions` for a single use."""
    return Positions(known)(wanted)


def boxes_as(
    boxes: NDArray[np.float64], given: BoxFormat, wanted: BoxFormat
) -> NDArray[np.float64]:
    """Boxes in another convention; the same array where the convention is the same.

    A VOC box ``x1 y1 x2 y2`` is ``x1-1, y1-1, x2-x1+1, y2-y1+1`` in COCO terms: VOC counts
    pixels from 1 and its last pixel belongs to the box. Whole and half pixels convert exactly;
    other fractions may move by one rounding.
    """
    if given == wanted:
        return boxes
    out = np.empty_like(boxes)
    if wanted == "xywh":
        out[:, :2] = boxes[:, :2] - 1
        out[:, 2:] = boxes[:, 2:] - boxes[:, :2] + 1
    else:
        out[:, :2] = boxes[:, :2] + 1
        out[:, 2:] = boxes[:, :2] + boxes[:, 2:]
    return out
