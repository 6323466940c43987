"""Run detmap and another tool on the same files and compare arrays, metrics and classes. Exit 1:
numbers differ; 2: a tool cannot run.
"""

import argparse
import time

from detmap.cli import command_output, evaluation_inputs, options, streams

EXAMPLES = (
    "detmap parity instances.json results.json",
    "detmap parity instances.json results.json --set 'limits.max_dets=[1,10,300]'",
    "detmap parity instances.json results.json -p coco-segm",
    "detmap parity VOCdevkit/VOC2012 results.json --with hotcoco --with globox",
)


TABLES = ("tools", "arrays", "seconds", "classes", "numbers")
WRITTEN_IN = (
    *("class_names", "image_key", "class_key", "truth_format", "detections_format"),
    *("truth_box_format", "detections_box_format", "image_sizes"),
)
"""Options that a tool reading the files itself does not know."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from detmap.reproducibility.peers import BY_NAME

    evaluation_inputs.add(command)
    command.add_argument(
        "--with",
        action="append",
        dest="tools",
        metavar="TOOL",
        help=f"Run this installed tool (default: pycocotools); repeatable. One of "
        f"{', '.join(BY_NAME)}.",
    )
    options.add_outputs(command, *TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Run each tool and detmap, compare, print."""
    from detmap.errors import DetmapError
    from detmap.reproducibility import parity

    inputs = (arguments.truth, arguments.detections, arguments.protocol, arguments.class_names)
    options.refuse_to_overwrite(arguments.output, inputs)
    peers = [parity.find(name) for name in dict.fromkeys(arguments.tools or ("pycocotools",))]
    changes = options.settings(arguments.set)
    rules = [parity.rules_of(peer, arguments.protocol, changes) for peer in peers]
    arguments.protocol = arguments.protocol or rules[0].name
    begin = time.perf_counter()
    truth, detections, read_for = evaluation_inputs.read(arguments, empty=True)
    seconds = time.perf_counter() - begin
    truths = evaluation_inputs.truth_of_protocols(arguments, truth, read_for)
    told = any(getattr(arguments, name) is not None for name in WRITTEN_IN)
    files = None if told else (arguments.truth, arguments.detections)

    found, failed = [], []
    for peer, its_rules in zip(peers, rules, strict=True):
        streams.progress(f"running detmap and {peer.name}")
        try:
            table = truths.table(its_rules)
            found.append(parity.beside(peer, its_rules, table, detections, files, seconds))
        except DetmapError as error:
            if len(peers) == 1:
                raise
            failed.append(error)
    if arguments.format == "json" and arguments.table is None:
        content = {
            "tools": [each.to_dict() for each in found],
            "failed": [{"tool": e.where, "what": e.what, "fix": e.fix} for e in failed],
        }
        command_output.write_json(content, arguments)
    elif found:
        command_output.write_tables(parity.tables(found, arguments.table == "classes"), arguments)
    for each in found:
        command_output.write_notes(each.remarks)
        streams.say(f"detmap: {each.peer.name} {each.version}: {each.verdict}\n")
    for each_error in failed:
        streams.say(f"detmap: error: {each_error}\n")
    return 1 if any(not each.equal for each in found) else 2 if failed else 0
