"""`explain` of what was written of results: receipts, the JSON of results, signatures; each against
another, or against a result of the files at hand.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from detmap.base.open_files import read_bytes
from detmap.cli import command_output as output
from detmap.cli import evaluation_inputs as reading
from detmap.cli import options, replay, streams
from detmap.cli import receipt_files as receipts
from detmap.errors import DataError, DetmapError
from detmap.explaining import record_changes as records
from detmap.explaining.record_changes import Part, Record
from detmap.explaining.steps import Explanation
from detmap.explaining.waypoints import Station, explained
from detmap.output.table import Table
from detmap.results import receipt
from detmap.results.receipt import Receipt

FOLLOWING = ("signature", "short")
"""Parts that differ because others do, which are shown."""


def add(command: argparse.ArgumentParser) -> None:
    """--receipt and --signature."""
    command.add_argument(
        "--receipt",
        action="append",
        type=options.place,
        default=[],
        metavar="FILE",
        help="what `eval --receipt` or `eval --format json` wrote of another result: say what "
        "differs, and what it is worth; twice: of one against the other",
    )
    command.add_argument(
        "--signature",
        action="append",
        default=[],
        metavar="S",
        help="the line under another result",
    )


def named(arguments: argparse.Namespace) -> list[str]:
    """The records that were asked for, as words: also those in the place of truth and detections,
    where they are such.
    """
    words = [*arguments.receipt, *arguments.signature]
    places = [each for each in (arguments.truth, arguments.detections) if each is not None]
    if words or not places:
        return words
    are = [_is_record(each) for each in places]
    if any(are) and not (len(are) == 2 and all(are)):
        fix = "give two of them, or TRUTH DETECTIONS --receipt FILE"
        raise DetmapError(places[are.index(True)], "is what was written of one result", fix)
    if not any(are):
        return words
    arguments.truth = arguments.detections = None
    return [str(each) for each in places]


def run(arguments: argparse.Namespace, words: list[str]) -> int:
    """Compare, print; 1 where something differs that decides."""
    if len(words) > 2:
        raise DetmapError("explain", f"{len(words)} receipts and signatures", "give one or two")
    found = [_read(word) for word in words]
    if arguments.truth is None or arguments.detections is None:
        if len(found) < 2 or arguments.truth is not None:
            fix = "give TRUTH and DETECTIONS, or two receipts"
            raise DetmapError("explain", "one result is explained against another", fix)
        one, other = (record for record, _ in found)
        return _tell(records.compared(one, other), None, arguments)
    truth, detections, rules = reading.read(arguments)
    if len(found) == 2:
        if arguments.protocol is not None or arguments.set:
            raise DetmapError("-p", "is what the receipts say", "leave -p and --set out")
        one, other = (record for record, _ in found)
    else:
        from detmap.evaluate import evaluate

        streams.progress("evaluating")
        result = evaluate(truth, detections, rules, threads=arguments.threads)
        now = receipts.made(truth, detections, result, arguments)
        one, other = found[0][0], records.receipt_record(now, "now")
    parts = records.compared(one, other)
    stations = [Station("how the inputs are read", _options(parts), truth, detections)]
    if found[0][1] is not None and len(found) == 1:
        stations = [*_earlier(found[0][1], parts, arguments), *stations]
    how = {"shapley": arguments.shapley, "seed": arguments.seed, "threads": arguments.threads}
    steps = None
    try:
        reason = records.cause(tuple(part for part in parts if part.name != "proto"))
        steps = explained(one, other, stations, reason or "not to be told from here", **how)
    except DetmapError as error:
        streams.say(f"note: no steps from number to number: {error.where}: {error.what}\n")
    return _tell(parts, steps, arguments)


def _earlier(
    known: Receipt, parts: tuple[Part, ...], arguments: argparse.Namespace
) -> list[Station]:
    """The files that a receipt was made from, where they are still; and those at hand, read as the
    receipt says, where they are read otherwise now.
    """
    differ = {part.name for part in parts if not part.same}
    now = {
        name: getattr(arguments, name, None) for name in ("truth", "detections", *receipts.FILES)
    }
    wanted = known.content["inputs"]
    found = []
    if differ & {"truth", "detections", "data"}:
        then = {name: receipts.place_of(known, name) for name in now}
        if all(then[role] and _is_intact(str(then[role]), wanted[role]) for role in wanted):
            found += _station("files", "as they were", known, then)
    if any(name.startswith("--") for name in differ):
        own = {name: receipts.place_of(known, name) for name in receipts.FILES}
        at_hand = {name: now[name] or own.get(name) for name in now if name in wanted}
        at_hand = {**dict.fromkeys(now), **at_hand}
        found += _station("other files", ", ".join(sorted(differ)), known, at_hand)
    return found


def _is_intact(path: str, digest: dict[str, Any]) -> bool:
    try:
        return receipt.is_same(path, digest)
    except (DataError, OSError):
        return False


def _station(title: str, detail: str, known: Receipt, paths: dict[str, Any]) -> list[Station]:
    """The tables of paths, read as a receipt says; none where they cannot be."""
    try:
        truth, detections, _ = replay.evaluated(known, paths)
    except (DetmapError, argparse.ArgumentError, TypeError):
        return []
    return [Station(title, detail, truth, detections)]


def _options(parts: tuple[Part, ...]) -> str:
    differ = [part for part in parts if part.name.startswith("--") and not part.same]
    return "; ".join(f"{part.name}: {part.theirs} -> {part.ours}" for part in differ)


def _tell(parts: tuple[Part, ...], steps: Explanation | None, arguments: argparse.Namespace) -> int:
    """Print what differs, why, and the steps."""
    cause = records.cause(parts)
    if arguments.format == "json":
        content = {
            "parts": [part.to_dict() for part in parts],
            "cause": cause,
            **({} if steps is None else steps.to_dict()),
        }
        output.write_json(content, arguments)
    else:
        shown = [part for part in parts if not part.same and part.name not in FOLLOWING] or parts
        rows = tuple((part.name, part.theirs, part.ours, part.remark) for part in shown)
        below = (
            f"they differ by {cause}" if cause else "nothing differs that decides",
            f"the same: {', '.join(part.name for part in parts if part.same) or 'nothing'}",
        )
        table = Table("", ("part", "first", "other", "remark"), rows, below, name="parts")
        output.write_tables([table, *(steps.tables() if steps else ())], arguments)
    return int(bool(cause))


# --- reading them ---------------------------------------------------------------------------------


def _read(word: str) -> tuple[Record, Receipt | None]:
    """A record from a signature, or from a file; and the receipt where it is one."""
    if records.is_signature(word):
        return records.signature_record(word), None
    data = read_bytes(word, most=receipt.MAX_BYTES)
    try:
        tree = json.loads(data, object_pairs_hook=receipt.unique)
    except (ValueError, RecursionError):
        tree = {"receipt": None}  # whose reader says what is wrong
    if isinstance(tree, dict) and "receipt" not in tree and "signature" in tree:
        return records.of_json(tree, word), None
    known = receipt.parse(data, word)
    return records.receipt_record(known, word), known


def _is_record(word: str) -> bool:
    """Whether a word is a signature, or names a receipt or the JSON of a result."""
    if records.is_signature(word):
        return True
    try:
        if Path(word).stat().st_size > receipt.MAX_BYTES:
            return False
        tree = json.loads(read_bytes(word, most=receipt.MAX_BYTES))
    except (DataError, OSError, ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and "signature" in tree and "metrics" in tree
