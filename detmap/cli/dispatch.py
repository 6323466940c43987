"""Run the chosen command and map its result or error to an exit code.

Each command is a module with a function ``add``, which declares its options, and ``run``. Only the
chosen command's imports are loaded.
"""

import argparse
import os
import re
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from detmap import wings
from detmap.cli import streams
from detmap.core.base.suggestions import ANYWHERE, did_you_mean, meanings, metric_key, suggestions
from detmap.errors import DetmapError
from detmap.version import __version__

LONGEST = 400  # characters of an error message


class Command(NamedTuple):
    """A command: its module, and what it does."""

    module: str
    what: str


ALL_COMMANDS = {
    "eval": Command("detmap.cli.commands.eval", "evaluate detections against ground truth"),
    "diagnose": Command(
        "detmap.analysis.commands.diagnose", "analyze errors: which kinds cost how much AP"
    ),
    "doctor": Command(
        "detmap.analysis.commands.doctor",
        "check files for common mistakes (box format, class ids, scores ...)",
    ),
    "report": Command(
        "detmap.analysis.commands.report",
        "write an HTML report about one detector or a comparison of two",
    ),
    "match": Command(
        "detmap.cli.commands.match",
        "match some of the images and save a partial result for `merge`",
    ),
    "merge": Command("detmap.cli.commands.merge", "merge partial results and print the metrics"),
    "compare": Command(
        "detmap.cli.commands.compare", "compare detectors on the same ground truth; fail on a drop"
    ),
    "suite": Command(
        "detmap.benchmarks.commands.suite", "evaluate several data sets and compute summary figures"
    ),
    "rank": Command(
        "detmap.ranking.commands.rank", "evaluate the scores of an image-level classifier"
    ),
    "parity": Command(
        "detmap.reproducibility.commands.parity",
        "compare with pycocotools or another tool on the same files",
    ),
    "tools": Command(
        "detmap.reproducibility.commands.tools",
        "evaluate the same files under the rules of 54 tools",
    ),
    "reproduce": Command(
        "detmap.reproducibility.commands.reproduce",
        "search for the rules that reproduce a published number",
    ),
    "published": Command(
        "detmap.reproducibility.commands.published",
        "list published results, or verify one from its files",
    ),
    "verify": Command(
        "detmap.reproducibility.commands.verify", "verify a receipt written by `eval`"
    ),
    "cite": Command(
        "detmap.reproducibility.commands.cite",
        "print a citation and methods sentence from a receipt",
    ),
    "explain": Command(
        "detmap.reproducibility.commands.explain",
        "explain why two evaluators, or two runs, give different numbers",
    ),
    "show": Command("detmap.cli.commands.show", "list the protocols, or print one with its source"),
    "demo": Command(
        "detmap.cli.commands.demo", "evaluate the bundled sample under three protocols"
    ),
    "inspect": Command(
        "detmap.analysis.commands.inspect",
        "describe a file or folder: format, images, classes, boxes",
    ),
    "convert": Command(
        "detmap.annotation_tools.commands.convert",
        "convert ground truth or detections to COCO, VOC, YOLO or CSV",
    ),
    "completion": Command("detmap.cli.commands.completion", "print a shell completion script"),
    "warmup": Command(
        "detmap.cli.commands.warmup", "compile the kernels before the first evaluation"
    ),
}
COMMANDS = {
    name: command for name, command in ALL_COMMANDS.items() if wings.is_installed(command.module)
}
"""Those whose package is installed."""


