"""From words to a command, and from whatever happens in it to an exit code.

Each command is a module of this folder with a function ``add``, which declares its options, and
``run``. What a command needs is imported when it was chosen.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any

from detmap.cli import streams
from detmap.errors import DetmapError
from detmap.version import __version__

LONGEST = 400  # characters of what is wrong

COMMANDS = {
    "eval": "evaluate detections against ground truth",
    "diagnose": "say what limits the number",
    "doctor": "say what is wrong with files that give a bad number",
    "report": "write a page about one detector, or what changed to another",
    "match": "match a part of the images, for `merge`",
    "merge": "put parts together and print the result",
    "compare": "compare detectors on one truth, and gate on their difference",
    "rank": "judge the scores of an image-level classifier",
    "parity": "run pycocotools or another tool on the same files, and compare",
    "tools": "what each named tool gives for the same files",
    "reproduce": "search for the rules that print a published number",
    "published": "list published results, or check one on its files",
    "verify": "check a receipt of `eval`",
    "cite": "words for a paper, from a receipt",
    "explain": "why two numbers differ, rule by rule or file by file",
    "show": "list the protocols, or print one with its source",
    "demo": "evaluate the bundled sample under three protocols",
    "completion": "print what makes a shell complete `detmap`",
    "warmup": "compile the kernels ahead of the first evaluation",
}


def dispatch(words: Sequence[str]) -> int:
    """Run one command; returns the exit code. Nothing is raised, whatever happens."""
    try:
        return _run(words)
    except DetmapError as error:
        streams.say(
            f"detmap: error: {_single_line(error.where)}: {_shortened(_single_line(error.what))}\n"
        )
        if error.fix:
            streams.say(f"  fix: {_single_line(error.fix)}\n")
        return 2
    except BrokenPipeError:  # the reader of our output has gone, as in `detmap eval ... | head`
        return 0
    except OSError as error:
        where = "" if error.filename is None else f"{_single_line(str(error.filename))}: "
        streams.say(f"detmap: error: {where}{error.strerror or error}\n")
        return 2
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        streams.say(
            f"detmap: error: memory: this input does not fit{detail}\n"
            "  fix: use a machine with more memory, or a smaller input: fewer images or classes\n"
        )
        return 2
    except RecursionError:
        streams.say("detmap: error: input: something in it is nested too deeply\n")
        return 2
    except KeyboardInterrupt:
        streams.say("detmap: interrupted\n")
        return 130
    except Exception as error:
        return _own_fault(error)


def _run(words: Sequence[str]) -> int:
    for word in words:
        if re.fullmatch(r"(--[a-z-]+=|-[a-z])--", word):  # argparse would give an empty list
            raise DetmapError(word, "-- is no value", "give one after the option")
    chosen = [word for word in words if not word.startswith("-")][:1]
    words = [_spelled_out(word, after) for word, after in zip(words, [*words, ""][1:], strict=True)]
    try:
        if not words:
            parser(chosen).print_help()
            return 0
        arguments = parser(chosen).parse_args(words)
    except SystemExit as stop:  # argparse has printed the help, the version, or what is wrong
        return stop.code if isinstance(stop.code, int) else 2
    from detmap.cli import options

    options.settle_outputs(arguments)
    code = arguments.run(arguments)
    return int(code)


CHOICES = {"--ci": ("influence", "percentile")}
"""Options whose value may be left out; the first is meant then."""


def _spelled_out(word: str, after: str) -> str:
    """An option without its value with the usual one: argparse would take a path that follows."""
    choices = CHOICES.get(word, (after,))
    return word if after in choices else f"{word}={choices[0]}"


class _Parser(argparse.ArgumentParser):
    """One that does not pass over a help that cannot be written."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            with streams.stdout() as stream:
                stream.write(message)
        else:
            streams.say(message)


class _Help(argparse.HelpFormatter):
    """Paragraphs are filled, examples stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return text
        return super()._fill_text(text, width, indent)


def parser(chosen: Collection[str]) -> argparse.ArgumentParser:
    """The parser; only the chosen commands have their options."""
    parser = _Parser(
        prog="detmap",
        description="Evaluate object detectors, VOC and COCO style.",
        epilog="`detmap COMMAND --help` has its options and examples. "
        "Exit 0: fine; 1: a comparison failed; 2: bad input or usage; 130: interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"detmap {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=_Help)
        if name in chosen:
            module = import_module(f"detmap.cli.commands.{name}")
            command.description = module.__doc__
            command.epilog = "\n  ".join(("examples:", *module.EXAMPLES))
            command.set_defaults(run=module.run)
            module.add(command)
    return parser


def _own_fault(error: Exception) -> int:
    """Say where detmap failed at something that nobody foresaw."""
    import traceback

    if os.environ.get("DETMAP_DEBUG", "0") not in ("", "0"):
        streams.say("".join(traceback.format_exception(error)))
    frames = traceback.extract_tb(error.__traceback__)
    folder = os.sep + "detmap" + os.sep
    place = next((frame for frame in reversed(frames) if folder in frame.filename), frames[-1])
    file = place.filename[place.filename.rfind(folder) + 1 :]
    what = " ".join(f"{type(error).__name__}: {error}".split())
    streams.say(
        f"detmap: error: this is detmap's fault, at {file}:{place.lineno} ({_shortened(what)}); "
        "DETMAP_DEBUG=1 shows the traceback\n"
    )
    return 2


def _single_line(text: str) -> str:
    """A message whose names break no line."""
    from detmap.base.printable import shown

    return shown(text)


def _shortened(text: str) -> str:
    """A value of a megabyte is not repeated."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"
