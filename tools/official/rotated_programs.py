"""The official programs of rotated boxes: mmrotate's and Ultralytics'."""

import multiprocessing.dummy
import sys
from pathlib import Path
from typing import Any

import numpy as np
from stand_ins import Numbers, package

BOX = ["cx", "cy", "w", "h", "angle"]


def tables(folder: Path) -> tuple[list[Any], list[Any], list[str]]:
    """Rows of each image: objects, detections by falling score; and the classes."""
    import pandas as pd

    truth, found = (pd.read_csv(folder / name) for name in ("truth.csv", "dets.csv"))
    classes = sorted(truth["class"].unique())
    for table in (truth, found):
        table["label"] = table["class"].map({name: k for k, name in enumerate(classes)})
    found = found.sort_values("score", ascending=False, kind="stable")
    groups = dict(tuple(found.groupby("image")))
    images = dict(tuple(truth.groupby("image")))
    return list(images.values()), [groups.get(i, found.iloc[:0]) for i in images], classes


def mmrotate(folder: Path, checkout: Path, difficult: bool) -> Numbers:
    """The mAP of mmrotate 0.3, in one process; needs its mmcv and mmdet."""
    root = checkout / "mmrotate"
    package("mmrotate", root)
    package("mmrotate.core", root / "core")
    package("mmrotate.core.evaluation", root / "core" / "evaluation")
    from mmrotate.core.evaluation import eval_map

    eval_map.get_context = lambda method: multiprocessing.dummy
    images, found, classes = tables(folder)
    truth = [objects(rows, difficult) for rows in images]
    dets = []
    for rows in found:
        labels, boxes = rows["label"].to_numpy(), rows[[*BOX, "score"]].to_numpy(np.float64)
        dets.append([boxes[labels == k] for k in range(len(classes))])
    value, _ = eval_map.eval_rbbox_map(dets, truth, dataset=classes, nproc=1)
    return {"mAP": float(value)}


def objects(rows: Any, difficult: bool) -> dict[str, Any]:
    """The annotations of an image; difficult objects are ignored, or count."""
    labels, boxes = rows["label"].to_numpy(), rows[BOX].to_numpy(np.float64)
    off = rows["difficult"].to_numpy() * (not difficult) > 0
    ignored = {"bboxes_ignore": boxes[off], "labels_ignore": labels[off]}
    return {"bboxes": boxes[~off], "labels": labels[~off], **ignored}


def hrsc2016(folder: Path, checkout: Path) -> Numbers:
    """The mAP of mmrotate, where difficult objects count."""
    return mmrotate(folder, checkout, True)


def dior_r(folder: Path, checkout: Path) -> Numbers:
    """The mAP of mmrotate, where difficult objects are ignored."""
    return mmrotate(folder, checkout, False)


def ultralytics_obb(folder: Path, checkout: Path) -> Numbers:
    """The validator of Ultralytics, image by image, as its `update_metrics` calls it.

    CHECKOUT is a folder with the package `ultralytics`.
    """
    sys.path.insert(0, str(checkout))
    import torch
    from ultralytics.models.yolo.obb import OBBValidator

    run = OBBValidator(args={"plots": False})
    images, found, classes = tables(folder)
    found = [rows[rows["score"] > 0.001] for rows in found]  # as its NMS leaves them
    run.metrics.names = dict(enumerate(classes))
    for i, (truth, dets) in enumerate(zip(images, found, strict=True)):
        own, theirs = ({
            "cls": torch.tensor(rows["label"].to_numpy()).float(),
            "bboxes": torch.tensor(rows[BOX].to_numpy()).float(),
        } for rows in (dets, truth))  # fmt: skip
        labels = theirs["cls"].numpy()
        run.metrics.update_stats(
            {
                **run._process_batch(own, theirs),
                "target_cls": labels,
                "target_img": np.unique(labels),
                "conf": dets["score"].to_numpy(np.float32),
                "pred_cls": own["cls"].numpy(),
                "im_name": str(i),
            }
        )
    run.metrics.process()
    keys = {"precision": "P", "recall": "R", "mAP50": "mAP50", "mAP50-95": "mAP50-95"}
    values = run.metrics.results_dict.items()
    return {keys[k[8:-3]]: float(x) for k, x in values if k.startswith("metrics/")}
