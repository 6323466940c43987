"""Columnar box tables: adapters create them, the matcher reads them.

A table holds flat arrays with one row per box, in file order. It is checked once and frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    Protocol,
    Self,
    TypeVar,
    get_args,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.base.immutable import Immutable, keep
from detmap.core.base.reprs import outlined
from detmap.core.base.sha import sha256
from detmap.core.base.suggestions import ProposesNames
from detmap.core.tables.catalog import ABSENT as ABSENT
from detmap.core.tables.catalog import DERIVED as DERIVED
from detmap.core.tables.catalog import NOT_EXHAUSTIVE as NOT_EXHAUSTIVE
from detmap.core.tables.catalog import Categories as Categories
from detmap.core.tables.catalog import Images as Images
from detmap.core.tables.catalog import Scope as Scope
from detmap.core.tables.notes import FIXED as FIXED
from detmap.core.tables.notes import Note as Note
from detmap.core.tables.notes import fixes as fixes
from detmap.core.tables.notes import keep_for_part
from detmap.errors import DataError, few

if TYPE_CHECKING:
    from detmap.core.tables.regions import Regions

BoxFormat = Literal["xywh", "voc"]
"""``xywh``: left, top, width, height in continuous coordinates from 0 (COCO). ``voc``: x1, y1,
x2, y2 of the first and last pixel, counted from 1 and both inside the box (PASCAL VOC)."""

MAX_ROWS = column_checks.MAX_ROWS
MAX_PIXEL = column_checks.MAX_PIXEL


FLAGS = ("crowd", "difficult", "ignore", "unlabelled")
"""Roles that formats have of their own: their readers bring them unasked."""

Kind = TypeVar("Kind", bound=np.generic, covariant=True)


class Columns(Mapping[str, NDArray[Kind]], Generic[Kind]):
    """Named columns of a table, sorted by name and read-only."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, NDArray[Kind]]) -> None:
        self._columns = {name: columns[name] for name in sorted(columns)}

    def __getitem__(self, name: str) -> NDArray[Kind]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns, (dict(self),)


