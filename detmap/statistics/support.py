"""Decides whether there are enough images for an interval or a test, and gives the reason if not.

Another sample of images would have other rare classes. The influence of single images shows neither
the AP that a class on one image has elsewhere, nor whether the class is in the mean at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.protocol import Protocol
from detmap.statistics.sampling_units import Units

LEAST_UNITS = (
    81  # of a single class: with fewer, the coverage of a strong detector's interval is too low
)
LEAST_OF_INTERVAL = 50  # of a mean, and of any number with the jackknife
FEW_UNITS = 3  # on more, a sample of the same size lacks the class in at most 2 of 100 cases
MOST_LOST = 0.05  # largest share of undefined replicates
MOST_LACKING = 0.03  # largest share of the mean in classes that another sample would lack


def refuse_rule(protocol: Protocol, kind: str) -> str:
    """Why AP of the 11-point rule has no interval; "" for any other metric.

    Halves of the images do not show the bias of a maximum at eleven points: measured coverage of
    strong detectors was 73 to 92 % (docs/statistics.md, coverage).
    """
    if kind != "AP" or protocol.ap.integrator != "eleven_point":
        return ""
    return (
        "intervals of the 11-point rule have too low coverage; the all-point rule has intervals: "
        "--set ap.integrator=all_points"
    )


def few_units(units: Units) -> str:
    """Why no number has an interval: the bias is as large as the number."""
    return f"fewer than {LEAST_OF_INTERVAL} {units.noun}"


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


def refuse_mean(shares: NDArray[np.float64], n_units: NDArray[np.int64], units: Units) -> str:
    """Why a mean over classes has no interval: another sample would lack too many of them.

    Parameters
    ----------
    shares : (K,) the weight of each class in the mean
    n_units : (K,) units with an object of the class; classes without any are not in the mean
    """
    if units.n < LEAST_OF_INTERVAL:
        return few_units(units)
    there = (n_units > 0) & (shares > 0)
    lost = float((shares[there] * (1 - n_units[there] / units.n) ** units.n).sum())
    total = float(shares[there].sum())
    if lost <= MOST_LACKING * total:
        return ""
    rare = int((n_units[there] <= FEW_UNITS).sum())
    return (
        f"{rare} of {int(there.sum())} classes are on 1 to {FEW_UNITS} {units.noun}: a sample like "
        f"this lacks {lost / total:.0%} of the mean; more {units.noun} would help, or the mean "
        "of a group of classes that are on more of them"
    )
