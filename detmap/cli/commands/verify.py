"""Check a receipt: evaluate again, and say whether every bit is the same. Exit 0: it is; 1:
something differs, and what; 2: it cannot be checked, and why.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

from detmap.cli import options, streams
from detmap.cli import receipt_files as receipts
from detmap.errors import DataError
from detmap.explaining import record_changes as records
from detmap.explaining.record_changes import Part
from detmap.results import receipt

EXAMPLES = (
    "detmap verify run.json",
    "detmap verify run.json --truth instances.json --detections results.json",
    "detmap verify run.json --truth VOC2007/ --detections results/ --threads 1",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "receipt", metavar="RECEIPT", type=options.place, help="what `eval --receipt` wrote"
    )
    for name in ("truth", "detections", *receipts.FILES):
        command.add_argument(
            f"--{name.replace('_', '-')}",
            type=options.place,
            metavar="PATH",
            help="where it is now (default: where the command in the receipt found it)",
        )
    options.add_threads(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate again, compare."""
    from detmap.cli.commands import eval as command

    known = receipts.read(arguments.receipt)
    paths = {
        name: _path(known, name, arguments) for name in ("truth", "detections", *receipts.FILES)
    }
    again = receipts.again(known, paths)
    again.threads = arguments.threads
    truth, detections, result, _ = command.evaluated(again)
    now = receipts.made(truth, detections, result, again)
    before = records.of_receipt(known, arguments.receipt)
    parts = records.compared(before, records.of_receipt(now, "now"))
    cause = records.cause(parts)
    told = [] if cause else [f"the same bits: {result.signature}"]
    for part in parts:
        if part.same:
            continue
        if cause and (part.decides or part.name.endswith(" file")):
            told.append(_line(part))
        else:
            streams.say(f"note: {_line(part)}\n")
    if cause:
        told.append(f"the two differ by {cause}")
    with suppress(BrokenPipeError), streams.stdout() as stream:
        stream.write(streams.harmless("".join(f"{arguments.receipt}: {each}\n" for each in told)))
    if cause:
        streams.say("note: `detmap explain TRUTH DETECTIONS --receipt` says what each is worth\n")
    return int(bool(cause))


def _line(part: Part) -> str:
    if part.name.startswith(records.ITSELF):
        name = part.name.removeprefix(records.ITSELF)
        return f"{name}: {part.theirs} as it says, {part.ours} by its other parts"
    role = part.name.removesuffix(" file")
    if role == part.name:
        return str(part)
    return f"{role}: another file: {part.theirs} then, {part.ours} now ({part.remark})"


def _path(known: receipt.Receipt, role: str, arguments: argparse.Namespace) -> str | None:
    """Where an input is: as asked for, else as the receipt's command had it."""
    given = getattr(arguments, role)
    if role not in known.content["inputs"]:
        if given is not None:
            what = f"the receipt is of an evaluation without --{role.replace('_', '-')}"
            raise DataError(arguments.receipt, what, "leave it out")
        return None
    if given is not None:
        return str(given)
    place = receipts.place_of(known, role)
    if place is not None:
        return place
    name = known.content["inputs"][role]["name"]
    fix = f"say where it is: --{role.replace('_', '-')} PATH"
    raise DataError(arguments.receipt, f"{role}: {name!r:.80} is not where it was", fix)
