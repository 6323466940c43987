"""Sums over rows, stored per image, so that they can be computed again with image weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.analysis.kernels import image_sums as kernels
from detmap.core.tables.grouping import group

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Sums of C columns in each of N groups and on each image.

    Parameters
    ----------
    off : (N + 1,) int64, start of each group
    image : (n,) int32, ascending within a group
    sums : (n, C) float64
    """

    off: NDArray[np.int64]
    image: NDArray[np.int32]
    sums: Floats

    def totals(self, weights: Floats) -> Floats:
        """(N, C, L) sums for L sets of image weights."""
        totals = np.empty((len(self.off) - 1, self.sums.shape[1], weights.shape[1]))
        kernels.add_lanes(self.off, self.image, self.sums, weights, totals)
        return totals

    def n_images(self) -> NDArray[np.int64]:
        """(N,) number of images per group."""
        return np.diff(self.off)


def tally(
    place: ArrayLike, image: NDArray[np.int32], columns: Sequence[ArrayLike], n: int, n_images: int
) -> Tally:
    """Sums of rows.

    Parameters
    ----------
    place : (R,) group of each row, -1 for none
    image : (R,) position of its image
    columns : C of them, (R,) each
    n, n_images : groups, images
    """
    of = np.ascontiguousarray(place, dtype=np.int32)
    some = np.flatnonzero(of >= 0).astype(np.int32)
    order, off = group(image, of, n_images, n, some)
    images, groups, first = image[order], of[order], np.ones(len(order), dtype=bool)
    first[1:] = (images[1:] != images[:-1]) | (groups[1:] != groups[:-1])
    begins = np.flatnonzero(first)
    sums = np.zeros((len(begins), len(columns)))
    for k, column in enumerate(columns):
        if len(begins):
            values = np.asarray(column, dtype=np.float64)[order]
            sums[:, k] = np.add.reduceat(values, begins)
    before = np.concatenate([[0], np.cumsum(first)])
    return Tally(before[off].astype(np.int64), images[begins], sums)
