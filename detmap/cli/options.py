"""Options shared by commands, and the types of their values."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from detmap import wings
from detmap.cli import streams
from detmap.core import protocol as protocols
from detmap.core.output import SUFFIXES, format_of
from detmap.core.output.formats import RENDERERS
from detmap.core.output.table import Style
from detmap.core.tables.join_keys import KEYS
from detmap.errors import DetmapError

MOST_THREADS = 1024
MOST_DECIMALS = 17  # that a float has
MOST_DIGITS = 18  # of a whole number in an option
LONGEST_VALUE = 100_000  # characters of a --set value


def add_inputs(command: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """TRUTH, DETECTIONS, --split and --set."""
    number: dict[str, Any] = {} if needed else {"nargs": "?"}
    command.add_argument(
        "truth",
        metavar="TRUTH",
        type=place,
        help="Ground truth in COCO, VOC, YOLO, CSV or another format.",
        **number,
    )
    command.add_argument(
        "detections",
        metavar="DETECTIONS",
        type=place,
        **number,
        help="Detections: a file or folder in any supported format.",
    )
    add_settings(command)


def add_settings(command: argparse.ArgumentParser) -> None:
    """--split and --set."""
    add_split(command)
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        help="Change a key of the protocol, such as limits.max_dets=[1,10,300]; repeatable. "
        "`detmap show --keys` lists the keys.",
    )


def add_split(command: argparse.ArgumentParser) -> None:
    """--split."""
    command.add_argument(
        "--split",
        metavar="S",
        help="Choose the split of a VOC folder (default: test if present, else val).",
    )


def add_formats(command: argparse.ArgumentParser) -> None:
    """Input formats, box formats and image sizes."""
    from detmap.core.adapters import BOX_FORMATS, FORMATS

    for kind in ("truth", "detections"):
        command.add_argument(
            f"--{kind}-format",
            choices=FORMATS,
            metavar="F",
            help=f"Set the format of {kind.upper()} (default: detected automatically)"
            + (f": {', '.join(FORMATS)}." if kind == "truth" else "; as --truth-format."),
        )
        command.add_argument(
            f"--{kind}-box-format",
            choices=BOX_FORMATS,
            metavar="B",
            help=f"Set the box format of {kind.upper()} if the file format leaves it open: "
            f"{', '.join(BOX_FORMATS)}.",
        )
    command.add_argument(
        "--image-sizes",
        type=path,
        metavar="PATH",
        help="Read image sizes from a CSV file with the columns image, width, height, from a COCO "
        "JSON file, or from a folder of images.",
    )


def add_reading(command: argparse.ArgumentParser, source: str) -> None:
    """Options of a command that reads one path: as ground truth, or as detections with --truth."""
    command.add_argument(
        "--truth",
        type=place,
        metavar="TRUTH",
        help=f"Read {source} as detections of this ground truth.",
    )
    add_split(command)
    add_formats(command)
    add_unknown(command)


def add_unknown(command: argparse.ArgumentParser) -> None:
    """--unknown, --class-names, --image-key and --class-key."""
    from detmap.core.adapters import UNKNOWN  # other commands need not wait for the readers

    command.add_argument(
        "--unknown",
        choices=UNKNOWN,
        default="error",
        help="Choose what to do with detections of unknown images or classes: fail, or drop "
        "and count them (default: error).",
    )
    command.add_argument(
        "--class-names",
        type=path,
        metavar="FILE",
        help="Read names of the class ids in DETECTIONS: one per line, line 1 is class 0; or JSON "
        "from id to name.",
    )
    for kind, plural in (("image", "images"), ("class", "classes")):
        command.add_argument(
            f"--{kind}-key",
            choices=KEYS,
            help=f"Read columns and lists that name {plural} as ids or as names, where both are "
            "possible (default: the header decides, then all values together).",
        )


def add_protocol(command: argparse.ArgumentParser) -> None:
    """-p."""
    command.add_argument(
        "-p",
        "--protocol",
        type=protocol,
        metavar="P",
        help=f"Use {', '.join(protocols.names())}, or a TOML file (default: by the "
        "format of TRUTH).",
    )


def add_threads(command: argparse.ArgumentParser) -> None:
    """--threads."""
    command.add_argument(
        "--threads", type=threads, metavar="N", help="Use N threads (default: all processors)."
    )


def add_output(command: argparse.ArgumentParser) -> None:
    """-o."""
    command.add_argument(
        "-o",
        "--output",
        type=path_or_stdout,
        metavar="FILE",
        help="Write to FILE instead of stdout (-).",
    )


def add_outputs(command: argparse.ArgumentParser, *tables: str) -> None:
    """--format, --table (where there are several), --digits, --percent and -o."""
    command.add_argument(
        "--format",
        choices=RENDERERS,
        help="Set the output format (default: by the suffix of -o: .json, .csv, .md, .tex; else "
        "table).",
    )
    if tables:
        command.add_argument(
            "--table",
            choices=tables,
            help="Print only this table; a CSV file holds one (default: the last one).",
        )
    command.add_argument(
        "--digits",
        type=digits,
        metavar="N",
        help="Set the decimals (default: 4, in percent 2, in CSV all).",
    )
    command.add_argument(
        "--percent", action="store_true", help="Print percentages instead of fractions."
    )
    add_output(command)


# --- values ---------------------------------------------------------------------------------------


def place(text: str) -> str:
    """The path of something to read."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("an empty path" if not text else "a path with a NUL")
    return text


