"""Words for a paper, from a receipt: a sentence, a table's caption with the signature, and the
references of the benchmark and of detmap as BibTeX.
"""

from __future__ import annotations

import argparse

from detmap.base.printable import shown
from detmap.cli import options, streams
from detmap.cli import receipt_files as receipts
from detmap.errors import DataError, few
from detmap.results import citation as citing
from detmap.results import receipt

EXAMPLES = (
    "detmap cite run.json",
    "detmap cite run.json -o citation.txt",
    "detmap cite receipts/voc2007.json -o voc2007.txt",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "receipt", metavar="RECEIPT", type=options.place, help="what `eval --receipt` wrote"
    )
    options.add_output(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, print."""
    options.refuse_to_overwrite(arguments.output, [arguments.receipt])
    known = receipts.read(arguments.receipt)
    odd = [name for name, *_ in receipt.contradictions(known)]
    if odd:
        what = f"contradicts itself in {few(odd)}: it was changed after it was written"
        fix = "`detmap verify` says what each was; write the receipt anew"
        raise DataError(arguments.receipt, what, fix)
    streams.say("note: the numbers are the receipt's: `detmap verify` holds them to the files\n")
    parts = [citing.sentence(known), citing.caption(known), *citing.bibtex(known)]
    text = "\n\n".join(parts)
    streams.write("".join(f"{shown(line)}\n" for line in text.split("\n")), arguments.output)
    return 0
