"""Digests of tables: one number per image, and one text per data set."""

import json
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.sha import sha256
from detmap.core.base.sums import add_integers
from detmap.core.tables import Categories, Detections, Truth
from detmap.core.tables.grouping import labels

CHUNK = 1 << 16  # words that are laid out at a time: what a cache holds


def fold_table(
    n_images: int, image: NDArray[np.int32], *columns: NDArray[Any]
) -> NDArray[np.uint64]:
    """Returns (I,) uint64, one digest per image over the rows of a table, in row order.

    Digests of disjoint sets of images merge without the rows.

    Parameters
    ----------
    n_images : I
    image : (n,) int32 position of each row's image
    columns : arrays of n rows, (n,) or (n, W); floats enter as bit patterns with -0.0 as 0.0
    """
    from detmap.kernels.digest import fold_rows

    digest = np.zeros(n_images, dtype=np.uint64)
    wide = [column if column.ndim == 2 else column[:, None] for column in columns]
    width = add_integers(column.shape[1] for column in wide)
    step = max(1, CHUNK // max(1, width))
    words = np.empty((min(step, len(image)), width), np.uint64)
    for begin in range(0, len(image), step):
        rows = slice(begin, begin + step)
        words, place = words[: len(image[rows])], 0
        for column in wide:
            _lay(column[rows], words[:, place : place + column.shape[1]])
            place += column.shape[1]
        fold_rows(image[rows], words, digest)
    return digest


def _lay(column: NDArray[Any], words: NDArray[np.uint64]) -> None:
    if column.dtype.kind == "f":
        np.add(column, 0.0, out=words.view(np.float64))
    elif column.dtype == np.uint64:
        words[:] = column
    else:
        words.view(np.int64)[:] = column


def _words(column: NDArray[Any]) -> NDArray[np.uint64]:
    wide = column if column.ndim == 2 else column[:, None]
    if wide.dtype.kind == "f":
        return np.ascontiguousarray(wide + 0.0, dtype=np.float64).view(np.uint64)
    return wide if wide.dtype == np.uint64 else wide.astype(np.int64).view(np.uint64)


def image_digests(truth: Truth, detections: Detections) -> NDArray[np.uint64]:
    """Returns (I, 2) digests of each image's ground truth and detections.

    A role without objects and an attribute that is NaN enter like missing columns, so an image's
    digest does not depend on other images.
    """
    n_images, n_objects = len(truth.images), len(truth)
    roles, attributes = (np.zeros(n_objects, dtype=np.uint64) for _ in range(2))
    for name, flag in truth.roles.items():
        roles ^= np.where(flag, _word_of(name), np.uint64(0))
    for name, value in truth.attributes.items():
        mixed = _mixed(_words(value)[:, 0] ^ _word_of(name))
        attributes ^= np.where(np.isnan(value), np.uint64(0), mixed)
    objects = fold_table(n_images, truth.image, truth.label, truth.boxes, roles, attributes)
    if truth.scope is not None:
        image = labels(truth.scope.off)
        objects ^= fold_table(n_images, image, truth.scope.label, truth.scope.kind)
    for name, value in truth.images.attributes.items():
        mixed = _mixed(_words(value)[:, 0] ^ _word_of(name))
        objects ^= np.where(np.isnan(value), np.uint64(0), mixed)
    detections_digest = fold_table(
        n_images, detections.image, detections.label, detections.boxes, detections.score
    )
    for name, value in detections.attributes.items():
        mixed = _mixed(_words(value)[:, 0] ^ _word_of(name))
        detections_digest ^= fold_table(n_images, detections.image, mixed)
    if truth.shapes is not None:
        objects ^= fold_table(n_images, truth.image, truth.label, truth.shapes.digest())
    if detections.shapes is not None:
        detections_digest ^= fold_table(
            n_images, detections.image, detections.label, detections.shapes.digest()
        )
    return np.stack([objects, detections_digest], axis=1)


@cache
def _word_of(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(sha256(name.encode()).digest()[:8]))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mixes the bits of words. Source: splitmix64, Steele, Lea and Flood 2014."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def data_digest(
    categories: Categories,
    image_ids: NDArray[Any],
    digest: NDArray[np.uint64],
    order: NDArray[np.uint64],
    dropped: int = 0,
) -> str:
    """Returns twelve hexadecimal digits over classes, image ids, row digests, row order and dropped
    detections.
    """
    classes = [categories.ids.tolist(), categories.names]
    if categories.groups:
        classes.append(categories.groups)
    hashed = sha256(json.dumps(classes).encode())
    hashed.update(json.dumps(image_ids.tolist()).encode())
    hashed.update(np.ascontiguousarray(digest).astype("<u8").tobytes())
    hashed.update(order.astype("<u8").tobytes())
    if dropped:
        hashed.update(f"dropped {dropped}".encode())
    return hashed.hexdigest()[:12]


def digest_of(numbers: NDArray[np.float64]) -> str:
    """Returns twelve hexadecimal digits over an array."""
    return sha256(np.ascontiguousarray(numbers, "<f8").tobytes()).hexdigest()[:12]
