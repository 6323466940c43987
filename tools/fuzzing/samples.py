"""Damaged samples of every format (`tests.support.format_samples`): an error with place and fix, or
tables that give the same number when they are written as COCO JSON and read again (every third).
"""

import functools
import math
import random

import detmap
from detmap.annotation_tools.conversion import writers
from detmap.core import protocol
from detmap.errors import DetmapError
from tests.support.format_samples import SAMPLES
from tools.fuzzing._files import damage_one, empty_folder, judge_refusal, scratch

BINARY = (".png", ".jpg", ".parquet")
"""Files that stay as they are."""
COUNTS = {f"{kind} {how}": 0 for kind in SAMPLES for how in ("read", "refused")}


def case(seed: int) -> str | None:
    """What is wrong with how one sample, perhaps a damaged one, is read."""
    kind, rng = tuple(SAMPLES)[seed % len(SAMPLES)], random.Random(seed)
    folder = empty_folder("sample")
    truth_path, found_path = SAMPLES[kind](folder)
    files = [file for file in folder.rglob("*") if file.suffix not in BINARY]
    whole = not damage_one(rng, files)
    try:
        truth = detmap.read_truth(truth_path)
        found = detmap.read_detections(found_path, truth, unknown="drop")
        number = _ap(truth, found)
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    if not (math.isnan(number) or 0 <= number <= 1):
        return f"{kind}: AP {number}"
    again = _converted(truth, found) if rng.random() < 1 / 3 else None
    same = again is None or math.isnan(number) == math.isnan(again)
    if again is not None and not math.isnan(number) and abs(again - number) > 1e-9:
        same = False
    return None if same else f"{kind}: AP {number}, after conversion {again}"


def _converted(truth: detmap.Truth, found: detmap.Detections) -> float | None:
    """AP of the tables as COCO JSON; None where COCO's reader refuses what they hold."""
    files = scratch("truth.json"), scratch("found.json")
    writers.write(truth, files[0], "coco")
    writers.write(found, files[1], "coco")
    try:
        table = detmap.read_truth(files[0])
        rows = detmap.read_detections(files[1], table)
        return _ap(table, rows)
    except DetmapError:
        return None


def _ap(truth: detmap.Truth, found: detmap.Detections) -> float:
    return detmap.evaluate(truth, found, _protocol(), threads=1).metrics["AP"]


@functools.cache
def _protocol() -> protocol.Protocol:
    return protocol.load("coco-bbox")
