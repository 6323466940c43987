"""Thresholds of single classes, ``iou.classes``: what an object needs in place of each threshold.

The kernels know a lower threshold of an object (`ObjectWords.enough`). A higher one is kept by
leaving out the pairs that do not reach it.
"""

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables import Truth
from detmap.errors import ProtocolError, few

Floats = NDArray[np.float64]


def class_thresholds(protocol: Protocol) -> dict[str, float]:
    """Returns the lowest overlap that matches, by name of class; see `effective_thresholds`."""
    values = {name: min(value, protocol.iou.cap) for name, value in protocol.iou.classes}
    above = protocol.iou.comparison == ">"
    return {name: float(np.nextafter(v, np.inf)) if above else v for name, v in values.items()}


def needed_overlap(truth: Truth, protocol: Protocol) -> Floats:
    """Returns (G,) the threshold of each object's class; inf if it has none of its own.

    Raises
    ------
    ProtocolError : an unknown class
    """
    names = truth.categories.names
    own = class_thresholds(protocol)
    unknown = [name for name in own if name not in names]
    if unknown:
        what = f"unknown class {unknown[0]!r}"
        raise ProtocolError("iou.classes", what, f"the classes are {few(names)}")
    of_class = np.array([own.get(name, np.inf) for name in names], dtype=np.float64)
    needed: Floats = of_class[truth.label] if len(names) else np.zeros(0)
    return needed


def reach_own(overlap: Floats, needed: Floats) -> NDArray[np.bool_]:
    """Returns (p,) whether overlaps reach the objects' own thresholds, if they have one."""
    reached: NDArray[np.bool_] = (overlap >= needed) | np.isinf(needed)
    return reached
