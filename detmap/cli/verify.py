"""Check a receipt: evaluate again, and say whether every bit is the same. Exit 0: it is; 1:
something differs, and what; 2: it cannot be checked, and why.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from detmap import receipt
from detmap.cli import options, receipts, streams
from detmap.errors import DataError

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
    from detmap.cli import eval as command

    known = receipts.read(arguments.receipt)
    paths = {
        name: _path(known, name, arguments) for name in ("truth", "detections", *receipts.FILES)
    }
    again = receipts.again(known, paths)
    again.threads = arguments.threads
    found = [
        f"{role}: another file: {_told(known.content['inputs'][role])} then, {_told(now)} now"
        for role, now in _digests(paths).items()
        if _told(known.content["inputs"].get(role, {})) != _told(now)
    ]
    result = command.evaluated(again)[2]
    numbers = receipt.differences(known, result)
    if not numbers:
        streams.inform(f"{arguments.receipt}: the same bits: {result.signature}\n")
        for line in found:
            streams.say(f"note: {line}; the numbers are the same\n")
        return 0
    for line in (*found, *numbers):
        streams.inform(f"{arguments.receipt}: {line}\n")
    version = known.content["environment"].get("detmap")
    streams.say(f"note: the receipt is of detmap {version}\n")
    return 1


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
    name = known.content["inputs"][role].get("name")
    for word in known.content["command"]:
        if isinstance(word, str) and Path(word.rpartition("=")[2]).name == name:
            path = word.rpartition("=")[2]
            if Path(path).exists():
                return path
    fix = f"say where it is: --{role.replace('_', '-')} PATH"
    raise DataError(arguments.receipt, f"{role}: {name!r:.80} is not where it was", fix)


def _digests(paths: dict[str, str | None]) -> dict[str, dict[str, Any]]:
    return {role: receipt.digest_of(path) for role, path in paths.items() if path is not None}


def _told(digest: Any) -> str:
    if not isinstance(digest, dict):
        return "nothing"
    return f"sha256 {str(digest.get('sha256'))[:12]}"
