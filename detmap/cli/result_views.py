"""Options of the commands that print a result."""

import argparse

from detmap.cli import options


def add_images(command: argparse.ArgumentParser) -> None:
    """--images."""
    command.add_argument(
        "--images",
        type=options.path,
        metavar="FILE",
        help="Evaluate only the images listed in FILE, one id or file stem per line; a pipe "
        "is refused (default: all images).",
    )


def add_part(command: argparse.ArgumentParser) -> None:
    """--images, --classes and --slices."""
    add_images(command)
    command.add_argument(
        "--classes",
        type=options.names,
        metavar="A,B",
        help="Evaluate only these classes, by name or id.",
    )
    command.add_argument(
        "--slices",
        type=options.path,
        metavar="FILE",
        help="Report metrics per image subset. FILE is JSON (a list of images per slice) or CSV "
        "(one row per image with its attributes).",
    )


def add_operating(command: argparse.ArgumentParser) -> None:
    """--confidence, --best-f1, --min-precision and --min-recall."""
    command.add_argument(
        "--confidence",
        type=options.fraction,
        metavar="T",
        help="Report precision, recall, F1, TP, FP and FN at score threshold T.",
    )
    command.add_argument(
        "--best-f1", action="store_true", help="Report the score threshold with the highest F1."
    )
    for name, metavar, which in (("precision", "P", "lowest"), ("recall", "R", "highest")):
        what = f"Report the {which} score threshold with {name} of at least {metavar}."
        command.add_argument(f"--min-{name}", type=options.fraction, metavar=metavar, help=what)


def add_plot(command: argparse.ArgumentParser, what: str) -> None:
    """--plot."""
    command.add_argument(
        "--plot", type=options.new_file, metavar="FILE", help=f"Plot {what} (.png, .svg, .pdf)."
    )


def add_per_image(command: argparse.ArgumentParser) -> None:
    """--per-image."""
    command.add_argument(
        "--per-image",
        type=options.new_file,
        metavar="FILE",
        help="Write one row per image: TP, FP and FN counts and the highest-scoring false positive "
        "(.csv, .json, .md, .tex).",
    )


def add_details(command: argparse.ArgumentParser) -> None:
    """--per-class, --iou and --integrators."""
    command.add_argument("--per-class", action="store_true", help="Report metrics per class.")
    command.add_argument(
        "--iou",
        type=options.fraction,
        metavar="T",
        help="Set the IoU threshold of the TP, FP, FN and ignored counts (default: 0.5).",
    )
    command.add_argument(
        "--integrators",
        action="store_true",
        help="Report AP with 11-point, all-point, 101-point and step interpolation.",
    )
