"""The lowest localization-recall-precision error (oLRP) of each class in L parallel replicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel


class Rows(NamedTuple):
    """Detections by class, by descending score.

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
    """The lowest error over all score thresholds and its parts; among equal ones that of the lowest
    score.

    n_objects (K, L), weight of the counted objects; span, 1 minus the IoU threshold; weights (I,
    L); sums (3, L) is scratch space; out: least (K, 4, L): the error, and its parts for
    localization, false positives and misses, NaN if undefined.

    Source: Oksuz et al., TPAMI 2021, equation 3; LRP-Error, cocoeval.py, with every occurring score
    as a threshold; rows have the weight of their image.
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