def path(text: str) -> Path:
    """The path of a file."""
    return Path(place(text))


def path_or_stdout(text: str) -> Path | None:
    """The path of a file to write; None for ``-``, which is stdout by convention."""
    return None if text == "-" else path(text)


def new_file(text: str) -> Path:
    """The path of a file to write beside the result; not stdout."""
    if text == "-":
        raise argparse.ArgumentTypeError("stdout is for the result: name a file")
    return path(text)


PATHS = (place, path, path_or_stdout, new_file)
"""Types of values that are paths."""


def protocol(text: str) -> str:
    """The name or the file of a protocol; not a pipe or a device, which may never end."""
    if os.path.exists(text) and not (os.path.isfile(text) or os.path.isdir(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular file")
    name = protocols.NEWEST.get(text.lower())
    if name is not None:
        newest = ", the newest version" * any(map(str.isdigit, name))
        streams.say(f"note: {text} is evaluated as {name}{newest}\n")
    return name or text


def count(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) >= 1):
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise argparse.ArgumentTypeError(f"{shown!r} is not a whole number of at least 1")
    return int(text)


def whole(text: str) -> int:
    """A whole number from 0."""
    if text == "0":
        return 0
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(str(error).replace("at least 1", "at least 0")) from None


def fraction(text: str) -> float:
    """A number; its range is checked where it is used."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number") from None


def threads(text: str) -> int:
    """A number of threads."""
    number = count(text)
    if number > MOST_THREADS:
        raise argparse.ArgumentTypeError(f"at most {MOST_THREADS}")
    return number


def digits(text: str) -> int:
    """A number of digits after the point."""
    if text not in map(str, range(MOST_DECIMALS + 1)):
        raise argparse.ArgumentTypeError(f"a whole number from 0 to {MOST_DECIMALS}")
    return int(text)


def names(text: str) -> tuple[str | int, ...]:
    """Names or ids of classes, with commas between them."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def counts(text: str) -> tuple[int, ...]:
    """Whole numbers from 1, with commas between them."""
    return tuple(count(part) for part in text.split(","))


def settings(pairs: Sequence[str]) -> dict[str, Any]:
    """The keys and values of --set."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise DetmapError(
                f"--set {pair[:80]}",
                "no value",
                "write key=value, as in limits.max_dets=[1,10,300]",
            )
        if len(value) > LONGEST_VALUE:
            raise DetmapError(
                f"--set {key[:80]}",
                f"a value of {len(value)} characters",
                "write a protocol file and pass it with -p",
            )
        settings[key.strip()] = value.strip()
    return settings


# --- checks across options ------------------------------------------------------------------------


def settle_outputs(arguments: argparse.Namespace) -> None:
    """Set the output format and style; refuse options that JSON output ignores."""
    if not hasattr(arguments, "digits"):
        return
    arguments.by_suffix = by_suffix = arguments.format is None
    if by_suffix:
        arguments.format = _format_by_suffix(arguments)
    arguments.style = Style(arguments.percent, arguments.digits, width=sys.maxsize)
    if arguments.format != "json":
        return
    if by_suffix and arguments.percent:
        streams.say("detmap: JSON holds fractions: --percent has no effect on it\n")
    given = {"--percent": arguments.percent and not by_suffix}
    given["--digits"] = arguments.digits is not None
    given["--table"] = getattr(arguments, "table", None) is not None
    holds = {"--percent": "fractions", "--digits": "all digits", "--table": "all tables"}
    for option, what in holds.items():
        if given[option]:
            fix = f"choose another --format, or remove {option}"
            raise DetmapError(option, f"JSON holds {what}", fix)


def _format_by_suffix(arguments: argparse.Namespace) -> str:
    """The format that the suffix of -o names; refuses a new file of another suffix. A file that
    exists may be an input, which its command refuses; `command_output` refuses the others.
    """
    if arguments.output is None:
        return "table"
    if os.path.lexists(arguments.output) or getattr(arguments, "writes_toml", False):
        return SUFFIXES.get(arguments.output.suffix.lower(), "table")
    return format_of(arguments.output)


def refuse_bad_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Refuse outputs that overwrite an input or each other."""
    outputs, inputs = tuple(outputs), tuple(inputs)
    for output in outputs:
        refuse_to_overwrite(output, inputs)
    refuse_one_place(*outputs)


def refuse_bad_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be rendered."""
    if path is not None:
        from detmap.core.output import plots

        plots.check(path)
        wings.required_hook("plot_curves")


def refuse_one_place(*outputs: Path | None) -> None:
    """Refuse two outputs with the same path."""
    places = [os.path.realpath(output) for output in outputs if output is not None]
    if len(set(places)) < len(places):
        raise DetmapError(places[0], "is used for two outputs", "write each output to its own file")


def refuse_to_overwrite(output: Path | None, inputs: Iterable[str | Path | None]) -> None:
    """Refuse an output that is also an input."""
    if output is None or not os.path.lexists(output):
        return
    for given in inputs:
        if given is None or not os.path.exists(given):
            continue
        inside = os.path.isdir(given) and output.suffix in (".xml", ".txt")
        real, folder = os.path.realpath(output), os.path.realpath(given)
        if os.path.exists(output) and (
            os.path.samefile(output, given) or (inside and real.startswith(folder + os.sep))
        ):
            raise DetmapError(
                str(output), "is an input, and would be overwritten", "write to another file"
            )
