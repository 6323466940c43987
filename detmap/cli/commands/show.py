"""List the protocols, or print one with its source."""

import argparse
from pathlib import Path

from detmap.cli import command_output, options, streams
from detmap.core import protocol as protocols
from detmap.core.adapters.registry import FORMATS
from detmap.core.base import open_files
from detmap.core.output.table import Table

EXAMPLES = ("detmap show", "detmap show coco-bbox", "detmap show --keys", "detmap show --formats")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "protocol",
        nargs="?",
        type=options.protocol,
        metavar="PROTOCOL",
        help="Print this protocol.",
    )
    command.add_argument(
        "--keys",
        action="store_true",
        help="Print every key of a protocol: meaning, allowed values, default and source.",
    )
    command.add_argument("--formats", action="store_true", help="List the input formats.")
    options.add_outputs(command, "protocols", "tools")
    command.set_defaults(writes_toml=True)


def run(arguments: argparse.Namespace) -> int:
    """Print the list, or the file."""
    if arguments.keys:
        streams.write(protocols.describe() + "\n", arguments.output)
        return 0
    if arguments.formats:
        kinds = tuple((each.name, each.place, each.what) for each in FORMATS)
        command_output.write_tables(
            [Table("", ("format", "is", "what"), kinds, name="formats")], arguments
        )
        return 0
    if arguments.protocol is None:
        command_output.write_tables(
            [_listed("protocol", protocols.names()), _listed("tool", protocols.tools())], arguments
        )
        return 0
    options.refuse_to_overwrite(arguments.output, (arguments.protocol,))
    protocols.load(arguments.protocol)  # reports errors in a protocol file
    path = protocols.shipped(arguments.protocol)
    own = Path(arguments.protocol)
    text = open_files.read_bytes(own if path is None else path).decode()
    streams.write(text, arguments.output)
    return 0


def _listed(kind: str, names: list[str]) -> Table:
    """Protocols by name."""
    loaded = [protocols.load(name) for name in names]
    rows = tuple((each.name, each.version, each.summary) for each in loaded)
    return Table("", (kind, "version", "summary"), rows, name=f"{kind}s")
