"""Runs the kernels of the error analysis and the doctor on tiny inputs."""

import numpy as np

from detmap.analysis.diagnosis import diagnose
from detmap.analysis.diagnosis.diagnosis_intervals import uncertainty
from detmap.analysis.diagnosis.summary import parts, summary
from detmap.analysis.row_overlaps import best_overlaps
from detmap.warmup import tables


def diagnose_next_to_nothing() -> None:
    """Runs the error analysis with intervals."""
    for name in ("coco-bbox", "voc2012"):
        diagnosis = diagnose(*tables(), name)
        summary(diagnosis)
        uncertainty(diagnosis, parts(diagnosis), np.array([0.5]))
    truth, found = tables()
    best_overlaps(found, found.image, np.arange(len(found)), truth, 0.5)
