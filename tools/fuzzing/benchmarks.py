"""Damaged files of Open Images, ImageNet DET and VID, VisDrone, UAVDT, BDD100K, CrowdPose and
COCO-WholeBody: an error with place and fix, or a number.
"""

import math
import random
import shutil

import detmap
from detmap.errors import DetmapError
from tests.benchmarks.small_cases import CASES, written
from tests.benchmarks.test_coco_like import crowd_pose, whole_body
from tests.support.mutation import damaged
from tools.fuzzing._refusals import judge_refusal
from tools.fuzzing._scratch import scratch

KINDS = (*CASES, "crowdpose", "wholebody")
COUNTS = {f"{kind} {how}": 0 for kind in KINDS for how in ("read", "refused")}


def case(seed: int) -> str | None:
    """What is wrong with how the files of a benchmark, perhaps a damaged one, are read."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    folder = scratch(kind)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if kind in CASES:
        truth, found, _ = written(folder, kind)
    else:
        truth, found = (
            crowd_pose(folder, 0.1, 0.5, 0.9) if kind == "crowdpose" else whole_body(folder)
        )
    whole = rng.random() < 0.1
    if not whole:
        victim = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        data = victim.read_bytes()
        for _ in range(rng.choice([1, 1, 2, 4])):
            data = damaged(rng, data)
        victim.write_bytes(data)
    try:
        metrics = detmap.evaluate(truth, found, kind).metrics
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    wrong = {name: x for name, x in metrics.items() if math.isinf(x)}
    return f"{kind}: {wrong}" if wrong else None
