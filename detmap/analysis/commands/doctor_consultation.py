"""The doctor's part in the commands that read detections: fixes, and findings as notes."""

import argparse
from dataclasses import replace

from detmap.analysis.doctor import ROWS, examine_quickly, loose_readers
from detmap.analysis.doctor.examine import Examination
from detmap.analysis.doctor.fixes import repaired
from detmap.analysis.doctor.hypothesis_names import FIXES
from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.trial import trial_of
from detmap.analysis.doctor.wide_reading import Reading
from detmap.cli import evaluation_inputs, streams
from detmap.core.protocol import Protocol
from detmap.core.results.findings import Findings
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.errors import DataError

SHARE = 0.9  # of the processor time of reading that an examination may take


def fixed(arguments: argparse.Namespace, path: str, truth: Truth, rules: Protocol) -> Detections:
    """Read detections and apply the fixes that were asked for."""
    raw, truth = read_loosely(ordinary(arguments, path), truth)
    names = arguments.fix
    if _several(arguments):  # only the detectors that have the mistake
        found = {each.name for each in Examination(trial_of(truth, rules), raw).findings}
        names = [name for name in names if name in found or name not in FIXES]
    made = repaired(truth, raw, names, rules, unknown=arguments.unknown)
    if _several(arguments):  # the notes of one table are not those of a comparison
        for each in made.repairs:
            streams.say(f"note: {path}: detections were fixed: {each.sentence}\n")
    return made.detections


def ordinary(arguments: argparse.Namespace, path: str) -> Reading:
    """Return the reader of the command's detections."""
    return Reading(path, evaluation_inputs.detection_options(arguments))


def read_loosely(reading: Reading, truth: Truth) -> tuple[Raw, Truth]:
    """Read raw rows, and add to the ground truth what the ordinary reader adds."""
    streams.progress(f"reading {reading.detections}")
    raw = loose_readers.read(reading, truth)
    return raw, truth if reading.table is None else extended(truth, reading.table)


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
    streams.progress("checking input files for common mistakes")
    truth = truth if detections is None else extended(truth, detections)
    try:
        found = examine_quickly(
            truth,
            detections,
            rules,
            reading=None if arguments.fix else ordinary(arguments, path),
            seconds=SHARE * spent,
            rows=ROWS,
            whole=True,
        )
    except DataError:  # the reader has reported it
        return
    if _several(arguments):
        named = (replace(each, detections=path) for each in found)
        found = Findings(named, found.left_out, found.not_checked)
    known = getattr(arguments, "findings", None) or Findings()
    arguments.findings = Findings(
        (*known, *found), (*known.left_out, *found.left_out), known.not_checked or found.not_checked
    )
    for finding in found:
        streams.say(f"note: doctor: {finding}\n")
    if found.not_checked:
        streams.say(f"note: doctor: not checked: {found.not_checked}\n")
    if found.left_out:
        names = ", ".join(found.left_out)
        streams.say(f"note: doctor: no time for: {names}; `detmap doctor` checks everything\n")
