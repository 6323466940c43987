"""Whether the images at hand can bear an interval or a test, and why not.

A sample of other images would have other rare classes: what a class on one image is worth, and
whether it is in the mean at all, is not to be seen in how much each image moves the number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.protocol import Protocol
from detmap.statistics.sampling_units import Units

LEAST_UNITS = 81  # of a single class: with fewer an interval of a strong detector holds too rarely
FEW_UNITS = 3  # on more, a sample of as many lacks a class in 2 of 100 cases at most
MOST_LOST = 0.05  # of the replicates that may be undefined
MOST_LACKING = 0.03  # of a mean, in classes that a sample of other images lacks


def refuse_rule(protocol: Protocol, kind: str) -> str:
    """Why AP of the 11-point rule has no interval; "" for any other number.

    The bias of a maximum at eleven points is not found from halves of the images: measured
    intervals of strong detectors held in 73 to 92 of 100 samples (docs/statistics.md, coverage).
    """
    if kind != "AP" or protocol.ap.integrator != "eleven_point":
        return ""
    return (
        "an interval of the 11-point rule does not hold what it promises; the all-point rule "
        "has one: --set ap.integrator=all_points"
    )


def refuse_class(n_units: int, units: Units) -> str:
    """Why a number of a single class has no interval; "" where nothing speaks against one.

    Parameters
    ----------
    n_units : with an object of the class
    """
    if n_units >= LEAST_UNITS:
        return ""
    noun = units.noun if n_units != 1 else units.noun[:-1]
    return (
        f"a single class on {n_units} {noun}: an interval does not hold what it promises below "
        f"{LEAST_UNITS}; more {units.noun} of it would help"
    )


def refuse_mean(shares: NDArray[np.float64], n_units: NDArray[np.int64], units: Units) -> str:
    """Why a mean over classes has no interval: a sample of other images lacks too many of them.

    Parameters
    ----------
    shares : (K,) the weight of each class in the mean
    n_units : (K,) units with an object of the class; a class without any is none of the mean
    """
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
