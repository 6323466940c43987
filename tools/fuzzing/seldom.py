"""Damaged files of formats that other targets reach seldom: KITTI, Parquet of Hugging Face, rotated
predictions, LUNA16 and SA-Co. An error with place and fix, or a number.
"""

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import detmap
from detmap.errors import DetmapError
from tests.support.mutation import damaged
from tools.fuzzing import samples
from tools.fuzzing._refusals import judge_refusal
from tools.fuzzing._scratch import scratch

SAMPLES = ("kitti", "datumaro-kitti", "huggingface-parquet", "rotated-predictions")
Files = tuple[Path, Path, str, str]
"""Ground truth, detections, the format of the ground truth, and the protocol."""
SPHERES = "seriesuid,coordX,coordY,coordZ,"


def luna16(folder: Path) -> Files:
    """Nodules, excluded findings, scans and results."""
    for name, text in (
        ("annotations.csv", f"{SPHERES}diameter_mm\ns.2,1,2,3,4\ns.1,1,2,3,4.5\n"),
        ("annotations_excluded.csv", f"{SPHERES}diameter_mm\ns.1,5,6,7,-1\n"),
        ("seriesuids.csv", "s.2\ns.1\n"),
        ("results.csv", f"{SPHERES}probability\ns.1,1,2,3,.5\ns.2,-4.5,5,6,.25\n"),
    ):
        (folder / name).write_text(text)
    return folder / "annotations.csv", folder / "results.csv", "luna16", "froc-luna16"


def sa_co(folder: Path) -> Files:
    """Pairs of image and phrase of two annotators, and results."""
    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": 64, "height": 32, "text_input": "a cat"}
        | {"is_instance_exhaustive": i % 2}
        for i in (1, 2)
    ]
    boxes = [{"image_id": i, "category_id": 1, "bbox": [0, 0, 0.5, 0.25 * i]} for i in (1, 2)]
    objects = [box | {"id": i, "area": 0.1, "iscrowd": 0} for i, box in enumerate(boxes, 1)]
    names = [{"id": 1, "name": "object"}]
    for annotator in (1, 2):
        tree = {"images": images, "annotations": objects, "categories": names}
        (folder / f"gold_{annotator}.json").write_text(json.dumps(tree))
    (folder / "found.json").write_text(json.dumps([box | {"score": 0.5} for box in boxes]))
    return folder / "gold_1.json", folder / "found.json", "sa-co", "cgf1"


OTHERS: dict[str, Callable[[Path], Files]] = {"luna16": luna16, "sa-co": sa_co}
KINDS = (*SAMPLES, *OTHERS)
COUNTS = {f"{kind} {how}": 0 for kind in KINDS for how in ("read", "refused")}


def case(seed: int) -> str | None:
    """What is wrong with how one set of files, perhaps a damaged one, is read."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    if kind in SAMPLES:
        return samples.case_of(kind, rng, COUNTS, (".png",))
    folder = scratch(kind)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    truth, found, form, rules = OTHERS[kind](folder)
    whole = rng.random() < 0.1
    if not whole:
        victim = rng.choice(sorted(folder.iterdir()))
        data = victim.read_bytes()
        for _ in range(rng.choice([1, 1, 2, 4])):
            data = damaged(rng, data)
        victim.write_bytes(data)
    try:
        table = detmap.read_truth(truth, format=form)
        of_found = "coco" if form == "sa-co" else form
        rows = detmap.read_detections(found, table, format=of_found, unknown="drop")
        metrics = detmap.evaluate(table, rows, rules).metrics
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    wrong = {name: x for name, x in metrics.items() if math.isinf(x)}
    return f"{kind}: {wrong}" if wrong else None
