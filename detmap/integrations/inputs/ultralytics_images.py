"""Ground truth and detections of an Ultralytics validator as one dict per image."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import detmap
from detmap.core.adapters.in_memory.batch_rows import Reader
from detmap.core.adapters.in_memory.batch_tables import read_classes
from detmap.core.adapters.joining import image_sizes
from detmap.core.overlaps import kind_of
from detmap.core.protocol.named_columns import named_columns
from detmap.integrations.host_errors import HostError
from detmap.integrations.inputs.field_values import to_numpy

Image = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of shape that a task predicts.

    Parameters
    ----------
    name : ``boxes``, ``masks``, ``keypoints`` or ``rotated boxes``
    suffix : of the names of its metrics, as Ultralytics has it; boxes have none
    protocol : COCO's rules
    settings : keys of the protocol to change
    """

    name: str
    suffix: str = ""
    protocol: str = "coco-bbox"
    settings: tuple[tuple[str, Any], ...] = ()


BOXES = Kind("boxes")
MASKS = Kind("masks", "(M)", "coco-segm")
ROTATED = Kind("rotated boxes", settings=(("iou.of", "polygons"),))
TASKS = ("detect", "segment", "pose", "obb")
BOX_AREA = 0.53
"""Label files have no area: that of an object with keypoints is this fraction of its box, as in
Ultralytics (models/yolo/pose/val.py, _process_batch)."""


def kinds_of(validator: Any) -> tuple[Kind, ...]:
    """What the validator's task predicts; nothing for tasks without shapes, such as ``classify``.
    A pose validator defines the sigmas.
    """
    task = getattr(validator.args, "task", None)
    if task == "pose":
        sigmas = tuple(float(each) for each in validator.sigma)
        settings = (("iou.sigmas", sigmas), ("boxes.area", BOX_AREA))
        return BOXES, Kind("keypoints", "(P)", "coco-keypoints", settings)
    known = {"detect": (BOXES,), "segment": (BOXES, MASKS), "obb": (ROTATED,)}
    return known.get(str(task), ())


def require_classes(validator: Any) -> None:
    """Raises `HostError` if model and data have different numbers of classes: labels are positions
    in both lists. A model may have more after those of the data; `single_cls` makes all one class.
    """
    known, found = (list(names.values()) for names in (validator.data["names"], validator.names))
    first = known == found[: len(known)]
    if len(known) != len(found) and not first and not validator.args.single_cls:
        what = f"{len(known)} classes, but the model has {len(found)}"
        raise HostError(str(validator.args.data), what, "give the data that the model was made for")


def labelled(dataset: Any, kinds: Sequence[Kind]) -> dict[str, Image]:
    """The objects per image file as its label file has them, in pixels of the image.

    Boxes are corners. Raises `HostError` if labels lack the shapes of a kind.
    """
    files = [str(each["im_file"]) for each in dataset.labels]
    widths, heights = image_sizes.from_headers(list(map(Path, files)))
    found = {}
    for file, width, height, label in zip(files, widths, heights, dataset.labels, strict=True):
        size = np.array([width, height])
        boxes = np.asarray(label["bboxes"], dtype=np.float64).reshape(-1, 4)
        center, side = boxes[:, :2] * size, boxes[:, 2:] * size
        image: Image = {
            "boxes": np.concatenate([center - side / 2, center + side / 2], axis=1),
            "labels": np.asarray(label["cls"]).reshape(-1).astype(np.int64),
            "orig_size": [int(height), int(width)],
        }
        for kind in kinds:
            image |= _labelled_shapes(kind, label, size)
        for name, shapes in image.items():
            if name != "orig_size" and len(shapes) != len(boxes):
                what = f"{len(shapes)} {name} for {len(boxes)} objects"
                raise HostError(file, what, "give the labels of this task")
        found[file] = image
    return found


def _labelled_shapes(kind: Kind, label: Mapping[str, Any], size: NDArray[np.float64]) -> Image:
    if kind.name == "keypoints":
        points = label.get("keypoints")
        points = np.zeros((0, 1, 3)) if points is None else np.asarray(points, dtype=np.float64)
        scaled = np.concatenate([points[..., :2] * size, points[..., 2:]], axis=-1)
        # Ultralytics counts every point whose visibility is not 0.
        scaled[..., 2] = np.where(scaled[..., 2] != 0, 2, 0)
        return {"keypoints": scaled}
    outlines = [np.asarray(each, np.float64).reshape(-1, 2) * size for each in label["segments"]]
    if kind.name == "masks":
        return {"segmentation": [[each.reshape(-1).tolist()] for each in outlines]}
    if kind.name == "rotated boxes":
        return {"polygons": np.array(outlines, dtype=np.float64).reshape(-1, 8)}
    return {}


