"""From a precision-recall curve to its average precision: four rules, each a pure function, and the
table of them.

A curve is given by its points in ranked order: `recall` (n,) never falling, `precision` (n,). It
may be given at every rank or only where recall rises; the result is the same. Without points the
AP is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.base.grids import Grid

VOC_POINTS = Grid("arange 0:0.1:1")
COCO_POINTS = Grid("0:0.01:1")


@dataclass(frozen=True, slots=True)
class Integrator:
    """One row of the table of integrators.

    Parameters
    ----------
    name : the value of ``ap.integrator``
    title : for people
    kernel : its number in `detmap.kernels.integrate`; -1 for a rule that reads the curve at every
        rank, in `detmap.curves.every_rank`
    points : the key of ``[ap]`` that holds its recall points; "" for a rule without points
    samples : whether its terms are one a recall point (COCO averages them over classes point by
        point) and not the AP itself
    """

    name: str
    title: str
    kernel: int
    points: Literal["", "grid", "eleven"] = ""
    samples: bool = False


INTEGRATORS = (
    Integrator("eleven_point", "11-point", kernel=0, points="eleven"),
    Integrator("all_points", "all-point", kernel=1),
    Integrator("grid_envelope", "101-point", kernel=2, points="grid", samples=True),
    Integrator("step", "step", kernel=3),
    Integrator("trapezoid", "trapezoid", kernel=-1, points="grid"),
    Integrator("left_envelope", "left envelope", kernel=-1),
)
AT_TRUE_POSITIVES = tuple(row for row in INTEGRATORS if row.kernel >= 0)
"""The rules that need a curve at its true positives only."""


def integrator(name: str) -> Integrator:
    """The row of that name."""
    return next(row for row in INTEGRATORS if row.name == name)


def eleven_point(recall: ArrayLike, precision: ArrayLike, points: ArrayLike | None = None) -> float:
    """Mean over eleven recall points of the highest precision at that recall or more (VOC 2007).

    Parameters
    ----------
    recall, precision : (n,)
    points : recall points; 0, 0.1 ... 1 when left out

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
    points : recall points, ascending; COCO's 101 when left out

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
    """The numbers whose mean is the AP, for C curves stored one after the other.

    Parameters
    ----------
    recall, precision : the curves; off : (C + 1,) where each begins
    rule : which integrator
    points : (R,) its recall points

    Returns
    -------
    (C, R) float64: the R samples of ``grid_envelope``, whose mean over classes COCO takes sample by
    sample; for the other rules (C, 1): the AP itself.
    """
    from detmap.kernels.integrate import integrate_lists

    terms = np.empty((len(off) - 1, len(points) if rule.samples else 1))
    integrate_lists(rule.kernel, recall, precision.copy(), off, points, terms)
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
