"""Receipts on the command line: written by `eval`, read by `verify` and `cite`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from detmap import receipt
from detmap.cli import options
from detmap.errors import DataError
from detmap.opening import read_bytes
from detmap.receipt import Receipt
from detmap.result import Result

FILES = ("image_sizes", "class_names", "images")
"""Options that are files which make a number."""

HOW = (
    "split",
    "truth_format",
    "truth_box_format",
    "detections_format",
    "detections_box_format",
    "unknown",
    "classes",
    "fix",
)
"""Options that say how the inputs are read, and what part of them."""


def write(result: Result, arguments: argparse.Namespace) -> None:
    """Write the receipt of what was evaluated."""
    from detmap import files

    inputs = {name: getattr(arguments, name) for name in ("truth", "detections", *FILES)}
    how = {name: _plain(getattr(arguments, name)) for name in HOW}
    command = ["detmap", *sys.argv[1:]]
    made = receipt.make(result, inputs, how, command)
    files.write_bytes(arguments.receipt, made.to_bytes())


def read(path: str) -> Receipt:
    """A receipt from its file."""
    return receipt.parse(read_bytes(path), path)


def again(known: Receipt, paths: dict[str, str | None]) -> argparse.Namespace:
    """The arguments of the evaluation that a receipt is of, on these inputs.

    Raises
    ------
    DataError : an option in it that no evaluation has
    """
    from detmap.cli import eval as command

    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add(parser)
    arguments = parser.parse_args([str(paths["truth"]), str(paths["detections"])])
    options.settle_outputs(arguments)
    for name, value in known.content["options"].items():
        if name not in HOW:
            raise DataError("receipt: options", f"{name!r:.40} is none", "write the receipt anew")
        default = getattr(arguments, name)
        setattr(arguments, name, default if value is None else value)
    for name in FILES:
        setattr(arguments, name, None if paths[name] is None else Path(str(paths[name])))
    arguments.protocol, arguments.set = known.protocol, []
    return arguments


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
