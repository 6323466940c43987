"""Known errors of pycocotools that the drop-in reproduces, with one warning each."""

import warnings

QUIRKS = {
    "id-zero": "a detection that takes the object with annotation id 0 counts as unmatched",
    "id-not-positive": "detections with ids of 0 or less take objects without using them up",
    "id-twice": "annotations share an id: the last one is used for all",
    "category-unlisted": "detections of categories that are not in the ground truth are left out",
    "subset-by-position": "accumulate(p) reads the first results that were"
    " evaluated, not those of the given ids or ranges",
    "points-unsorted": "recThrs is not ascending: all points behind the first that"
    " is not reached read 0",
    "categories-forgotten": "useCats is 0: params.catIds is now [-1], and another"
    " evaluate() finds nothing",
    "summary-of-defaults": "summarize() of pycocotools prints -1 or fails for these maxDets or"
    " areaRngLbl",
}

CORRECTED = {"summary-of-defaults": "here its rows follow the parameters"}
"""Quirks that the drop-in does not reproduce, and what it does."""

_warned: set[str] = set()


class PycocotoolsQuirk(UserWarning):
    """A known error of pycocotools can change a number, which the drop-in reproduces or not."""


def warn_of(kind: str) -> None:
    """Issues the warning of a quirk, once per process."""
    if kind not in _warned:
        _warned.add(kind)
        text = f"as in pycocotools, {QUIRKS[kind]} [{kind}]"
        if kind in CORRECTED:
            text = f"{QUIRKS[kind]}; {CORRECTED[kind]} [{kind}]"
        warnings.warn(text, PycocotoolsQuirk, stacklevel=4)
