"""One rank of a torch.distributed run: feeds its share of the images, syncs, and writes what it has
then.

python -m tests.streaming.sync_ranks RANK WORLD FOLDER CASE
"""

import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

from detmap import DetmapError, Evaluator
from tests.streaming.test_evaluator import feed, per_image
from tests.support.drawing import draw_coco
from tests.support.drawn_tables import read_coco

TIMEOUT = 10  # seconds


def die_in_the_middle() -> None:
    """Let this rank be killed when it has told the others how much it has, but not what."""
    from torch.distributed import distributed_c10d as inner

    gather, calls = inner.all_gather, []

    def dying(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return gather(*args, **kwargs)

    inner.all_gather = dying


def main(rank: int, world: int, folder: Path, case: str) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'meeting'}",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=TIMEOUT),
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
    if rank == world - 1 and case == "absent":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == world - 1 and case == "dying":
        die_in_the_middle()
    begin = time.monotonic()
    try:
        result = stream.sync().compute()
        outcome |= {"images": len(stream), "result": result.to_dict()}
        stream.sync()
    except DetmapError as error:
        outcome |= {"error": str(error), "seconds": time.monotonic() - begin}
    stream.reset()
    outcome["after"] = len(feed(stream, mine, [1]))
    (folder / f"{rank}.json").write_text(json.dumps(outcome))
    if case in ("absent", "dying"):
        os._exit(0)  # a group that has lost a rank cannot be left in order
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
