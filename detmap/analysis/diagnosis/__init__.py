"""Error analysis: why each detection is right or wrong, and what each kind of error costs.

`diagnose` passes over the images once; every other module computes something from its result.
"""

from detmap.analysis.diagnosis.analysis import KINDS, Diagnosis, diagnose
from detmap.analysis.diagnosis.merged_tables import merge

__all__ = ["KINDS", "Diagnosis", "diagnose", "merge"]
