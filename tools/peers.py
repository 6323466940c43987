"""The evaluators that the benchmark measures: detmap, its drop-in, and those of
`detmap.reproducibility.peers` that give pycocotools' numbers.
"""

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# By its path: what is measured of a process includes what it imports, and no peer needs detmap.
FOLDER = Path(__file__).resolve().parents[1] / "detmap" / "reproducibility" / "peers"
spec = importlib.util.spec_from_file_location("detmap_peers", FOLDER / "__init__.py")
assert spec is not None
assert spec.loader is not None
table = importlib.util.module_from_spec(spec)
sys.modules["detmap_peers"] = table
spec.loader.exec_module(table)
BOXES, Peer, numbers = table.BOXES, table.Peer, table.numbers


def detmap_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Iterable[float]:
    """Two paths, or a table and columns, into `evaluate`."""
    import detmap

    if isinstance(found, tuple):
        found = detmap.detections_from_arrays(truth, *found)
    elif isinstance(found, str):  # the peers leave out what the ground truth does not list
        shapes = {"bbox": "boxes", "segm": "masks"}.get(kind, kind)
        truth = detmap.read_truth(truth, shapes=shapes)
        found = detmap.read_detections(found, truth, unknown="drop")
    return detmap.evaluate(truth, found, f"coco-{kind}", threads=threads).metrics.values()


def detmap_columns(table: Any) -> Any:
    """Image ids, category ids, boxes, scores, each contiguous."""
    import numpy as np

    ids = table[:, [0, 6]].astype(np.int64).T.copy()
    return ids[0], ids[1], table[:, 1:5].copy(), table[:, 5].copy()


def detmap_table(path: str) -> Any:
    """A ground truth table."""
    import detmap

    return detmap.read_truth(path)


def compat_truth(path: str) -> Any:
    from detmap.compat import COCO

    return COCO(path)


def compat_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """The threads are those that the process is bound to."""
    from detmap.compat import COCOeval

    run = COCOeval(truth, truth.loadRes(found), kind)
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run


PEERS = (
    Peer(
        "detmap",
        "0.1.0",
        "evaluate(path, path, threads=N); detections_from_arrays + evaluate",
        "detmap",
        detmap_table,
        detmap_run,
        stats=list,
        detections=detmap_columns,
        paths=True,
        distribution="detmap-eval",
        streams=True,
    ),
    Peer(
        "detmap.compat",
        "0.1.0",
        "the drop-in: COCO(path), loadRes(path or (D, 7) array), COCOeval and its three calls",
        "detmap.compat",
        compat_truth,
        compat_run,
        distribution="detmap-eval",
    ),
    *(peer for peer in table.PEERS if peer.is_coco),
)
BY_NAME = {peer.name: peer for peer in PEERS}
