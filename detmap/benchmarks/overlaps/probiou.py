"""Probabilistic IoU of rotated boxes: one minus the Hellinger distance of two normal distributions.

Source: Llerena et al., Gaussian Bounding Boxes and Probabilistic Intersection-over-Union (2021);
Ultralytics utils/metrics.py, batch_probiou (8.4.190), for the constants.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EPSILON = 1e-7
FARTHEST = 100.0  # the largest Bhattacharyya distance


def variances(boxes: Floats) -> Floats:
    """Returns (3, n) variance of x and of y, and covariance, of (n, 5) center x and y, width,
    height, angle.
    """
    along, across = boxes[:, 2] ** 2 / 12, boxes[:, 3] ** 2 / 12
    cos, sin = np.cos(boxes[:, 4]), np.sin(boxes[:, 4])
    return np.stack(
        [
            along * cos**2 + across * sin**2,
            along * sin**2 + across * cos**2,
            (along - across) * cos * sin,
        ]
    )


def overlaps(a: Floats, b: Floats) -> Floats:
    """Returns (n,) overlaps of (n, 5) and (n, 5) boxes; equal boxes have 1 - sqrt(2e-7) at most."""
    one, other = variances(a), variances(b)
    xx, yy, xy = one + other
    spread = xx * yy - xy**2
    dx, dy = (a[:, :2] - b[:, :2]).T
    distance = (xx * dy**2 + yy * dx**2) / (spread + EPSILON) * 0.25
    distance += xy * -dx * dy / (spread + EPSILON) * 0.5
    own = np.maximum(_spread(one), 0) * np.maximum(_spread(other), 0)
    distance += np.log(spread / (4 * np.sqrt(own) + EPSILON) + EPSILON) * 0.5
    distance = np.clip(distance, EPSILON, FARTHEST)
    return np.asarray(1 - np.sqrt(1 - np.exp(-distance) + EPSILON))


def _spread(variance: Floats) -> Floats:
    return np.asarray(variance[0] * variance[1] - variance[2] ** 2)


def reach(boxes: Floats, lowest: float) -> Floats:
    """Returns (n, 2) how far left and right, above and below a box overlaps others by `lowest`.

    Two boxes whose centers are farther apart than both reaches in x or y overlap less. The bound
    neglects EPSILON; boxes so small that it matters reach everywhere.
    """
    with np.errstate(all="ignore"):
        farthest = -np.log(1 - (1 - min(max(lowest, 0.0), 1.0)) ** 2) + 1e-6
    xx, yy, _ = spread = variances(boxes)
    sides = 2 * np.sqrt(farthest * 1.001) * np.sqrt(np.stack([xx, yy], axis=1))
    small = _spread(spread) < 1
    return np.where(small[:, None], np.inf, sides)
