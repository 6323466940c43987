"""Steps from one number to another; changes are exact fractions, so they add up exactly."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from detmap.core.base.reprs import outline
from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.errors import DataError

MOST_EXACT = 8
"""Switches that matter, up to which Shapley values are exact."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change and the number after it.

    Parameters
    ----------
    name, title : of the switch or part of the input
    detail : the old and the new value
    value : the number after the change
    change : exact difference from the number before
    shapley : mean change over the orders of all steps; None if not computed
    error : standard error of that mean; 0 if exact
    sentence : what changes, in words; "" for parts of an input
    """

    name: str
    title: str
    detail: str
    value: float
    change: Fraction
    shapley: Fraction | None = None
    error: float = 0.0
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class ClassMove:
    """The AP of a class at both ends: fractions, NaN if undefined; two classes may share a name."""

    label: int
    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """The difference; 0 for a class without AP at one end."""
        change = self.after - self.before
        return 0.0 if math.isnan(change) else change


@dataclass(frozen=True, slots=True)
class Decided:
    """A detection or an object with different match results at both ends.

    Parameters
    ----------
    kind : "detection" or "object"
    file, row : its position; in the other input for a row that only that one has
    image, category : its image and class
    score : of a detection; NaN for an object
    overlap : IoU with the assigned object or detection, at either end; NaN for none
    before, after : TP, FP, IGNORED, not evaluated; for objects found, missed, ignored; missing
    """

    kind: str
    file: str
    row: int
    image: str | int
    category: str
    score: float
    overlap: float
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Explanation(Tabular):
    """Why two numbers differ.

    Parameters
    ----------
    start, end : names of both ends
    metric : names of the number at both ends
    before, after : the numbers, fractions in [0, 1]
    steps : their changes add up to after - before, exactly
    classes : the classes with the largest changes
    decided : up to five detections or objects with different match results
    seed, orders : of sampled Shapley values; orders is 0 for exact ones
    shared : share of the smaller list of detections that the other input has too
    remark : about the choice of the metric
    """

    start: str
    end: str
    metric: tuple[str, str]
    before: float
    after: float
    steps: tuple[Step, ...]
    classes: tuple[ClassMove, ...] = ()
    decided: tuple[Decided, ...] = ()
    seed: int = 0
    orders: int = 0
    shared: float = 1.0
    remark: str = ""

    @property
    def total(self) -> Fraction:
        """After - before, exactly: the sum of the steps' changes."""
        return sum((step.change for step in self.steps), Fraction(0))

    def __repr__(self) -> str:
        steps = [f"{step.title} {float(step.change):+.4f}" for step in self.steps if step.change]
        ends = (f"{self.start} {self.before:.4f}", f"{self.end} {self.after:.4f}")
        return outline(self, " to ".join(ends), *steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; exact changes as text, numerator/denominator."""
        return {
            "start": self.start,
            "end": self.end,
            "metric": list(self.metric),
            "before": self.before,
            "after": self.after,
            "change": float(self.total),
            "exact_change": str(self.total),
            "steps": [
                {
                    "switch": step.name,
                    "title": step.title,
                    "detail": step.detail,
                    "sentence": step.sentence,
                    "value": step.value,
                    "change": float(step.change),
                    "exact_change": str(step.change),
                    "shapley": None if step.shapley is None else float(step.shapley),
                    "shapley_error": step.error,
                }
                for step in self.steps
            ],
            "classes": [
                {"class": each.name, "before": or_none(each.before), "after": or_none(each.after)}
                for each in self.classes
            ],
            "decided": [
                {
                    "kind": each.kind,
                    "file": each.file,
                    "row": each.row,
                    "image": each.image,
                    "class": each.category,
                    "score": or_none(each.score),
                    "overlap": or_none(each.overlap),
                    "before": each.before,
                    "after": each.after,
                }
                for each in self.decided
            ],
            "seed": self.seed,
            "orders": self.orders,
        }

    def tables(self) -> list[Table]:
        """Steps, their sentences, classes and detections as tables."""
        averaged = any(step.shapley is not None for step in self.steps)
        rows: list[tuple[Any, ...]] = [("", self.start, self.before, None)]
        rows += [(step.title, step.detail, step.value, float(step.change)) for step in self.steps]
        rows.append(("total", self.end, self.after, float(self.total)))
        header: tuple[str, ...] = ("step", "what changes", "value", "change")
        if averaged:
            extra = [(None, None)] + [(float(s.shapley or 0), s.error) for s in self.steps]
            extra.append((None, None))
            rows = [(*row, *more) for row, more in zip(rows, extra, strict=True)]
            header = (*header, "shapley", "error")
        lines = [self.remark] * bool(self.remark)
        if averaged and self.orders:
            lines.append(f"shapley: mean over {self.orders} orders, seed {self.seed}")
        title = f"from {self.start} ({self.metric[0]}) to {self.end} ({self.metric[1]})"
        found = [Table(title, header, tuple(rows), tuple(lines), name="steps")]
        said = [(float(each.change), each.sentence) for each in self.steps if each.change]
        if any(sentence for _, sentence in said):
            found.append(Table("", ("change", "in words"), tuple(said), name="sentences"))
        if self.classes:
            moved = tuple((c.name, c.before, c.after, c.change) for c in self.classes)
            head = ("class", "before", "after", "change")
            found.append(Table("classes with the largest changes", head, moved, name="classes"))
        if self.decided:
            header = ("", "image", "class", "score", "overlap", "before", "after", "row")
            files = dict.fromkeys(each.file for each in self.decided)
            judged = tuple(
                (
                    d.kind if len(files) == 1 else f"{d.kind}, {d.file}",
                    str(d.image),
                    d.category,
                    None if math.isnan(d.score) else f"{d.score:g}",
                    None if math.isnan(d.overlap) else f"{d.overlap:.4f}",
                    d.before,
                    d.after,
                    d.row,
                )
                for d in self.decided
            )
            title = f"examples that differ ({', '.join(files)})"
            found.append(Table(title, header, judged, name="decided"))
        return found


def walk(
    parts: Sequence[tuple[str, str, str]], value: Callable[[frozenset[str]], float]
) -> tuple[Step, ...]:
    """Changes parts (name, title, detail) one after another; `value` evaluates a set of changed
    parts.
    """
    before = exact(value(frozenset()))
    steps, taken = [], frozenset[str]()
    for name, title, detail in parts:
        taken |= {name}
        number = value(taken)
        after = exact(number)
        steps.append(Step(name, title, detail, number, after - before))
        before = after
    return tuple(steps)


def exact(number: float) -> Fraction:
    """The number as a fraction.

    Raises
    ------
    DataError : the number is undefined
    """
    if math.isnan(number):
        raise DataError(
            "explain",
            "the number is undefined under one of the protocols or a step between them",
            "explain protocols that differ in fewer rules",
        )
    return Fraction(number)
