"""The COCO box rule over plain dicts, as pycocotools 2.0.11 computes it, one small function per
stage.

Source: ``pycocotools/cocoeval.py`` (``evaluateImg``, ``accumulate``, ``summarize``) and
``common/maskApi.c`` (``bbIou``). Bit-identical to them wherever annotation ids are unique and at
least 1. The one difference is wanted: an annotation's id plays no part here, while pycocotools
reads a match with id 0 as no match."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

Verdict = Literal["TP", "FP", "IGNORED"]
Box = tuple[float, float, float, float]  # x, y, width, height
AreaRange = tuple[float, float]  # both ends belong to it

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10).tolist()
RECALL_POINTS = np.linspace(0.0, 1.0, 101).tolist()
# all, small, medium, large
AREA_RANGES = ((0.0, 1e5**2), (0.0, 32.0**2), (32.0**2, 96.0**2), (96.0**2, 1e5**2))
MAX_DETS = (1, 10, 100)
EPSILON = math.ulp(1.0)  # np.spacing(1)


class Object(NamedTuple):
    """One annotation; `area` is the annotation's own, which for COCO is the area of its mask."""

    box: Box
    area: float
    crowd: bool


class Detection(NamedTuple):
    """One result; `area` is that of its box."""

    box: Box
    area: float
    score: float


def read_object(annotation: Mapping[str, Any]) -> Object:
    """One annotation, a missing ``iscrowd`` meaning 0 and a missing ``area`` that of the box."""
    x, y, width, height = map(float, annotation["bbox"])
    area = float(annotation.get("area", width * height))
    return Object((x, y, width, height), area, bool(annotation.get("iscrowd", 0)))


def read_detection(result: Mapping[str, Any]) -> Detection:
    """One result with the area of its box. Source: ``loadRes`` in pycocotools' coco.py."""
    x, y, width, height = map(float, result["bbox"])
    return Detection((x, y, width, height), width * height, float(result["score"]))


def overlap(detection: Detection, obj: Object) -> float:
    """Intersection over union; over the detection's own area if the object is a crowd. Source:
    ``bbIou``."""
    dx, dy, dw, dh = detection.box
    gx, gy, gw, gh = obj.box
    width = min(dw + dx, gw + gx) - max(dx, gx)
    height = min(dh + dy, gh + gy) - max(dy, gy)
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    union = dw * dh if obj.crowd else dw * dh + gw * gh - both
    # Boxes thinner than the spacing of the numbers there can have a union of 0: C divides to
    # infinity.
    return both / union if union != 0 else math.inf


def in_range(area: float, limits: AreaRange) -> bool:
    """Is the area within the limits, which both belong to the range?"""
    return not (area < limits[0] or area > limits[1])


def match(
    detections: Sequence[Detection],
    objects: Sequence[Object],
    *,
    overlaps: Sequence[Sequence[float]],
    threshold: float,
    area_range: AreaRange,
) -> list[Verdict]:
    """Verdicts on the ranked detections of one class in one image.

    Each detection in turn takes the free object that it overlaps most, the last of equals. Objects
    that do not count (crowds, and those outside the area range) are asked last, and only if no
    counted one was good enough. A crowd is never used up. Without an object, a detection outside
    the area range is neutral.

    Source: ``evaluateImg``.
    """
    neutral = [obj.crowd or not in_range(obj.area, area_range) for obj in objects]
    order = sorted(range(len(objects)), key=lambda g: neutral[g])  # stable: file order among equals
    taken = [False] * len(objects)
    verdicts: list[Verdict] = []
    for d, detection in enumerate(detections):
        best, best_overlap = None, min(threshold, 1 - 1e-10)
        for g in order:
            if taken[g] and not objects[g].crowd:
                continue
            if best is not None and not neutral[best] and neutral[g]:
                break
            if overlaps[d][g] < best_overlap:
                continue
            best, best_overlap = g, overlaps[d][g]

        if best is not None:
            taken[best] = True
            verdicts.append("IGNORED" if neutral[best] else "TP")
        else:
            verdicts.append("FP" if in_range(detection.area, area_range) else "IGNORED")
    return verdicts


def recall_precision(
    verdicts: Sequence[Verdict], n_objects: int
) -> tuple[list[float], list[float]]:
    """Recall and precision after each ranked detection; precision is 0 before the first that
    counts.

    Source: ``accumulate``, ``tp / (fp+tp+np.spacing(1))``.
    """
    tp = fp = 0.0
    recall, precision = [], []
    for verdict in verdicts:
        tp += verdict == "TP"
        fp += verdict == "FP"
        recall.append(tp / n_objects)
        precision.append(tp / (fp + tp + EPSILON))
    return recall, precision


