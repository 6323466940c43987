"""Decides whether there are enough images for an interval or a test, and gives the reason if not.

Another sample of images would have other rare classes. The influence of single images shows neither
the AP that a class on one image has elsewhere, nor whether the class is in the mean at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.statistics.sampling_units import Units

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
WIDEST = 0.5  # of an interval: a wider one says nothing, and its scale is no longer straight


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


def too_wide(low: float, high: float, units: Units) -> str:
    """Why a number has no interval though its standard error is known; "" if it has one."""
    if high - low <= WIDEST:
        return ""
    return f"the interval would be {low:.2f} to {high:.2f}; more {units.noun} would help"


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


def variance_of_rare_classes(
    shares: NDArray[np.float64],
    n_units: NDArray[np.int64],
    values: NDArray[np.float64],
    variances: NDArray[np.float64],
    units: Units,
    undefined: float | None,
) -> float:
    """The variance of a mean that the influence of single units does not show.

    A class on one unit does not deviate from itself: it gets the variance that a unit has in the
    other classes. And another sample lacks some classes of this one, each with a known probability.

    Parameters
    ----------
    shares, n_units : as in `lacking_share`
    values, variances : (K,) the metric of each class, and its variance by influence
    undefined : the value of a class without objects in the mean; None if it is not averaged
    """
    there = _occurring(shares, n_units)
    share, m, value, known = shares[there], n_units[there], values[there], variances[there]
    several = m > 1
    of_unit = float((share * m * known)[several].sum())
    of_unit /= max(float(share[several].sum()), 1e-300)
    alone = float((share[~several] ** 2).sum()) * of_unit
    mean = float((share * value).sum()) / max(float(share.sum()), 1e-300)
    moved = share * (value - (mean if undefined is None else undefined))
    lost = (1 - m / units.n) ** units.n
    return alone + float((moved**2 * lost).sum())


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