def dispatch(words: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    try:
        return _run(words)
    except DetmapError as error:
        if os.environ.get("DETMAP_ERRORS") == "short":  # on a challenge server
            text = error.without_paths(*_truth_path(words))
            streams.say(f"detmap: error: {_single_line(text)}\n")
            return 2
        where = _single_line(re.sub(r"^settings\b", "--set", error.where))
        streams.say(f"detmap: error: {where}: {_shortened(_single_line(error.what))}\n")
        if error.fix:
            streams.say(f"  fix: {_single_line(error.fix)}\n")
        return 2
    except BrokenPipeError:  # stdout was closed, as in `detmap eval ... | head`
        return 0
    except OSError as error:
        where = "" if error.filename is None else f"{_single_line(str(error.filename))}: "
        streams.say(f"detmap: error: {where}{error.strerror or error}\n")
        if isinstance(error, PermissionError):
            streams.say("  fix: check the path and its permissions\n")
        return 2
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        streams.say(
            f"detmap: error: memory: this input does not fit{detail}\n"
            "  fix: evaluate in parts with --memory (COCO results, JSON lines, Parquet), or use a "
            "machine with more memory, or a smaller input: fewer images or classes\n"
        )
        return 2
    except RecursionError:
        streams.say("detmap: error: input: it is nested too deeply\n")
        return 2
    except KeyboardInterrupt:
        streams.say("detmap: interrupted\n")
        return 130
    except Exception as error:
        return _own_fault(error)


def _run(words: Sequence[str]) -> int:
    if not words:
        streams.inform(JOBS)
        return 0
    try:
        arguments = _arguments(words)
    except SystemExit as stop:  # argparse has printed the help, the version, or what is wrong
        return stop.code if isinstance(stop.code, int) else 2
    from detmap.cli import options
    from detmap.core.base import open_files

    options.settle_outputs(arguments)
    with open_files.remembering():
        return int(arguments.run(arguments))


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the words. Raises `SystemExit` as argparse does, and `DetmapError` for a value --."""
    for word in words:
        if re.fullmatch(r"(--[a-z-]+=|-[a-z])--", word):  # argparse would give an empty list
            raise DetmapError(word, "-- is not a value", "write a value after the option")
    chosen = [word for word in words if not word.startswith("-")][:1]
    if chosen == list(words[:1]) and chosen[0] not in COMMANDS:
        hint = did_you_mean("command", chosen[0], COMMANDS)
        if os.path.exists(chosen[0]):
            hint = "did you mean `detmap eval TRUTH DETECTIONS`? "
        fix = f"{hint}the commands are {', '.join(COMMANDS)}"
        raise DetmapError("COMMAND", f"no command {chosen[0]!r:.60}", fix)
    words = [_spelled_out(word, after) for word, after in zip(words, [*words, ""][1:], strict=True)]
    first = words[0] in COMMANDS  # the others are not listed, so their parsers are not needed
    return parser(chosen, chosen if first else COMMANDS).parse_args(words)


def _truth_path(words: Sequence[str]) -> list[str]:
    """The path of the ground truth, whether it exists or not; of other commands the first path."""
    try:
        named = getattr(_arguments(words), "truth", None)
    except DetmapError:
        named = None
    return [str(named)] if named else [word for word in words[1:] if os.path.exists(word)][:1]


CHOICES = {"--ci": ("automatic", "jackknife")}
"""Options whose value is optional; the first is the default."""


def _spelled_out(word: str, after: str) -> str:
    """Add the default value to such an option, so that argparse does not consume the next path."""
    choices = CHOICES.get(word, (after,))
    if word in CHOICES and re.fullmatch(r"0?\.\d+|\d\d(\.\d+)?%?", after):
        level = float(after.rstrip("%"))
        fix = f"write {word} --level {level if level < 1 else level / 100:g}"
        raise DetmapError(word, f"{after} is no method", fix)
    return word if after in choices else f"{word}={choices[0]}"


METRICS = ("ap", "ap50", "ap75", "ar100")  # as `metric_key` returns them
LISTS = ("--classes", "--names")  # options with several values
CHOICE = re.compile(r"argument (?:.*/)?(\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)")
"""The message of argparse about a value that is none of the choices."""


ARGUMENT = re.compile(r"argument (?:.*/)?(\S+): (.*)", re.DOTALL)
"""The message of argparse about a value that its type refuses."""


class _Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that reports help that cannot be written."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses words; refuses an unknown option with a proposal."""
        for place, word in enumerate(args or ()):
            name = word.partition("=")[0]
            if name == "--" or (self._subparsers is not None and not name.startswith("-")):
                break  # the rest is paths, or words of a command
            short = re.fullmatch("-[a-zA-Z]", name)
            if (short or name.startswith("--")) and not any(
                option.startswith(name) for option in self._option_string_actions
            ):
                after = [*args[place + 1 : place + 2]]
                value = word.partition("=")[2] or "".join(after)
                raise DetmapError(self.prog, f"no option {name}", self._proposal(name, value))
            self._refuse_ambiguous(name)
        parsed, extra = super().parse_known_args(args, namespace)
        if extra:
            what = f"{' '.join(extra)[:200]!r}: more paths than expected"
            raise DetmapError("arguments", what, self._meant_by(extra[0], list(args or ())))
        return parsed, extra

    def _refuse_ambiguous(self, name: str) -> None:
        """Raises `DetmapError` for the beginning of several options."""
        known = self._option_string_actions
        begun = [each for each in known if each.startswith(name)] if name.startswith("--") else []
        if name not in known and len({id(known[each]) for each in begun}) > 1:
            if meanings("option", name):
                raise DetmapError(self.prog, f"no option {name}", self._proposal(name))
            fix = f"write one of {', '.join(begun)}; `{self.prog} --help` describes them"
            raise DetmapError(self.prog, f"{name} begins several options", fix)

    def error(self, message: str) -> NoReturn:
        """Ends in a message that says what to write."""
        lacking = message.removeprefix("the following arguments are required: ")
        if lacking != message:
            options = [name.partition("/")[0] for name in lacking.split(", ") if name[0] == "-"]
            metavars = (self._option_string_actions[name].metavar for name in options)
            more = "".join(f" {n} {m}" for n, m in zip(options, metavars, strict=True))
            fix = f"write `{self.usage_of_paths()}{more}`; `{self.prog} --help` describes it"
            raise DetmapError(self.prog, f"{lacking} is missing", fix)
        found = CHOICE.fullmatch(message)
        if found is not None:
            option, value, listed = found.groups()
            known = [each.strip("'") for each in listed.split(", ")]
            fix = f"{did_you_mean('choice', value, known)}the values are {', '.join(known)}"
            raise DetmapError(option, f"no value {value!r:.60}", fix)
        wrong = ARGUMENT.fullmatch(message)
        if wrong is not None:
            fix = f"`{self.prog} --help` describes it"
            action = self._option_string_actions.get(wrong[1])
            if wrong[2] == "expected one argument" and action is not None:
                value = action.metavar or "|".join(map(str, action.choices or ()))
                fix = f"write `{wrong[1]} {value}`; `{self.prog} --help` describes it"
            raise DetmapError(wrong[1], wrong[2], fix)
        super().error(message)

    def _meant_by(self, first: str, words: Sequence[str]) -> str:
        """What a word may mean that is no option's value: one after an option without value, or one
        of several values with blanks between them.
        """
        at = words.index(first) if first in words else 0
        for back in (1, 2):
            option = words[at - back].partition("=")[0] if at >= back else ""
            action = self._option_string_actions.get(option)
            if option in CHOICES:
                return f"{option} has one method: write it alone; --level 0.9 sets its level"
            if action is not None and action.nargs == 0 and back == 1:
                return f"{option} has no value"
            if option in LISTS and back == 2:
                return f"write values with commas: {option} {words[at - 1]},{first}"
        if self.prog.endswith(" explain") and not os.path.exists(first):
            return f"rules have an option: write --to {first}"
        return "`detmap compare TRUTH A B` compares detectors; quote names that have blanks"

    def _proposal(self, name: str, value: str = "") -> str:
        """What a wrong option with a value may mean in this command, and where help is."""
        places = [str(each.metavar) for each in self._get_positional_actions() if each.metavar]
        options = [each for each in self._option_string_actions if each.startswith("--")]
        known = [*options, *places]
        found = self._elsewhere(name, known) or suggestions("option", name, known)
        if found and found[0].startswith(f"{self.prog} "):
            return f"`{found[0]}` prints it"
        if {metric_key(name), metric_key(value)} & {*METRICS}:
            return "metrics have no option: `detmap eval` prints all, --fail-under AP50=V tests one"
        if found and found[0] in places:
            return f"paths have no option: write `{self.usage_of_paths()}`"
        hint = f"did you mean {' or '.join(map(repr, found))}? " if found else ""
        return f"{hint}`{self.prog} --help` lists the options"

    def _elsewhere(self, name: str, known: Sequence[str]) -> list[str]:
        """The first command that has an option, or one of this meaning, that this one lacks."""
        meant = meanings("option", name)
        if any(right.partition(" ")[0] in (*known, *ANYWHERE) for right in meant):
            return []
        for command in COMMANDS:
            other = _Parser(prog=f"detmap {command}", add_help=False)
            import_module(COMMANDS[command].module).add(other)
            for right in meant or [name]:
                if right.partition(" ")[0] in other._option_string_actions:
                    return [f"{other.usage_of_paths()} {right}"]
        return []

    def usage_of_paths(self) -> str:
        """The command with its paths: ``detmap eval TRUTH DETECTIONS``."""
        places = [str(each.metavar) for each in self._get_positional_actions() if each.metavar]
        return " ".join([self.prog, *places])

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            with streams.stdout() as stream:
                stream.write(message)
        else:
            streams.say(message)


JOBS = """\
detmap evaluates object detectors, VOC and COCO style. Common jobs:

  detmap eval TRUTH DETECTIONS                        AP and the other metrics
  detmap compare TRUTH BASE NEW                       is the new detector better?
  detmap eval TRUTH DETECTIONS --per-class --best-f1  each class; the best confidence threshold
  detmap report TRUTH DETECTIONS -o report.html       error analysis as a page
  detmap doctor TRUTH DETECTIONS                      why is my AP so low?

TRUTH and DETECTIONS are files or folders: COCO, VOC, YOLO, CSV and others.
`detmap --help` lists all commands; `detmap demo` evaluates a bundled sample.
"""
"""What `detmap` without a command prints."""


class _Help(argparse.HelpFormatter):
    """Fills paragraphs and keeps examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return text
        return super()._fill_text(text, width, indent)


def parser(
    chosen: Collection[str], listed: Collection[str] = tuple(COMMANDS)
) -> argparse.ArgumentParser:
    """Return the parser of the listed commands; only the chosen ones get their options."""
    parser = _Parser(
        prog="detmap",
        description="Evaluate object detectors, VOC and COCO style.",
        epilog="`detmap COMMAND --help` lists options and examples. "
        "Exit 0: fine; 1: a comparison failed; 2: bad input or usage; 130: interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"detmap {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in listed:
        command = commands.add_parser(name, help=COMMANDS[name].what, formatter_class=_Help)
        if name in chosen:
            module = import_module(COMMANDS[name].module)
            command.description = module.__doc__
            command.epilog = "\n  ".join(("examples:", *module.EXAMPLES))
            command.set_defaults(run=module.run)
            module.add(command)
    return parser


def _own_fault(error: Exception) -> int:
    """Report an unexpected exception and where detmap raised it."""
    import traceback

    if os.environ.get("DETMAP_DEBUG", "0") not in ("", "0"):
        streams.say("".join(traceback.format_exception(error)))
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(streams.__file__).parents[1]
    own = [frame for frame in frames if package in Path(frame.filename).parents]
    place = (own or frames)[-1]
    file = Path(place.filename).relative_to(package.parent) if own else place.filename
    what = " ".join(f"{type(error).__name__}: {error}".split())
    streams.say(
        f"detmap: error: internal error in detmap at {file}:{place.lineno} ({_shortened(what)}); "
        "DETMAP_DEBUG=1 shows the traceback\n"
    )
    return 2


def _single_line(text: str) -> str:
    """Escape line breaks in the names of a message."""
    from detmap.core.base.printable import shown

    return shown(text)


def _shortened(text: str) -> str:
    """Cut the middle out of a long value."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"
