"""Fuzz detmap against its references on drawn data.

    python tools/fuzz.py coco --sets 5000       # every array and stat equal (==) to pycocotools
    python tools/fuzz.py voc --sets 5000        # every AP equal to the slow twin of the devkit
    python tools/fuzz.py lanes --sets 200000    # damaged files: the fast lanes read what the
    reference lanes read, or nothing

The first data set that differs is written to a file and its seed is printed; exit code 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import detmap
from detmap import curves
from detmap.protocol import Grid
from tests.drawing import draw_coco, draw_many_detections, draw_round_recall, draw_voc
from tests.lanes import LANES, taken, write_mutated
from tests.reference import official, voc
from tests.tables import read_coco, voc_tables

POINTS = Grid("arange 0:0.1:1").values().tolist()


def coco_difference(seed: int) -> tuple[str, object]:
    """What differs from pycocotools on one drawn data set ("" for nothing), and the data."""
    rng = np.random.default_rng(seed)
    draw = (
        draw_many_detections
        if seed % 50 == 0
        else draw_round_recall
        if seed % 50 == 1
        else draw_coco
    )
    data = draw(rng)
    result = detmap.evaluate(*read_coco(*data), threads=1)
    expected = official.run(*data)
    for name, found in curves.coco_arrays(result.matches).items():
        if not np.array_equal(found, expected.eval[name]):
            return f"{name}: {int((found != expected.eval[name]).sum())} cells", data
    stats = [-1.0 if math.isnan(value) else value for value in result.metrics.values()]
    return (
        "" if stats == expected.stats.tolist() else f"stats {stats} and {expected.stats.tolist()}"
    ), data


def voc_difference(seed: int) -> tuple[str, object]:
    """What differs from the slow twin on one drawn data set ("" for nothing), and the data."""
    data = objects, detections = draw_voc(np.random.default_rng(seed))
    tables = voc_tables(objects, detections)
    for protocol, strict, integrate in (
        ("voc2007", False, eleven),
        ("voc2007-python", True, eleven),
        ("voc2012", False, voc.all_points),
        ("voc2012-python", True, voc.all_points),
    ):
        for row in detmap.evaluate(*tables, protocol, threads=1).per_class:
            expected = voc.class_ap(
                detections[row["name"]], objects[row["name"]], strict=strict, integrate=integrate
            )
            if row["AP"] != expected and not (math.isnan(row["AP"]) and math.isnan(expected)):
                return f"{protocol}, {row['name']}: {row['AP']!r} and {expected!r}", data
    return "", data


def eleven(recall: list[float], precision: list[float]) -> float:
    """The twin on NumPy's points; a class whose detections are all neutral has AP 0."""
    ap = voc.eleven_point(recall, precision, POINTS)
    return 0.0 if math.isnan(ap) else ap


def lanes_difference(seed: int) -> tuple[str, object]:
    """Whether the two lanes of a format read one damaged file differently ("" for no), and the
    file.
    """
    kind = tuple(LANES)[seed % len(LANES)]
    write_mutated(kind, seed, SCRATCH)
    try:
        TAKEN[kind] = TAKEN.get(kind, 0) + taken(kind, SCRATCH)
    except Exception as error:
        return f"{kind}: {type(error).__name__} {error}", SCRATCH.read_bytes().decode("latin-1")
    return "", None


TAKEN: dict[str, int] = {}
SCRATCH = Path(tempfile.gettempdir()) / f"detmap-fuzz-{os.getpid()}"
SUBJECTS: dict[str, Callable[[int], tuple[str, object]]] = {
    "coco": coco_difference,
    "voc": voc_difference,
    "lanes": lanes_difference,
}


def main() -> int:
    """Draw, compare, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "subject",
        choices=SUBJECTS,
        nargs="?",
        default="coco",
        help="what to compare (default coco)",
    )
    parser.add_argument("--sets", type=int, default=5000, help="data sets to draw (default 5000)")
    parser.add_argument(
        "--seed", type=int, default=0, help="first seed; set k has seed + k (default 0)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("fuzz-failure.json"),
        help="where a failing set is written",
    )
    arguments = parser.parse_args()
    begin = time.perf_counter()
    for k in range(arguments.sets):
        seed = arguments.seed + k
        found, data = SUBJECTS[arguments.subject](seed)
        if found:
            arguments.output.write_text(json.dumps(data, indent=1))
            print(f"seed {seed}: {found}; the data is in {arguments.output}")
            return 1
        if (k + 1) % max(500, arguments.sets // 20) == 0:
            print(f"{k + 1} sets, {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    SCRATCH.unlink(missing_ok=True)
    taken_by = f"; the fast lanes took {TAKEN}" if TAKEN else ""
    print(f"{arguments.sets} data sets from seed {arguments.seed}: no difference{taken_by}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
