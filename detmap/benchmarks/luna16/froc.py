"""Free-response ROC: sensitivity at some numbers of false positives per image, and their mean, CPM.

Two rules share the reading of the curve. Under `froc_spheres` a mark hits a nodule whose center is
nearer than its radius. Under `froc_boxes` a detection finds every object that it overlaps enough.
Neither assigns marks one-to-one: a mark may find several objects, and no mark that finds one, found
already or not, is a false positive.

Source: noduleCADEvaluationLUNA16.py; CADLab MULAN detection_eval.py and 3DCE
rcnn/utils/evaluation.py.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared.benchmark_result import Numbers
from detmap.benchmarks.shared.image_pairs import EVERY_PAIR, areas, overlaps, pairs_near, ratio
from detmap.core.matching.matches_checks import effective_thresholds
from detmap.core.matching.subsets import EVERY_SUBSET, object_words
from detmap.core.matching.unstable_sorts import sort_lists
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note, Truth, boxes_as
from detmap.errors import DataError, ProtocolError

READS = {
    "evaluate_spheres": ("froc", "matching.neutral", "subsets"),
    "evaluate_boxes": (
        *("froc.rates", "froc.mean_up_to", "froc.lookup", "boxes.extent", "ranking.sort"),
        *("iou.thresholds", "iou.comparison", "iou.cap", "matching.neutral", "subsets"),
    ),
}
"""By function."""
CENTER = ("x", "y", "z")
UNKNOWN_DIAMETER = 10.0  # of a nodule with a negative one, in millimeters
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def evaluate_spheres(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Computes sensitivities and CPM of marks and nodules with a center and a diameter.

    Objects with a role of ``matching.neutral`` are not counted, and marks on them are ignored. The
    curve has a point per distinct score, and begins at 0.
    """
    kept = _best_marks(detections, protocol.froc.most_marks)
    counted = _counted(truth, protocol)
    wrong = np.ones(len(detections), dtype=bool)
    best = np.full(len(truth), -np.inf)
    for mark, nodule in _hits(truth, detections, kept):
        wrong[mark] = False
        np.maximum.at(best, nodule, detections.score[mark])
    found = best[counted & (best > -np.inf)]
    false = np.sort(detections.score[kept[wrong[kept]]])
    levels = np.unique(np.concatenate([found, false]))[::-1]
    rate, sensitivity = _per_score(levels, np.sort(found), false)
    if len(false):  # scikit-learn's rates: (k / n) * n, which is not always k
        rate = rate / len(false) * len(false) / max(len(truth.images), 1)
    if len(found):
        sensitivity = sensitivity / len(found) * len(found)
    n_objects = int(counted.sum())
    counts = (len(found), n_objects, len(false), len(detections) - len(kept))
    curve = (np.append(0.0, rate), np.append(0.0, sensitivity))
    return _numbers(curve, counts, detections, protocol, [], "sphere")


