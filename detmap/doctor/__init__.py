"""The doctor: what is wrong with detections, or with a truth, that gives a plausible bad number.

Each hypothesis is a repair, raw rows to raw rows (`raw`), tried by AP50 (`trial`): of boxes,
classes, images and scores; or a fact that no repair can change (`coverage`, `truth`). `examine`
ranks what gains clearly.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from detmap.doctor.clock import Clock
from detmap.doctor.findings import Finding, Repair
from detmap.doctor.quick_checks import is_suspicious
from detmap.errors import DataError
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.doctor.examine import Examination
    from detmap.doctor.fixes import Repaired, repaired
    from detmap.doctor.loose_readers import Given

__all__ = ["Finding", "Repair", "Repaired", "doctor", "repaired"]


def __getattr__(name: str) -> Any:
    """Import the fixes on first use: every evaluation imports this package for its quick checks."""
    if name in ("Repaired", "repaired"):
        return getattr(import_module("detmap.doctor.fixes"), name)
    raise AttributeError(f"module 'detmap.doctor' has no attribute {name!r}")


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
    from detmap.adapters import read_detections, read_truth

    if isinstance(truth, Detections):
        raise DataError("doctor", "truth and detections are swapped", "give the truth first")
    if not isinstance(truth, Truth):
        truth = read_truth(truth, split=split)
    table = truth

    def strictly() -> Detections:
        return read_detections(cast(Path, detections), table, format=format)

    return _examine(truth, detections, strictly, protocol, Clock(None)).findings


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
    from detmap.doctor.loose_readers import whole as is_whole

    if path is None or (detections is not None and is_whole(detections)):
        found = _examine(truth, cast("Given", detections), None, protocol, clock)
    else:
        strictly = None if detections is None else lambda: detections
        found = _examine(truth, path, strictly, protocol, clock)
    return Quick(found.findings, found.left_out)


def _examine(
    truth: Truth, given: Given, strictly: Any, protocol: Protocol | str | None, clock: Clock
) -> Examination:
    """Read raw rows and examine them; `strictly` returns what the ordinary reader reads."""
    from detmap.doctor import loose_readers
    from detmap.doctor.examine import Examination
    from detmap.doctor.trial import trial_of

    raw = loose_readers.read(given, truth, *([strictly] if strictly else []))
    return Examination(trial_of(truth, protocol, clock), raw)


def examine_given(truth: Any, detections: Any, protocol: Protocol, **how: Any) -> list[Finding]:
    """Quick findings in tables or files; `how` are options of `read_detections`."""
    from detmap.adapters import read_detections, read_truth_for

    if not isinstance(truth, Truth):
        truth = read_truth_for(truth, protocol)
    if isinstance(detections, Detections):
        return examine_quickly(truth, detections, protocol).findings
    table = read_detections(detections, truth, **how)
    return examine_quickly(truth, table, protocol, path=detections).findings
