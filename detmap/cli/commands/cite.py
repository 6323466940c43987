"""Print words for a paper from a receipt: a sentence, a table's caption with the signature, and
BibTeX references of the benchmark and of detmap. First the receipt is verified, as by `detmap
verify`; one that fails is refused with exit code 2.
"""

from __future__ import annotations

import argparse

from detmap.base.printable import shown
from detmap.cli import options, receipt_files, replay, streams
from detmap.errors import DataError, few
from detmap.explaining import record_changes
from detmap.results import citation, receipt
from detmap.results.receipt import Receipt

EXAMPLES = (
    "detmap cite run.json",
    "detmap cite run.json --truth instances.json --detections results.json -o citation.txt",
    "detmap cite receipts/voc2007.json --unverified",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    replay.add(command)
    command.add_argument(
        "--unverified",
        action="store_true",
        help="print the receipt's numbers without evaluating again; the sentence says so",
    )
    options.add_output(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, verify, print."""
    inputs = [arguments.receipt, *(getattr(arguments, name) for name in replay.INPUTS)]
    options.refuse_to_overwrite(arguments.output, inputs)
    known = receipt_files.read(arguments.receipt)
    if not arguments.unverified:
        _verify(known, arguments)
    sentence = citation.sentence(known, verified=not arguments.unverified)
    text = "\n\n".join([sentence, citation.caption(known), *citation.bibtex(known)])
    streams.write("".join(f"{shown(line)}\n" for line in text.split("\n")), arguments.output)
    return 0


def _verify(known: Receipt, arguments: argparse.Namespace) -> None:
    """Refuse a receipt that contradicts itself, or whose numbers its inputs do not give.

    Raises
    ------
    DataError : such a receipt, or inputs that are not found
    """
    odd = [name for name, *_ in receipt.contradictions(known)]
    if odd:
        what = f"contradicts itself in {few(odd)}: it was changed after it was written"
        fix = "`detmap verify` says what each was; write the receipt anew"
        raise DataError(arguments.receipt, what, fix)
    try:
        _, parts = replay.compared(known, arguments)
    except DataError as error:
        raise DataError(error.where, error.what, f"{error.fix}; or cite --unverified") from None
    cause = record_changes.cause(parts)
    if cause:
        what = f"its inputs give another result: {cause}"
        fix = "`detmap verify` lists the differences; --unverified cites the receipt as it is"
        raise DataError(arguments.receipt, what, fix)
