"""Options of the commands that print a result: what of it to look at."""

from __future__ import annotations

import argparse

from detmap.cli import options


def add_images(command: argparse.ArgumentParser) -> None:
    """--images."""
    command.add_argument(
        "--images",
        type=options.path,
        metavar="FILE",
        help="the images to take, one id or file stem a line; "
        "detections on others are left out (default: all images)",
    )


def add_part(command: argparse.ArgumentParser) -> None:
    """--images, --classes and --slices."""
    add_images(command)
    command.add_argument(
        "--classes",
        type=options.names,
        metavar="A,B",
        help="the classes to evaluate, by name or id, as if there were no others",
    )
    command.add_argument(
        "--slices",
        type=options.path,
        metavar="FILE",
        help="also print each of these sets of images: JSON, a list of images a slice; or CSV, a "
        "line an image with its attributes",
    )


def add_operating(command: argparse.ArgumentParser) -> None:
    """--confidence, --best-f1, --at-precision and --at-recall."""
    command.add_argument(
        "--confidence",
        type=float,
        metavar="T",
        help="also print precision, recall, F1, TP, FP and missed from this score on",
    )
    command.add_argument(
        "--best-f1", action="store_true", help="also print the score of the best F1"
    )
    command.add_argument(
        "--at-precision",
        type=float,
        metavar="P",
        help="also print the lowest score with at least this precision",
    )
    command.add_argument(
        "--at-recall",
        type=float,
        metavar="R",
        help="also print the highest score with at least this recall",
    )


def add_plot(command: argparse.ArgumentParser, what: str) -> None:
    """--plot."""
    command.add_argument(
        "--plot", type=options.new_file, metavar="FILE", help=f"draw {what} (.png, .svg, .pdf)"
    )


def add_per_image(command: argparse.ArgumentParser) -> None:
    """--per-image."""
    command.add_argument(
        "--per-image",
        type=options.new_file,
        metavar="FILE",
        help="write a row an image: counts, and the score of its surest false positive "
        "(.csv, .json, .md, .tex)",
    )


def add_details(command: argparse.ArgumentParser) -> None:
    """--per-class, --iou and --integrators."""
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
