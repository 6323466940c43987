"""The quick doctor of every command that reads detections: findings are printed before the number,
and `--fix` applies what they propose.
"""

import argparse
import time
from typing import Any

from detmap import wings
from detmap.cli import evaluation_inputs as reading
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.errors import DataError


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
    reading did, except for `detmap.analysis.doctor.ROWS`. `spent` is the processor time of reading
    the ground truth (seconds).
    """
    begin = time.process_time() - spent

    def strictly() -> Detections:
        return reading.read_detections_of(arguments, path, truth)

    try:
        if arguments.fix:
            read_fixed = wings.required_hook("fixed")
            detections: Detections = read_fixed(arguments, path, truth, rules)
        else:
            detections = strictly()
    except DataError as error:
        if arguments.fix:
            raise
        before = len(getattr(arguments, "findings", None) or ())
        consult(arguments, path, truth, None, rules, time.process_time() - begin)
        found = (getattr(arguments, "findings", None) or [])[before:]
        raise _with_advice(error, [each for each in found if each.fix]) from None
    if _needs_consultation(arguments, truth, detections, rules):
        consult(arguments, path, truth, detections, rules, time.process_time() - begin)
    return detections


def _with_advice(error: DataError, found: list[Any]) -> DataError:
    """The error with the fix of the findings, if they explain unknown names: its own advice may
    lead to another number.
    """
    if not any(each.name.startswith(("classes-", "images-")) for each in found):
        return error
    flags = " ".join(each.fix for each in found)
    meant, _, _ = error.fix.partition("; ")
    hint = f"{meant}; " if meant.startswith("did you mean") else ""
    return DataError(error.where, error.what, f"{hint}{flags}, as explained by the notes above")


def _needs_consultation(
    arguments: argparse.Namespace, truth: Truth, detections: Detections, rules: Protocol
) -> bool:
    """Whether all checks are asked for, or a quick one fails."""
    if getattr(arguments, "strict", False):
        wings.required_hook("consult")
        return True
    truth = extended(truth, detections)
    matched = rules.evaluation.rule == "matching"
    is_suspicious = wings.hook("is_suspicious")
    return (
        (matched or not len(detections))
        and is_suspicious is not None
        and bool(is_suspicious(truth, detections))
    )


def consult(
    arguments: argparse.Namespace,
    path: str,
    truth: Truth,
    detections: Detections | None,
    rules: Protocol,
    spent: float = 0.0,
) -> None:
    """Print the findings as notes, and keep them as `arguments.findings`; `spent` as in
    `read_detections`. Does nothing without the doctor.
    """
    print_findings = wings.hook("consult")
    if print_findings is not None:
        print_findings(arguments, path, truth, detections, rules, spent)
