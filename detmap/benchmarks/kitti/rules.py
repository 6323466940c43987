"""KITTI's 2D evaluation: AP at 11 and 40 recall points and orientation similarity (AOS).

Objects choose detections here, in file order, image by image. A first pass finds the score of each
object's best detection; of these scores at most 41 become thresholds, evenly spaced in recall. Then
at each threshold each object takes the unused detection with the largest overlap.

Source: evaluate_object_3d_offline.cpp of KITTI's object development kit: `cleanData`,
`computeStatistics`, `getThresholds`, `eval_class`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.kernels import score_samples as kernels
from detmap.benchmarks.kernels.score_samples import ABSENT, IGNORED, VALID
from detmap.benchmarks.shared.benchmark_result import Numbers
from detmap.benchmarks.shared.image_pairs import (
    Pairs,
    collected,
    corners,
    overlaps,
    pairs_near,
    ratio,
    table_areas,
)
from detmap.core.matching.subsets import EVERY_SUBSET, ObjectWords, object_words
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note, Truth
from detmap.errors import DataError, ProtocolError, few

READS = ("iou.classes", "subsets", "matching.neutral", "kitti.height", "kitti.neighbors")
SAMPLES = 41  # N_SAMPLE_PTS
CLASSES = (
    *("car", "van", "truck", "pedestrian", "person_sitting", "cyclist", "tram", "misc"),
    "dontcare",
)
"""Source: readme.txt of the development kit."""
CURVES = {"R11": slice(0, SAMPLES, 4), "R40": slice(1, SAMPLES)}
NO_ORIENTATION = -10.0  # alpha of a detection without orientation
NO_DETECTION = -1e7  # the score that means none: computeStatistics
Flags = NDArray[np.int8]
Floats = NDArray[np.float64]
_Curves = dict[str, tuple[Floats | None, Floats | None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """Pairs of detections and objects that overlap enough, by object; and the largest share of each
    detection that lies in a DontCare region.
    """

    score: Floats
    detection: NDArray[np.integer[Any]]
    object: NDArray[np.integer[Any]]
    overlap: Floats
    covered: Floats

    def take(self, some: NDArray[np.bool_]) -> _Inputs:
        """Some of the pairs."""
        columns = (self.detection[some], self.object[some], self.overlap[some])
        return _Inputs(self.score, *columns, self.covered)


def evaluate(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Computes AP and AOS of each class in ``iou.classes`` and each level in ``subsets``.

    Raises
    ------
    DataError : a score that the development kit takes for that of no detection
    ProtocolError : no class
    """
    if not protocol.iou.classes:
        raise ProtocolError("iou.classes", "no class", "give each evaluated class a threshold")
    _refuse_no_detection(detections)
    words = object_words(truth, _strict(protocol))
    lowest = min(least for _, least in protocol.iou.classes)
    pairs = _pairs(truth, detections, words.absorb == EVERY_SUBSET, lowest)
    inside = corners(detections)[:, 0] >= 0
    alphas, notes = _orientations(truth, detections)
    metrics: dict[str, float] = {}
    definitions: dict[str, tuple[str, str, str]] = {}
    per_class, single = [], {}
    for name, least in protocol.iou.classes:
        own = _labelled(detections.categories.names, [name], detections.label)
        if not (own & inside).any():  # a class that is never detected has no AP
            curves: _Curves = {level.name: (None, None) for level in protocol.subsets}
        else:
            sides = (_roles(truth, words, name, protocol), own)
            inputs = pairs.take(pairs.overlap > least)
            curves = _levels(inputs, least, sides, truth, detections, protocol, alphas)
        row: dict[str, Any] = {"name": name, "id": _id(truth, name)}
        for level, pair in curves.items():
            for kind, curve in zip(("", "AOS-"), pair, strict=True):
                for points, some in CURVES.items():
                    metric = f"{kind}{points}-{name}-{level}"
                    metrics[metric] = np.nan if curve is None else _mean(curve[some])
                    definitions[metric] = (f"{least:g}", level, "all")
                    row[f"{kind}{points}-{level}"] = metrics[metric]
                    single[metric] = row["id"]
        per_class.append(row)
    notes = [*notes, *_unknown_classes(truth)]
    return Numbers(metrics, definitions, per_class, notes, n_points=SAMPLES - 1, single=single)


def _refuse_no_detection(detections: Detections) -> None:
    lowest = detections.score.min(initial=0.0)
    if lowest <= NO_DETECTION:
        row = int(np.argmin(detections.score))
        image = detections.images.ids[detections.image[row]].item()
        raise DataError(
            f"{detections.source}: image {image!r}, score",
            f"{lowest:g}: KITTI's program never matches a detection with {NO_DETECTION:g} or less",
            "scale the scores, for example to 0 to 1",
        )


