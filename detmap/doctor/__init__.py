"""The doctor: what is wrong with detections, or with a truth, that gives a plausible bad number.

Each hypothesis is a repair, raw rows to raw rows (`raw`), tried by AP50 (`trial`): of boxes,
classes, images and scores; or a fact that no repair can change (`coverage`, `truth`). `examine`
ranks what gains clearly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, cast

from detmap.adapters import read_detections, read_truth, read_truth_for
from detmap.doctor import examine
from detmap.doctor import loose_readers as reading
from detmap.doctor.clock import Clock
from detmap.doctor.findings import Finding, Repair
from detmap.doctor.fixes import Repaired, repaired
from detmap.doctor.loose_readers import Given
from detmap.doctor.quick_checks import is_suspicious
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
    return examine.Examination(trial_of(truth, protocol), raw).findings


class Quick(NamedTuple):
    """What a quick examination found, and what it had no time for."""

    findings: list[Finding]
    left_out: list[str]


def examine_quickly(
    truth: Truth,
    detections: Detections | None,
    protocol: Protocol,
    *,
    path: Given | None = None,
    seconds: float | None = None,
    whole: bool = False,
) -> Quick:
    """Examine tables whose quick checks fail (`signs`), or any with `whole`.

    Parameters
    ----------
    truth, detections : detections are None where the reader refused them
    path : of the detections, read once more where the reader refused them or dropped rows
    seconds : of processor time; unlimited when left out
    """
    clock = Clock(seconds)
    if detections is not None and (
        protocol.iou.of != "boxes" or not (whole or is_suspicious(truth, detections))
    ):
        return Quick([], [])
    if path is None or (detections is not None and reading.whole(detections)):
        raw = reading.read(cast(Given, detections), truth)
    elif detections is None:
        raw = reading.read(path, truth)
    else:
        raw = reading.read(path, truth, lambda: detections)
    found = examine.Examination(trial_of(truth, protocol, clock), raw)
    return Quick(found.findings, found.left_out)


def examine_given(truth: Any, detections: Any, protocol: Protocol, **how: Any) -> list[Finding]:
    """Quick findings in tables or files; `how` are options of `read_detections`."""
    if not isinstance(truth, Truth):
        truth = read_truth_for(truth, protocol)
    if isinstance(detections, Detections):
        return examine_quickly(truth, detections, protocol).findings
    table = read_detections(detections, truth, **how)
    return examine_quickly(truth, table, protocol, path=detections).findings
