"""Repairs: hypotheses of the doctor that can be tried, and names of its findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detmap.core.base.immutable import Value
from detmap.core.tables import Truth

if TYPE_CHECKING:
    from detmap.analysis.doctor.raw_rows import Raw

BARE = "images-without-detections"
"""The name of the finding that images, or all of them, have no detection."""
NO_DETECTION = "there is no detection at all"


@dataclass(slots=True, eq=False, repr=False)
class Repair(Value):
    """A hypothesis that can be tried: what rows would mean if it were true.

    Parameters
    ----------
    name : of the hypothesis
    sentence : the cause
    apply : raw rows to raw rows, beside the ground truth that has their images
    weight : how many guesses it takes; of two repairs that gain the same the lighter one is said
    sure : the rows prove it (unknown ids, numbers out of range): a small gain is enough
    """

    name: str
    sentence: str
    apply: Callable[[Raw, Truth], Raw]
    weight: int = 1
    sure: bool = False
