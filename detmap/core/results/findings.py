"""Findings: probable mistakes in input files, as the input checks report them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from detmap import wings
from detmap.core.base.immutable import Value
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol

AFTER = r"[:;] AP50 after is [^;]*$"
"""The clause of a sentence that explains AP50 after the repair."""


@dataclass(slots=True, eq=False, repr=False)
class Finding(Value):
    """One thing that is wrong with detections or truth.

    Parameters
    ----------
    name : of the hypothesis, such as "boxes-xyxy"
    sentence : the cause, for people
    ap50_before : AP50 as it is, with the repairs of earlier findings; None where it has no meaning
    ap50_after : AP50 with the repair, or of the part that is covered; None where nothing can be
        tried
    fix : the flag that repairs it, "" where no flag can
    detections : the path of the detections, if a command reads several
    """

    name: str
    sentence: str
    ap50_before: float | None = None
    ap50_after: float | None = None
    fix: str = ""
    detections: str = ""

    def without_ap50(self) -> Finding:
        """The finding for a rule that has no AP50."""
        sentence = re.sub(AFTER, "", self.sentence)
        return replace(self, sentence=sentence, ap50_before=None, ap50_after=None)

    def __str__(self) -> str:
        where = f"{self.detections}: " if self.detections else ""
        change = ""
        if self.ap50_before is not None and self.ap50_after is not None:
            change = f" (AP50 {self.ap50_before:.3f}, after the fix {self.ap50_after:.3f})"
        advice = f"; fix it with {self.fix}" if self.fix else ""
        return f"{where}{self.name}: {self.sentence}{change}{advice}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "ap50_before": self.ap50_before,
            "ap50_after": self.ap50_after,
            "fix": self.fix or None,
            **({"detections": self.detections} if self.detections else {}),
        }


class Findings(list[Finding], Tabular):
    """A list of findings, most likely first.

    Parameters
    ----------
    found : the findings
    left_out : names of checks that there was no time for
    not_checked : why nothing was checked, or why no mistake would show; "" if one would
    """

    __slots__ = ("left_out", "not_checked")

    def __init__(
        self, found: Iterable[Finding] = (), left_out: Iterable[str] = (), not_checked: str = ""
    ) -> None:
        super().__init__(found)
        self.left_out, self.not_checked = list(left_out), not_checked

    def tables(self) -> list[Table]:
        """Returns the table ``findings``."""
        which = ("detections",) if any(each.detections for each in self) else ()
        header = (*which, "finding", "what is wrong", "AP50", "after the fix", "fix")
        rows = tuple(
            (
                *((each.detections,) if which else ()),
                *(each.name, each.sentence, each.ap50_before, each.ap50_after, each.fix),
            )
            for each in self
        )
        title = "input files: probable mistakes" if self else "input files: no mistake found"
        if self.not_checked and not self:
            title = f"input files: not checked: {self.not_checked}"
        names = ", ".join(self.left_out)
        lines = (f"not checked, for lack of time: {names}",) if names else ()
        return [Table(title, header, rows, lines, name="findings")]

    def __repr__(self) -> str:
        nothing = f"not checked: {self.not_checked}" if self.not_checked else "no findings"
        names = ", ".join(self.left_out)
        more = [f"not checked, for lack of time: {names}"] if names else []
        return "\n".join([*(map(str, self) if self else [nothing]), *more])

    __str__ = __repr__


def quick_findings(inputs: tuple[Any, Any, Protocol, Mapping[str, Any]] | None) -> Findings:
    """Runs the quick input checks on the arguments of `evaluate`; empty without them, and says
    why.
    """
    examine = wings.hook("examine_given")
    if inputs is None:
        return Findings(not_checked="the result has no input files: `detmap doctor` checks them")
    if examine is None:
        return Findings(not_checked="this part of detmap is not installed (detmap-eval)")
    truth, detections, rules, how = inputs
    found: Findings = examine(truth, detections, rules, **how)
    return found
