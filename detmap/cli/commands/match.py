"""Match the detections of some images and write a partial result. Run independent jobs on disjoint
lists of images; `detmap merge` gives the bit-identical result of a single run.
"""

import argparse

import numpy as np

from detmap.cli import (
    command_output,
    doctor_notes,
    evaluation_inputs,
    options,
    result_views,
    streams,
)
from detmap.core.adapters import read_images
from detmap.core.matching.engine import match_images
from detmap.core.matching.row_order import TOGETHER
from detmap.core.results import result_notes
from detmap.errors import DataError, counted

LEFT_OUT = "metrics are not in partial results; `detmap merge` will not report them"
EXAMPLES = (
    "detmap match instances.json results.json -o all.npz",
    "detmap match instances.json results.json --images job1.txt -o part1.npz",
    "detmap match VOCdevkit/VOC2007 results/ -p voc2007-python -o part.npz",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command)
    doctor_notes.add(command)
    result_views.add_images(command)
    command.add_argument(
        "-o",
        "--output",
        type=options.new_file,
        metavar="PART",
        required=True,
        help="Write the partial result to PART (.npz).",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, match some images, save."""
    inputs = (
        arguments.truth,
        arguments.detections,
        arguments.protocol,
        arguments.images,
        arguments.class_names,
    )
    options.refuse_to_overwrite(arguments.output, inputs)
    truth, detections, rules = doctor_notes.read(arguments, empty=True)
    everything = np.arange(len(truth.images), dtype=np.int32)
    images = everything if arguments.images is None else read_images(arguments.images, truth)
    if not rules.image_by_image():
        if len(images) < len(truth.images):
            what, fix = f"{rules.name} {TOGETHER}: parts do not merge", "match all images at once"
            raise DataError(f"protocol {rules.name}", what, fix)
        streams.say(f"note: {rules.name} {TOGETHER}: this file merges with no other\n")
    streams.progress(f"matching {len(images)} of {len(truth.images)} images")
    part = match_images(truth, detections, rules, images)
    part.save(arguments.output, images_of_truth=len(truth.images))
    counts = {"image": part.n_images, "object": len(part.obj_image), "detection": len(part)}
    totals = ", ".join(counted(n, noun, sep="") for noun, n in counts.items())
    classes = counted(len(part.categories), "class", sep="")
    streams.inform(f"{arguments.output}: {totals} in {classes}\n")
    command_output.write_notes(result_notes.extra_left_out(rules, LEFT_OUT))
    return 0
