"""The object that each raw row overlaps most."""

from __future__ import annotations

import numpy as np

from detmap.doctor.raw_rows import Raw, readable
from detmap.overlaps.row_overlaps import Met, best_overlaps
from detmap.tables import Truth


def best_objects(raw: Raw, truth: Truth, least: float = 0.5) -> Met:
    """Rows with the object of their image that they overlap most, at an overlap of `least` or more,
    whatever their class.
    """
    image, _ = raw.places(truth)
    return best_overlaps(raw, image, np.flatnonzero((image >= 0) & readable(raw)), truth, least)
