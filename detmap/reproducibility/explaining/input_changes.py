"""Differences between two inputs: added, removed and changed rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.flat_rows import flatten_rows
from detmap.core.tables import Detections, Truth, boxes_as
from detmap.errors import DataError, counted, few

REMOVED, ADDED, MOVED = "removed", "added", "moved"
FLAGS, SCORES, ORDER = "flags", "scores", "order"
TITLES = {
    ("truth", REMOVED): "objects only in the first ground truth",
    ("truth", ADDED): "objects only in the other ground truth",
    ("truth", MOVED): "objects with different boxes",
    ("truth", FLAGS): "objects with different flags or areas",
    ("truth", ORDER): "objects in a different order",
    ("detections", REMOVED): "detections only in the first file",
    ("detections", ADDED): "detections only in the other file",
    ("detections", SCORES): "detections with different scores",
    ("detections", MOVED): "detections with different boxes",
    ("detections", ORDER): "tied scores in a different order",
}


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The same rows of two tables.

    Parameters
    ----------
    pairs : (n, 2) rows of both
    removed, added : rows of the first or of the other table alone
    """

    pairs: NDArray[np.int64]
    removed: NDArray[np.int64]
    added: NDArray[np.int64]


def align(keys: Sequence[tuple[Iterable[Any], Iterable[Any]]]) -> Alignment:
    """Pairs rows with equal first keys, then the remaining rows with equal second keys, and so on.

    keys : for each step, one hashable value per row of both tables
    """
    pairs: list[tuple[int, int]] = []
    left: list[int] | None = None
    right: list[int] | None = None
    for first, other in keys:
        first, other = list(first), list(other)
        left = list(range(len(first))) if left is None else left
        right = list(range(len(other))) if right is None else right
        waiting: dict[Any, list[int]] = defaultdict(list)
        for i in reversed(right):
            waiting[other[i]].append(i)
        still = []
        for i in left:
            same = waiting.get(first[i])
            if same:
                pairs.append((i, same.pop()))
            else:
                still.append(i)
        left, right = still, sorted(i for each in waiting.values() for i in each)
    return Alignment(
        np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2),
        np.array(left or [], dtype=np.int64),
        np.array(right or [], dtype=np.int64),
    )


Part = tuple[str, str, str]
Columns = dict[str, Any]


def truth_parts(first: Truth, other: Truth) -> tuple[list[Part], Callable[[Any], Truth], Alignment]:
    """Differences between two ground truths; a function that applies some of them; the same rows.

    Raises
    ------
    DataError : different images or classes; masks or keypoints
    """
    _require_alike(first, other)
    boxes = boxes_as(other.boxes, other.box_format, first.box_format)
    roles = sorted({*first.roles, *other.roles})
    attributes = sorted({*first.attributes} & {*other.attributes})
    columns: list[Columns] = [
        {"image": table.image, "label": table.label, "boxes": box}
        | {f"role {name}": table.role(name) for name in roles}
        | {f"attribute {name}": table.attributes[name] for name in attributes}
        for table, box in ((first, first.boxes), (other, boxes))
    ]
    (where, place) = zip(*(_keys(each) for each in columns), strict=True)
    found = align([place, where])
    mixture = Mixture(columns[0], columns[1], found, FLAGS)

    def made(taken: Any) -> Truth:
        mixed = mixture.columns(taken)
        return replace(
            first,
            image=mixed["image"],
            label=mixed["label"],
            boxes=mixed["boxes"],
            roles={name: mixed[f"role {name}"] for name in roles},
            attributes={name: mixed[f"attribute {name}"] for name in attributes},
        )

    counts = mixture.counts()
    if not mixture.same_order(("image", "label", "boxes")):
        counts[ORDER] = len(other)
    return _parts("truth", counts), made, found


