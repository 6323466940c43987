"""Wrong files made of right ones: a function a mistake, from columns to columns, seeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import detmap
from detmap.core.tables import boxes_as


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A results file as columns, and the ground truth that it is of: image_id, category_id, boxes
    as x, y, width, height, score, and (D, 2) width and height of each row's image.
    """

    truth: detmap.Truth
    image: NDArray[Any]
    category: NDArray[Any]
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]
    size: NDArray[np.float64]

    def take(self, rows: NDArray[Any]) -> Columns:
        return Columns(
            self.truth,
            *(
                column[rows]
                for column in (self.image, self.category, self.boxes, self.score, self.size)
            ),
        )

    def arrays(self) -> dict[str, Any]:
        """As the API takes them."""
        return {
            "image_id": self.image,
            "category_id": self.category,
            "boxes": self.boxes,
            "score": self.score,
        }

    def records(self) -> list[dict[str, Any]]:
        """As a results file has them."""
        names = "image_id", "category_id", "bbox", "score"
        columns = self.image, self.category, self.boxes, self.score
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


def columns(truth: detmap.Truth, found: detmap.Detections) -> Columns:
    """The right file."""
    size = np.column_stack([truth.images.width, truth.images.height])[found.image]
    return Columns(
        truth,
        truth.images.ids[found.image],
        truth.categories.ids[found.label],
        boxes_as(found.boxes, found.box_format, "xywh"),
        found.score,
        size,
    )


def in_coco_form(truth: detmap.Truth) -> detmap.Truth:
    """A VOC truth with integer ids, of images by position from 1, and stems as it has them."""
    ids = np.arange(1, len(truth.images) + 1)
    return replace(
        truth,
        images=replace(truth.images, ids=ids, stems=tuple(truth.images.ids.tolist())),
        boxes=boxes_as(truth.boxes, truth.box_format, "xywh"),
        roles={"crowd": truth.difficult},
        box_format="xywh",
        family="coco",
    )


def _boxes(make: Callable[[NDArray[Any], NDArray[Any]], Any]) -> Callable[[Columns], Columns]:
    def wrong(right: Columns) -> Columns:
        made = np.ascontiguousarray(make(right.boxes, right.size), dtype=np.float64)
        return replace(right, boxes=made)

    return wrong


def corners(b: NDArray[Any]) -> NDArray[Any]:
    return np.column_stack([b[:, :2], b[:, :2] + b[:, 2:]])


def centered(b: NDArray[Any]) -> NDArray[Any]:
    return np.column_stack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]])


