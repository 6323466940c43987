"""The quick doctor of every command that reads detections: findings are printed before the number,
and `--fix` applies what they propose.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from detmap.cli import evaluation_inputs as reading
from detmap.cli import streams
from detmap.doctor.quick_checks import is_suspicious
from detmap.errors import DataError
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth
from detmap.tables.extension import extended

SHARE = 0.9  # of the processor time of reading that it may take


def add(command: argparse.ArgumentParser, *, strict: bool = False) -> None:
    """--fix, and --strict."""
    command.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME",
        help="Fix the detections as a finding of `detmap doctor` proposes; repeatable.",
    )
    if strict:
        command.add_argument(
            "--strict",
            action="store_true",
            help="Run all input checks and exit with 2 if any finds a problem.",
        )


def read(
    arguments: argparse.Namespace, *, empty: bool = False, extend: bool = True
) -> tuple[Truth, Detections, Protocol]:
    """As `reading.read`, with the requested fixes and the findings. Without
    `extend` the ground truth lacks the images and classes that the detections add.
    """
    begin = time.process_time()
    truth, rules = reading.read_truth_of(arguments, empty=empty)
    spent = time.process_time() - begin
    detections = read_detections(arguments, arguments.detections, truth, rules, spent)
    return extended(truth, detections) if extend else truth, detections, rules


def read_detections(
    arguments: argparse.Namespace, path: str, truth: Truth, rules: Protocol, spent: float = 0.0
) -> Detections:
    """As `reading.read_detections_of`, with fixes and findings; the doctor takes no longer than
    reading did, except for `doctor.ROWS`. `spent` is the processor time of reading the ground truth
    (seconds).
    """
    begin = time.process_time() - spent

    def strictly() -> Detections:
        return reading.read_detections_of(arguments, path, truth)

    try:
        detections = _fixed(arguments, path, truth, rules) if arguments.fix else strictly()
    except DataError:
        if not arguments.fix:
            consult(arguments, path, truth, None, rules, time.process_time() - begin)
        raise
    boxes = rules.iou.of == "boxes" and rules.evaluation.rule == "matching"
    strict, empty = getattr(arguments, "strict", False), not len(detections)
    if strict or ((boxes or empty) and is_suspicious(truth, detections)):
        consult(arguments, path, truth, detections, rules, time.process_time() - begin)
    return detections


def _fixed(arguments: argparse.Namespace, path: str, truth: Truth, rules: Protocol) -> Detections:
    from detmap.doctor import loose_readers as loosely
    from detmap.doctor.fixes import repaired
    from detmap.doctor.hypothesis_names import FIXES

    raw = loosely.read(path, truth, lambda: reading.read_detections_of(arguments, path, truth))
    names = arguments.fix
    if _several(arguments):  # only the detectors that have the mistake
        from detmap.doctor.examine import Examination
        from detmap.doctor.trial import trial_of

        found = {each.name for each in Examination(trial_of(truth, rules), raw).findings}
        names = [name for name in names if name in found or name not in FIXES]
    made = repaired(truth, raw, names, rules, unknown=arguments.unknown)
    if _several(arguments):  # the notes of one table are not those of a comparison
        for each in made.repairs:
            streams.say(f"note: {path}: detections were fixed: {each.sentence}\n")
    return made.detections


def _several(arguments: argparse.Namespace) -> bool:
    """Whether a command compares detectors."""
    return isinstance(arguments.detections, list) or bool(getattr(arguments, "other", None))


def consult(
    arguments: argparse.Namespace,
    path: str,
    truth: Truth,
    detections: Detections | None,
    rules: Protocol,
    spent: float = 0.0,
) -> None:
    """Print the findings as notes, and keep them as `arguments.findings`."""
    from detmap.doctor import ROWS, Findings, examine_quickly

    streams.progress("checking input files for common mistakes")
    seconds = SHARE * spent
    again = None if arguments.fix else path
    try:
        found = examine_quickly(
            truth, detections, rules, path=again, seconds=seconds, rows=ROWS, whole=True
        )
    except DataError:  # the reader has reported it
        return
    if _several(arguments):
        found = Findings((replace(each, detections=path) for each in found), found.left_out)
    known = getattr(arguments, "findings", None) or Findings()
    arguments.findings = Findings((*known, *found), (*known.left_out, *found.left_out))
    for finding in found:
        streams.say(f"note: doctor: {finding}\n")
    if found.left_out:
        names = ", ".join(found.left_out)
        streams.say(f"note: doctor: no time for: {names}; `detmap doctor` checks everything\n")
