"""Search for the rules that print a published number: those of named tools, orders of equal scores,
then one and two changes of rules. Exit 0: some do; 1: none does.
"""

from __future__ import annotations

import argparse

from detmap.cli import options, output, reading, streams
from detmap.report.table import Table

EXAMPLES = (
    "detmap reproduce 72.19 VOCdevkit/VOC2007 results/",
    "detmap reproduce 0.606 instances.json results.json --metric AP50",
    "detmap reproduce 42.3 TRUTH DETECTIONS --depth 0 --format json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument("number", metavar="NUMBER", help="as it was printed: 72.1, 72.1%%, 0.721")
    reading.add(command)
    command.add_argument(
        "--metric", metavar="NAME", help="which number of a result (default: the first, AP50, AP75)"
    )
    command.add_argument(
        "--depth",
        type=int,
        choices=(0, 1, 2),
        default=2,
        help="how many rules are changed at once (default: 2, where one is not enough)",
    )
    options.add_threads(command)
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, search, print."""
    from detmap.reproduce import Search, described, parse, reproduce

    inputs = (arguments.truth, arguments.detections, arguments.protocol)
    options.refuse_to_overwrite(arguments.output, inputs)
    parse(arguments.number)
    truth, detections, _ = reading.read(arguments)

    def told(done: int, of: int) -> None:
        if done % 25 == 0:
            streams.progress(f"tried {done} of {of} rules")

    found: Search = reproduce(
        arguments.number,
        truth,
        detections,
        metric=arguments.metric,
        depth=arguments.depth,
        threads=arguments.threads,
        progress=told,
    )
    if arguments.format == "json":
        content = {
            "target": found.wanted.text,
            "found": [each.as_dict() for each in found.found],
            "nearest": [each.as_dict() for each in found.nearest],
            "tried": found.tried,
            "by_chance": found.by_chance,
        }
        output.write_json(content, arguments)
        return 0 if found.found else 1
    shown = found.found or found.nearest
    digits = found.wanted.digits + 2
    rows = [
        (
            each.kind,
            each.rules,
            each.metric,
            f"{found.wanted.scale * each.value:.{digits}f}",
            described(each),
        )
        for each in shown
    ]
    title = (
        f"rules that print {found.wanted.text}"
        if found.found
        else f"none of {found.tried} rules prints {found.wanted.text}; the nearest"
    )
    chance = (
        f"{found.tried} rules tried; of numbers with as many digits near by, about "
        f"{found.by_chance:.2g} would be hit by chance"
    )
    header = ("found by", "rules", "metric", "value", "changes")
    table = Table(title, header, tuple(rows), (chance,), name="rules")
    output.write_tables([table], arguments)
    if not found.found:
        streams.say(
            "note: what the input may be instead: another split, difficult objects left out, a "
            "confidence cut, 0-based boxes; `detmap doctor` looks at the files\n"
        )
    return 0 if found.found else 1
