"""Repeat the evaluation of a receipt and compare, for `verify`, `cite` and `explain`."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from detmap.cli import options
from detmap.cli.commands import eval as command
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError
from detmap.reproducibility import receipt, receipt_files
from detmap.reproducibility.explaining import record_changes, records
from detmap.reproducibility.explaining.record_changes import Part
from detmap.reproducibility.receipt import Receipt

POSITIONAL = ("truth", "detections")
INPUTS = (*POSITIONAL, *receipt_files.FILES)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare RECEIPT, the paths of its inputs, and --threads."""
    parser.add_argument(
        "receipt", metavar="RECEIPT", type=options.place, help="A file written by `eval --receipt`."
    )
    for name in POSITIONAL:
        parser.add_argument(
            f"{name}_place",
            metavar=name.upper(),
            nargs="?",
            type=options.place,
            help=f"The same as --{name}.",
        )
    for name in INPUTS:
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=options.place,
            metavar="PATH",
            help="Read this input from PATH (default: the path in the receipt's command).",
        )
    options.add_threads(parser)


def compared(known: Receipt, arguments: argparse.Namespace) -> tuple[Result, tuple[Part, ...]]:
    """Evaluate again and return the result and the comparison of every part of the receipt.

    Raises
    ------
    DataError : an input is not found or cannot be read
    """
    paths = {name: _path(known, name, arguments) for name in INPUTS}
    again = _arguments(known, paths)
    again.threads = arguments.threads
    truth, detections, result, _ = command.evaluated(again)
    now = receipt_files.made(truth, detections, result, again)
    before = records.receipt_record(known, arguments.receipt)
    parts = record_changes.compared(before, records.receipt_record(now, "now"))
    return result, (*parts, *_other_options(known))


class _Parser(argparse.ArgumentParser):
    """Raises the errors of a command line, which is that of a receipt."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _other_options(known: Receipt) -> Iterator[Part]:
    """Yields the reader options that differ from those in the receipt's command, if it is one of
    `detmap eval`.
    """
    words = known.content["command"]
    if words[1:2] != ["eval"]:  # of Python code
        return
    parser = _Parser(exit_on_error=False, add_help=False)
    command.add(parser)
    try:
        given = vars(parser.parse_args(words[2:]))
    except (argparse.ArgumentError, ValueError):  # of another version
        return
    for name, stated in known.content["options"].items():
        default = parser.get_default(name)
        stated, said = (
            record_changes.option_text(receipt_files.plain(default if each is None else each))
            for each in (stated, given.get(name))
        )
        yield Part(f"{record_changes.ITSELF}options.{name}", stated, said)


def evaluated(known: Receipt, paths: Mapping[str, str | None]) -> tuple[Truth, Detections, Result]:
    """Read and evaluate these inputs with the options of the receipt."""
    truth, detections, result, _ = command.evaluated(_arguments(known, paths))
    return truth, detections, result


def _arguments(known: Receipt, paths: Mapping[str, str | None]) -> argparse.Namespace:
    """Return the arguments of the evaluation of a receipt, for these inputs.

    Raises
    ------
    DataError : the receipt has an unknown option
    """
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add(parser)
    arguments = parser.parse_args([str(paths["truth"]), str(paths["detections"])])
    options.settle_outputs(arguments)
    for name, value in known.content["options"].items():
        if name not in receipt.OPTIONS:
            raise DataError(
                "receipt: options", f"unknown option {name!r:.40}", "write the receipt anew"
            )
        default = getattr(arguments, name)
        setattr(arguments, name, default if value is None else value)
    for name in receipt_files.FILES:
        setattr(arguments, name, None if paths[name] is None else Path(str(paths[name])))
    arguments.protocol, arguments.set = known.protocol, []
    return arguments


def _path(known: Receipt, role: str, arguments: argparse.Namespace) -> str | None:
    """Return the path of an input: the given one, or the one in the receipt."""
    given, place = getattr(arguments, role), getattr(arguments, f"{role}_place", None)
    if given is not None and place is not None:
        raise DataError(f"--{role}", "is given twice", f"give {role.upper()} once")
    given = place if given is None else given
    if role not in known.content["inputs"]:
        if given is not None:
            what = f"the receipt's evaluation did not use --{role.replace('_', '-')}"
            raise DataError(arguments.receipt, what, "remove the option")
        return None
    if given is not None:
        return str(given)
    place = receipt_files.place_of(known, role)
    if place is not None:
        return place
    name = known.content["inputs"][role]["name"]
    fix = f"give its path: --{role.replace('_', '-')} PATH"
    raise DataError(arguments.receipt, f"{role}: {name!r:.80} does not exist at its old path", fix)
