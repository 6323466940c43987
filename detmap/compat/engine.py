"""Columns and parameters to pycocotools' numbers, by way of detmap's tables, matching and
curves.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import protocol as protocols
from detmap.compat.rows import Rows, Unusual
from detmap.curves import sample
from detmap.errors import DataError
from detmap.matches import Matches
from detmap.matching import match
from detmap.parallel import each_largest_first
from detmap.protocol import MAX_THRESHOLDS, Area, Grid, Limits, Protocol
from detmap.tables import Categories, Detections, Images, Truth

CAP = 1 - 1e-10  # evaluateImg: no threshold is higher


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Parameters of ``COCOeval``, as they are after ``evaluate`` has sorted them.

    Parameters
    ----------
    image_ids : I ids
    category_ids : ids of the categories to look at; K of them, or one class of them all where
        `together`
    together : useCats is 0
    thresholds : (T,) float64, in any order
    areas : A pairs, both ends included
    limits : the detection limits, ascending
    """

    image_ids: list[Any]
    category_ids: list[Any]
    together: bool
    thresholds: NDArray[np.float64]
    areas: tuple[tuple[float, float], ...]
    limits: list[int]

    @property
    def n_classes(self) -> int:
        """K."""
        return 1 if self.together else len(self.category_ids)


def read_rules(params: Any) -> Rules:
    """The parameters of an evaluation of boxes.

    Raises
    ------
    Unusual : values that only pycocotools itself can make sense, or an error, of
    """
    try:
        image_ids = list(np.unique(params.imgIds))
        together = params.useCats == 0
        category_ids = list(params.catIds) if together else list(np.unique(params.catIds))
        areas = tuple((float(pair[0]), float(pair[1])) for pair in params.areaRng)
        limits = sorted(params.maxDets)
        thresholds = np.asarray(params.iouThrs)
        hash(tuple(category_ids))
    except (TypeError, ValueError, IndexError):
        raise Unusual from None
    plain = (
        params.useCats in (0, 1)
        and image_ids
        and category_ids
        and areas
        and limits
        and all(isinstance(limit, int | np.integer) and 0 < limit < 2**62 for limit in limits)
        and thresholds.ndim == 1
        and len(thresholds)
        and (thresholds.dtype == np.float64 or thresholds.dtype.kind == "i")
        and not np.isnan(thresholds).any()
        and not np.isnan(areas).any()
    )
    if not plain:
        raise Unusual
    return Rules(image_ids, category_ids, together, thresholds.astype(np.float64), areas, limits)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The verdicts at up to 64 of the thresholds.

    Parameters
    ----------
    where : (T',) their places among the rules' thresholds
    matches : verdicts; images, classes and rows by position
    """

    where: NDArray[np.int64]
    matches: Matches


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """An evaluation.

    Parameters
    ----------
    rules : what was asked for
    objects, found : rows that were looked at
    truth, detections : the same as tables
    parts : verdicts, by threshold
    """

    rules: Rules
    objects: Rows
    found: Rows
    truth: Truth
    detections: Detections
    parts: list[Part]


def judge(objects: Rows, found: Rows, rules: Rules) -> Judged:
    """Match all detections with all objects under the rules.

    Raises
    ------
    Unusual : boxes so small that an overlap is 0/0
    """
    objects, image, label = _placed(objects, rules)
    n_images, n_classes = len(rules.image_ids), rules.n_classes
    unknown = np.full(n_images, np.nan)
    truth = Truth(
        Images(np.arange(n_images), ("",) * n_images, unknown, unknown),
        Categories(np.arange(n_classes), tuple(map(str, range(n_classes)))),
        image,
        label,
        objects.boxes,
        roles={"crowd": objects.crowd},
        attributes={"area": objects.area},
        box_format="xywh",
        family="coco",
    )
    found, image, label = _placed(found, rules)
    detections = Detections(
        truth.images, truth.categories, image, label, found.boxes, found.score, box_format="xywh"
    )
    order = np.argsort(rules.thresholds, kind="stable")
    parts = []
    for begin in range(0, len(order), MAX_THRESHOLDS):
        where = order[begin : begin + MAX_THRESHOLDS]
        try:
            matches = match(truth, detections, _protocol(rules, where))
        except DataError:  # an overlap of 0/0
            raise Unusual from None
        parts.append(Part(where, matches))
    judged = Judged(rules, objects, found, truth, detections, parts)
    odd = (
        rules.thresholds.min() <= 0
        or (objects.ids == 0).any()
        or (found.ids <= 0).any()
        or not np.array_equal(found.area, found.boxes[:, 2] * found.boxes[:, 3])
    )
    return replace(judged, parts=[_rejudged(judged, part) for part in parts]) if odd else judged


def _placed(rows: Rows, rules: Rules) -> tuple[Rows, NDArray[np.int32], NDArray[np.int32]]:
    """The rows that are looked at, in that order, with positions of their images and classes."""
    image = _positions(rows.image_ids, rules.image_ids)[rows.image]
    if rules.together:
        by_category = np.argsort(rows.category, kind="stable")
        off = np.searchsorted(rows.category[by_category], np.arange(len(rows.category_ids) + 1))
        code = {category: i for i, category in enumerate(rows.category_ids)}
        codes = [code[category] for category in rules.category_ids if category in code]
        chosen = np.concatenate(
            [by_category[:0], *(by_category[off[i] : off[i + 1]] for i in codes)]
        )
        chosen = chosen[image[chosen] >= 0]
        return rows.take(chosen), image[chosen], np.zeros(len(chosen), dtype=np.int32)
    label = _positions(rows.category_ids, rules.category_ids)[rows.category]
    keep = (image >= 0) & (label >= 0)
    return (rows, image, label) if keep.all() else (rows.take(keep), image[keep], label[keep])


def _positions(ids: Sequence[Hashable], wanted: list[Any]) -> NDArray[np.int32]:
    """Where each id stands among the wanted, -1 where it does not."""
    place = {value: i for i, value in enumerate(wanted)}
    return np.array([place.get(value, -1) for value in ids], dtype=np.int32)


@cache
def _stock() -> Protocol:
    return protocols.load("coco-bbox")


def _protocol(rules: Rules, where: NDArray[np.int64]) -> Protocol:
    """coco-bbox with these thresholds, areas and the highest limit; built without the checks of
    a protocol file.
    """
    stock = _stock()
    return replace(
        stock,
        iou=replace(stock.iou, thresholds=Grid(tuple(rules.thresholds[where].tolist()))),
        areas=tuple(Area(str(a), low, high) for a, (low, high) in enumerate(rules.areas)),
        limits=Limits((int(rules.limits[-1]),)),
    )


# --- who took what --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Takings:
    """What `take_objects` reads, and the rows by class and image that its outcome refers to."""

    takers: Any
    goods: Any
    thresholds: NDArray[np.float64]

    def of_class(self, k: int) -> NDArray[np.int32]:
        """(n, A, T') the object that each of the class's detections takes, a row of the truth;
        -1 for none.
        """
        from detmap.kernels import take

        n_areas, n_thresholds = self.goods.counted.shape[1], len(self.thresholds)
        taken = np.empty(
            (self.takers.off[k + 1] - self.takers.off[k], n_areas, n_thresholds), dtype=np.int32
        )
        room = take.counter(int(self.goods.off[k + 1] - self.goods.off[k]), n_areas, n_thresholds)
        take.take_objects(k, self.takers, self.goods, self.thresholds, room, taken)
        return taken


def takings(judged: Judged, part: Part) -> Takings:
    """What is needed to say which object a detection takes; detections beyond the limit are left
    out.
    """
    from detmap.kernels import take

    matches, truth, found = part.matches, judged.truth, judged.found
    n_images = len(judged.rules.image_ids)
    rows, off = _by_class_and_image(matches.image, matches.off, n_images)
    goods_rows, goods_off = _grouped(truth.image, truth.label, n_images, judged.rules.n_classes)
    inside = [(truth.area >= low) & (truth.area <= high) for low, high in judged.rules.areas]
    counted = np.stack(inside, axis=1) & ~truth.crowd[:, None]
    boxes, holds = found.boxes[matches.position], found.ids[matches.position] > 0
    takers = take.Takers(rows, off, matches.image, boxes, holds)
    goods = take.Objects(goods_rows, goods_off, truth.image, truth.boxes, truth.crowd, counted)
    return Takings(takers, goods, np.minimum(judged.rules.thresholds[part.where], CAP))


def _by_class_and_image(
    image: NDArray[np.int32], off: NDArray[np.int64], n_images: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    label = np.repeat(np.arange(len(off) - 1, dtype=np.int32), np.diff(off))
    return _grouped(image, label, n_images, len(off) - 1)


def _grouped(
    image: NDArray[np.int32], label: NDArray[np.int32], n_images: int, n_classes: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows by class, then by image, then as they come; and where each class begins."""
    from detmap.kernels.grouping import group

    start = np.arange(len(image), dtype=np.int32)
    by_image, rows = np.empty_like(start), np.empty_like(start)
    off = np.empty(n_classes + 1, dtype=np.int64)
    group(image, start, by_image, np.empty(n_images + 1, dtype=np.int64))
    group(label, by_image, rows, off)
    return rows, off


def _rejudged(judged: Judged, part: Part) -> Part:
    """Verdicts by who took what, as pycocotools reads them: the object with id 0 is no object,
    areas are the records' own.
    """
    matches, table = part.matches, takings(judged, part)
    ids, area = judged.objects.ids, judged.found.area[matches.position]
    low, high = np.array(judged.rules.areas).T
    tp, ignored = np.zeros_like(matches.tp), np.zeros_like(matches.ignored)
    bits = np.uint64(1) << np.arange(len(part.where), dtype=np.uint64)

    def rejudge(k: int) -> None:
        rows = table.takers.rows[table.takers.off[k] : table.takers.off[k + 1]]
        taken = table.of_class(k)
        a = np.arange(len(low))[None, :, None]
        took = taken >= 0
        excused = np.zeros_like(took)
        matched = np.zeros_like(took)
        if len(ids):
            excused = took & ~table.goods.counted[taken, a]
            matched = took & (ids[taken] != 0)
        outside = (area[rows, None] < low) | (area[rows, None] > high)
        excused |= ~matched & outside[:, :, None]
        tp[rows] = ((matched & ~excused) * bits).sum(axis=2, dtype=np.uint64)
        ignored[rows] = (excused * bits).sum(axis=2, dtype=np.uint64)

    each_largest_first(rejudge, np.diff(matches.off))
    return Part(part.where, replace(matches, tp=tp, ignored=ignored))


# --- what pycocotools keeps
# -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """What ``accumulate`` takes of an evaluation.

    Parameters
    ----------
    points : (R,) float64 recall points, in any order
    classes, areas, images : places among those that were evaluated; `images` is None for all of
        them
    limits : within what was evaluated, in any order
    displaced : whether these places are of other ids or ranges than the parameters name
    """

    points: NDArray[np.float64]
    classes: list[int]
    areas: list[int]
    images: list[int] | None
    limits: list[int]
    displaced: bool

    def everything(self, rules: Rules, counts: list[int]) -> bool:
        """Whether that is each class, area range and limit at its own place."""
        return (
            self.classes == list(range(rules.n_classes)) == list(range(counts[2]))
            and self.areas == list(range(len(rules.areas))) == list(range(counts[3]))
            and len(self.limits) == counts[4]
            and len(rules.thresholds) <= MAX_THRESHOLDS
        )


def choose(evaluated: Any, params: Any, rules: Rules) -> Chosen:
    """What the parameters of ``accumulate`` take of an evaluation under other parameters.

    As pycocotools has it: an id that was evaluated stands for the result at its own place in the
    list, not for its result.

    Raises
    ------
    Unusual : parameters that only pycocotools itself can make sense, or an error, of
    """
    try:
        points = np.asarray(params.recThrs)
        category_ids, known = (
            (params.catIds, set(rules.category_ids)) if params.useCats == 1 else ([-1], {-1})
        )
        ranges = [tuple(pair) for pair in params.areaRng]
        known_ranges = [tuple(pair) for pair in evaluated.areaRng]
        classes = [place for place, value in enumerate(category_ids) if value in known]
        areas = [place for place, value in enumerate(ranges) if value in known_ranges]
        known_images = set(rules.image_ids)
        images = [place for place, value in enumerate(params.imgIds) if value in known_images]
        limits = [limit for limit in params.maxDets if limit in rules.limits]
        n_thresholds = len(params.iouThrs)
    except (TypeError, ValueError):
        raise Unusual from None
    plain = (
        params.useCats in (0, 1)
        and (params.useCats == 0) == rules.together
        and n_thresholds == len(rules.thresholds)
        and points.ndim == 1
        and points.dtype.kind in "if"
        and not np.isnan(points).any()
        and classes
        and areas
        and images
        and limits
        and classes[-1] < rules.n_classes
        and areas[-1] < len(rules.areas)
        and images[-1] < len(rules.image_ids)
    )
    if not plain:
        raise Unusual
    displaced = (
        (not rules.together and any(category_ids[k] != rules.category_ids[k] for k in classes))
        or any(ranges[a] != known_ranges[a] for a in areas)
        or any(params.imgIds[i] != rules.image_ids[i] for i in images)
    )
    whole = len(images) == len(rules.image_ids)
    return Chosen(
        points.astype(np.float64), classes, areas, None if whole else images, limits, displaced
    )


def arrays(judged: Judged, chosen: Chosen, counts: list[int]) -> dict[str, NDArray[np.float64]]:
    """The arrays precision and scores (T, R, K, A, M), recall (T, K, A, M), -1 where nothing is
    defined.

    counts: T, R, K, A, M; what is chosen fills the first places of each axis.
    """
    whole: dict[str, NDArray[np.float64]] = {}
    n_classes, n_areas, n_limits = len(chosen.classes), len(chosen.areas), len(chosen.limits)
    for part in judged.parts:
        matches = part.matches if chosen.images is None else part.matches.select(chosen.images)
        found = sample(matches, chosen.points, np.array(chosen.limits, dtype=np.int64))
        if chosen.everything(judged.rules, counts) and (np.diff(part.where) > 0).all():
            return found
        for name, array in found.items():
            shape = counts if name != "recall" else [counts[0], *counts[2:]]
            target = whole.setdefault(name, np.full(shape, -1.0))
            target[part.where, ..., :n_classes, :n_areas, :n_limits] = array[
                ..., chosen.classes, :, :
            ][..., chosen.areas, :]
    return whole


def overlaps(judged: Judged) -> dict[tuple[Any, Any], Any]:
    """``ious``: of each image and category, detections by objects; [] where either is missing."""
    from pycocotools import mask

    found: dict[tuple[Any, Any], Any] = {}
    pairs = _Pairs(judged)
    for i, image_id in enumerate(judged.rules.image_ids):
        for k, category_id in enumerate(pairs.category_ids):
            d, g = pairs.detections(k, i), pairs.objects(k, i)
            if len(d) and len(g):
                crowd = judged.truth.crowd[g].astype(int).tolist()
                found[image_id, category_id] = mask.iou(
                    pairs.table.takers.boxes[d], judged.truth.boxes[g], crowd
                )
            else:
                found[image_id, category_id] = []
    return found


def image_results(judged: Judged, ranges: list[Any]) -> list[dict[str, Any] | None]:
    """``evalImgs``: by category, then area range, then image; None where there is neither object
    nor detection.

    ranges: the area ranges as they were given.
    """
    pairs = _Pairs(judged)
    tables = [takings(judged, part) for part in judged.parts]
    where = np.concatenate([part.where for part in judged.parts])
    found: list[dict[str, Any] | None] = []
    for k, category_id in enumerate(pairs.category_ids):
        taken = np.empty((*(each := tables[0].of_class(k)).shape[:2], len(where)), dtype=np.int32)
        taken[:, :, where] = np.concatenate(
            [each, *(table.of_class(k) for table in tables[1:])], axis=2
        )
        for a, bounds in enumerate(ranges):
            for i, image_id in enumerate(judged.rules.image_ids):
                d, g = pairs.detections(k, i), pairs.objects(k, i)
                if not len(d) and not len(g):
                    found.append(None)
                    continue
                head = {
                    "image_id": image_id,
                    "category_id": category_id,
                    "aRng": bounds,
                    "maxDet": judged.rules.limits[-1],
                }
                found.append(
                    head | _image_result(judged, pairs, (d, g), a, taken[pairs.places(k, i), a])
                )
    return found


def _image_result(
    judged: Judged,
    pairs: _Pairs,
    chosen: tuple[NDArray[Any], NDArray[Any]],
    a: int,
    taken: NDArray[np.int32],
) -> dict[str, Any]:
    """One entry of ``evalImgs``: detections and objects of an image and category, taken (D, T)
    in one area range.
    """
    d, g = chosen
    matches = judged.parts[0].matches
    neutral = ~pairs.table.goods.counted[:, a]
    g = g[np.argsort(neutral[g], kind="stable")]
    n_thresholds = taken.shape[1]
    ids, own_ids = judged.objects.ids[g], judged.found.ids[matches.position[d]]
    hits, gains = np.zeros((n_thresholds, len(d))), np.zeros((n_thresholds, len(g)))
    ignored = np.zeros((n_thresholds, len(d)), dtype=bool)
    n, t = np.nonzero(taken >= 0)
    rows = taken[n, t]
    pairs.place[g] = np.arange(len(g))
    hits[t, n], ignored[t, n] = judged.objects.ids[rows], neutral[rows]
    gains[t, pairs.place[rows]] = own_ids[
        n
    ]  # of several detections that take a crowd the last is the one it shows
    area = judged.found.area[matches.position[d]]
    low, high = judged.rules.areas[a]
    return {
        "dtIds": own_ids.tolist(),
        "gtIds": ids.tolist(),
        "dtMatches": hits,
        "gtMatches": gains,
        "dtScores": matches.score[d].tolist(),
        "gtIgnore": np.array(neutral[g].astype(int).tolist()),
        "dtIgnore": ignored | ((hits == 0) & ((area < low) | (area > high))),
    }


class _Pairs:
    """Rows of each category and image: of the matches' detections, best first, and of the
    truth's objects.
    """

    def __init__(self, judged: Judged) -> None:
        self.table = takings(judged, judged.parts[0])
        rules, n_images = judged.rules, len(judged.rules.image_ids)
        self.category_ids = [-1] if rules.together else rules.category_ids
        self.n_images = n_images
        self.place = np.zeros(
            len(judged.truth), dtype=np.int64
        )  # of an object among those of its image; filled by the user
        self._off = [
            _offsets(side.image[side.rows], side.off, n_images)
            for side in (self.table.takers, self.table.goods)
        ]

    def places(self, k: int, i: int) -> slice:
        """Of the detections among those of their category."""
        off, begin = self._off[0], self.table.takers.off[k]
        cell = k * self.n_images + i
        return slice(off[cell] - begin, off[cell + 1] - begin)

    def detections(self, k: int, i: int) -> NDArray[np.int32]:
        """Rows of the matches."""
        cell = k * self.n_images + i
        rows: NDArray[np.int32] = self.table.takers.rows[
            self._off[0][cell] : self._off[0][cell + 1]
        ]
        return rows

    def objects(self, k: int, i: int) -> NDArray[np.int32]:
        """Rows of the truth."""
        cell = k * self.n_images + i
        rows: NDArray[np.int32] = self.table.goods.rows[self._off[1][cell] : self._off[1][cell + 1]]
        return rows


def _offsets(image: NDArray[np.int32], off: NDArray[np.int64], n_images: int) -> NDArray[np.int64]:
    """(K * I + 1,) where each category and image begins among rows in that order."""
    label = np.repeat(np.arange(len(off) - 1), np.diff(off))
    count = np.bincount(label * n_images + image, minlength=(len(off) - 1) * n_images)
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