def both(size: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([size, size], axis=1)


def letterboxed(b: NDArray[Any], size: NDArray[Any], side: float = 640.0) -> NDArray[Any]:
    scale = (side / size.max(axis=1))[:, None]
    return np.concatenate([b[:, :2] * scale + (side - size * scale) / 2, b[:, 2:] * scale], axis=1)


def _scores(make: Callable[[NDArray[Any]], Any]) -> Callable[[Columns], Columns]:
    def wrong(right: Columns) -> Columns:
        return replace(right, score=np.asarray(make(right.score), dtype=np.float64))

    return wrong


def logits(p: NDArray[Any]) -> NDArray[Any]:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def _classes(make: Callable[[Columns, NDArray[Any]], Any]) -> Callable[[Columns], Columns]:
    """Of the position of each row's class from 0."""

    def wrong(right: Columns) -> Columns:
        place = np.searchsorted(right.truth.categories.ids, right.category)
        return replace(right, category=np.asarray(make(right, place)))

    return wrong


def _permuted(right: Columns, place: NDArray[Any]) -> NDArray[Any]:
    ids = right.truth.categories.ids
    return np.random.default_rng(3).permutation(ids)[place]


def _misspelled(right: Columns, place: NDArray[Any]) -> NDArray[Any]:
    names = [name.upper().replace(" ", "_") + "s" for name in right.truth.categories.names]
    return np.array(names)[place]


def _alphabetical(right: Columns, place: NDArray[Any]) -> NDArray[Any]:
    names = right.truth.categories.names
    order = sorted(range(len(names)), key=lambda k: names[k])
    return np.array([order.index(k) + 1 for k in range(len(names))])[place]


def _images(make: Callable[[Columns, NDArray[Any]], Any]) -> Callable[[Columns], Columns]:
    """Of the position of each row's image from 0."""

    def wrong(right: Columns) -> Columns:
        place = np.searchsorted(right.truth.images.ids, right.image)
        return replace(right, image=np.asarray(make(right, place)))

    return wrong


def _stems(right: Columns, place: NDArray[Any]) -> NDArray[Any]:
    return np.array(right.truth.images.stems)[place]


def half_of_the_images(right: Columns) -> Columns:
    ids = right.truth.images.ids
    kept = np.random.default_rng(5).permutation(ids)[: len(ids) // 2]
    return right.take(np.flatnonzero(np.isin(right.image, kept)))


def first_images(right: Columns) -> Columns:
    ids = right.truth.images.ids
    return right.take(np.flatnonzero(np.isin(right.image, ids[: len(ids) // 2])))


def commonest_class(right: Columns) -> Columns:
    most = int(np.argmax(np.bincount(right.truth.label)))
    return right.take(np.flatnonzero(right.category == right.truth.categories.ids[most]))


def doubled(right: Columns) -> Columns:
    return right.take(np.concatenate([np.arange(len(right.score))] * 2))


def piled(right: Columns) -> Columns:
    """Three boxes for each, a little beside it and a little less sure."""
    rng = np.random.default_rng(7)
    rows = np.repeat(np.arange(len(right.score)), 3)
    out = right.take(rows)
    first = np.arange(len(rows)) % 3 == 0
    moved = out.boxes[:, [2, 3, 2, 3]] * rng.normal(0, 0.02, (len(rows), 4))
    moved[first] = 0
    worse = np.where(first, 1.0, rng.uniform(0.8, 1.0, len(rows)))
    boxes = out.boxes + moved
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 0)
    return replace(out, boxes=boxes, score=out.score * worse)


WRONG: dict[str, tuple[Callable[[Columns], Columns], str]] = {
    "xyxy": (_boxes(lambda b, s: corners(b)), "boxes-xyxy"),
    "cxcywh": (_boxes(lambda b, s: centered(b)), "boxes-cxcywh"),
    "normalised": (_boxes(lambda b, s: b / both(s)), "boxes-normalised"),
    "normalised xyxy": (_boxes(lambda b, s: corners(b) / both(s)), "boxes-normalised"),
    "normalised cxcywh": (_boxes(lambda b, s: centered(b) / both(s)), "boxes-normalised"),
    "normalised by 640": (_boxes(lambda b, s: b / 640), "boxes-normalised"),
    "swapped": (_boxes(lambda b, s: b[:, [1, 0, 3, 2]]), "boxes-xy-swapped"),
    "swapped corners": (_boxes(lambda b, s: corners(b)[:, [1, 0, 3, 2]]), "boxes-xy-swapped"),
    "half the size": (_boxes(lambda b, s: b / 2), "boxes-resized"),
    "1.28 times": (_boxes(lambda b, s: b * 1.28), "boxes-resized"),
    "stretched to 416": (_boxes(lambda b, s: b / both(s) * 416), "boxes-resized"),
    "short side 800": (_boxes(lambda b, s: b * (800 / s.min(axis=1))[:, None]), "boxes-resized"),
    "letterboxed": (_boxes(letterboxed), "boxes-letterboxed"),
    "from zero": (_classes(lambda c, k: c.category - 1), "classes-zero-based"),
    "from two": (_classes(lambda c, k: c.category + 1), "classes-one-based"),
    "permuted": (_classes(_permuted), "classes-permuted"),
    "misspelled": (_classes(_misspelled), "classes-spelling"),
    "one class": (
        _classes(lambda c, k: np.full(len(k), c.truth.categories.ids[0])),
        "classes-agnostic",
    ),
    "stems": (_images(_stems), "images-by-stem"),
    "names": (_images(lambda c, i: np.char.add(_stems(c, i), ".jpg")), "images-by-stem"),
    "images from zero": (_images(lambda c, i: c.image - 1), "images-shifted"),
    "half of the images": (half_of_the_images, "images-without-detections"),
    "first images": (first_images, "images-without-detections"),
    "commonest class": (commonest_class, "classes-without-detections"),
    "percent": (_scores(lambda p: 100 * p), "scores-percent"),
    "logits": (_scores(logits), "scores-logits"),
    "negated": (_scores(lambda p: -p), "scores-negated"),
    "upside down": (_scores(lambda p: 1 - p), "scores-negated"),
    "equal": (_scores(np.ones_like), "scores-equal"),
    "doubled": (doubled, "rows-repeated"),
    "piled": (piled, "duplicates"),
}
"""The mistakes that any data set can have, with the finding that each is."""

PIXEL = np.array([1, 1, 0, 0])

PIXELS: dict[str, tuple[Callable[[Columns], Columns], str]] = {
    "pixels from 0": (_boxes(lambda b, s: b - PIXEL), "boxes-zero-based"),
    "pixels from 1": (_boxes(lambda b, s: b + PIXEL), "boxes-one-based"),
    "too narrow": (_boxes(lambda b, s: np.maximum(b - PIXEL[::-1], 0)), "boxes-off-by-one"),
    "too wide": (_boxes(lambda b, s: b + PIXEL[::-1]), "boxes-too-wide-by-one"),
}
"""The mistakes that show where boxes are else exact."""

GAPS: dict[str, tuple[Callable[[Columns], Columns], str]] = {
    "0 to 79": (_classes(lambda c, k: k), "classes-contiguous"),
    "1 to 80": (_classes(lambda c, k: k + 1), "classes-contiguous"),
    "alphabetical": (_classes(_alphabetical), "classes-alphabetical"),
    "image positions": (_images(lambda c, i: i), "images-by-position"),
}
"""The mistakes that take ids with gaps, or classes in another order than the alphabet's."""
