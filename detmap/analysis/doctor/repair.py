"""Repairs: hypotheses of the doctor that can be tried, and names of its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detmap.core.base.immutable import Value
from detmap.core.tables import Note, Truth
from detmap.core.tables.notes import DROPPED, n_dropped
from detmap.errors import few

if TYPE_CHECKING:
    from detmap.analysis.doctor.raw_rows import Raw

BARE = "images-without-detections"
"""The name of the finding that images, or all of them, have no detection."""


def no_detection(notes: Iterable[Note]) -> str:
    """Returns the sentence on a table without detections; the reader's notes count those that it
    left out.
    """
    lost = [note for note in notes if note.code in DROPPED]
    if not lost:
        return "there is no detection at all"
    named = [f"the ground truth lacks {few(note.names)}" for note in lost if note.names]
    which = f": {named[0]}" if named else ""
    count = n_dropped(lost)
    return (
        f"none of the {count:,} detections is on an image and of a class of the ground truth{which}"
    )


def group_of(name: str) -> str:
    """Returns the group of a hypothesis: what stands before its first dash."""
    return name.partition("-")[0]


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
    guess : what was measured for it, in words: other rows may give another one
    """

    name: str
    sentence: str
    apply: Callable[[Raw, Truth], Raw]
    weight: int = 1
    sure: bool = False
    guess: str = ""
