"""--memory: evaluate files that do not fit into memory."""

import argparse
import math
from collections.abc import Callable
from functools import cache

from detmap.cli import doctor_notes, least_values, streams
from detmap.cli import evaluation_inputs as reading
from detmap.core.base import memory
from detmap.core.protocol.features import options_in_memory
from detmap.core.results.result import Result
from detmap.errors import DetmapError

TABLES = ("metrics", "classes")


def add(command: argparse.ArgumentParser) -> None:
    """--memory."""
    command.add_argument(
        "--memory",
        metavar="SIZE",
        help="Use at most SIZE of memory, such as 3GB: evaluate COCO results, JSON lines or "
        "Parquet (also a folder of shards) in parts, with a temporary file in TMPDIR; same "
        "numbers. Without intervals, curves and the doctor (default: if the detections would not "
        "fit into memory).",
    )


def evaluated(arguments: argparse.Namespace) -> Result | None:
    """Evaluate in bounded memory; return None if no bound is given and the detections fit.

    Raises
    ------
    DetmapError : an option that needs all match rows
    """
    from detmap.core.bounded.memory_plan import automatic

    others = [
        name for name in options_in_memory() if getattr(arguments, name) not in (None, False, [])
    ]
    others += ["table"] if arguments.table not in (None, *TABLES) else []
    bound = None
    if arguments.memory is not None:
        bound = memory.parse_size("--memory", arguments.memory)
        if others:
            what = "needs all match rows in memory"
            raise DetmapError(f"--{others[0].replace('_', '-')}", what, "remove it, or --memory")
    elif others or automatic(arguments.detections) is None:
        return None
    from detmap.core.adapters import pieces
    from detmap.core.bounded import evaluation
    from detmap.core.tables.notes import n_dropped

    truth, rules = reading.read_truth_of(arguments)
    if bound is None:
        bound = automatic(arguments.detections, rules)
        if bound is None:
            return None
        text = f"the detections do not fit into memory: evaluated in {memory.shown(bound)}"
        streams.say(f"note: {text} (--memory)\n")
    rules.require("bounded memory")
    least_values.require_known(least_values.read(arguments.fail_under), truth, rules)
    source = pieces.source(arguments.detections, truth, **reading.detection_options(arguments))
    streams.progress(f"reading {arguments.detections} in parts")
    result = evaluation.evaluate(
        source, rules, bound, threads=arguments.threads, progress=_progress()
    )
    if math.isnan(result.lowest_score) and not n_dropped(result.notes):
        nothing = evaluation.no_detections(truth)
        doctor_notes.consult(arguments, arguments.detections, truth, nothing, rules)
    return result


def _progress() -> Callable[[str, int, int], None]:
    """One line on a terminal, with the time left in the current step."""
    counter = cache(streams.counter)
    return lambda step, done, of: counter(step)(done, of)
