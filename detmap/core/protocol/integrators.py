"""AP interpolations: the average precision of a precision-recall curve.

Each rule is a row of `INTEGRATORS` with a function of a `Curve` at every rank. For speed it can
have a compiled function of a curve at its true positives, in `detmap.kernels.integrate`.

A curve consists of points in ranked order: `recall` (n,), non-decreasing, and `precision` (n,). It
can contain every rank, or only those where recall rises; the AP is the same. A curve without points
has an AP of 0.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base.grids import Grid
from detmap.core.base.sums import add_floats
from detmap.errors import ProtocolError

VOC_POINTS = Grid("arange 0:0.1:1")
COCO_POINTS = Grid("0:0.01:1")


class Curve(NamedTuple):
    """A curve at every rank, best score first, with at least one rank.

    recall : (n,) float64, non-decreasing
    precision : (n,) in the type of ``ap.arithmetic``
    points : (R,) recall points of the rule
    sum, tail, samples : keys of ``[ap]``
    score : (n,) float64, non-increasing; empty for rules that do not read it
    """

    recall: NDArray[np.float64]
    precision: NDArray[Any]
    points: NDArray[np.float64]
    sum: str = "running"
    tail: str = "ramp"
    score: NDArray[np.float64] = np.zeros(0)
    samples: int = 1000

    def envelope(self) -> NDArray[Any]:
        """(n,) the highest precision at each rank or later."""
        return np.asarray(np.maximum.accumulate(self.precision[::-1])[::-1])

    def precision_at_points(self) -> NDArray[Any]:
        """(R,) the envelope at the first rank with each recall; 0 for unreached recall."""
        first = np.searchsorted(self.recall, self.points, side="left")
        return np.append(self.envelope(), self.precision.dtype.type(0))[first]

    def area(self, heights: NDArray[Any]) -> float:
        """The sum of each step of recall times its precision."""
        ends = np.concatenate([[0.0], self.recall])
        steps = np.flatnonzero(np.diff(ends))
        parts = (ends[steps + 1] - ends[steps]) * heights[steps]
        return float(np.sum(parts) if self.sum == "pairwise" else add_floats(parts.tolist()))


class Integrator(NamedTuple):
    """One AP interpolation.

    Parameters
    ----------
    name : the value of ``ap.integrator``
    title : the name in texts
    at_ranks : function of a curve at every rank; returns AP, or the terms of AP
    kernel : index of the function of a curve at its true positives in
        `detmap.kernels.integrate.RULES`; -1 for a rule that needs every rank
    points : the key of ``[ap]`` with its recall points; "" for a rule without points
    samples : whether the function returns one term per recall point (COCO averages each over
        classes) instead of the AP
    turning_points : whether the function returns the same bits for a curve at the true positives,
        at the rank before each, and at the last rank only
    scores : whether the function reads the scores; a curve for other functions has none
    """

    name: str
    title: str
    at_ranks: Callable[[Curve], NDArray[np.float64] | float]
    kernel: int = -1
    points: Literal["", "grid", "eleven"] = ""
    samples: bool = False
    turning_points: bool = False
    scores: bool = False

    def code(self) -> int:
        """The index of its compiled function.

        Raises
        ------
        ProtocolError : there is no compiled function with this index
        """
        from detmap.kernels.integrate import RULES

        if self.kernel < 0 or self.name not in RULES[self.kernel : self.kernel + 1]:
            what = f"{self.name} has no compiled function of a curve at its true positives"
            raise ProtocolError("ap.integrator", what, "choose another integrator")
        return self.kernel


def _eleven_at_ranks(curve: Curve) -> float:
    highest = curve.precision_at_points()
    if highest.dtype == np.float64:
        return float(add_floats((highest / len(highest)).tolist()))
    total = np.float32(0)
    for each in highest:
        total = total + each
    return float(total / np.float32(len(highest)))


def _trapezoid_at_ranks(curve: Curve) -> float:
    """Trapezoid area under samples of the linearly interpolated curve.

    Source: yolov5 utils/metrics.py, compute_ap (``ramp``); Ultralytics 8.4, the same (``drop``).
    """
    recall, precision = curve.recall, curve.precision
    if curve.tail == "ramp":
        x, y = np.concatenate([[0.0], recall, [1.0]]), np.concatenate([[1.0], precision, [0.0]])
    else:
        x = np.concatenate([[0.0], recall, [recall[-1]], [1.0]])
        y = np.concatenate([[1.0], precision, [0.0], [0.0]])
    y = np.maximum.accumulate(y[::-1])[::-1]
    read = np.interp(curve.points, x, y)
    return float((np.diff(curve.points) * (read[1:] + read[:-1]) / 2.0).sum())


def _left_at_ranks(curve: Curve) -> float:
    """Area under the envelope; each step of recall has the precision envelope of the rank before.

    Source: darknet detector.c, validate_detector_map (map_points 0).
    """
    recall, envelope = curve.recall.tolist(), curve.envelope().tolist()
    last, area = recall[-1], 0.0
    for rank in range(len(recall) - 2, -1, -1):
        area += (last - recall[rank]) * envelope[rank]
        last = recall[rank]
    return float(area + last * envelope[0])


def _between_ranks(curve: Curve) -> float:
    """Trapezoid area from rank to rank, starting at the first rank, without envelope.

    Source: CrowdDet lib/evaluate/APMRToolkits/database.py, eval_AP.
    """
    recall, precision = curve.recall, curve.precision
    parts = np.diff(recall) * ((precision[:-1] + precision[1:]) / 2)
    return float(np.cumsum(parts)[-1]) if len(parts) else 0.0


def _sampled_scores(curve: Curve) -> float:
    """All-point AP of the curve sampled at evenly spaced scores.

    Source: WIDER FACE evaluation.py (wondervictor), img_pr_info, dataset_pr_info and voc_ap.
    """
    sampled = 1 - np.arange(1, curve.samples + 1) / curve.samples
    rank = np.searchsorted(-curve.score, -sampled, side="right") - 1
    rank = rank[rank >= 0]
    recall, precision = np.append(curve.recall[rank], 1.0), np.append(curve.precision[rank], 0.0)
    read = curve._replace(recall=recall, precision=precision)
    return read.area(read.envelope())


INTEGRATORS = (
    Integrator(
        "eleven_point", "11-point", _eleven_at_ranks, kernel=0, points="eleven", turning_points=True
    ),
    Integrator(
        "all_points",
        "all-point",
        lambda curve: curve.area(curve.envelope()),
        kernel=1,
        turning_points=True,
    ),
    Integrator(
        "grid_envelope",
        "101-point",
        lambda curve: curve.precision_at_points().astype(np.float64),
        kernel=2,
        points="grid",
        samples=True,
        turning_points=True,
    ),
    Integrator(
        "step", "step", lambda curve: curve.area(curve.precision), kernel=3, turning_points=True
    ),
    Integrator("trapezoid", "trapezoid", _trapezoid_at_ranks, points="grid", turning_points=True),
    Integrator("left_envelope", "left envelope", _left_at_ranks, turning_points=True),
    Integrator("between_ranks", "trapezoid of all ranks", _between_ranks, turning_points=True),
    Integrator("score_samples", "all-point at sampled scores", _sampled_scores, scores=True),
)
AT_TRUE_POSITIVES = tuple(row for row in INTEGRATORS if row.kernel >= 0)
"""The rules that need a curve at its true positives only."""


def integrator(name: str) -> Integrator:
    """Find an AP interpolation by name.

    Raises
    ------
    ProtocolError : unknown name
    """
    for row in INTEGRATORS:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in INTEGRATORS)
    raise ProtocolError("ap.integrator", f"no integrator {name!r}", f"the integrators are {known}")


def eleven_point(recall: ArrayLike, precision: ArrayLike, points: ArrayLike | None = None) -> float:
    """Mean over eleven recall points of the highest precision at this or higher recall (VOC 2007).

    Parameters
    ----------
    recall, precision : (n,)
    points : recall points; default 0, 0.1 ... 1

    Source: VOC devkit, VOCevaldet.m.
    """
    from detmap.kernels import integrate

    return float(integrate.eleven_point(*_curve(recall, precision), _points(points, VOC_POINTS)))


def all_points(recall: ArrayLike, precision: ArrayLike) -> float:
    """Area under the precision envelope at every change of recall (VOC 2010 to 2012).

    Source: VOC devkit, VOCap.m.
    """
    from detmap.kernels import integrate

    return float(integrate.all_points(*_curve(recall, precision)))


def grid_envelope(
    recall: ArrayLike, precision: ArrayLike, points: ArrayLike | None = None
) -> float:
    """Mean of the precision envelope read at evenly spaced recall points (COCO).

    Parameters
    ----------
    recall, precision : (n,)
    points : recall points, ascending; default: the 101 points of COCO

    Source: pycocotools, COCOeval.accumulate.
    """
    from detmap.kernels import integrate

    grid = _points(points, COCO_POINTS)
    samples = np.empty(len(grid))
    integrate.grid_envelope(*_curve(recall, precision), grid, samples)
    return float(samples.mean())


def step(recall: ArrayLike, precision: ArrayLike) -> float:
    """Un-interpolated sum of precision times the step of recall: the average precision of
    information retrieval.
    """
    from detmap.kernels import integrate

    return float(integrate.step(*_curve(recall, precision)))


def terms_of_curves(
    recall: NDArray[np.float64],
    precision: NDArray[np.float64],
    off: NDArray[np.int64],
    rule: Integrator,
    points: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute the terms whose mean is the AP, for C concatenated curves.

    Parameters
    ----------
    recall, precision : the curves; off : (C + 1,) their start indices
    rule : name of the AP interpolation
    points : (R,) its recall points

    Returns
    -------
    (C, R) float64: the R samples of ``grid_envelope``, because COCO averages each over classes; for
    other rules (C, 1): the AP.
    """
    from detmap.kernels.integrate import integrate_lists

    terms = np.empty((len(off) - 1, len(points) if rule.samples else 1))
    integrate_lists(rule.code(), recall, precision.copy(), off, points, terms)
    return terms


def _curve(
    recall: ArrayLike, precision: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (
        np.array(values, dtype=np.float64) for values in (recall, precision)
    )  # copies: a kernel may overwrite
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"recall has shape {x.shape}, precision {y.shape}: both must be (n,)")
    return x, y


def _points(given: ArrayLike | None, standard: Grid) -> NDArray[np.float64]:
    return standard.values() if given is None else np.ascontiguousarray(given, dtype=np.float64)
