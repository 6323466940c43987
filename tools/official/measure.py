"""Processor time of a benchmark's official program and of detmap on the same files, and how much
their numbers differ.

    python tools/official/draw.py FOLDER
    python tools/official/measure.py aitod FOLDER/aitod CHECKOUT [--python PYTHON] [--runs 3]

CHECKOUT is a copy of the official repository, and PYTHON an interpreter with the packages that it
needs. Open Images' files are those of tools/open_images_files.py. Times are user and system
seconds of the whole process, the best of some runs.
"""

from __future__ import annotations

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
    metrics = content["metrics"]
    differences = {
        name: abs(value - metrics[name])
        for name, value in wanted.items()
        if not math.isnan(value) and metrics[name] is not None
    }
    print(f"official {theirs:.1f} s, detmap {ours:.1f} s of processor time")
    print(f"{len(differences)} numbers, largest difference {max(differences.values()):.2g}")


if __name__ == "__main__":
    main()
