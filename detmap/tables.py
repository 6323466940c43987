"""Columnar box tables: what the adapters produce and the matcher consumes.

A table is a handful of flat arrays with one row a box, in the order of the file it came from. It
is checked once, when it is made, and frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError
from detmap.rows import rows_of

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


Kind = TypeVar("Kind", bound=np.generic, covariant=True)


class Columns(Mapping[str, NDArray[Kind]], Generic[Kind]):
    """Columns of a table by their name, in the order of the names; read only."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, NDArray[Kind]]) -> None:
        self._columns = {name: columns[name] for name in sorted(columns)}

    def __getitem__(self, name: str) -> NDArray[Kind]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Shapes(Protocol):
    """What objects or detections have beside their boxes (masks, keypoints), row by row."""

    def __len__(self) -> int:
        """How many rows."""

    def take(self, rows: NDArray[Any]) -> Self:
        """Some of the rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """The K classes of a data set, by ascending id.

    Parameters
    ----------
    ids : (K,) int64, ascending and unique
    names : K class names
    groups : K labels of the groups that the classes are in ("r", "c", "f" of LVIS); () where there
        are none
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]
    groups: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Categories):
            return NotImplemented
        return (
            self.names == other.names
            and self.groups == other.groups
            and np.array_equal(self.ids, other.ids)
        )

    def take(self, classes: NDArray[Any]) -> Categories:
        """Some of the classes, given by their positions, which ascend."""
        chosen = classes.tolist()
        groups = tuple(self.groups[k] for k in chosen) if self.groups else ()
        return Categories(self.ids[classes], tuple(self.names[k] for k in chosen), groups)

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

    def take(self, images: NDArray[Any]) -> Images:
        """Some of the images, given by their positions, which ascend."""
        stems = tuple(self.stems[i] for i in images.tolist())
        return Images(self.ids[images], stems, self.width[images], self.height[images])


