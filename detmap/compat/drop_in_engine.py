"""Runs detmap's matching on the drop-in's columns and parameters."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.compat.annotation_rows import Rows, Unusual
from detmap.core import protocol as protocols
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.protocol import MAX_SUBSETS, MAX_THRESHOLDS, Grid, Protocol, Range, Subset
from detmap.core.tables import Categories, Detections, Images, Truth
from detmap.errors import DataError

DILATION = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Parameters of ``COCOeval`` after ``evaluate`` has sorted them.

    Parameters
    ----------
    image_ids : I ids
    category_ids : K category ids; one class holds them all if `together`
    together : useCats is 0
    thresholds : (T,) float64, in any order
    areas : A pairs, both ends included
    limits : detection limits, ascending
    kind : the iouType
    sigmas : per keypoint
    dilation : the width of boundaries, as a part of the image's diagonal
    """

    image_ids: list[Any]
    category_ids: list[Any]
    together: bool
    thresholds: NDArray[np.float64]
    areas: tuple[tuple[float, float], ...]
    limits: list[int]
    kind: str = "bbox"
    sigmas: tuple[float, ...] = ()
    dilation: float = DILATION

    @property
    def shape(self) -> str:
        """The iouType whose annotations are compared."""
        return "segm" if self.kind == "boundary" else self.kind

    @property
    def n_classes(self) -> int:
        """K."""
        return 1 if self.together else len(self.category_ids)


def read_rules(params: Any, kind: str, dilation: float) -> Rules:
    """Reads the parameters of an evaluation of this iouType, and the width of its boundaries.

    Raises
    ------
    Unusual : values that only pycocotools handles
    DataError : a width that is no number from 0 to 1
    """
    if kind == "boundary" and not (isinstance(dilation, int | float) and 0 <= dilation <= 1):
        fix = "give a part of the image's diagonal, a number from 0 to 1"
        raise DataError("COCOeval: dilation_ratio", f"{dilation!r:.60}", fix)
    try:
        image_ids = list(np.unique(params.imgIds))
        together = params.useCats == 0
        category_ids = list(params.catIds) if together else list(np.unique(params.catIds))
        areas = tuple((float(pair[0]), float(pair[1])) for pair in params.areaRng)
        limits = sorted(params.maxDets)
        thresholds = np.asarray(params.iouThrs)
        hash(tuple(category_ids))
        sigmas = tuple(map(float, params.kpt_oks_sigmas * 1.0)) if kind == "keypoints" else ()
    except (AttributeError, TypeError, ValueError, IndexError):
        raise Unusual from None
    usual = (
        params.useCats in (0, 1)
        and kind in ("bbox", "segm", "boundary", "keypoints")
        and not (together and kind == "keypoints")  # computeOks then finds nothing
        and all(0 < sigma < np.inf for sigma in sigmas)
        and image_ids
        and category_ids
        and 0 < len(areas) <= MAX_SUBSETS
        and limits
        and all(isinstance(limit, int | np.integer) and 0 < limit < 2**62 for limit in limits)
        and thresholds.ndim == 1
        and len(thresholds)
        and (thresholds.dtype == np.float64 or thresholds.dtype.kind == "i")
        and not np.isnan(thresholds).any()
        and not np.isnan(areas).any()
    )
    if not usual:
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
        dilation,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The match results at up to 64 of the thresholds.

    Parameters
    ----------
    where : (T',) positions among the rules' thresholds
    matches : match results; images, classes and rows by position
    apart : whether each class in each area range is a separate class
    """

    where: NDArray[np.int64]
    matches: Matches
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """An evaluation.

    Parameters
    ----------
    rules : the parameters
    objects, found : evaluated rows
    truth, detections : the same as tables
    parts : match results, by threshold
    """

    rules: Rules
    objects: Rows
    found: Rows
    truth: Truth
    detections: Detections
    parts: list[Part]

    def ignored_objects(self) -> NDArray[np.bool_]:
        """(G,) objects that are ignored in every area range."""
        return self.truth.crowd | self.truth.role("unlabelled")


def evaluate_rows(objects: Rows, results: Rows, rules: Rules) -> Evaluated:
    """Matches all detections with all objects under the rules.

    Raises
    ------
    Unusual : boxes so small that an IoU is 0/0; detection ids of 0 or less
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
    results, image, label = _placed(results, rules)
    if (results.ids <= 0).any():
        raise Unusual("id-not-positive")
    detections = Detections(
        truth.images,
        truth.categories,
        image,
        label,
        results.boxes,
        results.score,
        box_format="xywh",
        shapes=results.shapes,
    )
    evaluated = Evaluated(rules, objects, results, truth, detections, [])
    order = np.argsort(rules.thresholds, kind="stable")
    for some in split_thresholds(len(order)):
        where = order[some]
        limit, dilation = rules.limits[-1], rules.dilation if rules.kind == "boundary" else DILATION
        how = rules.thresholds[where], rules.areas, limit, rules.kind, rules.sigmas, dilation
        protocol = protocol_of(*how)
        try:
            evaluated.parts.append(Part(where, match(truth, detections, protocol)))
        except DataError:  # an overlap of 0/0
            raise Unusual from None
    return evaluated


def split_thresholds(n_thresholds: int) -> list[NDArray[np.int64]]:
    """Splits the threshold positions into groups of at most 64, the bits of a word."""
    places = np.arange(n_thresholds)
    return [places[at : at + MAX_THRESHOLDS] for at in range(0, n_thresholds, MAX_THRESHOLDS)]


def _placed(rows: Rows, rules: Rules) -> tuple[Rows, NDArray[np.int32], NDArray[np.int32]]:
    """The evaluated rows in order, with positions of their images and classes."""
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
    """The position of each id in `wanted`; -1 if it is missing."""
    place = {value: i for i, value in enumerate(wanted)}
    return np.array([place.get(value, -1) for value in ids], dtype=np.int32)


class Parameters(Protocol):
    """Parameters of pycocotools' clients without protocol checks: they may exceed every range."""

    __slots__ = ()

    def __post_init__(self) -> None:
        pass


@cache
def _default(name: str) -> Parameters:
    default = protocols.load(name)
    return Parameters(*(getattr(default, field.name) for field in fields(default)))


def protocol_of(
    thresholds: NDArray[np.float64],
    areas: tuple[tuple[float, float], ...],
    limit: int,
    kind: str = "bbox",
    sigmas: tuple[float, ...] = (),
    dilation: float = DILATION,
) -> Protocol:
    """COCO's protocol for an iouType, with these thresholds, areas, limit, sigmas and dilation."""
    return _protocol(tuple(thresholds.tolist()), areas, int(limit), kind, sigmas, dilation)


@lru_cache(maxsize=16)  # a program evaluates under the same parameters again and again
def _protocol(
    thresholds: tuple[float, ...],
    areas: tuple[tuple[float, float], ...],
    limit: int,
    kind: str,
    sigmas: tuple[float, ...],
    dilation: float,
) -> Protocol:
    default = _default(f"coco-{kind}")
    grid = Grid(thresholds)
    return replace(
        default,
        iou=replace(default.iou, thresholds=grid, sigmas=sigmas, dilation=dilation),
        subsets=tuple(
            Subset(str(a), (Range("area", low, high),)) for a, (low, high) in enumerate(areas)
        ),
        limits=replace(default.limits, max_dets=(limit,)),
    )
