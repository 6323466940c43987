"""Error analysis: why each detection is right or wrong, and what each kind of error costs.

`diagnose` passes over the images once; every other module computes something from its result.
"""

from detmap.diagnosis.analysis import KINDS, Diagnosis, diagnose, merge


def _notebook_html(diagnosis: Diagnosis) -> str:
    """The HTML of a diagnosis in a notebook."""
    from detmap.diagnosis import notebook

    return notebook.html(diagnosis)


Diagnosis._repr_html_ = _notebook_html

__all__ = ["KINDS", "Diagnosis", "diagnose", "merge"]
