"""The command line: the only module that prints, and the only one that exits.

stdout carries results; stderr carries notes, progress and errors. Exit 0: fine; 1: a comparison
failed; 2: bad input or usage.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from detmap import protocol as protocols
from detmap import ranking
from detmap.adapters import FORMATS, read_detections, read_images, read_truth
from detmap.errors import DetmapError
from detmap.evaluate import choose_protocol, evaluate, summarize
from detmap.matches import merge_files
from detmap.matching import match_images
from detmap.report import RENDERERS, formats
from detmap.report.table import Table
from detmap.resources import folder
from detmap.result import Result
from detmap.version import __version__

DEMO_PROTOCOLS = ("voc2007", "voc2012", "coco-bbox")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # class names may hold what an old terminal cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
        return code
    except DetmapError as error:
        sys.stderr.write(f"detmap: error: {error.where}: {error.what}\n")
        if error.fix:
            sys.stderr.write(f"  fix: {error.fix}\n")
        return 2
    except BrokenPipeError:  # the reader of our output has gone, as in `detmap eval ... | head`
        _drop_stdout()
        return 0
    except OSError as error:
        sys.stderr.write(
            f"detmap: error: {error.filename or 'stdout'}: {error.strerror}\n  fix: name a file with -o\n"
        )
        if error.filename is None:
            _drop_stdout()
        return 2
    except MemoryError:
        sys.stderr.write(
            "detmap: error: memory: this input does not fit\n"
            "  fix: evaluate parts with `detmap match --images` and join them with `detmap merge`\n"
        )
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("detmap: interrupted\n")
        return 130


def _drop_stdout() -> None:
    """Nothing more is written there, not even by the interpreter as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- commands -------------------------------------------------------------------------------------


def _eval(arguments: argparse.Namespace) -> int:
    _refuse_percent_in_json(arguments)
    _progress(f"reading {arguments.truth}")
    truth = read_truth(arguments.truth, split=arguments.split, format=arguments.truth_format)
    _progress(f"reading {arguments.detections}")
    detections = read_detections(arguments.detections, truth, format=arguments.detections_format)
    rules = choose_protocol(arguments.protocol, truth, _settings(arguments.set))
    _progress(
        f"matching {len(detections)} detections to {len(truth)} objects in {len(truth.categories)} classes"
    )
    return _report(evaluate(truth, detections, rules, threads=arguments.threads), arguments)


def _match(arguments: argparse.Namespace) -> int:
    _progress(f"reading {arguments.truth}")
    truth = read_truth(arguments.truth, split=arguments.split)
    everything = np.arange(len(truth.images), dtype=np.int32)
    images = everything if arguments.images is None else read_images(arguments.images, truth)
    _progress(f"reading {arguments.detections}")
    detections = read_detections(arguments.detections, truth)
    rules = choose_protocol(arguments.protocol, truth, _settings(arguments.set))
    _progress(f"matching {len(images)} of {len(truth.images)} images")
    part = match_images(truth, detections, rules, images)
    part.save(arguments.output, images_of_truth=len(truth.images))
    totals = f"{part.n_images} images, {len(part.obj_image)} objects, {len(part)} detections in {len(part.categories)} classes"
    _write(f"{arguments.output}: {totals}\n", None)
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    _refuse_percent_in_json(arguments)
    _progress(f"merging {len(arguments.parts)} parts")
    return _report(summarize(merge_files(arguments.parts)), arguments)


def _refuse_percent_in_json(arguments: argparse.Namespace) -> None:
    if arguments.percent and arguments.format == "json":
        raise DetmapError(
            "--percent", "JSON holds fractions", "choose another --format, or leave --percent out"
        )


def _report(result: Result, arguments: argparse.Namespace) -> int:
    """Write a result as asked, and its notes to stderr."""
    if arguments.format == "json":
        content = result.as_dict(iou=arguments.iou)
        if arguments.integrators:
            content["integrators"] = {
                rule: {name: None if math.isnan(value) else value for name, value in row.items()}
                for rule, row in result.integrators().items()
            }
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        _write(text, arguments.output)
    else:
        tables = result.tables(
            iou=arguments.iou, per_class=arguments.per_class, integrators=arguments.integrators
        )
        _write_tables(tables, arguments)
    for note in result.notes:
        sys.stderr.write(f"note: {note}\n")
    return 0


def _rank(arguments: argparse.Namespace) -> int:
    _refuse_percent_in_json(arguments)
    _progress(f"reading {arguments.truth} and {arguments.scores}")
    table = ranking.read(arguments.truth, arguments.scores, split=arguments.split)
    given = {key: getattr(arguments, key) for key in ("average", "integrator", "ties", "undefined")}
    settings = {
        key: None if value == "none" else value for key, value in given.items() if value is not None
    }
    _progress(f"ranking {len(table)} samples in {len(table.classes)} classes")
    result = ranking.evaluate(
        table,
        arguments.protocol,
        settings=settings,
        k=arguments.k,
        threshold=arguments.threshold,
        threads=arguments.threads,
    )
    if arguments.plot:
        from detmap.report import plots

        plots.draw(arguments.plot, result.lines(), result.signature)
    if arguments.format == "json":
        _write(json.dumps(result.as_dict(), indent=2, allow_nan=False) + "\n", arguments.output)
    else:
        _write_tables(result.tables(), arguments)
    for note in result.notes:
        sys.stderr.write(f"note: {note}\n")
    return 0


