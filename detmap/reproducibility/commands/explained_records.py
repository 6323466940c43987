"""`explain` for receipts, result JSON and signatures: two of them, or one and the given files."""

import argparse
import json
from pathlib import Path
from typing import Any

from detmap.cli import command_output, evaluation_inputs, options, streams
from detmap.core.base.open_files import read_bytes
from detmap.core.output.table import Table
from detmap.errors import DataError, DetmapError
from detmap.reproducibility import receipt, receipt_files
from detmap.reproducibility.commands import replay
from detmap.reproducibility.explaining import record_changes, records
from detmap.reproducibility.explaining.record_changes import Part
from detmap.reproducibility.explaining.records import Record
from detmap.reproducibility.explaining.steps import Explanation
from detmap.reproducibility.explaining.waypoints import Waypoint, explained
from detmap.reproducibility.receipt import Receipt

FOLLOWING = ("signature", "short")
"""Parts that differ only because others do; not shown."""


def add(command: argparse.ArgumentParser) -> None:
    """--receipt and --signature."""
    command.add_argument(
        "--receipt",
        action="append",
        type=options.place,
        default=[],
        metavar="FILE",
        help="Compare with a file written by `eval --receipt` or `eval --format json`; report "
        "each difference and its effect. Give it twice to compare two files.",
    )
    command.add_argument(
        "--signature",
        action="append",
        default=[],
        metavar="S",
        help="Compare with the signature printed below another result.",
    )


def named(arguments: argparse.Namespace) -> list[str]:
    """Return the given records, including those given as TRUTH and DETECTIONS."""
    words = [*arguments.receipt, *arguments.signature]
    places = [each for each in (arguments.truth, arguments.detections) if each is not None]
    if words or not places:
        return words
    are = [_is_record(each) for each in places]
    if any(are) and not (len(are) == 2 and all(are)):
        fix = "give two of them, or TRUTH DETECTIONS --receipt FILE"
        raise DetmapError(places[are.index(True)], "is the record of one result", fix)
    if not any(are):
        return words
    arguments.truth = arguments.detections = None
    return [str(each) for each in places]


def run(arguments: argparse.Namespace, words: list[str]) -> int:
    """Compare and print; return 1 if a difference affects the numbers."""
    if len(words) > 2:
        raise DetmapError("explain", f"{len(words)} receipts and signatures", "give one or two")
    found = [_read(word) for word in words]
    if arguments.truth is None or arguments.detections is None:
        if len(found) < 2 or arguments.truth is not None:
            fix = "give TRUTH and DETECTIONS, or two receipts"
            raise DetmapError("explain", "needs two results", fix)
        one, other = (record for record, _ in found)
        return _tell(record_changes.compared(one, other), None, arguments)
    truth, detections, rules = evaluation_inputs.read(arguments)
    truths = evaluation_inputs.truth_of_protocols(arguments, truth, rules)
    if len(found) == 2:
        if arguments.protocol is not None or arguments.set:
            raise DetmapError("-p", "conflicts with the receipts", "remove -p and --set")
        one, other = (record for record, _ in found)
    else:
        from detmap.evaluate import evaluate

        streams.progress("evaluating")
        result = evaluate(truth, detections, rules, threads=arguments.threads)
        now = receipt_files.made(truth, detections, result, arguments)
        one, other = found[0][0], records.receipt_record(now, "now")
    parts = record_changes.compared(one, other)
    waypoints = [Waypoint("input options", _options(parts), truth, detections, truths)]
    if found[0][1] is not None and len(found) == 1:
        waypoints = [*_earlier(found[0][1], parts, arguments), *waypoints]
    how = {"shapley": arguments.shapley, "seed": arguments.seed, "threads": arguments.threads}
    steps = None
    try:
        reason = record_changes.cause(tuple(part for part in parts if part.name != "proto"))
        steps = explained(one, other, waypoints, reason or "unknown from these files", **how)
    except DetmapError as error:
        streams.say(f"note: no step-by-step explanation: {error.where}: {error.what}\n")
    return _tell(parts, steps, arguments)


