"""Receipts on the command line: written by `eval`, read by `verify`, `cite` and `explain`."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core.base.open_files import read_bytes
from detmap.core.base.sha import sha256
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.digests import image_digests
from detmap.reproducibility import receipt
from detmap.reproducibility.receipt import Receipt

FILES = receipt.ROLES[2:]
"""Options that name input files."""


def content_digests(truth: Truth, detections: Detections) -> tuple[str, str]:
    """Returns twelve hexadecimal digits each for truth and detections, independent of the file
    format.
    """
    digests = image_digests(truth, detections)
    head = repr((truth.images.ids.tolist(), truth.categories.names)).encode()
    columns = (np.ascontiguousarray(digests[:, k]).astype("<u8").tobytes() for k in range(2))
    one, other = (sha256(head + column).hexdigest()[:12] for column in columns)
    return one, other


def write(
    truth: Truth, detections: Detections, result: Result, arguments: argparse.Namespace
) -> None:
    """Write the receipt of an evaluation."""
    from detmap.core.base import atomic_files

    atomic_files.write_bytes(
        arguments.receipt, made(truth, detections, result, arguments).to_bytes()
    )


def made(
    truth: Truth, detections: Detections, result: Result, arguments: argparse.Namespace
) -> Receipt:
    """Return the receipt of an evaluation."""
    inputs = {name: getattr(arguments, name, None) for name in ("truth", "detections", *FILES)}
    how = {name: plain(getattr(arguments, name, None)) for name in receipt.OPTIONS}
    contents = content_digests(truth, detections)
    return receipt.make(result, contents, inputs, how, ["detmap", *sys.argv[1:]])


def read(path: str) -> Receipt:
    """Read a receipt."""
    return receipt.parse(read_bytes(path, most=receipt.MAX_BYTES), path)


def place_of(known: Receipt, role: str) -> str | None:
    """Return the path of an input in a receipt's command, if it still exists."""
    name = known.content["inputs"].get(role, {}).get("name")
    for word in known.content["command"] if name else ():
        path = str(word).rpartition("=")[2]
        try:
            if name in (Path(path).name, Path(path).resolve().name) and Path(path).exists():
                return path
        except (OSError, ValueError, RuntimeError):  # no path, a circle of links
            continue
    return None


def plain(value: Any) -> Any:
    """Returns the value of an option as JSON holds it."""
    return list(value) if isinstance(value, tuple) else value
