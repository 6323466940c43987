"""Print numbers of the sample with all of their digits: all versions of Python must print the same.

    python3.11 tools/same_bits.py > old && python3.13 tools/same_bits.py > new && cmp old new

Metrics by each protocol, and by rules that add many floats; intervals, error analysis with
calibration, operating points, comparisons. JSON has the shortest text of a number that no other
number has, so equal texts are equal bits.
"""

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from detmap.cli import main as detmap  # noqa: E402
from detmap.core import protocol  # noqa: E402

SHAPES = Path("datasets", "shapes")  # in the root: outputs name their files
VOC = (str(SHAPES), str(SHAPES / "detections" / "contours"))
COCO = (str(SHAPES / "instances_test.json"), str(SHAPES / "detections" / "template.json"))
SUMS = (
    ("ranking.equal=true_first",),
    ("ap.pool=all",),
    ("ap.sum=pairwise",),
    ("ap.integrator=all_points", "ap.pool=all"),
    ("ap.integrator=all_points", "ranking.equal=true_first"),
    ("ap.integrator=eleven_point", "ap.pool=all"),
)
"""Settings whose curves are integrated at each rank."""
VERSIONS = re.compile(r'^ *"(python|numpy|numba)": .*\n', re.MULTILINE)


def commands() -> Iterator[tuple[str, ...]]:
    """The words of each command."""
    for files in (VOC, COCO):
        for name in (*protocol.names(), *protocol.tools()):
            yield "eval", *files, "-p", name, "--per-class"
    for name in ("voc2007", "voc2012", "coco-bbox"):
        for settings in SUMS:
            sets = [word for each in settings for word in ("--set", each)]
            yield "eval", *VOC, "-p", name, *sets
    yield "eval", *COCO, "-p", "coco-bbox", "--ci"
    yield "eval", *COCO, "-p", "coco-bbox", "--confidence", "0.5", "--best-f1", "--ties"
    yield "diagnose", *COCO, "-p", "coco-bbox"
    yield "diagnose", *COCO, "-p", "coco-bbox", "--ci"
    yield "compare", COCO[0], COCO[1], str(SHAPES / "detections" / "contours.json")


def main() -> int:
    """Run all commands, without their notes and the versions that JSON names."""
    os.chdir(ROOT)
    for words in commands():
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            code = detmap([*words, "--format", "json"])
        print(" ".join(words), "->", code)
        print(VERSIONS.sub("", text.getvalue()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
