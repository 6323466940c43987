"""What the doctor says: findings, and the repairs that they propose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from detmap.doctor.raw_rows import Raw
from detmap.tables import Truth


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with detections or truth.

    Parameters
    ----------
    name : of the hypothesis, such as "boxes-xyxy"
    sentence : the cause, for people
    ap50_before : AP50 as it is, with the repairs of earlier findings; None where it has no meaning
    ap50_after : AP50 with the repair, or of the part that is covered; None where nothing can be
        tried
    fix : the flag that repairs it, "" where no flag can
    """

    name: str
    sentence: str
    ap50_before: float | None = None
    ap50_after: float | None = None
    fix: str = ""

    def __str__(self) -> str:
        change = ""
        if self.ap50_before is not None and self.ap50_after is not None:
            change = f" (AP50 {self.ap50_before:.3f}, repaired {self.ap50_after:.3f})"
        advice = f"; repair it with {self.fix}" if self.fix else ""
        return f"{self.name}: {self.sentence}{change}{advice}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "ap50_before": self.ap50_before,
            "ap50_after": self.ap50_after,
            "fix": self.fix or None,
        }


@dataclass(frozen=True, slots=True)
class Repair:
    """A hypothesis that can be tried: what rows would mean if it were true.

    Parameters
    ----------
    name : of the hypothesis
    sentence : the cause
    apply : raw rows to raw rows, beside the truth that has their images
    weight : how many guesses it takes; of two repairs that gain the same the lighter one is said
    sure : the rows themselves show it (unknown ids, numbers out of range): a small gain will do
    """

    name: str
    sentence: str
    apply: Callable[[Raw, Truth], Raw]
    weight: int = 1
    sure: bool = False
