"""The PASCAL VOC detection rule, in plain Python floats.

Source: the devkit's ``VOCcode/VOCevaldet.m``, and for the rule of 2010 and later ``voc_ap`` in
py-faster-rcnn's ``lib/datasets/voc_eval.py``, which restates the devkit's ``VOCap.m``.

Sums are loops on purpose: from Python 3.12 on the built-in ``sum`` compensates rounding, which
the devkit does not."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

Verdict = Literal["TP", "FP", "IGNORED"]
Detection = tuple[str, float, float, float, float, float]  # image, score, x1, y1, x2, y2
Object = tuple[float, float, float, float, bool]  # x1, y1, x2, y2, difficult
Objects = Mapping[str, Sequence[Object]]  # every image -> its objects of one class, if any
# recall, precision -> average precision
Integrator = Callable[[Sequence[float], Sequence[float]], float]


def rank(detections: Sequence[Detection]) -> list[int]:
    """Positions of the detections by descending score, equal scores in file order.

    Source: ``sort(-confidence)`` in VOCevaldet.m; MATLAB's sort is stable.
    """
    return sorted(range(len(detections)), key=lambda index: -detections[index][1])


def overlap(box: Sequence[float], other: Sequence[float]) -> float:
    """Intersection over union of two boxes whose corner pixels belong to them; -inf if they share
    none.

    Source: VOCevaldet.m, the innermost loop: every extent is ``x2 - x1 + 1``.
    """
    width = min(box[2], other[2]) - max(box[0], other[0]) + 1
    height = min(box[3], other[3]) - max(box[1], other[1]) + 1
    if width <= 0 or height <= 0:
        return -math.inf
    area = (box[2] - box[0] + 1) * (box[3] - box[1] + 1)
    other_area = (other[2] - other[0] + 1) * (other[3] - other[1] + 1)
    return width * height / (area + other_area - width * height)


def judge(
    detections: Sequence[Detection],
    objects: Objects,
    *,
    threshold: float = 0.5,
    strict: bool = False,
) -> list[Verdict]:
    """Verdicts of one class's detections, best score first.

    A detection looks at one object only, the one it overlaps most (the first of equals, difficult
    or not). Is the overlap too small, or the object taken by a better score, it is false. A
    difficult object makes it neutral and is never taken, so any number of detections may fall on
    it.

    Source: VOCevaldet.m, ``ovmax >= minoverlap``; `strict` is py-faster-rcnn's ``ovmax >
    ovthresh``.

    Raises
    ------
    KeyError
        If a detection names an image that `objects` does not list (the devkit stops as well).
    """
    taken: set[tuple[str, int]] = set()
    verdicts: list[Verdict] = []
    for index in rank(detections):
        image, _, *box = detections[index]
        best, best_overlap = -1, -math.inf
        for candidate, (*corners, _) in enumerate(objects[image]):
            candidate_overlap = overlap(box, corners)
            if candidate_overlap > best_overlap:
                best, best_overlap = candidate, candidate_overlap

        reached = best_overlap > threshold if strict else best_overlap >= threshold
        if not reached:
            verdicts.append("FP")
        elif objects[image][best][4]:
            verdicts.append("IGNORED")
        elif (image, best) in taken:
            verdicts.append("FP")
        else:
            taken.add((image, best))
            verdicts.append("TP")
    return verdicts


def count_objects(objects: Objects) -> int:
    """Objects that can be found, which the difficult ones are not: ``npos`` in VOCevaldet.m."""
    return sum(not difficult for in_image in objects.values() for *_, difficult in in_image)


def recall_precision(
    verdicts: Sequence[Verdict], n_objects: int
) -> tuple[list[float], list[float]]:
    """Recall and precision after each ranked detection.

    Precision is 0/0 = NaN while every detection so far was neutral, recall is NaN without objects.

    Source: VOCevaldet.m, ``rec = tp/npos`` and ``prec = tp./(fp+tp)``.
    """
    tp = fp = 0
    recall, precision = [], []
    for verdict in verdicts:
        tp += verdict == "TP"
        fp += verdict == "FP"
        recall.append(tp / n_objects if n_objects else math.nan)
        precision.append(tp / (fp + tp) if fp + tp else math.nan)
    return recall, precision


def matlab_max(values: Sequence[float]) -> float:
    """Largest of some numbers, skipping NaN as MATLAB's ``max`` does; NaN if there is nothing
    else."""
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def matlab_colon(start: float, step: float, stop: float) -> list[float]:
    """The numbers of MATLAB's ``start:step:stop``, for a positive step.

    The first half counts up from `start`, the second half down from the last number, a middle one
    is the mean of both ends. So ``0:0.1:1`` holds 0.6 and 0.7, where ``np.arange`` has
    0.6000000000000001 and 0.7000000000000001.

    Source: MathWorks' published account of the colon operator (``colonop``).
    """
    tolerance = 2 * math.ulp(1.0) * max(abs(start), abs(stop))
    n = math.floor((stop - start) / step + 0.5)
    if start + n * step - stop > tolerance:
        n -= 1
    last = start + n * step
    if last - stop > -tolerance:
        last = stop

    def number(k: int) -> float:
        if 2 * k == n:
            return (start + last) / 2
        return start + k * step if 2 * k < n else last - (n - k) * step

    return [number(k) for k in range(n + 1)]


def eleven_point(
    recall: Sequence[float], precision: Sequence[float], grid: Sequence[float] | None = None
) -> float:
    """Mean over the grid of the best precision at that recall or more, added up one divided term at
    a time.

    The grid is ``0:0.1:1`` unless given. The result is NaN if there are detections and all of them
    are neutral (the devkit's ``max`` finds only NaN at recall 0), and 0 without detections or
    without objects.

    Source: VOCevaldet.m, ``ap = ap + p/11``.
    """
    grid = matlab_colon(0.0, 0.1, 1.0) if grid is None else grid
    ap = 0.0
    for point in grid:
        reached = [p for r, p in zip(recall, precision, strict=True) if r >= point]
        best = matlab_max(reached) if reached else 0.0
        ap = ap + best / len(grid)
    return ap


def all_points(recall: Sequence[float], precision: Sequence[float]) -> float:
    """Area under the precision envelope, the rule of VOC2010 and later; NaN if recall is.

    The curve gets the ends (0, 0) and (1, 0), every precision is raised to the best one right of
    it, and each step of recall adds a rectangle.

    Source: ``voc_ap`` in py-faster-rcnn, after the devkit's VOCap.m.
    """
    ends_recall = [0.0, *recall, 1.0]
    envelope = [0.0, *precision, 0.0]
    for i in range(len(envelope) - 2, -1, -1):
        envelope[i] = matlab_max(envelope[i : i + 2])
    area = 0.0
    for i in range(1, len(envelope)):
        if ends_recall[i] != ends_recall[i - 1]:
            area = area + (ends_recall[i] - ends_recall[i - 1]) * envelope[i]
    return area


def class_ap(
    detections: Sequence[Detection],
    objects: Objects,
    *,
    threshold: float = 0.5,
    strict: bool = False,
    integrate: Integrator = eleven_point,
) -> float:
    """Average precision of one class; NaN if it has no object that can be found.

    Source: VOCevaldet.m from end to end; there a class without objects is 0 or NaN by accident
    of 0/0."""
    n_objects = count_objects(objects)
    if n_objects == 0:
        return math.nan
    verdicts = judge(detections, objects, threshold=threshold, strict=strict)
    return integrate(*recall_precision(verdicts, n_objects))


def mean_ap(
    detections: Mapping[str, Sequence[Detection]],
    objects: Mapping[str, Objects],
    *,
    threshold: float = 0.5,
    strict: bool = False,
    integrate: Integrator = eleven_point,
) -> float:
    """Mean of `class_ap` over the classes that have an object to find, in the order of `objects`;
    else NaN.

    Source: the mean that papers print beside the devkit, which itself ends at one class.
    """
    total, n_classes = 0.0, 0
    for name, in_class in objects.items():
        if count_objects(in_class) == 0:
            continue
        total += class_ap(
            detections.get(name, ()),
            in_class,
            threshold=threshold,
            strict=strict,
            integrate=integrate,
        )
        n_classes += 1
    return total / n_classes if n_classes else math.nan
