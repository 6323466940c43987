"""Calls of the tools that take boxes image by image."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .row import Classes


class Image(NamedTuple):
    """(N, 4) boxes ``x y w h`` of an image; columns that do not apply are zeros."""

    boxes: Any
    labels: Any
    scores: Any
    crowd: Any
    area: Any

    def corners(self) -> Any:
        """Boxes as ``x1 y1 x2 y2``."""
        corners = self.boxes.copy()
        corners[:, 2:] += corners[:, :2]
        return corners


def per_image(truth: str, found: str) -> tuple[list[Image], list[Image]]:
    """Objects and detections of each image of two COCO files, by image id; `labels` are category
    ids.
    """
    content = _read(truth)
    place = {image["id"]: i for i, image in enumerate(sorted(content["images"], key=_index_by_id))}
    objects = _columns(content["annotations"], place)
    return objects, _columns(_read(found), place)


def _read(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes())
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply") from None


def _index_by_id(image: dict[str, Any]) -> Any:
    return image["id"]


def _columns(records: list[dict[str, Any]], place: dict[Any, int]) -> list[Image]:
    import numpy as np

    rows: list[list[dict[str, Any]]] = [[] for _ in place]
    for record in records:
        rows[place[record["image_id"]]].append(record)
    return [
        Image(
            np.array([record["bbox"] for record in row], dtype=float).reshape(-1, 4),
            np.array([record["category_id"] for record in row], dtype=np.int64),
            np.array([record.get("score", 0.0) for record in row], dtype=float),
            np.array([record.get("iscrowd", 0) for record in row], dtype=np.int64),
            np.array([record.get("area", 0.0) for record in row], dtype=float),
        )
        for row in rows
    ]


def spread(array: Any, seen: Iterable[int], n_classes: int, axis: int) -> Any:
    """Expands values of the classes `seen`, numbered from 1, to all classes; -1 for the others."""
    import numpy as np

    at = [k - 1 for k in seen]
    out = np.full((*array.shape[:axis], n_classes, *array.shape[axis + 1 :]), -1.0)
    out[(slice(None),) * axis + (at,)] = array
    return out


def torchmetrics_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """One ``update`` with all images, boxes and scores in float32 as models return them."""
    import torch
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    objects, detections = per_image(truth, found)
    any_class = any(len(each.labels) for each in (*objects, *detections))
    metric = MeanAveragePrecision(class_metrics=any_class, extended_summary=any_class)
    metric.warn_on_many_detections = False
    labels = torch.as_tensor
    metric.update(
        [
            {"boxes": _float32(each.corners()), "scores": _float32(each.scores)}
            | {"labels": labels(each.labels)}
            for each in detections
        ],
        [
            {"boxes": _float32(each.corners()), "labels": labels(each.labels)}
            | {"iscrowd": labels(each.crowd), "area": _float32(each.area)}
            for each in objects
        ],
    )
    return metric.compute()


def _float32(values: Any) -> Any:
    import torch

    return torch.tensor(values, dtype=torch.float32)


TORCH = [f"map{what}" for what in ("", "_50", "_75", "_small", "_medium", "_large")]
TORCH += [f"mar_{what}" for what in (1, 10, 100, "small", "medium", "large")]


def torchmetrics_stats(run: Any) -> Iterable[float]:
    return [float(run[name]) for name in TORCH]


def torchmetrics_arrays(run: Any, n_classes: int) -> dict[str, Any]:
    if "precision" not in run:
        return {}
    axes, seen = {"precision": 2, "recall": 1, "scores": 2}, run["classes"].reshape(-1).tolist()
    return {name: spread(run[name].numpy(), seen, n_classes, k) for name, k in axes.items()}


def torchmetrics_classes(run: Any) -> Classes:
    if "map_per_class" not in run:
        return {}
    ids = run["classes"].reshape(-1).tolist()
    return {"ap": dict(zip(ids, run["map_per_class"].reshape(-1).tolist(), strict=True))}


def supervision_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """One ``update`` with all images; corners in float32, as in its detections."""
    import numpy as np
    import supervision
    from supervision.metrics import MeanAveragePrecision

    def objects_of(image: Image) -> Any:
        data = {"area": image.area, "iscrowd": image.crowd}
        return supervision.Detections(corners(image), class_id=image.labels, data=data)

    def detections_of(image: Image) -> Any:
        score = image.scores.astype(np.float32)
        return supervision.Detections(corners(image), class_id=image.labels, confidence=score)

    def corners(image: Image) -> Any:
        return image.corners().astype(np.float32)

    objects, predictions = per_image(truth, found)
    metric = MeanAveragePrecision()
    metric.update(
        [detections_of(each) for each in predictions], [objects_of(each) for each in objects]
    )
    return metric.compute()


def supervision_stats(run: Any) -> Iterable[float]:
    sizes = (run.small_objects, run.medium_objects, run.large_objects)
    return [run.map50_95, run.map50, run.map75, *(each.map50_95 for each in sizes)]


def supervision_classes(run: Any) -> Classes:
    """At 0.5 and 0.75: it has no mean over thresholds per class."""
    ids = run.matched_classes.tolist()
    columns = {"AP50": run.ap_per_class[:, 0], "AP75": run.ap_per_class[:, 5]} if ids else {}
    return {name: dict(zip(ids, row.tolist(), strict=True)) for name, row in columns.items()}


def globox_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """Its evaluator of two annotation sets. It sorts images and labels as text."""
    from globox import Annotation, AnnotationSet, BoundingBox, COCOEvaluator

    def annotations(images: list[Image], scores: bool) -> Any:
        rows = AnnotationSet()
        for i, image in enumerate(images):
            boxes = [
                BoundingBox(
                    label=f"{label:09}",
                    xmin=x1,
                    ymin=y1,
                    xmax=x2,
                    ymax=y2,
                    confidence=score if scores else None,
                )
                for (x1, y1, x2, y2), label, score in zip(
                    image.corners().tolist(),
                    image.labels.tolist(),
                    image.scores.tolist(),
                    strict=True,
                )
            ]
            rows.add(Annotation(image_id=f"{i:09}", boxes=boxes))
        return rows

    objects, detections = per_image(truth, found)
    return COCOEvaluator(
        ground_truths=annotations(objects, False), predictions=annotations(detections, True)
    )


GLOBOX = [f"ap{what}" for what in ("", "_50", "_75", "_small", "_medium", "_large")]
GLOBOX += [f"ar_{what}" for what in (1, 10, 100, "small", "medium", "large")]


def globox_stats(run: Any) -> Iterable[float]:
    return [getattr(run, name)() for name in GLOBOX]


def globox_classes(run: Any) -> Classes:
    columns = {"AP50": run.ap_50_evaluation(), "AP75": run.ap_75_evaluation()}
    found = {name: {int(k): row.ap for k, row in each.items()} for name, each in columns.items()}
    means = {int(k): row["ap"] for k, row in run.ap_evaluation().items()}
    return {"AP": means, **found}


def od_metrics_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """One ``compute`` with all images, per class."""
    from od_metrics import ODMetrics

    objects, detections = per_image(truth, found)
    return ODMetrics(class_metrics=True).compute(
        [
            {"boxes": each.boxes, "labels": each.labels, "iscrowd": each.crowd, "area": each.area}
            for each in objects
        ],
        [
            {"boxes": each.boxes, "labels": each.labels, "scores": each.scores}
            for each in detections
        ],
        extended_summary=True,
    )


OD_METRICS = [f"mAP@[{t} | all | 100]" for t in (".5:.95", ".5", ".75")]
OD_METRICS += [f"mAP@[.5:.95 | {size} | 100]" for size in ("small", "medium", "large")]
OD_METRICS += [f"mAR@[.5:.95 | all | {n}]" for n in (1, 10, 100)]
OD_METRICS += [f"mAR@[.5:.95 | {size} | 100]" for size in ("small", "medium", "large")]
OD_METRICS += [f"mAR@[{t} | all | 100]" for t in (".5", ".75")]


def od_metrics_stats(run: Any) -> Iterable[float]:
    return [run[name] for name in OD_METRICS]


def od_metrics_arrays(run: Any, n_classes: int) -> dict[str, Any]:
    """Its area ranges have another order: all, large, medium, small."""
    return {
        "precision": spread(run["AP"], run["classes"], n_classes, 2),
        "recall": spread(run["AR"], run["classes"], n_classes, 1),
    }


def od_metrics_classes(run: Any) -> Classes:
    columns = {"AP": "AP@[.5:.95 | all | 100]", "AP50": "AP@[.5 | all | 100]"}
    columns |= {"AP75": "AP@[.75 | all | 100]"}
    found = run["class_metrics"]
    return {name: {k: row[key] for k, row in found.items()} for name, key in columns.items()}