def _parity(arguments: argparse.Namespace) -> int:
    from detmap.parity import compare

    _progress("running detmap and pycocotools")
    parity = compare(
        arguments.truth,
        arguments.detections,
        split=arguments.split,
        settings=_settings(arguments.set),
    )
    _write_tables(parity.tables, arguments)
    for remark in parity.remarks:
        sys.stderr.write(f"note: {remark}\n")
    sys.stderr.write(
        f"detmap: {'identical in every bit' if parity.equal else 'the numbers differ'}\n"
    )
    return 0 if parity.equal else 1


def _show(arguments: argparse.Namespace) -> int:
    if arguments.protocol is None:
        loaded = [protocols.load(name) for name in protocols.names()]
        rows = tuple((each.name, each.version, each.summary) for each in loaded)
        _write_tables([Table("", ("protocol", "version", "summary"), rows)], arguments)
        return 0
    protocols.load(arguments.protocol)  # a broken file of one's own is reported, not printed
    path = folder("configs") / f"{arguments.protocol}.toml"
    own = Path(arguments.protocol)
    _write((path if path.is_file() else own).read_text(encoding="utf-8"), arguments.output)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    sample = folder("datasets") / "shapes"
    truth = read_truth(sample)
    rows, lines = [], [f"truth and detections: {sample}"]
    for detector in ("contours", "template"):
        _progress(f"evaluating {detector}")
        detections = read_detections(sample / "detections" / detector, truth)
        for name in DEMO_PROTOCOLS:
            result = evaluate(truth, detections, name)
            values = result.metrics
            row = [
                values.get(metric)
                for metric in ("mAP", "AP", "AP50", "AP75", "APs", "APm", "APl", "AR100")
            ]
            rows.append((detector, name, *row))
            lines.append(f"{detector}: {result.signature}")
    header = ("detector", "protocol", "mAP", "AP", "AP50", "AP75", "APs", "APm", "APl", "AR100")
    totals = f"{len(truth.images)} images, {len(truth)} objects, {len(truth.categories)} classes"
    _write_tables(
        [Table(f"the bundled sample: {totals}", header, tuple(rows), tuple(lines))], arguments
    )
    return 0


def _warmup(arguments: argparse.Namespace) -> int:
    from detmap.warmup import warmup

    warmup()
    _write("the kernels are ready\n", None)
    return 0


# --- arguments ------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="detmap",
        description="Evaluate object detectors, VOC and COCO style.",
        epilog="Exit 0: fine; 1: a comparison failed; 2: bad input or usage.",
    )
    parser.add_argument("--version", action="version", version=f"detmap {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    command = commands.add_parser(
        "eval", help="evaluate detections against ground truth", description=_EVAL
    )
    command.set_defaults(command=_eval)
    _inputs(command)
    _rules(command)
    command.add_argument(
        "--truth-format", choices=FORMATS, help="override what the path looks like"
    )
    command.add_argument(
        "--detections-format", choices=FORMATS, help="override what the path looks like"
    )
    command.add_argument(
        "--threads", type=_positive, metavar="N", help="threads to use (default: all processors)"
    )
    _details(command)
    _outputs(command, "json")

    command = commands.add_parser(
        "match", help="match a part of the images, for `merge`", description=_MATCH
    )
    command.set_defaults(command=_match)
    _inputs(command)
    _rules(command)
    command.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="the images to match, one id or file stem a line; "
        "detections on others are left out (default: all images)",
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="PART", required=True, help="the part to write (.npz)"
    )

    command = commands.add_parser(
        "merge", help="put parts together and print the result", description=_MERGE
    )
    command.set_defaults(command=_merge)
    command.add_argument(
        "parts",
        nargs="+",
        type=Path,
        metavar="PART",
        help="written by `match`, or by Evaluator.save",
    )
    _details(command)
    _outputs(command, "json")

    command = commands.add_parser(
        "rank", help="judge the scores of an image-level classifier", description=_RANK
    )
    command.set_defaults(command=_rank)
    command.add_argument("truth", metavar="TRUTH", help="CSV of 0 and 1, or VOC folder")
    command.add_argument("scores", metavar="SCORES", help="CSV of scores, or folder of VOC text")
    command.add_argument(
        "-p",
        "--protocol",
        choices=ranking.PROTOCOLS,
        help="default: plain for CSV, by the year for VOC",
    )
    command.add_argument(
        "--split", metavar="S", help="split of a VOC folder (default: test if present, else val)"
    )
    command.add_argument(
        "--average", choices=("none", *ranking.AVERAGES), help="over classes (default: macro)"
    )
    command.add_argument(
        "--integrator",
        choices=ranking.INTEGRATORS,
        help="from a curve to AP (default: by the protocol)",
    )
    command.add_argument(
        "--ties",
        choices=ranking.TIES,
        help="equal scores enter a threshold together, or in the order of "
        "the truth (default: by the protocol)",
    )
    command.add_argument(
        "--undefined",
        choices=ranking.UNDEFINED,
        help="what a class without positives, or without a "
        "prediction, adds to a mean: nothing, 0 or 1 (default: skip)",
    )
    command.add_argument(
        "--k",
        type=_ranks,
        default=(),
        metavar="K[,K]",
        help="also precision, recall and mAP at these ranks of each sample's list of classes",
    )
    command.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="also TP, FP, TN, FN and rates from this score on",
    )
    command.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the PR and ROC curves (.png, .svg, .pdf)"
    )
    command.add_argument(
        "--threads", type=_positive, metavar="N", help="threads to use (default: all processors)"
    )
    _outputs(command, "json")

    command = commands.add_parser(
        "parity", help="compare with pycocotools on the same files", description=_PARITY
    )
    command.set_defaults(command=_parity)
    _inputs(command)
    _outputs(command)

    command = commands.add_parser("show", help="list the protocols, or print one with its source")
    command.set_defaults(command=_show)
    command.add_argument("protocol", nargs="?", metavar="PROTOCOL")
    _outputs(command)

    command = commands.add_parser("demo", help="evaluate the bundled sample under three protocols")
    command.set_defaults(command=_demo)
    _outputs(command)
    command = commands.add_parser(
        "warmup", help="compile the kernels ahead of the first evaluation"
    )
    command.set_defaults(command=_warmup)
    return parser


