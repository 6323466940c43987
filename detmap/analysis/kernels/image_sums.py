"""Sums over images with image weights, in parallel lanes."""

from __future__ import annotations

from typing import Any

from detmap.kernels import kernel

LANES = 16


@kernel
def add_lanes(off: Any, image: Any, counts: Any, weights: Any, totals: Any) -> None:
    """Weighted counts of each class: objects, or images.

    off (K + 1,); image (n,) int32; counts (n, A) float64; weights (I, L); out: totals (K, A, L).
    Source: none; a sum.
    """
    totals[:] = 0.0
    for k in range(off.size - 1):
        for i in range(off[k], off[k + 1]):
            for a in range(counts.shape[1]):
                if counts[i, a] != 0.0:
                    for lane in range(LANES):
                        totals[k, a, lane] += counts[i, a] * weights[image[i], lane]
