"""Tiny samples of export formats, for readers' tests and the fuzzer.

SAMPLES : name of a format to a function that writes a sample into a folder and returns the paths of
its ground truth and its detections
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support import builders as make

Paths = tuple[Path, Path]
CSV = "image,class,score,xmin,ymin,xmax,ymax\na.jpg,cat,0.9,10,20,40,60\nb.jpg,dog,0.5,1,2,3,4\n"


def kitti(folder: Path) -> Paths:
    """Two objects and an ignored region; results with a score."""
    make.write(
        folder / "training" / "label_2" / "a.txt",
        "cat 0.25 1 -1.57 10 20 40.5 60 1.5 1.6 3.9 1 1.7 20 -1.5\n"
        "DontCare -1 -1 -10 100 100 150 140 -1 -1 -1 -1000 -1000 -1000 -10\n",
    )
    make.write(
        folder / "training" / "label_2" / "b.txt", "guide dog 0 0 0.5 1 2 3 4 0 0 0 0 0 0 0\n"
    )
    make.write(
        folder / "results" / "data" / "a.txt",
        "cat -1 -1 1.25 10 20 40 60 -1 -1 -1 -1000 -1000 -1000 -10 0.9\n",
    )
    make.write(
        folder / "results" / "data" / "b.txt", "guide_dog -1 -1 -10 1 2 3 4" + " 0" * 7 + " .5"
    )
    return folder / "training", folder / "results"


SAMPLES: dict[str, Callable[[Path], Paths]] = {"kitti": kitti}