def _unknown_classes(truth: Truth) -> list[Note]:
    names = truth.categories.names
    known = np.isin([name.lower() for name in names], CLASSES)
    count = int((~known)[truth.label[~truth.crowd]].sum())
    strange = few(name for name, each in zip(names, known.tolist(), strict=True) if not each)
    text = f"objects are of classes that KITTI does not have ({strange}): no class counts them"
    return [Note("class-excluded", text, count, truth.source)] * bool(count)


def _mean(curve: Floats) -> float:
    """The mean, summed in order as the reference does."""
    return float(np.cumsum(curve)[-1] / len(curve))


def _strict(protocol: Protocol) -> Protocol:
    """The protocol whose subsets are the levels: under ``<=`` heights are above the lowest."""
    protocol = replace(protocol, iou=replace(protocol.iou, classes=()))  # any class may be missing
    if protocol.kitti.height == "<":
        return protocol
    return replace(
        protocol,
        subsets=tuple(
            replace(
                level,
                ranges=tuple(
                    replace(r, low=float(np.nextafter(r.low, np.inf)))
                    if r.attribute == "height"
                    else r
                    for r in level.ranges
                ),
            )
            for level in protocol.subsets
        ),
    )


def _labelled(names: tuple[str, ...], wanted: list[str], label: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows of the classes with these names, ignoring case as the reference does."""
    folded = [name.lower() for name in wanted]
    same: NDArray[np.bool_] = np.array([name.lower() in folded for name in names], dtype=bool)
    return np.asarray(same[label])


def _id(truth: Truth, name: str) -> int | None:
    known = [each.lower() for each in truth.categories.names]
    return int(truth.categories.ids[known.index(name.lower())]) if name.lower() in known else None


def _orientations(
    truth: Truth, detections: Detections
) -> tuple[tuple[Floats, Floats] | None, list[Note]]:
    """The angles of objects and detections; None if one detection has none."""
    ours, theirs = truth.attributes.get("alpha"), detections.attributes.get("alpha")
    if ours is None or theirs is None:
        text = "detections have no orientation (alpha): AOS is not evaluated"
        return None, [Note("orientation-missing", text, len(detections), detections.source)]
    count = int((theirs == NO_ORIENTATION).sum())
    if count:
        text = "detections have alpha -10 (no orientation): AOS is not evaluated"
        return None, [Note("orientation-missing", text, count, detections.source)]
    return (ours, theirs), []


def _roles(truth: Truth, words: ObjectWords, name: str, protocol: Protocol) -> list[Flags]:
    """By level, what each object is for a class: valid, ignored or absent."""
    own = _labelled(truth.categories.names, [name], truth.label)
    beside = [other for each, other in protocol.kitti.neighbors if each == name]
    near = _labelled(truth.categories.names, beside, truth.label)
    absorbed = words.absorb == EVERY_SUBSET
    roles = []
    for level in range(len(protocol.subsets)):
        inside = (words.find >> np.uint64(level) & np.uint64(1)).astype(bool)
        role = np.full(len(truth), ABSENT, dtype=np.int8)
        role[own | near] = IGNORED
        role[own & inside] = VALID
        role[absorbed] = ABSENT
        roles.append(role)
    return roles


def _pairs(
    truth: Truth, detections: Detections, regions: NDArray[np.bool_], least: float
) -> _Inputs:
    """All pairs of an image that overlap by more than `least`, whatever their classes."""
    boxes, found = corners(truth), corners(detections)
    area, found_area = table_areas(truth), table_areas(detections)
    _, once = np.unique(  # a region of every class is an object of each
        np.column_stack([truth.image, boxes])[regions], axis=0, return_index=True
    )
    taken = np.sort(np.concatenate([np.flatnonzero(~regions), np.flatnonzero(regions)[once]]))
    covered = np.zeros(len(detections))
    sides = (detections.image, found), (truth.image[taken], boxes[taken])

    def overlapping() -> Iterator[Pairs]:
        for d, nth in pairs_near(truth.images, *sides, apart=0.0):
            g = taken[nth]
            shared, overlap = overlaps(found, boxes, (d, g), (found_area[d], area[g]))
            absorbed = regions[g]
            np.maximum.at(covered, d[absorbed], ratio(shared, found_area[d])[absorbed])
            kept = ~absorbed & (overlap > least)
            yield d[kept], g[kept], overlap[kept]

    n_rows = len(truth) + len(detections)
    d, g, overlap = collected(overlapping(), truth.images, detections.image, n_rows)
    order = np.argsort(g, kind="stable")
    d, g, overlap = d[order], g[order], overlap[order]
    return _Inputs(detections.score, d, g, overlap, covered)


def _levels(
    inputs: _Inputs,
    least: float,
    sides: tuple[list[Flags], NDArray[np.bool_]],
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    alphas: tuple[Floats, Floats] | None,
) -> _Curves:
    """Precision and orientation similarity at the recall samples, by level."""
    roles, own = sides
    height = np.trunc(_height(detections))
    curves: _Curves = {}
    for level, role in zip(protocol.subsets, roles, strict=True):
        lowest = max((r.low for r in level.ranges if r.attribute == "height"), default=0.0)
        state = np.where(own, VALID, ABSENT).astype(np.int8)
        state[height < lowest] = IGNORED  # of any class
        side = (state, inputs.covered > least)
        curves[level.name] = _curve(inputs, role, side, truth, detections, alphas)
    return curves


def _height(detections: Detections) -> Floats:
    """Returns (n,) heights of boxes."""
    boxes = detections.boxes
    return boxes[:, 3] - boxes[:, 1] if detections.box_format == "voc" else boxes[:, 3]


def _curve(
    inputs: _Inputs,
    role: Flags,
    side: tuple[Flags, NDArray[np.bool_]],
    truth: Truth,
    detections: Detections,
    alphas: tuple[Floats, Floats] | None,
) -> tuple[Floats, Floats | None]:
    """Precision, and orientation similarity, at the samples of a class and level.

    `side` is what each detection is, and whether it lies in a DontCare region.
    """
    state, in_region = side
    pairs = inputs.take((role[inputs.object] != ABSENT) & (state[inputs.detection] != ABSENT))
    objects, found, candidates = _candidates(pairs, role, state, alphas)
    scores = np.zeros(len(objects))
    n_scores = kernels.take_best_scores(candidates, np.zeros(len(found), dtype=bool), scores)
    thresholds = score_samples(scores[:n_scores].tolist(), int((role == VALID).sum()))
    false = (state == VALID) & ~in_region
    rows = np.flatnonzero(false[found])
    false[found] = False
    far = np.sort(inputs.score[false])  # of detections that no object can take
    precision, similarity = np.zeros(SAMPLES), np.zeros(SAMPLES)
    similar = np.zeros(len(objects))
    for t, threshold in enumerate(thresholds.tolist()):
        used = np.zeros(len(found), dtype=bool)
        tp = kernels.count_true_positives(candidates, threshold, used, similar)
        fp = kernels.count_false_positives(rows, candidates.score, threshold, used)
        fp += len(far) - int(np.searchsorted(far, threshold))
        of_image = np.bincount(truth.image[objects], weights=similar, minlength=len(truth.images))
        precision[t] = tp / (tp + fp) if tp + fp else np.nan
        similarity[t] = np.cumsum(of_image)[-1] / (tp + fp) if tp + fp else np.nan
    _envelope(precision, len(thresholds))
    _envelope(similarity, len(thresholds))
    return precision, None if alphas is None else similarity


def _candidates(
    pairs: _Inputs, role: Flags, state: Flags, alphas: tuple[Floats, Floats] | None
) -> tuple[NDArray[Any], NDArray[Any], kernels.Candidates]:
    """The objects and the detections that have pairs, and these pairs by object; the similarity is
    (1 + cos of the angle between them) / 2.
    """
    similarity = np.zeros(len(pairs.object))
    if alphas is not None:
        angle = alphas[0][pairs.object] - alphas[1][pairs.detection]
        similarity = (1.0 + np.cos(angle)) / 2.0
    off = np.flatnonzero(np.diff(pairs.object, prepend=-1, append=-2)).astype(np.int64)
    objects = pairs.object[off[:-1]]  # the pairs are sorted by object
    is_found = np.zeros(len(state), dtype=bool)
    is_found[pairs.detection] = True
    found = np.flatnonzero(is_found)
    detection = (np.cumsum(is_found) - 1)[pairs.detection]
    columns = (off, detection, pairs.overlap, similarity, role[objects])
    return objects, found, kernels.Candidates(*columns, state[found], pairs.score[found])


def score_samples(scores: list[float], n_objects: int) -> Floats:
    """Returns the scores nearest to 41 evenly spaced values of recall, descending."""
    scores = sorted(scores, reverse=True)
    samples, current, last = [], 0.0, len(scores) - 1
    for i, score in enumerate(scores):
        here = (i + 1) / n_objects
        after = (i + 2) / n_objects if i < last else here
        if after - current < current - here and i < last:
            continue
        samples.append(score)
        current += 1.0 / (SAMPLES - 1.0)
    return np.array(samples[:SAMPLES], dtype=np.float64)


def _envelope(curve: Floats, n: int) -> None:
    """Replaces each value by the largest from there on."""
    for i in range(n):
        curve[i] = max(curve[i:].tolist())
