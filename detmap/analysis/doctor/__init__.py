"""The doctor: what is wrong with detections, or with a ground truth, that gives a plausible bad
number.

Each hypothesis is a repair, raw rows to raw rows (`raw`), tried by AP50 (`trial`): of boxes,
classes, images and scores; or a fact that no repair can change (`coverage`, `truth`). `examine`
ranks what gains clearly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap.analysis.doctor.clock import Clock
from detmap.analysis.doctor.quick_checks import is_suspicious
from detmap.analysis.doctor.repair import BARE, Repair, no_detection
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.protocol import Protocol
from detmap.core.results.findings import Finding, Findings
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.errors import DataError, DetmapError

if TYPE_CHECKING:
    from detmap.analysis.doctor.fixes import Repaired, repaired
    from detmap.analysis.doctor.loose_readers import Given
    from detmap.analysis.doctor.wide_reading import Reading

SECONDS = 2.0
"""Processor time of the examination of a `Result`."""
ROWS = 400_000
"""Objects and detections that the trials of an examination match however short its time is: about
0.8 seconds, in which files of 3,000 detections are examined in full."""

__all__ = ["Finding", "Findings", "Repair", "Repaired", "doctor", "repaired"]


def __getattr__(name: str) -> Any:
    """Import the fixes on first use: every evaluation imports this package for its quick checks."""
    if name in ("Repaired", "repaired"):
        return getattr(import_module("detmap.analysis.doctor.fixes"), name)
    raise AttributeError(f"module 'detmap.analysis.doctor' has no attribute {name!r}")


@proposes_arguments
def doctor(
    truth: Truth | str | Path,
    detections: Given,
    protocol: Protocol | str | None = None,
    *,
    split: str | None = None,
    format: str | None = None,
) -> Findings:
    """Checks ground truth and detections for common mistakes; the most likely one comes first.

    >>> import detmap
    >>> from detmap.core.base.resources import folder
    >>> sample = folder("datasets") / "shapes"
    >>> detmap.doctor(sample, sample / "detections" / "contours")
    no findings

    Parameters
    ----------
    truth : a table from `read_truth`, or a path that it reads
    detections : a path, a table, a list of COCO's records, or a dict of the arrays ``image_id``,
        ``category_id``, ``boxes`` (x, y, width, height) and ``score``; what an ordinary reader
        refuses is read loosely
    protocol : whose rules AP50 is computed by; by the kind of truth when left out
    split : of a ground truth that is a VOC folder
    format : of detections that are a path

    Raises
    ------
    DataError : what no reader can make sense of
    """
    from detmap.analysis.doctor.wide_reading import Reading
    from detmap.core.adapters import options_of, read_truth, read_truth_for
    from detmap.core.protocol.default_protocol import prepare

    if isinstance(truth, Detections):
        raise DataError("doctor", "truth and detections are swapped", "give the ground truth first")
    rules = None if protocol is None else prepare(protocol)
    if isinstance(truth, Truth):
        table = truth
    elif rules is None:
        table = read_truth(truth, split=split)
    else:
        table = read_truth_for(truth, rules, split=split)
    how = {"format": format, **({} if rules is None else options_of(rules))}
    return _examine(table, Reading(detections, how), rules, Clock(None))


def examine_quickly(
    truth: Truth,
    detections: Detections | None,
    protocol: Protocol,
    *,
    reading: Reading | None = None,
    seconds: float | None = None,
    rows: int = 0,
    whole: bool = False,
) -> Findings:
    """Examine tables whose quick checks fail (`signs`), or any with `whole`.

    Parameters
    ----------
    truth, detections : detections are None where the reader refused them
    reading : of the detections, read once more where the reader refused them or dropped rows
    seconds : of processor time; unlimited when left out
    rows : objects and detections that trials may match before the time matters
    """
    clock = Clock(seconds, rows)
    other_rule = protocol.iou.of != "boxes" or protocol.evaluation.rule != "matching"
    if other_rule and detections is not None and len(truth) and not len(detections):
        return Findings([Finding(BARE, no_detection(detections.notes))])
    if detections is not None and not (whole or is_suspicious(truth, detections)):
        return Findings()
    from detmap.analysis.doctor.loose_readers import whole as is_whole
    from detmap.analysis.doctor.wide_reading import Reading

    given = None if reading is None else reading.detections
    shaped = truth.shapes is not None and (isinstance(given, str | Path) or _are_records(given))
    if reading is None or (detections is not None and is_whole(detections) and not shaped):
        reading = Reading(detections, {})
    reading.table = detections
    return _examine(truth, reading, protocol, clock)


def _are_records(given: Any) -> bool:
    """Whether these are COCO's records in memory, whose shapes are read as those of a file."""
    first = given[0] if isinstance(given, list) and given else None
    return isinstance(first, dict) and {"image_id", "category_id"} <= first.keys()


def _examine(
    truth: Truth, reading: Reading, protocol: Protocol | str | None, clock: Clock
) -> Findings:
    """Read raw rows and examine them."""
    from detmap.analysis.doctor import loose_readers
    from detmap.analysis.doctor.examine import Examination
    from detmap.analysis.doctor.trial import trial_of

    raw = loose_readers.read(reading, truth)
    made = Examination(trial_of(truth, protocol, clock), raw)
    return Findings(made.findings, made.left_out, made.not_checked)


def advised(
    error: DataError, truth: Truth, detections: Any, rules: Protocol, how: Mapping[str, Any]
) -> DataError:
    """The error of a reader with the fix of findings that explain unknown names, in the words of
    Python; itself if there are none.
    """
    from detmap.analysis.doctor.wide_reading import Reading
    from detmap.core.adapters import options_of

    reading = Reading(detections, {**how, **options_of(rules)})
    try:
        found = examine_quickly(
            truth, None, rules, reading=reading, seconds=SECONDS, rows=ROWS, whole=True
        )
    except DetmapError:
        return error
    meant = [each for each in found if each.fix and each.name.startswith(("classes-", "images-"))]
    if not meant:
        return error
    names = [name for each in meant for name in each.fix.split() if name != "--fix"]
    given = f'"{names[0]}"' if len(names) == 1 else str(names)
    return DataError(error.where, error.what, f"{meant[0].sentence}: evaluate(..., fix={given})")


def examine_given(
    truth: Any, detections: Any, protocol: Protocol, *, fixable: bool = True, **how: Any
) -> Findings:
    """Quick findings in tables or files, within a few seconds; `how` are options of
    `read_detections`. None for files that are gone by now. Batches are not `fixable`.
    """
    from detmap.analysis.doctor.wide_reading import Reading
    from detmap.core.adapters import options_of, read_truth_for

    try:
        if not isinstance(truth, Truth):
            truth = read_truth_for(truth, protocol)
        if isinstance(detections, Detections):
            whole = extended(truth, detections)
            found = examine_quickly(whole, detections, protocol, seconds=SECONDS)
            made = found if fixable else [replace(each, fix="") for each in found]
            return Findings(made, found.left_out, found.not_checked)
        reading = Reading(detections, {**how, **options_of(protocol)})
        table = reading.strictly(truth)
        truth = extended(truth, table)
    except DetmapError as error:
        return Findings(not_checked=f"the files cannot be read again: {error.what}")
    return examine_quickly(truth, table, protocol, reading=reading, seconds=SECONDS)