@runtime_checkable
class Shapes(Protocol):
    """Masks or keypoints of objects or detections, one per row."""

    @property
    def area(self) -> NDArray[np.float64]:
        """(n,) float64, square pixels, used by area ranges."""

    def digest(self) -> NDArray[np.uint64]:
        """Returns (n,) uint64, one hash per row."""

    def __len__(self) -> int:
        """Returns the number of rows."""

    def take(self, rows: NDArray[Any]) -> Self:
        """Selects rows."""


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Truth(Immutable, ProposesNames):
    """Ground truth of one split: G objects on I images in K classes, rows in file order.

    Parameters
    ----------
    images, categories : what `image` and `label` refer to
    image, label : (G,) int32, positions in `images` and `categories`
    boxes : (G, 4) float64 in `box_format`, pixels
    roles : (G,) bool each, by name: "crowd" (COCO), "difficult" (VOC), "ignore" or any other that a
        protocol uses; a missing role is False for all objects
    attributes : (G,) float64 each, by name; "area" (square pixels) is required
    box_format : see `BoxFormat`
    family : "coco" or "voc", the kind of source files
    year : of a VOC folder, 0 if unknown
    split : of a VOC folder, else ""
    source : path, for messages
    notes : warnings about this ground truth
    scope : which pairs of image and class are annotated; None if all are
    shapes : G masks or keypoints; None if there are only boxes
    regions : where detections are dropped when they are read; None if nowhere
    named : whether the source names its classes without ids: ids count the sorted names, so a
        class id in detections has no meaning
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
    regions: Regions | None = None
    named: bool = False

    def __post_init__(self) -> None:
        n_rows = _check_rows(self)
        roles = _named("Truth.roles", self.roles, np.bool_, n_rows)
        attributes = _named("Truth.attributes", self.attributes, np.float64, n_rows)
        if "area" not in attributes:
            column_checks.refuse("Truth.attributes", "area is missing")
        column_checks.no_nan("Truth.attributes['area']", attributes["area"])
        scope = self.scope
        if not isinstance(scope, Scope | None):
            column_checks.refuse("Truth.scope", f"a {type(scope).__name__}")
        if scope is not None and (
            len(scope.off) != len(self.images) + 1
            or scope.label.max(initial=-1) >= len(self.categories)
        ):
            column_checks.refuse("Truth.scope", "refers to other images or classes")
        keep(self, roles=roles, attributes=attributes)

    def __len__(self) -> int:
        return len(self.label)

    def role(self, name: str) -> NDArray[np.bool_]:
        """Returns (G,) bool, which objects have a role."""
        return self.roles[name] if name in self.roles else np.zeros(len(self), dtype=bool)

    @property
    def area(self) -> NDArray[np.float64]:
        """(G,) float64, square pixels."""
        return self.attributes["area"]

    @property
    def crowd(self) -> NDArray[np.bool_]:
        """(G,) bool, COCO's iscrowd flag."""
        return self.role("crowd")

    @property
    def difficult(self) -> NDArray[np.bool_]:
        """(G,) bool, VOC's difficult flag."""
        return self.role("difficult")

    def take(self, rows: NDArray[Any]) -> Truth:
        """Selects objects, on the same images."""
        return replace(
            self,
            image=self.image[rows],
            label=self.label[rows],
            boxes=self.boxes[rows],
            roles=_taken(self.roles, rows),
            attributes=_taken(self.attributes, rows),
            shapes=None if self.shapes is None else self.shapes.take(rows),
        )

    def select_images(self, images: NDArray[Any], rows: NDArray[Any] | None = None) -> Truth:
        """Selects images.

        Parameters
        ----------
        images : (n,) positions of images, ascending
        rows : the objects on them, if already known
        """
        taken = self.take(_rows_on(self.image, images) if rows is None else rows)
        return replace(
            taken,
            notes=keep_for_part(self.notes, self.images.ids, self.image, self.label, self.boxes),
            images=self.images.take(images),
            image=np.searchsorted(images, taken.image).astype(np.int32),
            scope=None if self.scope is None else self.scope.select_images(images),
            regions=None if self.regions is None else self.regions.select_images(images),
        )


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Detections(Immutable, ProposesNames):
    """Detections on the images of a `Truth`: D rows in file order.

    Parameters
    ----------
    images, categories : of the ground truth; what `image` and `label` refer to
    image, label : (D,) int32, positions in `images` and `categories`
    boxes : (D, 4) float64 in `box_format`, pixels
    score : (D,) float64, never NaN; higher is more confident
    box_format : see `BoxFormat`
    source : path, for messages
    notes : warnings, for example about dropped detections
    shapes : D masks or keypoints; None if there are only boxes
    attributes : (D,) float64 each, by name: what a benchmark uses besides, such as orientation
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
    attributes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_rows = _check_rows(self)
        attributes = _named("Detections.attributes", self.attributes, np.float64, n_rows)
        score = column_checks.column("Detections.score", self.score, np.float64, n_rows)
        column_checks.no_nan("Detections.score", score)
        keep(self, score=score, attributes=attributes)

    def __len__(self) -> int:
        return len(self.score)

    def take(self, rows: NDArray[Any]) -> Detections:
        """Selects detections, on the same images."""
        return replace(
            self,
            image=self.image[rows],
            label=self.label[rows],
            boxes=self.boxes[rows],
            score=self.score[rows],
            attributes=_taken(self.attributes, rows),
            shapes=None if self.shapes is None else self.shapes.take(rows),
        )

    def select_images(self, images: NDArray[Any], rows: NDArray[Any] | None = None) -> Detections:
        """Selects images; see `Truth.select_images`."""
        taken = self.take(_rows_on(self.image, images) if rows is None else rows)
        return replace(
            taken,
            notes=keep_for_part(self.notes, self.images.ids, self.image, self.label, self.boxes),
            images=self.images.take(images),
            image=np.searchsorted(images, taken.image).astype(np.int32),
        )


def require_truth_of(detections: Detections, truth: Truth) -> None:
    """Raises `DataError` if detections refer to other images or classes than the ground truth."""
    ours, theirs = truth.images.ids, detections.images.ids
    if ours is not theirs and not np.array_equal(ours, theirs):
        _refuse_other(detections, truth, "images", ours.tolist(), theirs.tolist())
    known, other = truth.categories, detections.categories
    if known is not other and known != other:
        _refuse_other(detections, truth, "classes", _spelled(known), _spelled(other))


def _refuse_other(
    detections: Detections, truth: Truth, name: str, ours: list[Any], theirs: list[Any]
) -> NoReturn:
    """Raises the error that lists the differing images or classes."""
    only = []
    sides = (ours, theirs, "in the ground truth"), (theirs, ours, "of the detections")
    for ids, others, where in sides:
        there = set(others)
        alone = [each for each in ids if each not in there]
        if alone:
            only.append(f"{len(alone)} of {len(ids)} only {where} ({few(map(repr, alone))})")
    raise DataError(
        detections.source,
        f"read against a ground truth of other {name} than {truth.source}: {'; '.join(only)}",
        "read the detections with the ground truth that they are evaluated on",
    )


def truth_key(table: Truth | Detections) -> str:
    """Returns twelve hexadecimal digits over image ids and classes. Tables with the same key are
    compatible.
    """
    hashed = sha256(repr(table.images.ids.tolist()).encode())
    hashed.update(repr(_spelled(table.categories)).encode())
    return hashed.hexdigest()[:12]


def _spelled(categories: Categories) -> list[str]:
    groups = categories.groups or ("",) * len(categories)
    each = zip(categories.ids.tolist(), categories.names, groups, strict=True)
    return [f"{i} {name} {group}".rstrip() for i, name, group in each]


def _check_rows(table: Truth | Detections) -> int:
    """Checks the columns that truth and detections share. Returns the number of rows."""
    where = type(table).__name__
    for name, kind in (("images", Images), ("categories", Categories)):
        if not isinstance(getattr(table, name), kind):
            column_checks.refuse(f"{where}.{name}", f"a {type(getattr(table, name)).__name__}")
    n_rows = column_checks.n_rows(table.boxes)
    if n_rows > MAX_ROWS:
        column_checks.refuse(where, f"{n_rows} rows", f"evaluate at most {MAX_ROWS} at once")
    boxes = column_checks.column(f"{where}.boxes", table.boxes, np.float64, n_rows, 4)
    column_checks.finite(f"{where}.boxes", boxes, MAX_PIXEL)
    if table.box_format not in get_args(BoxFormat):
        fix = f"the formats are {', '.join(get_args(BoxFormat))}"
        column_checks.refuse(f"{where}.box_format", f"{table.box_format!r}", fix)
    if table.shapes is not None:
        if isinstance(table.shapes, np.ndarray) or not isinstance(table.shapes, Shapes):
            column_checks.refuse(f"{where}.shapes", f"a {type(table.shapes).__name__}")
        if len(table.shapes) != n_rows:
            what = f"{len(table.shapes)} rows where {n_rows} are needed"
            column_checks.refuse(f"{where}.shapes", what)
    column_checks.notes(f"{where}.notes", table.notes, Note)
    image = column_checks.positions_in(f"{where}.image", table.image, n_rows, len(table.images))
    label = column_checks.positions_in(f"{where}.label", table.label, n_rows, len(table.categories))
    keep(table, image=image, label=label, boxes=boxes)
    return n_rows


def _named(
    where: str, columns: Mapping[str, NDArray[Kind]], dtype: type[Kind], n_rows: int
) -> Columns[Kind]:
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        column_checks.refuse(where, "not a dict of columns", 'give a dict such as {"crowd": ...}')
    return Columns(
        {
            name: column_checks.column(f"{where}[{name!r}]", columns[name], dtype, n_rows)
            for name in columns
        }
    )


def _taken(columns: Mapping[str, NDArray[Kind]], rows: NDArray[Any]) -> Columns[Kind]:
    return Columns({name: column[rows] for name, column in columns.items()})


def _rows_on(image: NDArray[np.int32], images: NDArray[Any]) -> NDArray[np.int64]:
    return np.flatnonzero(np.isin(image, images))


def reversed_boxes(boxes: NDArray[np.float64], box_format: BoxFormat) -> NDArray[np.bool_]:
    """Returns (n,) bool, boxes with a negative side; VOC boxes include the last pixel."""
    first, last = boxes[:, :2], boxes[:, 2:]
    sides = last if box_format == "xywh" else last - first + 1
    return np.asarray((sides < 0).any(axis=1))


NEAR = 0.5
"""IoU of the box around a shape with the box beside it, below which these are of two things."""


def boxes_as(
    boxes: NDArray[np.float64], given: BoxFormat, wanted: BoxFormat
) -> NDArray[np.float64]:
    """Converts boxes to another convention; returns the same array if it is the same.

    A VOC box ``x1 y1 x2 y2`` is ``x1-1, y1-1, x2-x1+1, y2-y1+1`` in COCO terms. Whole and half
    pixels convert exactly; other fractions may change by one rounding.
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


def apart(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns (n,) which boxes x, y, width, height with a size overlap little, row by row."""
    with np.errstate(all="ignore"):
        sides = np.minimum(a[:, :2] + a[:, 2:], b[:, :2] + b[:, 2:]) - np.maximum(
            a[:, :2], b[:, :2]
        )
        shared = np.where((sides > 0).all(axis=1), sides.prod(axis=1), 0.0)
        union = a[:, 2] * a[:, 3] + b[:, 2] * b[:, 3] - shared
        sized = (b[:, 2:] > 2).all(axis=1)
        return np.asarray(sized & ~(shared / union >= NEAR))
