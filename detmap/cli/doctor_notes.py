"""`eval` asks the doctor: where detections are refused, many are dropped, or the number is bad."""

from __future__ import annotations

import argparse

from detmap.cli import evaluation_inputs as reading
from detmap.cli import streams
from detmap.errors import DataError
from detmap.protocol import Protocol
from detmap.results.result import Result
from detmap.tables import Detections, Truth

DOUBTFUL = 0.1  # AP50 under which something may be wrong
DROPPED = 0.2  # share of the rows that is suspicious when it is dropped


def add(command: argparse.ArgumentParser) -> None:
    """--fix and --strict."""
    command.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME",
        help="repair the detections as a finding of `detmap doctor` proposes; repeatable",
    )
    command.add_argument(
        "--strict", action="store_true", help="let the doctor look, and exit 2 if it finds anything"
    )


def read(arguments: argparse.Namespace) -> tuple[Truth, Detections, Protocol]:
    """As `reading.read`; with the repairs that were asked for, and with what the doctor says of
    detections that are refused.
    """
    truth, rules = reading.read_truth_of(arguments)

    def strictly() -> Detections:
        return reading.read_detections_of(arguments, arguments.detections, truth)

    if arguments.fix:
        from detmap.doctor import loose_readers as loosely
        from detmap.doctor.fixes import repaired

        raw = loosely.read(arguments.detections, truth, strictly)
        repair = repaired(truth, raw, arguments.fix, rules, unknown=arguments.unknown)
        return truth, repair.detections, rules
    try:
        return truth, strictly(), rules
    except DataError:
        _look(arguments, truth, rules, None)
        raise


def consult(
    result: Result, truth: Truth, detections: Detections, arguments: argparse.Namespace
) -> int:
    """What the doctor says of a result that looks wrong, as notes; the exit code."""
    if not (arguments.strict or _is_suspicious(result, truth, detections)):
        return 0
    findings = _look(arguments, truth, result.protocol, detections)
    return 2 if findings and arguments.strict else 0


def _is_suspicious(result: Result, truth: Truth, detections: Detections) -> bool:
    from detmap.doctor.quick_checks import signs

    if result.protocol.iou.of != "boxes" or not len(truth):
        return False
    dropped = sum(note.count for note in detections.notes if note.code.endswith("-unknown"))
    if dropped > DROPPED * (len(detections) + dropped):
        return True
    ap50 = [
        value
        for row, value in zip(result.rows, result.metrics.values(), strict=True)
        if (row.kind == "AP" and not row.group and len(result.protocol.thresholds()) == 1)
        or row.name == "AP50"
    ]
    return bool(ap50 and ap50[0] < DOUBTFUL) or signs(truth, detections)


def _look(
    arguments: argparse.Namespace, truth: Truth, rules: Protocol, detections: Detections | None
) -> int:
    """Print the findings as notes; how many there are."""
    from detmap.doctor import loose_readers as loosely
    from detmap.doctor.examine import examined
    from detmap.doctor.trial import trial_of

    streams.progress("looking for what may be wrong")
    try:
        whole = detections is not None and loosely.whole(detections)
        raw = loosely.read(detections if whole and detections else arguments.detections, truth)
        findings, _ = examined(trial_of(truth, rules), raw)
    except DataError:  # the reader has said already why
        return 0
    for finding in findings:
        streams.say(f"note: doctor: {finding}\n")
    return len(findings)
