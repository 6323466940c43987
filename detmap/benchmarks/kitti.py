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
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.base.parallel import CHUNK
from detmap.benchmarks.benchmark_result import Numbers
from detmap.benchmarks.image_pairs import corners, image_pairs, overlaps, ratio, table_areas
from detmap.errors import ProtocolError, few
from detmap.matching.subsets import EVERY_SUBSET, ObjectWords, object_words
from detmap.protocol import Protocol
from detmap.tables import Detections, Note, Truth

READS = ("iou.classes", "subsets", "matching.neutral", "kitti.height", "kitti.neighbors")
SAMPLES = 41  # N_SAMPLE_PTS
CLASSES = (
    *("car", "van", "truck", "pedestrian", "person_sitting", "cyclist", "tram", "misc"),
    "dontcare",
)
"""Source: readme.txt of the development kit."""
CURVES = {"R11": slice(0, SAMPLES, 4), "R40": slice(1, SAMPLES)}
NO_ORIENTATION = -10.0  # alpha of a detection without orientation
ABSENT, VALID, IGNORED = -1, 0, 1
Flags = NDArray[np.int8]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
_Curves = dict[str, tuple[Floats | None, Floats | None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """Pairs of detections and objects that overlap enough; and the largest share of each detection
    that lies in a DontCare region.
    """

    score: Floats
    detection: NDArray[np.int64]
    object: NDArray[np.int64]
    overlap: Floats
    covered: Floats

    def take(self, some: NDArray[np.bool_]) -> _Inputs:
        """Some of the pairs."""
        columns = (self.detection[some], self.object[some], self.overlap[some])
        return _Inputs(self.score, *columns, self.covered)


def evaluate(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Computes AP and AOS of each class in ``iou.classes`` and each level in ``subsets``."""
    if not protocol.iou.classes:
        raise ProtocolError("iou.classes", "no class", "give each evaluated class a threshold")
    words = object_words(truth, _strict(protocol))
    lowest = min(least for _, least in protocol.iou.classes)
    pairs = _pairs(truth, detections, words.absorb == EVERY_SUBSET, lowest)
    inside = corners(detections)[:, 0] >= 0
    alphas, notes = _orientations(truth, detections)
    metrics: dict[str, float] = {}
    definitions: dict[str, tuple[str, str, str]] = {}
    per_class = []
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
        per_class.append(row)
    return Numbers(metrics, definitions, per_class, [*notes, *_unknown_classes(truth)])


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
    parts = [(np.zeros(0, dtype=np.int64),) * 2 + (np.zeros(0),)]
    for begin in range(0, len(detections), CHUNK):
        d, g = image_pairs(detections.image[begin : begin + CHUNK], truth.image[taken])
        d, g = d + begin, taken[g]
        shared, overlap = overlaps(found[d], boxes[g], (found_area[d], area[g]))
        absorbed = regions[g]
        np.maximum.at(covered, d[absorbed], ratio(shared, found_area[d])[absorbed])
        kept = ~absorbed & (overlap > least)
        parts.append((d[kept], g[kept], overlap[kept]))
    d, g, overlap = map(np.concatenate, zip(*parts, strict=True))
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
    n_valid = int((role == VALID).sum())
    thresholds = score_samples(_best_scores(pairs, role, state), n_valid)
    n_samples = len(thresholds)
    alive = _alive(detections.score, thresholds)
    assigned, hits = _assign(pairs, role, state, alive)
    tp = _counts(np.array([word for _, _, word in hits], dtype=np.uint64), n_samples)
    wrong = alive & ~assigned
    wrong[(state != VALID) | in_region] = 0
    fp = _counts(wrong, n_samples)
    precision, similarity = np.zeros(SAMPLES), None
    with np.errstate(invalid="ignore"):
        precision[:n_samples] = tp / (tp + fp)
        if alphas is not None:
            similarity = np.zeros(SAMPLES)
            similarity[:n_samples] = _similarity(hits, alphas, truth, n_samples) / (tp + fp)
            _envelope(similarity, n_samples)
    _envelope(precision, n_samples)
    return precision, similarity


def _grouped(pairs: _Inputs, order: NDArray[Any]) -> Iterator[tuple[int, list[int]]]:
    """Objects in file order, each with its detections in the given order of pairs."""
    objects, detections = pairs.object[order], pairs.detection[order].tolist()
    begins = np.flatnonzero(np.diff(objects, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(detections)]):
        yield int(objects[begin]), detections[begin:end]


def _best_scores(pairs: _Inputs, role: Flags, state: Flags) -> list[float]:
    """The scores of the detections that valid objects take: each the highest-scoring one left."""
    score = pairs.score[pairs.detection]
    order = np.lexsort((pairs.detection, -score, pairs.object))
    valid_object, valid = (role == VALID).tolist(), (state == VALID).tolist()
    used: set[int] = set()
    scores = []
    for g, candidates in _grouped(pairs, order):
        best = next((d for d in candidates if d not in used), None)
        if best is None:
            continue
        used.add(best)
        if valid_object[g] and valid[best]:
            scores.append(float(pairs.score[best]))
    return scores


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


def _alive(score: Floats, thresholds: Floats) -> Words:
    """(D,) words with bit t where the score is at least threshold t."""
    first = np.searchsorted(-thresholds, -score, side="left")
    full = (1 << len(thresholds)) - 1
    words = np.array([full >> t << t for t in range(len(thresholds) + 1)], dtype=np.uint64)
    return words[first]


def _assign(
    pairs: _Inputs, role: Flags, state: Flags, alive: Words
) -> tuple[Words, list[tuple[int, int, int]]]:
    """Lets each object take a detection at all thresholds at once.

    A valid detection with the largest overlap comes first, of equal overlaps the first; then the
    first ignored one. Gives the thresholds at which each detection is taken (D,), and true
    positives as (object, detection, thresholds).
    """
    valid = state == VALID
    late = ~valid[pairs.detection]
    order = np.lexsort((pairs.detection, np.where(late, 0.0, -pairs.overlap), late, pairs.object))
    valid_object, valid_detection = (role == VALID).tolist(), valid.tolist()
    free = alive.tolist()
    full = int(np.bitwise_or.reduce(alive, initial=np.uint64(0)))
    hits = []
    for g, candidates in _grouped(pairs, order):
        left = full
        for d in candidates:
            taken = left & free[d]
            if taken:
                left &= ~taken
                free[d] &= ~taken
                if valid_object[g] and valid_detection[d]:
                    hits.append((g, d, taken))
    assigned = alive & ~np.array(free, dtype=np.uint64)
    return assigned, hits


def _counts(words: Words, n: int) -> NDArray[np.int64]:
    """(n,) how many words have each bit."""
    one = np.uint64(1)
    return np.array([int((words >> np.uint64(t) & one).sum()) for t in range(n)], dtype=np.int64)


def _similarity(
    hits: list[tuple[int, int, int]], alphas: tuple[Floats, Floats], truth: Truth, n: int
) -> Floats:
    """(n,) sums of (1 + cos of the angle between them) / 2: of an image, then over images."""
    if not hits:
        return np.zeros(n)
    g, d = np.array([hit[:2] for hit in hits]).T
    words = np.array([hit[2] for hit in hits], dtype=np.uint64)
    similar = (1.0 + np.cos(alphas[0][g] - alphas[1][d])) / 2.0
    image = truth.image[g]
    sums = np.zeros(n)
    for t in range(n):
        some = (words >> np.uint64(t) & np.uint64(1)).astype(bool)
        of_image = np.bincount(image[some], weights=similar[some], minlength=len(truth.images))
        sums[t] = np.cumsum(of_image)[-1]
    return sums


def _envelope(curve: Floats, n: int) -> None:
    """Replaces each value by the largest from there on."""
    for i in range(n):
        curve[i] = max(curve[i:].tolist())