def _earlier(
    known: Receipt, parts: tuple[Part, ...], arguments: argparse.Namespace
) -> list[Waypoint]:
    """Return the unchanged files of a receipt, and the given files read with its options."""
    differ = {part.name for part in parts if not part.same}
    now = {
        name: getattr(arguments, name, None)
        for name in ("truth", "detections", *receipt_files.FILES)
    }
    wanted = known.content["inputs"]
    found = []
    if differ & {"truth", "detections", "data"}:
        then = {name: receipt_files.place_of(known, name) for name in now}
        if all(then[role] and _is_intact(str(then[role]), wanted[role]) for role in wanted):
            found += _waypoint("files", "as in the receipt", known, then)
    if any(name.startswith("--") for name in differ):
        own = {name: receipt_files.place_of(known, name) for name in receipt_files.FILES}
        at_hand = {name: now[name] or own.get(name) for name in now if name in wanted}
        at_hand = {**dict.fromkeys(now), **at_hand}
        found += _waypoint("other files", ", ".join(sorted(differ)), known, at_hand)
    return found


def _is_intact(path: str, digest: dict[str, Any]) -> bool:
    try:
        return receipt.is_same(path, digest)
    except (DataError, OSError):
        return False


def _waypoint(title: str, detail: str, known: Receipt, paths: dict[str, Any]) -> list[Waypoint]:
    """Read paths with the options of a receipt; return [] on an error."""
    try:
        truth, detections, _ = replay.evaluated(known, paths)
    except (DetmapError, argparse.ArgumentError, TypeError):
        return []
    return [Waypoint(title, detail, truth, detections)]


def _options(parts: tuple[Part, ...]) -> str:
    differ = [part for part in parts if part.name.startswith("--") and not part.same]
    return "; ".join(f"{part.name}: {part.theirs} -> {part.ours}" for part in differ)


def _tell(parts: tuple[Part, ...], steps: Explanation | None, arguments: argparse.Namespace) -> int:
    """Print the differences, their cause, and the steps."""
    cause = record_changes.cause(parts)
    if arguments.format == "json":
        content = {
            "parts": [part.to_dict() for part in parts],
            "cause": cause,
            **({} if steps is None else steps.to_dict()),
        }
        command_output.write_json(content, arguments)
    else:
        shown = [part for part in parts if not part.same and part.name not in FOLLOWING] or parts
        rows = tuple((part.name, part.theirs, part.ours, part.remark) for part in shown)
        below = (
            f"they differ by {cause}" if cause else "no difference affects the numbers",
            f"identical: {', '.join(part.name for part in parts if part.same) or 'nothing'}",
        )
        table = Table("", ("part", "first", "other", "remark"), rows, below, name="parts")
        command_output.write_tables([table, *(steps.tables() if steps else ())], arguments)
    return int(bool(cause))


# --- reading them ---------------------------------------------------------------------------------


def _read(word: str) -> tuple[Record, Receipt | None]:
    """Read a record from a signature or file, and its receipt if it is one."""
    if records.is_signature(word):
        return records.signature_record(word), None
    data = read_bytes(word, most=receipt.MAX_BYTES)
    try:
        tree = json.loads(data, object_pairs_hook=receipt.unique)
    except (ValueError, RecursionError):
        tree = {"receipt": None}  # `receipt.parse` reports the error
    if isinstance(tree, dict) and "receipt" not in tree and "signature" in tree:
        return records.json_record(tree, word), None
    known = receipt.parse(data, word)
    return records.receipt_record(known, word), known


def _is_record(word: str) -> bool:
    """Whether a word is a signature, or the path of a receipt or result JSON."""
    if records.is_signature(word):
        return True
    try:
        if Path(word).stat().st_size > receipt.MAX_BYTES:
            return False
        tree = json.loads(read_bytes(word, most=receipt.MAX_BYTES))
    except (DataError, OSError, ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and "signature" in tree and "metrics" in tree
