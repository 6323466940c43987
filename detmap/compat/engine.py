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
from detmap.protocol import MAX_THRESHOLDS, Grid, Protocol, Range, Subset
from detmap.rows import group, labels
from detmap.tables import Categories, Detections, Images, Truth


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
    kind : the iouType
    sigmas : of each keypoint
    """

    image_ids: list[Any]
    category_ids: list[Any]
    together: bool
    thresholds: NDArray[np.float64]
    areas: tuple[tuple[float, float], ...]
    limits: list[int]
    kind: str = "bbox"
    sigmas: tuple[float, ...] = ()

    @property
    def n_classes(self) -> int:
        """K."""
        return 1 if self.together else len(self.category_ids)


def read_rules(params: Any, kind: str) -> Rules:
    """The parameters of an evaluation of this iouType.

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
        sigmas = tuple(map(float, params.kpt_oks_sigmas)) if kind == "keypoints" else ()
    except (AttributeError, TypeError, ValueError, IndexError):
        raise Unusual from None
    plain = (
        params.useCats in (0, 1)
        and kind in ("bbox", "segm", "keypoints")
        and not (together and kind == "keypoints")  # computeOks then finds nothing
        and all(0 < sigma < np.inf for sigma in sigmas)
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
    return Rules(
        image_ids,
        category_ids,
        together,
        thresholds.astype(np.float64),
        areas,
        limits,
        kind,
        sigmas,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The verdicts at up to 64 of the thresholds.

    Parameters
    ----------
    where : (T',) their places among the rules' thresholds
    matches : verdicts; images, classes and rows by position
    apart : whether each class in each area range is a class of its own
    """

    where: NDArray[np.int64]
    matches: Matches
    apart: bool = False


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

    def neutral(self) -> NDArray[np.bool_]:
        """(G,) objects that are not to be found, whatever their area."""
        return self.truth.crowd | self.truth.role("unlabelled")


def judge(objects: Rows, found: Rows, rules: Rules) -> Judged:
    """Match all detections with all objects under the rules.

    Raises
    ------
    Unusual : boxes so small that an overlap is 0/0; detections whose ids are 0 or less
    """
    objects, image, label = _placed(objects, rules)
    n_images, n_classes = len(rules.image_ids), rules.n_classes
    unknown = np.full(n_images, np.nan)
    unlabelled = {} if objects.unlabelled is None else {"unlabelled": objects.unlabelled}
    truth = Truth(
        Images(np.arange(n_images), ("",) * n_images, unknown, unknown),
        Categories(np.arange(n_classes), tuple(map(str, range(n_classes)))),
        image,
        label,
        objects.boxes,
        roles={"crowd": objects.crowd} | unlabelled,
        attributes={"area": objects.area},
        box_format="xywh",
        family="coco",
        shapes=objects.shapes,
    )
    found, image, label = _placed(found, rules)
    if (found.ids <= 0).any():
        raise Unusual("id-not-positive")
    detections = Detections(
        truth.images,
        truth.categories,
        image,
        label,
        found.boxes,
        found.score,
        box_format="xywh",
        shapes=found.shapes,
    )
    judged = Judged(rules, objects, found, truth, detections, [])
    order = np.argsort(rules.thresholds, kind="stable")
    for some in parts_of(len(order)):
        where = order[some]
        protocol = protocol_of(rules.thresholds[where], rules.areas, rules.limits[-1], rules.kind)
        protocol = replace(protocol, iou=replace(protocol.iou, sigmas=rules.sigmas))
        try:
            judged.parts.append(Part(where, match(truth, detections, protocol)))
        except DataError:  # an overlap of 0/0
            raise Unusual from None
    own = rules.kind == "bbox" and (found.area != found.boxes[:, 2] * found.boxes[:, 3]).any()
    if (objects.ids == 0).any() or own:
        return replace(judged, parts=_rejudged(judged))
    return judged


def parts_of(n_thresholds: int) -> list[NDArray[np.int64]]:
    """The places of the thresholds, as many at once as a word has bits."""
    places = np.arange(n_thresholds)
    return [places[at : at + MAX_THRESHOLDS] for at in range(0, n_thresholds, MAX_THRESHOLDS)]


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


_stock = cache(protocols.load)


def protocol_of(
    thresholds: NDArray[np.float64],
    areas: tuple[tuple[float, float], ...],
    limit: int,
    kind: str = "bbox",
) -> Protocol:
    """COCO's protocol for an iouType, with these thresholds, areas and limit; built without the checks of a protocol
    file.
    """
    stock = _stock(f"coco-{kind}")
    return replace(
        stock,
        iou=replace(stock.iou, thresholds=Grid(tuple(thresholds.tolist()))),
        subsets=tuple(
            Subset(str(a), (Range("area", low, high),)) for a, (low, high) in enumerate(areas)
        ),
        limits=replace(stock.limits, max_dets=(int(limit),)),
    )


# --- who took what --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Which objects were taken: n times that a detection took one.

    Parameters
    ----------
    row, target : (n,) rows of the matches and of the truth
    area, threshold : (n,) in which range and at which threshold
    """

    row: NDArray[np.int64]
    target: NDArray[np.int32]
    area: NDArray[np.int64]
    threshold: NDArray[np.int64]


def taken_of(judged: Judged) -> Taken:
    """Who took what: everything is matched once more, to be told."""
    truth, columns = judged.truth, []
    n_images, n_classes = len(judged.rules.image_ids), judged.rules.n_classes
    order = group(truth.image, truth.label, n_images, n_classes)[0]
    cell = truth.label[order].astype(np.int64) * n_images + truth.image[order]
    for part in judged.parts:
        matches = match(truth, judged.detections, part.matches.protocol, taken=True)
        assert matches.taken is not None
        row, words = matches.taken.detection(), matches.taken.words
        met = labels(matches.off)[row].astype(np.int64) * n_images + matches.image[row]
        target = order[np.searchsorted(cell, met) + matches.taken.object]
        for t, place in enumerate(part.where.tolist()):
            n, a = np.nonzero(words & words.dtype.type(1 << t))
            columns.append((row[n], target[n], a, np.full(len(n), place)))
    return Taken(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _rejudged(judged: Judged) -> list[Part]:
    """Verdicts by who took what, as pycocotools reads them: the object with id 0 is no object,
    areas are the records' own.
    """
    rules, taken = judged.rules, taken_of(judged)
    low, high = np.array(rules.areas).T
    area = judged.truth.area[taken.target]
    neutral = judged.neutral()[taken.target] | (area < low[taken.area]) | (area > high[taken.area])
    matched = judged.objects.ids[taken.target] != 0
    parts = []
    for part in judged.parts:
        matches = part.matches
        own_area = judged.found.area[matches.position, None]
        outside = (own_area < low) | (own_area > high)
        bit = np.zeros(len(rules.thresholds), dtype=np.uint64)
        bit[part.where] = np.uint64(1) << np.arange(len(part.where), dtype=np.uint64)
        tp, hit, excused = (np.zeros(matches.tp.shape, dtype=np.uint64) for _ in range(3))
        for words, which in ((tp, matched & ~neutral), (hit, matched), (excused, neutral)):
            place = taken.row[which], taken.area[which]
            np.bitwise_or.at(words, place, bit[taken.threshold[which]])
        ignored = excused | np.where(outside, ~hit & bit.sum(), np.uint64(0))
        word = matches.tp.dtype
        new = replace(matches, tp=tp.astype(word), ignored=ignored.astype(word))
        parts.append(Part(part.where, new))
    return parts


# --- what accumulate takes ------------------------------------------------------------------------


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


def choose(evaluated: Any, params: Any) -> Chosen:
    """What the parameters of ``accumulate`` take of an evaluation under other parameters.

    As pycocotools has it: an id that was evaluated stands for the result at its own place in the
    list, not for its result.

    Raises
    ------
    Unusual : parameters that only pycocotools itself can make sense, or an error, of
    """
    try:
        points = np.asarray(params.recThrs)
        together = params.useCats == 0
        category_ids, known = ([-1], [-1]) if together else (params.catIds, evaluated.catIds)
        ranges, known_ranges = (
            [tuple(pair) for pair in given.areaRng] for given in (params, evaluated)
        )
        classes = _places(category_ids, known)
        areas = _places(ranges, known_ranges)
        images = _places(params.imgIds, evaluated.imgIds)
        limits = [limit for limit in params.maxDets if limit in evaluated.maxDets]
        plain = (
            params.useCats in (0, 1)
            and params.useCats == evaluated.useCats
            and points.ndim == 1
            and points.dtype.kind in "if"
            and not np.isnan(points).any()
            and classes
            and areas
            and images
            and limits
            and min(limits) > 0
            and classes[-1] < len(known)
            and areas[-1] < len(known_ranges)
            and images[-1] < len(evaluated.imgIds)
        )
        displaced = bool(plain) and (
            any(category_ids[k] != known[k] for k in classes)
            or any(ranges[a] != known_ranges[a] for a in areas)
            or any(params.imgIds[i] != evaluated.imgIds[i] for i in images)
        )
    except (TypeError, ValueError, AttributeError):
        raise Unusual from None
    if not plain:
        raise Unusual
    whole = len(images) == len(evaluated.imgIds)
    return Chosen(
        points.astype(np.float64), classes, areas, None if whole else images, limits, displaced
    )


def _places(wanted: Any, known: Any) -> list[int]:
    """The places of those values that are known, wherever they are known."""
    there = set(known)
    return [place for place, value in enumerate(wanted) if value in there]


def arrays(parts: list[Part], chosen: Chosen, counts: list[int]) -> dict[str, NDArray[np.float64]]:
    """The arrays precision and scores (T, R, K, A, M), recall (T, K, A, M), -1 where nothing is
    defined.

    parts : of an evaluation, or of `chosen` alone, its area ranges being classes of their own
    counts : T, R, K, A, M; what is chosen fills the first places of each axis
    """
    shape = len(chosen.classes), len(chosen.areas), len(chosen.limits)
    k, a, m = (slice(n) for n in shape)
    whole: dict[str, NDArray[np.float64]] = {}
    for part in parts:
        found = sample(part.matches, chosen.points, np.array(chosen.limits, dtype=np.int64))
        for name, array in found.items():
            if part.apart:
                cells = array.reshape(*array.shape[:-3], *shape)
            else:
                cells = array[..., chosen.classes, :, :][..., chosen.areas, :]
            dims = counts if name != "recall" else [counts[0], *counts[2:]]
            whole.setdefault(name, np.full(dims, -1.0))[part.where, ..., k, a, m] = cells
    return whole
