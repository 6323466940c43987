"""Evaluate detections against ground truth. TRUTH is a COCO instances file, a VOC folder
(VOCdevkit/VOC2007), a YOLO data.yaml, a CSV file, ...; DETECTIONS is a COCO results file, a folder
of comp3/comp4 text files, of YOLO labels, ...; the formats may differ.
"""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import wings
from detmap.cli import (
    bounded_memory,
    command_output,
    doctor_notes,
    evaluation_inputs,
    least_values,
    options,
    result_views,
    streams,
    uncertainty_tables,
)
from detmap.core.adapters import read_images
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Note, Truth
from detmap.errors import few
from detmap.evaluate import evaluate

EXAMPLES = (
    "detmap eval instances_val2017.json results.json",
    "detmap eval VOCdevkit/VOC2007 results/ --per-class --percent",
    "detmap eval data.yaml runs/detect/val -p coco-bbox",
    "detmap eval TRUTH DETECTIONS -p voc2012 --set iou.thresholds=0.5:0.05:0.95",
    "detmap eval TRUTH DETECTIONS --table classes -o classes.csv",
    "detmap eval TRUTH DETECTIONS --ci --per-class",
    "detmap eval TRUTH DETECTIONS --slices weather.csv --per-image images.csv",
    "detmap eval TRUTH DETECTIONS --receipt run.json",
    "detmap eval TRUTH DETECTIONS --classes person,dog --confidence 0.5 --best-f1",
    "detmap eval TRUTH results.parquet --memory 3GB",
    "detmap eval TRUTH DETECTIONS --fail-under AP=.40,AP50=.6",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command)
    doctor_notes.add(command, strict=True)
    options.add_threads(command)
    bounded_memory.add(command)
    result_views.add_part(command)
    result_views.add_details(command)
    uncertainty_tables.add(command)
    result_views.add_operating(command)
    result_views.add_per_image(command)
    result_views.add_plot(command, "precision over recall by class, area and IoU, F1 over score")
    command.add_argument(
        "--errors",
        type=options.new_file,
        metavar="FILE",
        help="Write one CSV row per false positive and missed object, with its error type.",
    )
    command.add_argument(
        "--receipt",
        type=options.new_file,
        metavar="FILE",
        help="Write a receipt, with which `detmap verify` verifies the result later.",
    )
    least_values.add(command)
    options.add_outputs(command, *command_output.TABLES, "slices")


def run(arguments: argparse.Namespace) -> int:
    """Read, match, print."""
    read = ("truth", "detections", "protocol", "class_names", "images", "slices", "groups")
    inputs = [getattr(arguments, name) for name in read]
    outputs = [
        getattr(arguments, name) for name in ("output", "per_image", "errors", "plot", "receipt")
    ]
    options.refuse_bad_picture(arguments.plot)
    options.refuse_bad_outputs(outputs, inputs)
    writers = [
        wings.required_hook(f"write_{name}")
        for name in ("errors", "receipt")
        if getattr(arguments, name) is not None
    ]
    least = least_values.read(arguments.fail_under)
    result = bounded_memory.evaluated(arguments)
    slices: dict[str, Result] = {}
    if result is None:
        truth, detections, result, ids = evaluated(arguments)
        for write in writers:
            write(truth, detections, result, arguments)
        slices = result.slices(ids)
    code = command_output.write_result(result, arguments, slices)
    if not least_values.judge(result, least):
        code = code or 1
    return code or (2 if arguments.strict and getattr(arguments, "findings", None) else 0)


def evaluated(
    arguments: argparse.Namespace,
) -> tuple[Truth, Detections, Result, dict[str, NDArray[Any]]]:
    """Read, select images and classes, evaluate; return also the image ids of each slice."""
    truth, detections, rules = doctor_notes.read(arguments)
    images, slices = None, {}
    if arguments.images is not None:
        images = truth.images.ids[read_images(arguments.images, truth, arguments.image_key)]
    if arguments.slices is not None:
        from detmap.core.adapters.tabular.slice_lists import read_slices

        slices = read_slices(arguments.slices, truth, arguments.image_key)
    if images is not None or arguments.classes is not None:
        from detmap.core.matching import selected_classes

        tables = (truth, detections, rules)
        truth, detections, rules = selected_classes.select(
            tables, images, arguments.classes, arguments.class_key
        )
    slices = {name: ids[np.isin(ids, truth.images.ids)] for name, ids in slices.items()}
    if empty := [name for name, ids in slices.items() if not len(ids)]:
        text = f"slices have no images: {few(map(repr, empty))}"
        note = Note("slice-empty", text, len(empty), str(arguments.slices))
        command_output.write_notes((note,))
    least_values.require_known(least_values.read(arguments.fail_under), truth, rules)
    sizes = f"{len(detections)} detections to {len(truth)} objects"
    streams.progress(f"matching {sizes} in {len(truth.categories)} classes")
    result = evaluate(truth, detections, rules, threads=arguments.threads)
    return truth, detections, result, slices
