"""Check files for common mistakes: xyxy boxes read as xywh, class ids from 0, scores in percent,
and others. Evaluates the fixed detections for each possible mistake; lists the most likely
findings first, with the option of `eval` that fixes them. Exit 0: no findings; 1: findings (2
with --strict).
"""

from __future__ import annotations

import argparse

from detmap.cli import command_output, evaluation_inputs, options, streams
from detmap.doctor import Finding
from detmap.doctor.examine import Examination
from detmap.doctor.loose_readers import read
from detmap.doctor.trial import trial_of
from detmap.errors import DataError

EXAMPLES = (
    "detmap doctor instances_val2017.json results.json",
    "detmap doctor VOCdevkit/VOC2007 results/ --format json",
    "detmap doctor TRUTH DETECTIONS --strict -o findings.json",
    "detmap doctor --environment",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command, needed=False)
    command.add_argument(
        "--environment",
        action="store_true",
        help="Print versions, optional packages and kernels, for a bug report, and exit.",
    )
    command.add_argument(
        "--format",
        choices=("table", "json"),
        help="Set the output format (default: by the suffix of -o: .json; else table).",
    )
    command.add_argument(
        "--strict", action="store_true", help="Exit with 2 if any check finds a problem."
    )
    options.add_output(command)


def run(arguments: argparse.Namespace) -> int:
    """Read loosely, examine, print."""
    if arguments.environment:
        from detmap.cli import environment_report

        streams.write(environment_report.text(), arguments.output)
        return 0
    if arguments.detections is None:
        fix = "give TRUTH and DETECTIONS, or --environment"
        raise DataError("doctor", "TRUTH and DETECTIONS are missing", fix)
    options.refuse_to_overwrite(arguments.output, (arguments.truth, arguments.detections))
    truth, rules = evaluation_inputs.read_truth_of(arguments)
    refused: list[DataError] = []

    def plainly():  # type: ignore[no-untyped-def]
        try:
            return evaluation_inputs.read_detections_of(arguments, arguments.detections, truth)
        except DataError as error:
            refused.append(error)
            raise

    raw = read(arguments.detections, truth, plainly)
    streams.progress(f"checking {len(raw)} detections")
    findings = Examination(trial_of(truth, rules), raw).findings
    if refused and not findings:
        raise refused[0]
    if arguments.format == "json" or (
        arguments.format is None and arguments.output and arguments.output.suffix == ".json"
    ):
        command_output.write_json({"findings": [each.to_dict() for each in findings]}, arguments)
    else:
        streams.write(told(findings), arguments.output)
    return (2 if arguments.strict else 1) if findings else 0


def told(findings: list[Finding]) -> str:
    """Findings as text: name, AP50 before and after, flag; the sentence below."""
    if not findings:
        return "nothing found\n"
    return "".join(_one(i, each) for i, each in enumerate(findings, start=1))


def _one(number: int, finding: Finding) -> str:
    before, after = (
        "-" if value is None else f"{value:.4f}"
        for value in (finding.ap50_before, finding.ap50_after)
    )
    head = f"{number}. {finding.name:<28} AP50 {before} -> {after}  {finding.fix}".rstrip()
    return f"{head}\n   {finding.sentence}\n"
