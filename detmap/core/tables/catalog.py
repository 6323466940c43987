"""Images, classes, and the annotated pairs of both, which table rows refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.base.immutable import Immutable, keep
from detmap.core.base.reprs import outlined
from detmap.core.base.suggestions import did_you_mean
from detmap.core.tables.grouping import rows_of
from detmap.errors import DataError, few


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Categories(Immutable):
    """The K classes of a data set, by ascending id.

    Parameters
    ----------
    ids : (K,) int64, ascending and unique
    names : K class names
    groups : K group labels ("r", "c", "f" in LVIS); () if there are none
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        column_checks.texts("Categories.names", self.names)
        ids = column_checks.column("Categories.ids", self.ids, np.int64, len(self.names))
        column_checks.ascending("Categories.ids", ids)
        column_checks.texts(
            "Categories.groups", self.groups, len(self.names) if self.groups != () else 0
        )
        keep(self, ids=ids)

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

    @property
    def are_numbers(self) -> bool:
        """Whether the classes have numbers alone: each name is the id."""
        return list(self.names) == list(map(str, self.ids.tolist()))

    def take(self, classes: NDArray[Any]) -> Categories:
        """Selects classes by ascending positions."""
        chosen = classes.tolist()
        groups = tuple(self.groups[k] for k in chosen) if self.groups else ()
        return Categories(self.ids[classes], tuple(self.names[k] for k in chosen), groups)

    def index(self, name_or_id: str | int) -> int:
        """Returns the position of a class by unique name or id. Raises `DataError` if unknown."""
        if isinstance(name_or_id, str):
            if self.names.count(name_or_id) == 1:
                return self.names.index(name_or_id)
        elif isinstance(name_or_id, int | np.integer):
            places = np.flatnonzero(self.ids == name_or_id)
            if places.size:
                return int(places[0])
        hint = did_you_mean("class", str(name_or_id), self.names)
        fix = f"{hint}the classes are {few(self.names)}"
        if isinstance(name_or_id, str) and self.are_numbers:
            fix += "; class_names= (--class-names FILE) names these numbers"
        raise DataError("class", f"no class {name_or_id!r}", fix)


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Images(Immutable):
    """The I images of a split, by ascending id.

    Parameters
    ----------
    ids : (I,) int64 or str, ascending and unique; the file stem for VOC
    stems : I file stems, by which text files name images; "" if unknown
    width, height : (I,) float64, pixels; NaN if unknown
    files : I file names with folders; () if unknown
    originals : I file stems before a tool renamed the files; () if unknown
    attributes : (I,) float64 each, by name: what a benchmark uses besides; NaN if unknown
    """

    ids: NDArray[Any]
    stems: tuple[str, ...]
    width: NDArray[np.float64]
    height: NDArray[np.float64]
    files: tuple[str, ...] = ()
    originals: tuple[str, ...] = ()
    attributes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = column_checks.image_ids("Images.ids", self.ids)
        column_checks.texts("Images.stems", self.stems, len(ids))
        for name, texts in (("files", self.files), ("originals", self.originals)):
            column_checks.texts(f"Images.{name}", texts, len(ids) if texts else 0)
        keep(
            self,
            ids=ids,
            width=column_checks.column("Images.width", self.width, np.float64, len(ids)),
            height=column_checks.column("Images.height", self.height, np.float64, len(ids)),
            attributes={
                name: column_checks.column(f"Images.{name}", column, np.float64, len(ids))
                for name, column in self.attributes.items()
            },
        )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, images: NDArray[Any]) -> Images:
        """Selects images by ascending positions."""
        stems, files, originals = (
            tuple(names[i] for i in images.tolist()) if names else ()
            for names in (self.stems, self.files, self.originals)
        )
        attributes = {name: column[images] for name, column in self.attributes.items()}
        width, height = self.width[images], self.height[images]
        return Images(self.ids[images], stems, width, height, files, originals, attributes)


ABSENT, NOT_EXHAUSTIVE, DERIVED = 1, 2, 3
"""Kinds of a pair of image and class in a `Scope`: the class was verified for the image, in LVIS as
absent; not every object of the class on the image is in the ground truth; the pair is verified
only by a class hierarchy (Open Images), which changes no verdict."""


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scope(Immutable):
    """Annotated pairs of image and class, by image, of a partly annotated truth.

    Parameters
    ----------
    off : (I + 1,) int64, where each image's pairs begin
    label : (P,) int32, position of the class, ascending within an image
    kind : (P,) uint8, `ABSENT`, `NOT_EXHAUSTIVE` or `DERIVED`, ascending if a class has several
    """

    off: NDArray[np.int64]
    label: NDArray[np.int32]
    kind: NDArray[np.uint8]

    def __post_init__(self) -> None:
        n_pairs, n_images = column_checks.n_rows(self.label), column_checks.n_rows(self.off) - 1
        off = column_checks.offsets_of("Scope.off", self.off, max(n_images, 0), n_pairs)
        label = column_checks.positions_in(
            "Scope.label", self.label, n_pairs, column_checks.MAX_ROWS
        )
        kind = column_checks.column("Scope.kind", self.kind, np.uint8, n_pairs)
        pair = label.astype(np.int64) * 4 + kind  # a class may be of both kinds
        new = pair[1:] <= pair[:-1]
        new[off[1:-1][(off[1:-1] > 0) & (off[1:-1] < n_pairs)] - 1] = False
        if new.any():
            row = int(np.argmax(new)) + 1
            column_checks.refuse(f"Scope.label[{row}]", "does not ascend within its image")
        known = np.isin(kind, (ABSENT, NOT_EXHAUSTIVE, DERIVED))
        if not known.all():
            row = int(np.argmin(known))
            column_checks.refuse(f"Scope.kind[{row}]", f"{kind[row]}, which is not a kind of pair")
        keep(self, off=off, label=label, kind=kind)

    def __len__(self) -> int:
        return len(self.label)

    def select_images(self, images: NDArray[Any]) -> Scope:
        """Selects images by position."""
        rows, off = rows_of(self.off, images)
        return Scope(off, self.label[rows], self.kind[rows])