def detection_parts(
    first: Detections, other: Detections
) -> tuple[list[Part], Callable[[Any], Detections], Alignment]:
    """Same as `truth_parts`, for detections."""
    _require_alike(first, other)
    boxes = boxes_as(other.boxes, other.box_format, first.box_format)
    columns: list[Columns] = [
        {"image": table.image, "label": table.label, "boxes": box, "score": table.score}
        for table, box in ((first, first.boxes), (other, boxes))
    ]
    (where, place) = zip(*(_keys(each) for each in columns), strict=True)
    scored, exact = (
        tuple(
            list(zip(keys, each["score"].tolist(), strict=True))
            for keys, each in zip(pair, columns, strict=True)
        )
        for pair in (where, place)
    )
    found = align([(exact[0], exact[1]), place, (scored[0], scored[1])])
    mixture = Mixture(columns[0], columns[1], found, SCORES)

    def made(taken: Any) -> Detections:
        mixed: dict[str, Any] = {**mixture.columns(taken)}
        return replace(first, **mixed)

    counts = mixture.counts()
    parts = _parts("detections", {kind: counts[kind] for kind in (REMOVED, ADDED, SCORES, MOVED)})
    if not mixture.same_order(("image", "label", "score", "boxes")):
        text = f"{_tied_otherwise(made(set(counts)), other, boxes)} of {len(other)} rows"
        parts.append((f"detections.{ORDER}", TITLES["detections", ORDER], text))
    return parts, made, found


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Two tables, by columns, with the rows that they share.

    Parameters
    ----------
    first, other : columns of the same names and units
    found : the same rows
    values : the kind of changes in columns other than image, label and boxes
    """

    first: Columns
    other: Columns
    found: Alignment
    values: str

    def changed(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """(n,) pairs of rows that differ in one of these columns."""
        a, b = self.found.pairs.T
        changed = np.zeros(len(a), dtype=bool)
        for name in names:
            differ = self.first[name][a] != self.other[name][b]
            changed |= flatten_rows(differ).any(axis=1)
        return changed

    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """The pairs that each kind of change applies to."""
        values = self.changed(self.first.keys() - {"image", "label", "boxes"})
        return {MOVED: self.changed(["boxes"]), self.values: values}

    def counts(self) -> dict[str, int]:
        """The number of rows per kind of change."""
        counts = {REMOVED: len(self.found.removed), ADDED: len(self.found.added)}
        return counts | {kind: int(mask.sum()) for kind, mask in self.masks().items()}

    def columns(self, taken: Any) -> Columns:
        """The first table with some kinds of changes applied; added rows come last."""
        (a, b), masks = self.found.pairs.T, self.masks()
        removed = self.found.removed[: 0 if REMOVED in taken else None]
        added = self.found.added[: None if ADDED in taken else 0]
        kept = np.argsort(np.concatenate([a, removed]), kind="stable")
        place = np.concatenate([kept, len(kept) + np.arange(len(added))])
        mixed = {}
        for name, ours in self.first.items():
            kind, theirs = MOVED if name == "boxes" else self.values, self.other[name]
            use = (masks[kind] & (kind in taken)).reshape(-1, *[1] * (ours.ndim - 1))
            same = np.where(use, theirs[b], ours[a])
            mixed[name] = np.concatenate([same, ours[removed], theirs[added]])[place]
        return mixed

    def same_order(self, names: Iterable[str]) -> bool:
        """Whether all changes together give the other table, row by row."""
        last = self.columns(self.counts())
        return all(np.array_equal(last[name], self.other[name]) for name in names)


def _keys(columns: Columns) -> tuple[list[Any], list[Any]]:
    """Per row, image and class; and these with the box."""
    where = list(zip(columns["image"].tolist(), columns["label"].tolist(), strict=True))
    return where, list(zip(where, map(tuple, columns["boxes"].tolist()), strict=True))


def _tied_otherwise(one: Detections, other: Detections, boxes: NDArray[np.float64]) -> int:
    """The number of ranks that hold another row: two orders of the same rows with tied scores."""
    ranked = []
    for table, box in ((one, one.boxes), (other, boxes)):
        order = np.lexsort((-table.score, table.label))
        ranked.append(np.column_stack([table.image, box])[order])
    return int((ranked[0] != ranked[1]).any(axis=1).sum())


def _parts(kind: str, counts: dict[str, int]) -> list[Part]:
    return [
        (f"{kind}.{name}", TITLES[kind, name], counted(count, "row", sep=""))
        for name, count in counts.items()
        if count
    ]


def _require_alike(first: Truth | Detections, other: Truth | Detections) -> None:
    """Raises an error if images or classes differ, or for masks and keypoints."""
    for name, ours, theirs in (
        ("images", first.images.ids.tolist(), other.images.ids.tolist()),
        ("classes", list(first.categories.names), list(other.categories.names)),
    ):
        if ours != theirs:
            alone = sorted({*map(str, ours)} ^ {*map(str, theirs)})
            raise DataError(
                other.source,
                f"has other {name} than {first.source}: {few(alone)}",
                f"give two inputs with the same {name}",
            )
    if first.shapes is not None or other.shapes is not None:
        raise DataError(other.source, "has masks or keypoints", "give inputs with boxes")