_EVAL = """Evaluate detections against ground truth. TRUTH is a COCO instances file or a VOC folder (VOCdevkit/VOC2007);
DETECTIONS is a COCO results file or a folder of comp3/comp4 text files; the two may be of different families."""
_MATCH = """Match the detections on some of the images, and write the match rows to a file. Jobs on disjoint lists of images
need nothing of each other; `detmap merge` gives the result of one run over all of them, in every bit."""
_MERGE = """Put the parts of `detmap match` together and print the result. All have to be of one protocol and one list of
classes, and no image may be in two of them."""
_RANK = """Judge the scores of an image-level classifier: AP, AUC, best F1 of each class, and averages. TRUTH and SCORES are
CSV files with a header (sample id, then one class a column), or a VOC folder and a folder of comp1_cls/comp2_cls text."""
_PARITY = """Run detmap and pycocotools on the same files and compare the precision, recall and scores arrays, the twelve
stats, and the time. Exit 1 if a single bit differs."""


def _inputs(command: argparse.ArgumentParser) -> None:
    command.add_argument("truth", metavar="TRUTH", help="COCO instances JSON, or VOC folder")
    command.add_argument(
        "detections", metavar="DETECTIONS", help="COCO results JSON, or folder of VOC text"
    )
    command.add_argument(
        "--split", metavar="S", help="split of a VOC folder (default: test if present, else val)"
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        help="change a key of the protocol, such as limits.max_dets=[1,10,300]; repeatable",
    )


def _rules(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-p",
        "--protocol",
        metavar="P",
        help="name of a protocol, or a TOML file (default: by the truth)",
    )


def _details(command: argparse.ArgumentParser) -> None:
    command.add_argument("--per-class", action="store_true", help="also print a table of classes")
    command.add_argument(
        "--iou",
        type=float,
        metavar="T",
        help="IoU of the TP, FP, ignored and missed counts (default 0.5)",
    )
    command.add_argument(
        "--integrators",
        action="store_true",
        help="also print AP under the 11-point, all-point, 101-point and step rules",
    )


def _outputs(command: argparse.ArgumentParser, *more: str) -> None:
    command.add_argument(
        "--format",
        choices=(*RENDERERS, *more),
        default="table",
        help="of the output (default: table)",
    )
    command.add_argument(
        "--percent", action="store_true", help="print tables in percent instead of fractions"
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(_positive(part) for part in text.split(","))


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise DetmapError(
                f"--set {pair}", "no value", "write key=value, as in limits.max_dets=[1,10,300]"
            )
        settings[key.strip()] = value.strip()
    return settings


# --- output ---------------------------------------------------------------------------------------


def _write_tables(tables: Sequence[Table], arguments: argparse.Namespace) -> None:
    if arguments.format == "table" and arguments.output is None and sys.stdout.isatty():
        formats.terminal(tables, arguments.percent, sys.stdout)
    else:
        _write(RENDERERS[arguments.format](tables, arguments.percent), arguments.output)
    if (
        arguments.format == "csv"
    ):  # its rows are all data, so what stands below a table goes where the notes go
        sys.stderr.writelines(f"{line}\n" for table in tables for line in table.lines)


def _write(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DetmapError(
            str(path), f"cannot be written: {error.strerror}", "name another file with -o"
        ) from None


def _progress(text: str) -> None:
    """What is going on, for somebody who waits at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text} ...\n")
