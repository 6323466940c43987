"""Check files for common mistakes: xyxy boxes read as xywh, class ids from 0, scores in percent,
and others. Evaluates the fixed detections for each possible mistake; lists the most likely
findings first, with the option of `eval` that fixes them. TRUTH alone, or several with --each:
check only what is annotated (for pre-commit). Exit 0: no findings; 1: findings (2 with --strict).
"""

import argparse
from pathlib import Path
from typing import Any

from detmap.analysis.commands import doctor_consultation
from detmap.analysis.doctor import Finding, truth_file
from detmap.analysis.doctor.examine import Examination
from detmap.analysis.doctor.trial import trial_of
from detmap.analysis.doctor.truth_facts import alone, rare_classes
from detmap.cli import command_output, evaluation_inputs, options, streams
from detmap.errors import DataError

EXAMPLES = (
    "detmap doctor instances_val2017.json results.json",
    "detmap doctor VOCdevkit/VOC2007 results/ --format json",
    "detmap doctor TRUTH DETECTIONS --strict -o findings.json",
    "detmap doctor instances_val2017.json",
    "detmap doctor --each train.json val.json test.json",
    "detmap doctor --environment",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command, needed=False)
    command.add_argument(
        "more", metavar="FILE", nargs="*", type=options.place, help="Further files, with --each."
    )
    command.add_argument(
        "--each",
        action="store_true",
        help="Check each file as ground truth alone; none of them is read as detections.",
    )
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
        from detmap.analysis.commands import environment_report

        streams.write(environment_report.text(), arguments.output)
        return 0
    if arguments.truth is None:
        fix = "give TRUTH and DETECTIONS, TRUTH alone, or --environment"
        raise DataError("doctor", "TRUTH is missing", fix)
    if arguments.each or arguments.detections is None:
        return _run_truths(arguments)
    if arguments.more:
        fix = "give TRUTH and DETECTIONS, or --each to check every file as ground truth"
        raise DataError(f"doctor: {arguments.more[0]}", "is a third file", fix)
    options.refuse_to_overwrite(arguments.output, (arguments.truth, arguments.detections))
    truth, rules = evaluation_inputs.read_truth_of(arguments)
    if rules.evaluation.rule == "froc_spheres":
        what = "the checks are for boxes, and this protocol compares spheres"
        raise DataError(f"protocol {rules.name}", what, "use `detmap inspect` to see what is read")
    reading = doctor_consultation.ordinary(arguments, arguments.detections)
    raw, truth = doctor_consultation.read_loosely(reading, truth)
    streams.progress(f"checking {len(raw)} detections")
    made = Examination(trial_of(truth, rules), raw)
    findings = made.findings
    if reading.error is not None and not findings:
        raise reading.error
    listed: dict[str, Any] = {"findings": [each.to_dict() for each in findings]}
    text = f"not checked: {made.not_checked}\n" if made.not_checked else told(findings)
    if made.not_checked or made.left_out:
        listed["not_checked"] = [*filter(None, [made.not_checked]), *made.left_out]
    if made.left_out:
        text += f"not checked, as it would take too long: {', '.join(made.left_out)}\n"
    _write(arguments, listed, text)
    return (2 if arguments.strict else 1) if findings else 0


def _run_truths(arguments: argparse.Namespace) -> int:
    """Check ground truths alone; a file that cannot be read does not stop the others."""
    paths = [arguments.truth, arguments.detections, *arguments.more]
    paths = [path for path in paths if path is not None]
    options.refuse_to_overwrite(arguments.output, paths)
    found: dict[str, list[Finding]] = {}
    unread = False
    for path in paths:
        one = argparse.Namespace(**{**vars(arguments), "truth": path})
        file = Path(path) if isinstance(path, str) else None
        try:
            truth, rules = evaluation_inputs.read_truth_of(one, empty=True)
        except DataError as error:
            errors = truth_file.check(file) if file is not None else None
            if len(paths) == 1 and not errors:
                raise
            unread = True
            streams.say(f"detmap: error: {error}\n")
            if errors:
                found[str(path)] = errors
            continue
        found[str(path)] = alone(trial_of(truth, rules), file)
        remark = rare_classes(truth)
        if remark:
            streams.say(f"note: {path}: {remark}\n")
    listed = {path: [each.to_dict() for each in some] for path, some in found.items()}
    texts = [told(some) for some in found.values()]
    if arguments.each or len(paths) > 1:
        texts = [f"{path}: {text}" for path, text in zip(found, texts, strict=True)]
    _write(arguments, {"findings": listed}, "".join(texts))
    if unread:
        return 2
    return (2 if arguments.strict else 1) if any(found.values()) else 0


def _write(arguments: argparse.Namespace, content: dict[str, Any], text: str) -> None:
    if arguments.format == "json" or (
        arguments.format is None and arguments.output and arguments.output.suffix == ".json"
    ):
        command_output.write_json(content, arguments)
    else:
        streams.write(text, arguments.output)


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
    ap50 = "" if before == after == "-" else f"AP50 {before} -> {after}"
    head = f"{number}. {finding.name:<28} {ap50}  {finding.fix}".rstrip()
    return f"{head}\n   {finding.sentence}\n"
