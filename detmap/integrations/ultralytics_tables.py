"""Ground truth and detections in the memory of an Ultralytics validator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.adapters.joining import image_sizes
from detmap.integrations.host_errors import HostError


def tables(validator: Any, path: str | Path | None) -> tuple[detmap.Truth, detmap.Detections]:
    """Ground truth and detections of a validator, with the images in the order of their files."""
    rows = validator.jdict
    image: Any = [row["image_id"] for row in rows]
    category = [row["category_id"] for row in rows]
    boxes = np.array([row["bbox"] for row in rows], dtype=np.float64).reshape(-1, 4)
    score = [row["score"] for row in rows]
    if path is not None:
        truth = detmap.read_truth(path)
        return truth, detmap.detections_from_arrays(truth, image, category, boxes, score)
    if validator.gdict is None:
        what = "rows of COCO and LVIS have the image ids of their annotation file"
        raise HostError("truth", what, 'give callback(truth="instances_val2017.json")')
    require_classes(validator)
    known = validator.dataloader.dataset
    labelled = objects(known)
    files = sorted(labelled)  # a data set with rect=True is sorted by shape
    labels = [labelled[file]["labels"] for file in files]
    boxes_of = np.concatenate([labelled[file]["boxes"] for file in files])
    boxes_of[:, 2:] -= boxes_of[:, :2]
    truth = detmap.truth_from_arrays(
        np.repeat(np.arange(len(files)), list(map(len, labels))),
        np.array(validator.class_map)[np.concatenate(labels)],
        boxes_of,
        images=np.arange(len(files)),
        categories=dict(zip(validator.class_map, validator.names.values(), strict=False)),
    )
    stems = tuple(Path(file).stem for file in files)
    images = replace(truth.images, stems=stems, files=tuple(files))
    truth = replace(truth, images=images, source=str(validator.args.data))
    # Rows name images by stem, which need not be unique: their order is that of `gdict`.
    place = {file: i for i, file in enumerate(files)}
    order = [place[str(known.im_files[each["id"]])] for each in validator.gdict["images"]]
    image = np.repeat(order, validator.pred_counts)
    return truth, detmap.detections_from_arrays(truth, image, category, boxes, score)


def require_classes(validator: Any) -> None:
    """Raises `HostError` if model and data have different numbers of classes: labels are positions
    in both lists. A model may have more after those of the data; `single_cls` makes all one class.
    """
    known, found = (list(names.values()) for names in (validator.data["names"], validator.names))
    first = known == found[: len(known)]
    if len(known) != len(found) and not first and not validator.args.single_cls:
        what = f"{len(known)} classes, but the model has {len(found)}"
        raise HostError(str(validator.args.data), what, "give the data that the model was made for")


def objects(dataset: Any) -> dict[str, dict[str, Any]]:
    """The objects per image file as its label file has them: corners in pixels of the image."""
    files = [str(each["im_file"]) for each in dataset.labels]
    sizes = np.stack(image_sizes.from_headers(list(map(Path, files))), axis=1)
    found = {}
    for file, size, label in zip(files, sizes, dataset.labels, strict=True):
        boxes = np.asarray(label["bboxes"], dtype=np.float64).reshape(-1, 4)
        center, side = boxes[:, :2] * size, boxes[:, 2:] * size
        corners = np.concatenate([center - side / 2, center + side / 2], axis=1)
        classes = np.asarray(label["cls"]).reshape(-1).astype(np.int64)
        found[file] = {"boxes": corners, "labels": classes}
    return found


def boxes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """One image of a batch, on the CPU."""
    image = {
        "boxes": fields["bboxes"].float().cpu().numpy().reshape(-1, 4),
        "labels": fields["cls"].cpu().numpy().reshape(-1).astype(np.int64),
    }
    if "conf" in fields:
        image["scores"] = fields["conf"].float().cpu().numpy()
    return image
