"""Runs the kernels of the error analysis on tiny inputs."""

import numpy as np

from detmap.analysis.diagnosis import diagnose
from detmap.analysis.diagnosis.diagnosis_intervals import uncertainty
from detmap.analysis.diagnosis.summary import parts, summary
from detmap.warmup import tables


def diagnose_next_to_nothing() -> None:
    """Runs the error analysis with intervals."""
    for name in ("coco-bbox", "voc2012"):
        diagnosis = diagnose(*tables(), name)
        summary(diagnosis)
        uncertainty(diagnosis, parts(diagnosis), np.array([0.5]))
