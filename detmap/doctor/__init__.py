"""The doctor: what is wrong with detections, or with a truth, that gives a plausible bad number.

Each hypothesis is a repair, raw rows to raw rows (`raw`), tried by AP50 (`trial`): of boxes,
classes, images and scores; or a fact that no repair can change (`coverage`, `truth`). `examine`
ranks what gains clearly.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from detmap.adapters import read_detections, read_truth
from detmap.doctor import examine
from detmap.doctor import loose_readers as reading
from detmap.doctor.findings import Finding, Repair
from detmap.doctor.fixes import Repaired, repaired
from detmap.doctor.loose_readers import Given
from detmap.doctor.trial import trial_of
from detmap.errors import DataError
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth

__all__ = ["Finding", "Repair", "Repaired", "doctor", "repaired"]


def doctor(
    truth: Truth | str | Path,
    detections: Given,
    protocol: Protocol | str | None = None,
    *,
    split: str | None = None,
    format: str | None = None,
) -> list[Finding]:
    """What is wrong with detections and truth, most likely first; nothing where they are well.

    >>> import detmap
    >>> from detmap.base.resources import folder
    >>> sample = folder("datasets") / "shapes"
    >>> detmap.doctor(sample, sample / "detections" / "contours")
    []

    Parameters
    ----------
    truth : a table from `read_truth`, or a path that it reads
    detections : a path, a table, a list of COCO's records, or a dict of the arrays ``image_id``,
        ``category_id``, ``boxes`` (x, y, width, height) and ``score``; what an ordinary reader
        refuses is read loosely
    protocol : whose rules AP50 is computed by; by the kind of truth when left out
    split : of a truth that is a VOC folder
    format : of detections that are a path

    Raises
    ------
    DataError : what no reader can make sense of
    """
    if isinstance(truth, Detections):
        raise DataError("doctor", "truth and detections are swapped", "give the truth first")
    if not isinstance(truth, Truth):
        truth = read_truth(truth, split=split)
    table = truth

    def strictly() -> Detections:
        return read_detections(cast(Path, detections), table, format=format)

    raw = reading.read(detections, truth, strictly)
    return examine.examined(trial_of(truth, protocol), raw)[0]
