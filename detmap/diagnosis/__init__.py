"""What limits the number: why each detection is right or wrong, and what follows from it.

One pass over the images (`diagnose`) finds what each detection overlaps; everything else here is a
small function of that.
"""

from detmap.diagnosis.analysis import KINDS, Diagnosis, diagnose, merge

__all__ = ["KINDS", "Diagnosis", "diagnose", "merge"]