def image_of(fields: Mapping[str, Any], kinds: Sequence[Kind]) -> Image:
    """One image of a batch, on the CPU: boxes as corners, rotated ones as five numbers."""
    values = to_numpy(fields["bboxes"]).astype(np.float32)
    image: Image = {"labels": to_numpy(fields["cls"]).reshape(-1).astype(np.int64)}
    if ROTATED in kinds:
        image["polygons"] = values.reshape(-1, 5)
    else:
        image["boxes"] = values.reshape(-1, 4)
    if "conf" in fields:
        image["scores"] = to_numpy(fields["conf"]).astype(np.float32)
    for kind in kinds:
        if kind.name == "masks":
            image["masks"] = to_numpy(fields["masks"]).astype(bool)
        elif kind.name == "keypoints":
            image["keypoints"] = _with_visibility(to_numpy(fields["keypoints"]))
    return image


def _with_visibility(points: NDArray[Any]) -> NDArray[Any]:
    """(n, P, 3) points; a model may predict x and y only."""
    return np.concatenate([points[..., :2], np.ones((*points.shape[:2], 1))], axis=-1)


def for_kind(kind: Kind, image: Image) -> Image:
    """The fields of an image that an evaluation of one kind reads."""
    shapes = {
        "boxes": ("boxes",),
        "masks": ("boxes", "masks", "segmentation", "orig_size"),
        "keypoints": ("boxes", "keypoints"),
        "rotated boxes": ("polygons",),
    }[kind.name]
    names = ("image_id", "labels", "scores", *shapes)
    return {name: image[name] for name in names if name in image}


def _places(validator: Any, files: Sequence[str]) -> list[int]:
    """The position of the image of each row."""
    if getattr(validator, "gdict", None) is not None:
        # Rows name images by stem, which need not be unique: their order is that of `gdict`.
        place = {file: i for i, file in enumerate(files)}
        known = validator.dataloader.dataset.im_files
        order = [place[str(known[each["id"]])] for each in validator.gdict["images"]]
        return [int(each) for each in np.repeat(order, validator.pred_counts)]
    names = {Path(file).name: i for i, file in enumerate(files)}
    if len(names) != len(files):
        what = "two images have the same file name in different folders"
        raise HostError("predictions", what, "use coco_metrics() instead of callback()")
    return [names[row["file_name"]] for row in validator.jdict]


def _rows(rows: Sequence[Any], size: Sequence[int], kind: Kind, n_points: int) -> Image:
    """The rows of one image; boxes are x y width height."""
    boxes = np.array([row.get("bbox", [0, 0, 0, 0]) for row in rows], dtype=np.float64)
    boxes = boxes.reshape(-1, 4)
    image: Image = {
        "boxes": boxes,
        "labels": np.array([row["category_id"] for row in rows], dtype=np.int64),
        "scores": np.array([row["score"] for row in rows], dtype=np.float64),
        "orig_size": list(size),
    }
    if kind.name == "masks":
        image["segmentation"] = [row["segmentation"] for row in rows]
    elif kind.name == "keypoints":
        points = np.array([row["keypoints"] for row in rows], dtype=np.float64)
        points = points.reshape(len(rows), n_points, -1 if rows else 3)
        image["keypoints"] = _with_visibility(points)
    elif kind.name == "rotated boxes":
        image["polygons"] = np.array([row["poly"] for row in rows]).reshape(-1, 8)
    return image


def tables(
    validator: Any, kind: Kind, protocol: detmap.Protocol
) -> tuple[detmap.Truth, detmap.Detections]:
    """Ground truth and detections of a validator, with the images in the order of their files."""
    require_classes(validator)
    labels = labelled(validator.dataloader.dataset, (kind,))
    files = sorted(labels)  # a data set with rect=True is sorted by shape
    rows: list[list[Any]] = [[] for _ in files]
    for place, row in zip(_places(validator, files), validator.jdict, strict=True):
        rows[place].append(row)
    targets, found = [labels[file] for file in files], []
    n_points = validator.kpt_shape[0] if kind.name == "keypoints" else 0
    for target, each in zip(targets, rows, strict=True):
        found.append(_rows(each, target["orig_size"], kind, n_points))
        target["boxes"][:, 2:] -= target["boxes"][:, :2]
        target["labels"] = np.array(validator.class_map)[target["labels"]]
    names = dict(zip(validator.class_map, validator.names.values(), strict=False))
    shapes = kind_of(protocol.iou.of).reader
    reader = Reader(read_classes(names), "xywh", *named_columns(protocol), shapes=shapes)
    batch = reader.read(
        np.arange(len(files)),
        [for_kind(kind, image) for image in found],
        [for_kind(kind, image) for image in targets],
    )
    truth, detections = reader.tables(batch)
    stems = tuple(Path(file).stem for file in files)
    images = replace(truth.images, stems=stems, files=tuple(files))
    truth = replace(truth, images=images, source=str(validator.args.data))
    return truth, replace(detections, images=images)
