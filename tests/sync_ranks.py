"""One rank of a torch.distributed run: feeds its share of the images, syncs, and writes what it has
then.

python -m tests.sync_ranks RANK WORLD FOLDER CASE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch.distributed as dist

from detmap import Evaluator, MergeError
from tests.drawing import draw_coco
from tests.tables import read_coco
from tests.test_evaluator import feed, per_image


def main(rank: int, world: int, folder: Path, case: str) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=world
    )
    truth, detections = read_coco(*draw_coco(np.random.default_rng(7), n_images=4, n_classes=3))
    pairs = per_image(truth, detections)
    stream = Evaluator(classes=truth.categories, box_format="xywh")
    if case == "uneven":  # three images, one image, and a rank without any
        mine = {0: pairs[1:], 1: pairs[:1], 2: []}[rank]
    elif case == "numbered":
        pairs = [({**p, "image_id": None}, {**t, "image_id": None}) for p, t in pairs]
        mine = pairs[:3] if rank == 0 else pairs[3:]
    else:  # the same image on both ranks, as a sampler that pads has it
        mine = pairs[:2] if rank == 0 else pairs[1:]
    feed(stream, mine, [2])
    outcome: dict[str, object] = {"own": len(stream)}
    try:
        result = stream.sync().compute()
        outcome |= {"images": len(stream), "result": result.as_dict()}
        stream.sync()
    except MergeError as error:
        outcome["error"] = str(error)
    stream.reset()
    outcome["after"] = len(feed(stream, mine, [1]))
    (folder / f"{rank}.json").write_text(json.dumps(outcome))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