def sample(
    recall: Sequence[float],
    precision: Sequence[float],
    scores: Sequence[float],
    points: Sequence[float],
) -> tuple[list[float], list[float]]:
    """Precision envelope and score where the curve first reaches each recall point, 0 where it does
    not.

    Source: ``accumulate``, ``searchsorted(rc, recThrs, side='left')``.
    """
    envelope = list(precision)
    for i in range(len(envelope) - 1, 0, -1):
        envelope[i - 1] = max(envelope[i - 1], envelope[i])
    first = [bisect_left(recall, point) for point in points]
    sampled_precision = [envelope[i] if i < len(recall) else 0.0 for i in first]
    sampled_scores = [scores[i] if i < len(recall) else 0.0 for i in first]
    return sampled_precision, sampled_scores


def evaluate(
    instances: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    *,
    iou_thresholds: Sequence[float] = IOU_THRESHOLDS,
    recall_points: Sequence[float] = RECALL_POINTS,
    area_ranges: Sequence[AreaRange] = AREA_RANGES,
    max_dets: Sequence[int] = MAX_DETS,
) -> dict[str, np.ndarray]:
    """The arrays of pycocotools' ``eval``: precision, scores [T, R, K, A, M] and recall [T, K, A,
    M].

    Cells without objects are -1. K are the ids of ``categories`` and M the detection limits, both
    in rising order. Annotations and results of other images or categories take no part.

    Source: ``evaluate`` and ``accumulate``.
    """
    images = sorted({image["id"] for image in instances["images"]})
    categories = sorted({category["id"] for category in instances["categories"]})
    max_dets = sorted(max_dets)

    objects: dict[tuple[int, int], list[Object]] = {(i, k): [] for i in images for k in categories}
    detections: dict[tuple[int, int], list[Detection]] = {cell: [] for cell in objects}
    for annotation in instances["annotations"]:
        if (cell := (annotation["image_id"], annotation["category_id"])) in objects:
            objects[cell].append(read_object(annotation))
    for result in results:
        if (cell := (result["image_id"], result["category_id"])) in detections:
            detections[cell].append(read_detection(result))
    for cell, found in detections.items():
        detections[cell] = sorted(found, key=lambda detection: -detection.score)[: max_dets[-1]]
    overlaps = {
        cell: [[overlap(d, g) for g in objects[cell]] for d in detections[cell]] for cell in objects
    }

    shape = (len(categories), len(area_ranges), len(max_dets))
    precision = np.full((len(iou_thresholds), len(recall_points), *shape), -1.0)
    scores = np.full((len(iou_thresholds), len(recall_points), *shape), -1.0)
    recall = np.full((len(iou_thresholds), *shape), -1.0)

    for t, threshold in enumerate(iou_thresholds):
        for k, category in enumerate(categories):
            for a, area_range in enumerate(area_ranges):
                n_objects = 0
                verdicts = {}
                for image in images:
                    cell = image, category
                    n_objects += sum(
                        not g.crowd and in_range(g.area, area_range) for g in objects[cell]
                    )
                    verdicts[cell] = match(
                        detections[cell],
                        objects[cell],
                        overlaps=overlaps[cell],
                        threshold=threshold,
                        area_range=area_range,
                    )
                if n_objects == 0:
                    continue
                for m, limit in enumerate(max_dets):
                    pooled = [
                        (detection.score, verdict)
                        for cell, judged in verdicts.items()
                        for detection, verdict in zip(
                            detections[cell][:limit], judged[:limit], strict=True
                        )
                    ]
                    # stable: equal scores in the order of image ids
                    pooled.sort(key=lambda pair: -pair[0])
                    rc, pr = recall_precision([verdict for _, verdict in pooled], n_objects)
                    sampled = sample(rc, pr, [score for score, _ in pooled], recall_points)
                    recall[t, k, a, m] = rc[-1] if rc else 0.0
                    precision[t, :, k, a, m], scores[t, :, k, a, m] = sampled
    return {"precision": precision, "recall": recall, "scores": scores}


def stats(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The twelve numbers that COCO prints, of arrays made with the default parameters; -1 where
    undefined.

    Source: ``summarize``. The mean runs over the same defined cells in the same order, so it is
    the same to the bit."""

    def mean(cells: np.ndarray) -> float:
        defined = cells[cells > -1]
        return float(np.mean(defined)) if defined.size else -1.0

    precision, recall = arrays["precision"], arrays["recall"]
    half, three_quarters = IOU_THRESHOLDS.index(0.5), IOU_THRESHOLDS.index(0.75)
    return np.array(
        [
            mean(precision[:, :, :, 0, 2]),
            mean(precision[half, :, :, 0, 2]),
            mean(precision[three_quarters, :, :, 0, 2]),
            *(mean(precision[:, :, :, a, 2]) for a in (1, 2, 3)),
            *(mean(recall[:, :, 0, m]) for m in (0, 1, 2)),
            *(mean(recall[:, :, a, 2]) for a in (1, 2, 3)),
        ]
    )
