"""Counts of objects, rows and images per class, or their weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching.matches import Matches
from detmap.core.tables.grouping import labels, sizes


def positives(matches: Matches) -> NDArray[np.int64]:
    """(K, A) the denominator of recall: counted objects, or all, by protocol."""
    return n_objects(matches, None, counted=matches.protocol.ap.recall_over == "counted")


def n_objects(matches: Matches, weight: NDArray[np.float64] | None, counted: bool) -> NDArray[Any]:
    """(K, A) objects per class, counted or all; weighted if there are weights."""
    if counted and weight is None:
        return matches.n_objects()
    if counted:
        columns = [
            count_per_class(matches.obj_image, matches.obj_off, weight, matches.counted[:, a])
            for a in range(matches.counted.shape[1])
        ]
    else:
        columns = [
            count_per_class(matches.obj_image, matches.obj_off, weight)
        ] * matches.counted.shape[1]
    return np.stack(columns, axis=1)


def count_per_class(
    image: NDArray[np.int32],
    off: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    some: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """(K,) rows per class, or their weight."""
    if weight is None and some is None:
        return sizes(off)
    each = np.ones(len(image)) if weight is None else weight[image]
    if some is not None:
        each = np.where(some, each, 0.0)
    total = np.bincount(labels(off), weights=each, minlength=len(off) - 1)
    kind = np.int64 if weight is None else np.float64  # bincount of an empty array gives int64
    return total.astype(kind, copy=False)


def n_rows(matches: Matches, weight: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """(K,) detections of the class, or their weight."""
    if weight is None:  # their images are not needed
        return sizes(matches.off)
    return count_per_class(matches.image, matches.off, weight)


def n_images(matches: Matches, weight: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """(K,) images with an object of the class, or their weight."""
    return count_per_class(matches.obj_image, matches.obj_off, weight, first_of_image(matches))


def first_of_image(matches: Matches) -> NDArray[np.bool_]:
    """(G,) whether an object is the first of its image and class."""
    first = np.ones(len(matches.obj_image), dtype=bool)
    first[1:] = matches.obj_image[1:] != matches.obj_image[:-1]
    begins = matches.obj_off[:-1]
    first[begins[begins < len(first)]] = True
    return first