def _hits(
    truth: Truth, detections: Detections, kept: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The `kept` marks and the nodules that they hit, some pairs at a time."""
    ours, theirs = _columns(truth), _columns(detections)
    diameter = _column(truth, "diameter")
    diameter = np.where(diameter < 0.0, UNKNOWN_DIAMETER, diameter)
    limit = (diameter / 2.0) ** 2
    sides = (np.zeros((n, 4)) for n in (len(kept), len(truth)))  # spheres are no boxes
    marks, nodules = zip((detections.image[kept], truth.image), sides, strict=True)
    for nth, nodule in pairs_near(truth.images, marks, nodules, EVERY_PAIR):
        mark = kept[nth]
        apart = np.zeros(len(mark))
        for axis in range(3):  # summed in the reference's order
            apart += (ours[nodule, axis] - theirs[mark, axis]) ** 2
        hit = apart < limit[nodule]
        yield mark[hit], nodule[hit]


def _per_score(levels: Floats, found: Floats, false: Floats) -> tuple[Floats, Floats]:
    """How many false marks and found objects have at least each score."""
    counts = [len(each) - np.searchsorted(each, levels, side="left") for each in (false, found)]
    return counts[0].astype(np.float64), counts[1].astype(np.float64)


def _best_marks(detections: Detections, most: int) -> NDArray[np.int64]:
    """Rows that take part: above the score of the mark after the first `most` of an image."""
    if not most:
        return np.arange(len(detections))
    order = np.lexsort((-detections.score, detections.image))
    image, score = detections.image[order], detections.score[order]
    begin = np.searchsorted(image, image, side="left")
    end = np.searchsorted(image, image, side="right")
    many = end - begin > most
    cut = np.where(many, score[np.minimum(begin + most, len(order) - 1)], -np.inf)
    return np.sort(order[~many | (score > cut)])


def _columns(table: Truth | Detections) -> Floats:
    return np.stack([_column(table, name) for name in CENTER], axis=1)


def _column(table: Truth | Detections, name: str) -> Floats:
    if name not in table.attributes:
        what = f"no {name} of the spheres"
        raise DataError(table.source, what, "give files in the format luna16, see docs/formats.md")
    return table.attributes[name]


def _counted(truth: Truth, protocol: Protocol) -> Flags:
    """(G,) objects to find: without an ignored role, and in the first subset."""
    return (object_words(truth, protocol).find & np.uint64(1)).astype(bool)


def evaluate_boxes(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Computes sensitivities and CPM of boxes, of all classes together.

    The curve has a point per detection. Detections on objects with a role of ``matching.neutral``
    are ignored unless they find an object that counts.
    """
    if len(protocol.thresholds()) != 1:
        raise ProtocolError("iou.thresholds", "a FROC curve has one threshold", "give one")
    least = effective_thresholds(protocol)[0]
    words, counted = object_words(truth, protocol), _counted(truth, protocol)
    pixel = float(protocol.boxes.extent == "inclusive")
    boxes, shown = _pixels(truth, pixel), _pixels(detections, pixel)
    order, n_tied = _ranked_marks(detections, protocol)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    first, wrong = np.full(len(truth), len(order)), np.ones(len(order), dtype=bool)
    sides = (detections.image, shown), (truth.image, boxes)
    area, own_area = areas(boxes, pixel), areas(shown, pixel)
    absorbs = words.absorb == EVERY_SUBSET
    for d, g in pairs_near(truth.images, *sides, apart=-pixel if least > 0 else EVERY_PAIR):
        shared, overlap = overlaps(shown, boxes, (d, g), (own_area[d], area[g]), pixel)
        reached = np.where(absorbs[g], ratio(shared, own_area[d]), overlap) >= least
        np.minimum.at(first, g[reached], place[d[reached]])
        wrong[d[reached]] = False
    found = first[counted & (first < len(order))]
    hits = np.cumsum(np.bincount(found, minlength=len(order)))
    false = np.cumsum(wrong[order])
    curve = (false / max(len(truth.images), 1), hits.astype(np.float64))
    notes = []
    if n_tied and protocol.ranking.sort != "stable":
        text = "detections have tied scores; the reference's sort leaves their order undefined"
        notes.append(Note("order-undefined", text, n_tied, detections.source))
    counts = (len(found), int(counted.sum()), int(wrong.sum()), 0)
    return _numbers(curve, counts, detections, protocol, notes, f"{protocol.thresholds()[0]:g}")


def _pixels(table: Truth | Detections, pixel: float) -> Floats:
    """(n, 4) left, top, right, bottom; the last pixel, if it is inside the box."""
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:] - pixel])


def _ranked_marks(detections: Detections, protocol: Protocol) -> tuple[NDArray[np.int32], int]:
    """Rows by descending score, from the order of images and input; and how many are tied."""
    rows = np.argsort(detections.image, kind="stable").astype(np.int32)
    off = np.array([0, len(rows)])
    return sort_lists(detections.score, rows, off, protocol.ranking.sort)


def _numbers(
    curve: tuple[Floats, Floats],
    counts: tuple[int, int, int, int],
    detections: Detections,
    protocol: Protocol,
    notes: list[Note],
    threshold: str,
) -> Numbers:
    """The metrics of a curve of false positives per image and found objects."""
    n_found, n_objects, n_false, n_cut = counts
    rates = protocol.froc.rates.values()
    if not n_objects:
        values = np.full(len(rates), np.nan)
    elif not len(curve[0]):
        values = np.zeros(len(rates))
    else:
        values = _read(curve[0], curve[1] / n_objects, rates, protocol.froc.lookup)
    averaged = rates <= protocol.froc.mean_up_to
    if not averaged.any():
        raise ProtocolError("froc.mean_up_to", "below all froc.rates", "give a rate")
    metrics = {"CPM": float(np.mean(values[averaged]))}
    for rate, value in zip(rates.tolist(), values.tolist(), strict=True):
        metrics[f"sensitivity@{_shown(rate)}"] = value
    if n_cut:
        text = f"marks are beyond the limit of {protocol.froc.most_marks} per image"
        notes.append(Note("marks-cut", text, n_cut, detections.source))
    definitions = dict.fromkeys(metrics, (threshold, "all", "all"))
    row = {"name": "all", "id": None, "objects": n_objects, "found": n_found, "fp": n_false}
    return Numbers(metrics, definitions, [row], notes)


def _shown(rate: float) -> str:
    part = Fraction(rate)
    return f"{part}" if rate < 1 and part.denominator < 1000 else f"{rate:g}"


def _read(x: Floats, y: Floats, at: Floats, lookup: str) -> Floats:
    """The curve at some rates; see `FrocRule.lookup`."""
    if lookup == "last":
        return np.interp(at, x, y)
    if len(x) < 2:
        return np.full(len(at), np.nan)
    high = np.clip(np.searchsorted(x, at), 1, len(x) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (y[high] - y[high - 1]) / (x[high] - x[high - 1])
        values = slope * (at - x[high - 1]) + y[high - 1]
    return np.where(np.isfinite(values), values, np.nan)
