"""Print a methods sentence, a table caption with the signature, and BibTeX references from a
receipt. Verifies the receipt first, as `detmap verify`; exits with 2 if that fails.
"""

import argparse
from pathlib import Path

from detmap.cli import options, streams
from detmap.core.base.printable import shown
from detmap.errors import DataError, few
from detmap.reproducibility import citation, receipt_contradictions, receipt_files
from detmap.reproducibility.commands import replay
from detmap.reproducibility.explaining import record_changes
from detmap.reproducibility.receipt import Receipt

EXAMPLES = (
    "detmap cite run.json",
    "detmap cite run.json --truth gt.json --detections dt.json -o cite.txt",
    "detmap cite receipts/voc2007.json --unverified",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    replay.add(command)
    command.add_argument(
        "--unverified",
        action="store_true",
        help="Print the receipt's numbers without verifying them; the sentence states this.",
    )
    options.add_output(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, verify, print."""
    inputs = [arguments.receipt, *(getattr(arguments, name) for name in replay.INPUTS)]
    options.refuse_to_overwrite(arguments.output, inputs)
    known = receipt_files.read(arguments.receipt)
    for folder in (
        Path(),
        Path(arguments.receipt).parent,
    ):  # that the words of its command start from
        names = (each["name"] for each in known.content["inputs"].values())
        words = (folder / word for word in (*known.content["command"], *names))
        options.refuse_to_overwrite(arguments.output, words)
    if not arguments.unverified:
        _verify(known, arguments)
    sentence = citation.sentence(known, verified=not arguments.unverified)
    text = "\n\n".join([sentence, citation.caption(known), *citation.bibtex(known)])
    streams.write("".join(f"{shown(line)}\n" for line in text.split("\n")), arguments.output)
    return 0


def _verify(known: Receipt, arguments: argparse.Namespace) -> None:
    """Refuse an inconsistent receipt, and one that its inputs do not reproduce.

    Raises
    ------
    DataError : such a receipt, or missing inputs
    """
    odd = [name for name, *_ in receipt_contradictions.contradictions(known)]
    if odd:
        what = f"is inconsistent in {few(odd)}: it was changed after it was written"
        fix = "`detmap verify` lists the values; write the receipt again"
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
