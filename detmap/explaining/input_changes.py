"""Two inputs under one protocol: what was added, removed or moved, and what each is worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError, counted, few
from detmap.tables import Detections, Truth, boxes_as

REMOVED, ADDED, MOVED, FLAGS, SCORES, ORDER = (
    "removed",
    "added",
    "moved",
    "flags",
    "scores",
    "order",
)
TITLES = {
    ("truth", REMOVED): "objects only in the first truth",
    ("truth", ADDED): "objects only in the other truth",
    ("truth", MOVED): "objects with other boxes",
    ("truth", FLAGS): "objects with other flags or areas",
    ("truth", ORDER): "objects in another order",
    ("detections", REMOVED): "detections only in the first file",
    ("detections", ADDED): "detections only in the other file",
    ("detections", SCORES): "detections with other scores",
    ("detections", MOVED): "detections with other boxes",
    ("detections", ORDER): "ties in another order",
}


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Which row of the first table is which of the other.

    Parameters
    ----------
    pairs : (n, 2) rows of both
    removed, added : rows of the first and of the other table alone
    """

    pairs: NDArray[np.int64]
    removed: NDArray[np.int64]
    added: NDArray[np.int64]


def align(keys: Sequence[tuple[Iterable[Any], Iterable[Any]]]) -> Alignment:
    """Rows that are equal under the first key, then of the others under the second, and so on.

    keys : of both tables, a list of hashable values a row each
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


def truth_parts(first: Truth, other: Truth) -> tuple[list[Part], Callable[[Any], Truth], Alignment]:
    """What differs between two truths, as parts to change; the truth where some are changed; and
    which rows are the same.

    Raises
    ------
    DataError : other images or classes; masks or keypoints
    """
    _require_alike(first, other)
    boxes = boxes_as(other.boxes, other.box_format, first.box_format)
    where = [list(zip(t.image.tolist(), t.label.tolist(), strict=True)) for t in (first, other)]
    exact = [_with(where[0], first.boxes), _with(where[1], boxes)]
    found = align([(exact[0], exact[1]), (where[0], where[1])])
    a, b = found.pairs.T
    names = sorted({*first.roles, *other.roles})
    measures = sorted({*first.attributes} & {*other.attributes})
    flags = np.zeros(len(a), dtype=bool)
    for name in names:
        flags |= first.role(name)[a] != other.role(name)[b]
    for name in measures:
        flags |= first.attributes[name][a] != other.attributes[name][b]
    moved = (first.boxes[a] != boxes[b]).any(axis=1)

    def made(taken: Any) -> Truth:
        use_boxes = np.where((moved & (MOVED in taken))[:, None], boxes[b], first.boxes[a])
        mine = flags & (FLAGS in taken)
        roles = {n: np.where(mine, other.role(n)[b], first.role(n)[a]) for n in names}
        attributes = {
            n: np.where(mine, other.attributes[n][b], first.attributes[n][a]) for n in measures
        }
        order, rows = [a], [(first.image[a], first.label[a], use_boxes, roles, attributes)]
        if REMOVED not in taken:
            rows.append(_truth_rows(first, first.boxes, found.removed, names, measures))
            order.append(found.removed)
        place = np.argsort(np.concatenate(order), kind="stable")
        if ADDED in taken:
            rows.append(_truth_rows(other, boxes, found.added, names, measures))
            place = np.concatenate([place, len(place) + np.arange(len(found.added))])
        image, label, box = (np.concatenate([row[i] for row in rows])[place] for i in range(3))
        return replace(
            first,
            image=image,
            label=label,
            boxes=box,
            roles={n: np.concatenate([row[3][n] for row in rows])[place] for n in names},
            attributes={n: np.concatenate([row[4][n] for row in rows])[place] for n in measures},
        )

    counts = {REMOVED: len(found.removed), ADDED: len(found.added)}
    counts |= {MOVED: int(moved.sum()), FLAGS: int(flags.sum())}
    last = made(set(counts))
    same = np.array_equal(last.image, other.image) and np.array_equal(last.label, other.label)
    counts[ORDER] = 0 if same and np.array_equal(last.boxes, boxes) else len(other)
    return _parts("truth", counts), made, found


def _truth_rows(
    truth: Truth, boxes: Any, rows: NDArray[np.int64], names: list[str], measures: list[str]
) -> Any:
    roles = {name: truth.role(name)[rows] for name in names}
    attributes = {name: truth.attributes[name][rows] for name in measures}
    return truth.image[rows], truth.label[rows], boxes[rows], roles, attributes


def detection_parts(
    first: Detections, other: Detections
) -> tuple[list[Part], Callable[[Any], Detections], Alignment]:
    """As `truth_parts`, of detections."""
    _require_alike(first, other)
    boxes = boxes_as(other.boxes, other.box_format, first.box_format)
    where = [list(zip(d.image.tolist(), d.label.tolist(), strict=True)) for d in (first, other)]
    place = [_with(where[0], first.boxes), _with(where[1], boxes)]
    scored = [
        list(zip(keys, table.score.tolist(), strict=True))
        for keys, table in zip(where, (first, other), strict=True)
    ]
    exact = [
        list(zip(keys, table.score.tolist(), strict=True))
        for keys, table in zip(place, (first, other), strict=True)
    ]
    found = align([(exact[0], exact[1]), (place[0], place[1]), (scored[0], scored[1])])
    a, b = found.pairs.T
    moved = (first.boxes[a] != boxes[b]).any(axis=1)
    rescored = first.score[a] != other.score[b]

    def made(taken: Any) -> Detections:
        use_boxes = np.where((moved & (MOVED in taken))[:, None], boxes[b], first.boxes[a])
        score = np.where(rescored & (SCORES in taken), other.score[b], first.score[a])
        order: list[NDArray[np.int64]] = [a]
        rows: list[tuple[Any, ...]] = [(first.image[a], first.label[a], use_boxes, score)]
        if REMOVED not in taken:
            left = found.removed
            rows.append(
                (first.image[left], first.label[left], first.boxes[left], first.score[left])
            )
            order.append(left)
        at = np.argsort(np.concatenate(order), kind="stable")
        if ADDED in taken:
            new = found.added
            rows.append((other.image[new], other.label[new], boxes[new], other.score[new]))
            at = np.concatenate([at, len(at) + np.arange(len(new))])
        image, label, box, scores = (np.concatenate([r[i] for r in rows])[at] for i in range(4))
        return replace(first, image=image, label=label, boxes=box, score=scores)

    counts = {REMOVED: len(found.removed), ADDED: len(found.added)}
    counts |= {SCORES: int(rescored.sum()), MOVED: int(moved.sum())}
    last = made(set(counts))
    same = all(
        np.array_equal(getattr(last, name), getattr(other, name))
        for name in ("image", "label", "score")
    )
    parts = _parts("detections", counts)
    if not (same and np.array_equal(last.boxes, boxes)):
        told = f"{_tied_otherwise(last, other, boxes)} of {len(other)} rows"
        parts.append((f"detections.{ORDER}", TITLES["detections", ORDER], told))
    return parts, made, found


def _tied_otherwise(one: Detections, other: Detections, boxes: NDArray[np.float64]) -> int:
    """How many ranks of a class have another row among those of equal score: of the same rows in
    two orders.
    """
    ranked = []
    for table, box in ((one, one.boxes), (other, boxes)):
        order = np.lexsort((-table.score, table.label))
        ranked.append(np.column_stack([table.image, box])[order])
    return int((ranked[0] != ranked[1]).any(axis=1).sum())


def _with(where: list[Any], boxes: NDArray[np.float64]) -> list[Any]:
    return list(zip(where, map(tuple, boxes.tolist()), strict=True))


def _parts(kind: str, counts: dict[str, int]) -> list[Part]:
    return [
        (f"{kind}.{name}", TITLES[kind, name], counted(count, "row", sep=""))
        for name, count in counts.items()
        if count
    ]


def _require_alike(first: Truth | Detections, other: Truth | Detections) -> None:
    """Both point into the same images and classes, and have boxes alone."""
    for name, ours, theirs in (
        ("images", first.images.ids.tolist(), other.images.ids.tolist()),
        ("classes", list(first.categories.names), list(other.categories.names)),
    ):
        if ours != theirs:
            alone = sorted({*map(str, ours)} ^ {*map(str, theirs)})
            raise DataError(
                other.source,
                f"is of other {name} than {first.source}: {few(alone)}",
                f"explain two inputs of the same {name}",
            )
    if first.shapes is not None or other.shapes is not None:
        raise DataError(other.source, "has masks or keypoints", "explain inputs of boxes")
