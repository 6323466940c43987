"""The evaluators that detmap is tested against, one row each.

A row holds the call of a tool, its protocol, its numbers and their known differences. `detmap
parity` runs them, `tools/bench.py` measures those that give pycocotools' numbers, and
`tests/reproducibility/test_peers.py` tests each row. To add a peer, add a row with its fastest call
that gives the usual numbers.

This package imports nothing that a tool might not need, detmap included: the benchmark loads it by
its path, because its measurements include imports.
"""

from . import boxes, coco
from .row import BOXES, KEYPOINTS, MASKS, Classes, Peer, Settings, numbers, same

__all__ = [
    "BOXES",
    "BY_NAME",
    "KEYPOINTS",
    "MASKS",
    "PEERS",
    "Classes",
    "Peer",
    "Settings",
    "numbers",
    "same",
]

ZERO_UNION = "boxes whose union rounds to zero: no overlap here, an infinite one in pycocotools"
LAST_SUM = "its means add in another order"

PEERS = (
    Peer(
        "ultrafast-pycocotools",
        "0.1.14",
        "COCO(path), loadRes(path or (D, 7) array), COCOeval.run(); RAYON_NUM_THREADS=N",
        "ultrafast_pycocotools",
        coco.ultrafast_truth,
        coco.ultrafast_run,
        arrays=coco.arrays,
        classes=coco.ultrafast_classes,
        settable=True,
    ),
    Peer(
        "hotcoco",
        "1.3.0",
        "COCO(path), load_res(path or (D, 7) array), COCOeval.run(); RAYON_NUM_THREADS=N",
        "hotcoco",
        coco.hotcoco_truth,
        coco.hotcoco_run,
        arrays=coco.arrays,
        classes=coco.hotcoco_classes,
        settable=True,
        streams=True,
        deviations={"zero union": ZERO_UNION},
    ),
    Peer(
        "vernier",
        "0.5.4",
        "Evaluator(Bbox(), parity_mode='strict').evaluate(bytes or CocoDataset, bytes or (D, 7)"
        " array, num_threads=N)",
        "vernier",
        coco.vernier_truth,
        coco.vernier_run,
        classes=coco.vernier_classes,
        protocols={BOXES: "coco-bbox"},  # of masks and keypoints it wants boxes too
        paths=True,
        streams=True,
        deviations={"zero union": ZERO_UNION},
    ),
    Peer(
        "faster-coco-eval",
        "1.8.0",
        "COCO(path), loadRes(path or (D, 7) array), COCOeval_faster; bound to N processors",
        "faster_coco_eval",
        coco.faster_truth,
        coco.faster_run,
        arrays=coco.arrays,
        classes=coco.faster_classes,
        settable=True,
        slow=True,
        tolerance=1e-12,
        why="its precision is divided without np.spacing(1)",
        deviations={"no spacing": "precision without np.spacing(1): a perfect first hit is 1.0"},
    ),
    Peer(
        "pycocotools",
        "2.0.11",
        "COCO(path), loadRes(path or (D, 7) array), COCOeval; one thread",
        "pycocotools.cocoeval",
        coco.pycocotools_truth,
        coco.pycocotools_run,
        arrays=coco.arrays,
        settable=True,
        slow=True,
    ),
    Peer(
        "torchmetrics",
        "1.9.0",
        "MeanAveragePrecision(class_metrics=True), update, compute",
        "torchmetrics.detection",
        same,
        boxes.torchmetrics_run,
        boxes.torchmetrics_stats,
        boxes.torchmetrics_arrays,
        boxes.torchmetrics_classes,
        protocols={BOXES: "torchmetrics"},
        takes_files=False,
    ),
    Peer(
        "supervision",
        "0.31.2",
        "metrics.MeanAveragePrecision, update, compute",
        "supervision",
        same,
        boxes.supervision_run,
        boxes.supervision_stats,
        classes=boxes.supervision_classes,
        protocols={BOXES: "supervision"},
        takes_files=False,
        tolerance=1e-15,
        why=LAST_SUM,
    ),
    Peer(
        "globox",
        "2.9.0",
        "COCOEvaluator(ground_truths=AnnotationSet, predictions=AnnotationSet)",
        "globox",
        same,
        boxes.globox_run,
        boxes.globox_stats,
        classes=boxes.globox_classes,
        protocols={BOXES: "globox"},
        takes_files=False,
        tolerance=1e-15,
        why=LAST_SUM,
        deviations={"flat boxes": "boxes without an area that touch: they overlap by 1 there"},
    ),
    Peer(
        "od-metrics",
        "2.2.2",
        "ODMetrics(class_metrics=True).compute(objects, detections)",
        "od_metrics",
        same,
        boxes.od_metrics_run,
        boxes.od_metrics_stats,
        boxes.od_metrics_arrays,
        boxes.od_metrics_classes,
        protocols={BOXES: "od-metrics"},
        takes_files=False,
    ),
)
BY_NAME = {peer.name: peer for peer in PEERS}
