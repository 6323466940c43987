"""Processor time of a benchmark's official program and of detmap on the same files, and how much
their numbers differ.

    python tools/official/draw.py FOLDER
    python tools/official/measure.py aitod FOLDER/aitod CHECKOUT [--python PYTHON] [--runs 3]

CHECKOUT is a copy of the official repository, and PYTHON an interpreter with the packages that it
needs. Open Images' files are those of tools/open_images_files.py. Times are user and system
seconds of the whole process, the best of some runs.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FILES = {
    "crowdhuman": ("crowdhuman", "annotation.odgt", "results.odgt"),
    "openimages": ("openimages-challenge", "boxes.csv", "predictions.csv"),
    "luna16": ("froc-luna16", "annotations.csv", "results.csv"),
    "deeplesion": ("froc-boxes", "truth.json", "dets.json"),
    "hrsc2016": ("hrsc2016", "truth.csv", "dets.csv"),
    "dior-r": ("dior-r", "truth.csv", "dets.csv"),
    "ultralytics-obb": ("ultralytics-obb", "truth.csv", "dets.csv"),
    "visdrone": ("visdrone", "annotations", "results"),
    "uavdt": ("uavdt", "gt", "det"),
    "caltech": ("caltech", "annotations", "results"),
    "imagenet-det": ("imagenet-det", "xml", "predictions.txt"),
    "widerface-matlab": ("widerface", "ground_truth", "widerface_txt"),
}
"""Program -> protocol, ground truth and detections; the others have COCO files."""


def timed(words: list[str], runs: int) -> tuple[float, dict[str, Any]]:
    """The best processor time of a command, and what it printed."""
    times, output = [], b""
    for _ in range(runs):
        before = os.times()
        output = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        after = os.times()
        spent = after.children_user + after.children_system
        times.append(spent - before.children_user - before.children_system)
    return min(times), json.loads(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    protocol, *files = FILES.get(options.name, (options.name, "truth.json", "dets.json"))
    program = [options.python, str(HERE / "programs.py"), options.name]
    theirs, wanted = timed([*program, str(options.folder), str(options.checkout)], 1)
    paths = [str(options.folder / file) for file in files]
    command = [sys.executable, "-m", "detmap", "eval", *paths, "-p", protocol, "--format", "json"]
    ours, content = timed(command, options.runs)
    print(f"official {theirs:.1f} s, detmap {ours:.1f} s of processor time")
    print(compared(wanted, content["metrics"]))


def compared(wanted: dict[str, float], metrics: dict[str, float | None]) -> str:
    """How much the numbers differ; a number is undefined on both sides, or on none."""
    differences = {}
    for name, value in wanted.items():
        own = metrics[name]
        if (own is None) != math.isnan(value):
            raise ValueError(f"{name} is {value} officially, and {own} here")
        if own is not None:
            differences[name] = abs(value - own)
    worst = max(differences, key=lambda name: differences[name])
    return (
        f"{len(differences)} numbers, largest difference {differences[worst]:.2g}"
        f" ({worst}: {wanted[worst]!r}, here {metrics[worst]!r})"
    )


if __name__ == "__main__":
    main()
