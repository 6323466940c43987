"""The least localisation-recall-precision error of each class in replicates, L of them abreast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel


class Rows(NamedTuple):
    """Detections by class, best score first.

    off (K + 1,) int64; image (n,) int32; right (n,) bool; error (n,) float64, 1 - overlap of a true
    positive; last (n,) bool, whether the next row has another score.
    """

    off: NDArray[np.int64]
    image: NDArray[np.int32]
    right: NDArray[np.bool_]
    error: NDArray[np.float64]
    last: NDArray[np.bool_]


@kernel
def least_errors(
    rows: Rows,
    n_objects: NDArray[np.float64],
    span: float,
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
    least: NDArray[np.float64],
) -> None:
    """The least error over the scores, and its parts there; of equal ones at the lowest score.

    n_objects (K, L), weight of the objects to find; span, 1 less the overlap that is a match;
    weights (I, L); sums (3, L) is scratch space; out: least (K, 4, L): the error, and of
    localisation, of false positives and of misses, NaN where undefined.

    Source: Oksuz et al., TPAMI 2021, equation 3; LRP-Error, cocoeval.py, with every score that
    occurs as a threshold; the rows of an image weigh as it does.
    """
    n_lanes = weights.shape[1]
    for k in range(rows.off.size - 1):
        sums[:] = 0.0
        for lane in range(n_lanes):
            none = n_objects[k, lane] <= 0.0
            least[k, 0, lane] = np.nan if none else 1.0
            least[k, 1, lane], least[k, 2, lane] = np.nan, np.nan
            least[k, 3, lane] = np.nan if none else 1.0
        for r in range(rows.off[k], rows.off[k + 1]):
            weight = weights[rows.image[r]]
            for lane in range(n_lanes):
                sums[0, lane] += weight[lane]
            if rows.right[r]:
                for lane in range(n_lanes):
                    sums[1, lane] += weight[lane]
                    sums[2, lane] += weight[lane] * rows.error[r]
            if not rows.last[r]:
                continue
            for lane in range(n_lanes):
                within, tp, error = sums[0, lane], sums[1, lane], sums[2, lane]
                n = n_objects[k, lane]
                if n <= 0.0:
                    continue
                value = (error / span + (within - tp) + (n - tp)) / (within - tp + n)
                if value <= least[k, 0, lane]:
                    least[k, 0, lane] = value
                    least[k, 1, lane] = error / tp if tp > 0.0 else np.nan
                    least[k, 2, lane] = 1.0 - tp / within if within > 0.0 else np.nan
                    least[k, 3, lane] = 1.0 - tp / n
