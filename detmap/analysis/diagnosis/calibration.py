"""Calibration: whether scores equal the precision of detections with that score.

Source: Guo et al., ICML 2017 (ECE); Küppers et al., CVPR Workshops 2020 (D-ECE); netcal 1.4.0,
Miscalibration.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import TP, Diagnosis
from detmap.core.base.sums import add_floats
from detmap.core.output.cell_text import or_none
from detmap.core.tables import boxes_as
from detmap.errors import DataError

POSITION, SIZE = ("cx", "cy"), ("w", "h")
FEATURES = ("cx", "cy", "w", "h")
"""Center and size of a box as fractions of its image."""
LEAST, BOX_BINS = 8, 5  # detections of a cell, and bins a dimension


@dataclass(frozen=True, slots=True)
class Bin:
    """Detections whose score lies in [low, high).

    Parameters
    ----------
    score, precision : mean score and share of true positives; NaN where there is none
    """

    low: float
    high: float
    n: int
    score: float
    precision: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The distance between scores and precision; NaN if undefined.

    Parameters
    ----------
    ece : expected calibration error: mean over detections of the bins' |precision - mean score|
    mce : the largest deviation of a bin
    ace : the mean deviation of the bins that are not empty
    d_ece : as `ece`, over bins of score, center and size together
    d_ece_position, d_ece_size : over score and center, over score and size
    bins : the reliability table
    n : detections
    """

    ece: float
    mce: float
    ace: float
    d_ece: float
    d_ece_position: float
    d_ece_size: float
    bins: tuple[Bin, ...]
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        values: dict[str, Any] = {
            name: or_none(getattr(self, name)) for name in self.__slots__ if name != "bins"
        }
        values["bins"] = [
            {name: or_none(getattr(each, name)) for name in each.__slots__} for each in self.bins
        ]
        return values


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Where detections are binned.

    Parameters
    ----------
    rows : (n,) detections that are looked at
    score : (n,) clipped away from 0 and 1; right : (n,) bool
    place : (n,) bin of the score, of `n_bins`
    cell : (n,) bin of score, centre and size together; meaningless unless `has_boxes`
    least : detections from which on a cell counts
    has_boxes : whether the size of every image is known
    """

    rows: NDArray[np.int32]
    score: NDArray[np.float64]
    right: NDArray[np.bool_]
    place: NDArray[np.int32]
    n_bins: int
    cell: NDArray[np.int32]
    least: int
    has_boxes: bool


MOST_BINS = 10_000
MOST_BOX_BINS = 64
"""Of the score, and a dimension of score and box: cells of five are counted in 32 bits."""


def bins(diagnosis: Diagnosis, *, n_bins: int = 20, least: int = LEAST) -> Bins:
    """The bins of `calibration`."""
    rows = np.flatnonzero(diagnosis.counted()).astype(np.int32)
    score, right = _clipped(diagnosis.detections.score[rows]), diagnosis.kind[rows] == TP
    has_boxes = _has_boxes(diagnosis, rows)
    names = FEATURES if has_boxes else ()
    cell = _cells(score, (feature(diagnosis, rows, name) for name in names), BOX_BINS)
    place = _places(score, n_bins).astype(np.int32)
    return Bins(rows, score, right, place, n_bins, cell.astype(np.int32), least, has_boxes)


def calibration(
    diagnosis: Diagnosis,
    *,
    n_bins: int = 20,
    box_bins: tuple[int, int] = (8, BOX_BINS),
    least: int = LEAST,
    min_score: float = -np.inf,
) -> Calibration:
    """How far scores are from precision at the diagnosis's IoU; ignored detections are left out.

    Parameters
    ----------
    n_bins : bins of the score for `Calibration.ece`
    box_bins : bins a dimension with two features of the box, and with all four
    least : a bin of fewer detections counts as without deviation in D-ECE
    min_score : leave out detections below

    Raises
    ------
    DataError : scores outside [0, 1]; no bins, or too many; a least score that is no number
    """
    if n_bins < 1 or min(box_bins) < 1:
        raise DataError("calibration", "no bins", "give at least one")
    if n_bins > MOST_BINS or max(box_bins) > MOST_BOX_BINS:
        fix = f"give at most {MOST_BINS} of the score, and {MOST_BOX_BINS} a dimension of the box"
        raise DataError("calibration", f"{max(n_bins, *box_bins)} bins", fix)
    if np.isnan(min_score):
        raise DataError("calibration: min_score", repr(min_score), "give a number")
    rows = diagnosis.counted() & (diagnosis.detections.score >= min_score)
    score, right = diagnosis.detections.score[rows], diagnosis.kind[rows] == TP
    if len(score) and (score.min() < 0 or score.max() > 1):
        what = f"scores from {score.min():g} to {score.max():g} are no probabilities"
        raise DataError(diagnosis.detections.source, what, "give scores from 0 to 1")
    table = _table(score, right, n_bins)
    filled = [each for each in table if each.n]
    deviation = [abs(each.precision - each.score) for each in filled]
    few, many = box_bins

    def over(names: Sequence[str], bins: int) -> float:
        if not _has_boxes(diagnosis, rows):
            return float("nan")  # the ground truth has no image sizes
        columns = (feature(diagnosis, rows, name) for name in names)
        return deviation_in_bins(score, right, columns, bins, least)

    nan = float("nan")
    return Calibration(
        add_floats(each.n / len(score) * gap for each, gap in zip(filled, deviation, strict=True))
        if filled
        else nan,
        max(deviation, default=nan),
        float(np.mean(deviation)) if deviation else nan,
        over(FEATURES, many),
        over(POSITION, few),
        over(SIZE, few),
        tuple(table),
        len(score),
    )


def deviation_in_bins(
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    features: Iterable[NDArray[np.float64]],
    bins: int,
    least: int,
) -> float:
    """Mean over n detections of |precision - mean score| in their bin of score and features.

    Parameters
    ----------
    score, right : (n,); features : (n,) each, in [0, 1]
    bins : a dimension; least : a bin of fewer detections counts as without deviation

    Source: netcal 1.4.0, Miscalibration.py, with detection=True.
    """
    if not len(score):
        return float("nan")
    clipped = _clipped(score)
    place = _cells(clipped, features, bins)
    if place.max() > len(score):
        place = np.unique(place, return_inverse=True)[1]
    n = np.bincount(place)
    gap = np.abs(np.bincount(place, right) - np.bincount(place, clipped))
    return float(gap[n >= max(least, 1)].sum() / len(score))


def _table(score: NDArray[np.float64], right: NDArray[np.bool_], n_bins: int) -> list[Bin]:
    clipped, edges = _clipped(score), np.linspace(0, 1, n_bins + 1)
    place = _places(clipped, n_bins)
    n = np.bincount(place, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, clipped, n_bins) / n
        precision = np.bincount(place, right, n_bins) / n
    columns = (edges[:-1], edges[1:], n, mean, precision)
    return [Bin(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _clipped(score: NDArray[np.float64]) -> NDArray[np.float64]:
    epsilon = np.finfo(np.float32).eps
    return np.clip(score, epsilon, 1 - epsilon)


def _places(column: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """(n,) the half-open bin of each; the last one has its upper edge too."""
    edges = np.linspace(0, 1, bins + 1)
    return np.clip(np.searchsorted(edges, column, "right") - 1, 0, bins - 1)


def _cells(
    score: NDArray[np.float64], features: Iterable[NDArray[np.float64]], bins: int
) -> NDArray[np.int64]:
    """(n,) number of the cell that each falls into, so many bins a dimension."""
    cell = _places(score, bins)
    for column in features:
        cell *= bins
        cell += _places(column, bins)
    return cell


def _has_boxes(diagnosis: Diagnosis, rows: NDArray[Any]) -> bool:
    """Whether the size of the image of each detection is known."""
    images = diagnosis.truth.images
    known = ~(np.isnan(images.width) | np.isnan(images.height))
    return bool(known[diagnosis.detections.image[rows]].all())


def feature(diagnosis: Diagnosis, rows: NDArray[Any], name: str) -> NDArray[np.float64]:
    """(n,) one of `FEATURES` of some detections; NaN where the image has no known size."""
    detections, images = diagnosis.detections, diagnosis.truth.images
    boxes = boxes_as(detections.boxes, detections.box_format, "xywh")
    across = name in ("cx", "w")
    side = boxes[rows, 2 if across else 3]
    whole = (images.width if across else images.height)[detections.image[rows]]
    if name in SIZE:
        return np.asarray(side / whole)
    return np.asarray((boxes[rows, 0 if across else 1] + side / 2) / whole)
