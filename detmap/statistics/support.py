"""Decides whether there are enough images for an interval or a test, and gives the reason if not.

Another sample of images would have other rare classes. The influence of single images shows neither
the AP that a class on one image has elsewhere, nor whether the class is in the mean at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.protocol import Protocol
from detmap.statistics.sampling_units import Units

ELEVEN, ALL = "eleven_point", "all_points"  # a rule without intervals, and one to take in its place
LEAST_UNITS = (
    81  # of a single class: with fewer, the coverage of a strong detector's interval is too low
)
LEAST_POINTS = 101  # of recall: with 51 the standard error of the area is up to 12 % too low
LEAST_OF_INTERVAL = 50  # of a mean, and of any number with the jackknife
FEW_UNITS = 3  # on more, a sample of the same size lacks the class in at most 2 of 100 cases
ROUNDING = 1e-12  # of a fraction; a standard error below it is 0: a lost object changes more
MOST_LOST = 0.05  # largest share of undefined replicates
MOST_LACKING = 0.03  # largest share of the mean in classes that another sample would lack
APART = 2.0  # standard deviations of the classes from the mean to those that a sample lacks


def has_influence(protocol: Protocol) -> bool:
    """Whether AP has a known influence function: that of the area under the precision envelope, or
    of the step rule. Few recall points, or points of another range, do not give the area.
    """
    ap = protocol.ap
    if ap.integrator != "grid_envelope":
        return ap.integrator != ELEVEN
    points = ap.points()
    even = np.linspace(0.0, 1.0, len(points))
    return len(points) >= LEAST_POINTS and bool(np.allclose(points, even, rtol=0, atol=1e-6))


def refuse_rule(protocol: Protocol, kind: str) -> str:
    """Why AP at few recall points has no interval; "" for any other metric.

    Halves of the images do not show the bias of a maximum at eleven points: measured coverage of
    strong detectors was 73 to 92 % (docs/statistics.md, coverage).
    """
    if kind != "AP" or has_influence(protocol):
        return ""
    if protocol.ap.integrator != ELEVEN:
        return (
            f"intervals need at least {LEAST_POINTS} evenly spaced recall points from 0 to 1: "
            "--set ap.grid=0:0.01:1, or --ci jackknife"
        )
    return (
        "intervals of the 11-point rule have too low coverage; the all-point rule has intervals: "
        f"--set ap.integrator={ALL}"
    )


def with_intervals(protocol: Protocol) -> Protocol:
    """The protocol by the all-point rule, if it is by the 11-point rule, which has no intervals."""
    return (
        protocol.override({"ap.integrator": ALL}) if protocol.ap.integrator == ELEVEN else protocol
    )


def no_spread(units: Units) -> str:
    """Why a number that is the same in every sample has no interval."""
    return f"all {units.noun} agree: the standard error is 0"


def same(difference: Any, se: Any) -> Any:
    """Whether nothing differs but by rounding; not so with a standard error of NaN."""
    return (np.abs(difference) <= ROUNDING) & (se <= ROUNDING)


def few_units(units: Units) -> str:
    """Why no number has an interval: the bias is as large as the number."""
    return f"fewer than {LEAST_OF_INTERVAL} {units.noun}; more {units.noun} would help"


def refuse_class(n_units: int, units: Units) -> str:
    """Why a metric of a single class has no interval; "" if it has one.

    Parameters
    ----------
    n_units : number of units with an object of the class
    """
    if n_units >= LEAST_UNITS:
        return ""
    noun = units.noun if n_units != 1 else units.noun[:-1]
    return (
        f"a single class on {n_units} {noun}: coverage is too low below "
        f"{LEAST_UNITS}; more {units.noun} of it would help"
    )


def _occurring(shares: NDArray[np.float64], n_units: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(K,) the classes of a mean that have objects."""
    return (n_units > 0) & (shares > 0)


def lacking_share(shares: NDArray[np.float64], n_units: NDArray[np.int64], units: Units) -> float:
    """The share of a mean in classes that another sample of as many units would lack.

    Parameters
    ----------
    shares : (K,) the weight of each class in the mean
    n_units : (K,) units with an object of the class; classes without any are not in the mean
    """
    there = _occurring(shares, n_units)
    lost = float((shares[there] * (1 - n_units[there] / units.n) ** units.n).sum())
    total = float(shares[there].sum())
    return lost / total if total > 0 else 0.0


def lacking_error(
    shares: NDArray[np.float64],
    n_units: NDArray[np.int64],
    values: NDArray[np.float64],
    units: Units,
) -> float:
    """The standard error of a mean that comes from the classes which this sample lacks.

    They are about as many as another sample would lack of those that are here. The rare classes are
    often the hard ones, so their metric can be far from the mean on one side: `APART` standard
    deviations of the classes is allowed for.

    Parameters
    ----------
    shares, n_units : as in `lacking_share`
    values : (K,) the metric of each class
    """
    there = _occurring(shares, n_units)
    weight = shares[there] / max(float(shares[there].sum()), 1e-300)
    free = 1.0 - float((weight**2).sum())
    if free <= 0:
        return 0.0
    apart = values[there] - float((weight * values[there]).sum())
    spread = math.sqrt(float((weight * apart**2).sum()) / free)
    return APART * spread * lacking_share(shares, n_units, units)


def refuse_mean(shares: NDArray[np.float64], n_units: NDArray[np.int64], units: Units) -> str:
    """Why a mean over classes has no interval: another sample would lack too many of them.

    Parameters
    ----------
    shares, n_units : as in `lacking_share`
    """
    if units.n < LEAST_OF_INTERVAL:
        return few_units(units)
    lacking = lacking_share(shares, n_units, units)
    if lacking <= MOST_LACKING:
        return ""
    there = _occurring(shares, n_units)
    rare = int((n_units[there] <= FEW_UNITS).sum())
    return (
        f"{rare} of {int(there.sum())} classes are on 1 to {FEW_UNITS} {units.noun}: a sample like "
        f"this lacks {lacking:.0%} of the mean; more {units.noun} would help, or the mean "
        "of a group of classes that are on more of them"
    )
