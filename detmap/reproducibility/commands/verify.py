"""Verify a receipt: evaluate again and compare every bit. Exit 0: identical; 1: different; 2: the
receipt cannot be verified.
"""

import argparse
from contextlib import suppress

from detmap.cli import streams
from detmap.reproducibility import receipt_files
from detmap.reproducibility.commands import replay
from detmap.reproducibility.explaining import record_changes
from detmap.reproducibility.explaining.record_changes import Part
from detmap.reproducibility.verification import verified

EXAMPLES = (
    "detmap verify run.json",
    "detmap verify run.json instances.json results.json",
    "detmap verify run.json --truth VOC2007/ --detections results/ --threads 1",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    replay.add(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate again, compare."""
    found = verified(receipt_files.read(arguments.receipt), arguments)
    told = [] if found.cause else [found.sentence, found.result.signature]
    for part in found.parts:
        if part.same:
            continue
        if found.cause and (part.decides or part.name.endswith(" file")):
            told.append(_line(part))
        else:
            streams.say(f"note: {_line(part)}\n")
    if found.cause:
        told.append(found.sentence)
    with suppress(BrokenPipeError), streams.stdout() as stream:
        stream.write(streams.harmless("".join(f"{arguments.receipt}: {each}\n" for each in told)))
    if found.cause:
        command = f"detmap explain TRUTH DETECTIONS --receipt {arguments.receipt}"
        streams.say(f"note: `{command}` reports the effects\n")
    return int(bool(found.cause))


def _line(part: Part) -> str:
    if part.name.startswith(record_changes.ITSELF):
        name = part.name.removeprefix(record_changes.ITSELF)
        return f"{name}: {part.theirs} in the receipt, {part.ours} computed from its other parts"
    role = part.name.removesuffix(" file")
    if role == part.name:
        return str(part)
    return f"{role}: file changed: {part.theirs} in the receipt, {part.ours} now ({part.remark})"