ABSENT, NOT_EXHAUSTIVE = 1, 2
"""Kinds of a pair of image and class in a `Scope`: the class is known not to be on the image; not
every object of the class on the image is in the truth."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What a truth that is not annotated everywhere says of pairs of image and class, by image.

    Parameters
    ----------
    off : (I + 1,) int64, where each image's pairs begin
    label : (P,) int32, position of the class, ascending within an image
    kind : (P,) uint8, `ABSENT` or `NOT_EXHAUSTIVE`
    """

    off: NDArray[np.int64]
    label: NDArray[np.int32]
    kind: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.label)

    def on(self, images: NDArray[Any]) -> Scope:
        """The pairs of some images, given by their positions."""
        rows, off = rows_of(self.off, images)
        return Scope(off, self.label[rows], self.kind[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Ground truth of one split: G objects on I images in K classes, rows in file order.

    Parameters
    ----------
    images, categories : what `image` and `label` point into
    image, label : (G,) int32, positions in `images` and `categories`
    boxes : (G, 4) float64 in `box_format`, pixels
    roles : (G,) bool each, by name: "crowd" (COCO), "difficult" (VOC), "ignore" or any other that a
        protocol gives a meaning; nobody has a role that is not there
    attributes : (G,) float64 each, by name; "area" is always there: square pixels, the annotation's
        own where it gives one
    box_format : see `BoxFormat`
    family : "coco" or "voc", the kind of files it came from
    year : of a VOC tree, 0 where unknown
    split : of a VOC tree, "" elsewhere
    source : the path it was read from, for messages
    notes : what the reader of the numbers should know about this truth
    scope : which pairs of image and class are annotated; None where all are
    shapes : G masks or keypoints; None where there are boxes alone
    """

    images: Images
    categories: Categories
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    roles: Mapping[str, NDArray[np.bool_]]
    attributes: Mapping[str, NDArray[np.float64]]
    box_format: BoxFormat
    family: Literal["coco", "voc"]
    year: int = 0
    split: str = ""
    source: str = "truth"
    notes: tuple[Note, ...] = ()
    scope: Scope | None = None
    shapes: Shapes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", Columns(self.roles))
        object.__setattr__(self, "attributes", Columns(self.attributes))

    def __len__(self) -> int:
        return len(self.label)

    def role(self, name: str) -> NDArray[np.bool_]:
        """(G,) bool, which objects have a role."""
        return self.roles[name] if name in self.roles else np.zeros(len(self), dtype=bool)

    @property
    def area(self) -> NDArray[np.float64]:
        """(G,) float64, square pixels."""
        return self.attributes["area"]

    @property
    def crowd(self) -> NDArray[np.bool_]:
        """(G,) bool, the flag of COCO for an area of many objects."""
        return self.role("crowd")

    @property
    def difficult(self) -> NDArray[np.bool_]:
        """(G,) bool, the flag of VOC for what need not be found."""
        return self.role("difficult")

    def take(self, rows: NDArray[Any]) -> Truth:
        """Some of the objects, on the same images."""
        return replace(
            self,
            image=self.image[rows],
            label=self.label[rows],
            boxes=self.boxes[rows],
            roles=_taken(self.roles, rows),
            attributes=_taken(self.attributes, rows),
            shapes=None if self.shapes is None else self.shapes.take(rows),
        )

    def on(self, images: NDArray[Any], rows: NDArray[Any] | None = None) -> Truth:
        """The truth of some of the images.

        Parameters
        ----------
        images : (n,) positions of images, ascending
        rows : the objects on them, where they are known already
        """
        taken = self.take(_rows_on(self.image, images) if rows is None else rows)
        return replace(
            taken,
            images=self.images.take(images),
            image=np.searchsorted(images, taken.image).astype(np.int32),
            scope=None if self.scope is None else self.scope.on(images),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """A detector's output on the images of a `Truth`: D rows in file order.

    Parameters
    ----------
    images, categories : of the truth that they were read against, what `image` and `label` point
        into
    image, label : (D,) int32, positions in `images` and `categories`
    boxes : (D, 4) float64 in `box_format`, pixels
    score : (D,) float64, finite; higher is surer
    box_format : see `BoxFormat`
    source : the path it was read from, for messages
    notes : what was dropped and why, what is odd
    shapes : D masks or keypoints; None where there are boxes alone
    """

    images: Images
    categories: Categories
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]
    box_format: BoxFormat
    source: str = "detections"
    notes: tuple[Note, ...] = ()
    shapes: Shapes | None = None

    def __len__(self) -> int:
        return len(self.score)

    def take(self, rows: NDArray[Any]) -> Detections:
        """Some of the detections, on the same images."""
        return replace(
            self,
            image=self.image[rows],
            label=self.label[rows],
            boxes=self.boxes[rows],
            score=self.score[rows],
            shapes=None if self.shapes is None else self.shapes.take(rows),
        )

    def on(self, images: NDArray[Any], rows: NDArray[Any] | None = None) -> Detections:
        """The detections on some of the images; as `Truth.on`."""
        taken = self.take(_rows_on(self.image, images) if rows is None else rows)
        return replace(
            taken,
            images=self.images.take(images),
            image=np.searchsorted(images, taken.image).astype(np.int32),
        )


def truth_key(table: Truth | Detections) -> str:
    """Twelve hexadecimal digits over the image ids and the classes that a table points into: two
    tables with the same key belong together.
    """
    hashed = sha256(repr(table.images.ids.tolist()).encode())
    hashed.update(repr((table.categories.ids.tolist(), table.categories.names)).encode())
    return hashed.hexdigest()[:12]


def _taken(columns: Mapping[str, NDArray[Kind]], rows: NDArray[Any]) -> Columns[Kind]:
    return Columns({name: column[rows] for name, column in columns.items()})


def _rows_on(image: NDArray[np.int32], images: NDArray[Any]) -> NDArray[np.int64]:
    """The rows that are on some of the images."""
    return np.flatnonzero(np.isin(image, images))


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
