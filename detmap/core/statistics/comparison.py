"""Comparison of detectors on the same images: differences with confidence intervals and p-values,
the classes that changed most, and a leaderboard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from detmap.core.base.reprs import outline
from detmap.core.base.suggestions import ProposesNames, missing, missing_attribute
from detmap.core.matching.matches import Matches
from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Style, Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.statistics import verdict
from detmap.core.statistics.estimates import Difference, Interval, plain
from detmap.core.statistics.evaluations import Evaluated
from detmap.core.statistics.formulas import multiple_comparisons as multiple
from detmap.core.statistics.refusals import LEAST_OF_TEST, LEAST_UNITS
from detmap.core.statistics.sampling_units import Units
from detmap.core.tables import Categories, Note
from detmap.errors import DataError, few

TEST = "t"
LEAST_ALPHA, MOST_ALPHA = 1e-6, 0.5  # below, quantiles have few digits; above, tests contradict
TABLES = ("leaderboard", "pairs", "classes")


@dataclass(frozen=True, slots=True)
class Pair(ProposesNames):
    """The difference of two detectors, `b` minus `a`, as a fraction; NaN if undefined.

    Parameters
    ----------
    a, b : names of the detectors
    metric : name of the metric
    difference, se : the difference, and the error of the difference minus half of its bias
    low, high : confidence interval of the difference, around the difference minus half of its bias
    bias : small-sample bias of the difference
    p, p_adjusted : p-value of no difference; and adjusted for the number of comparisons (intervals
        are not)
    df : degrees of freedom of the test
    mdd : minimum detectable difference: this test detects it with a power of 0.8
    why_not : why there is no p-value, or neither an interval; "" if there are both
    """

    a: str
    b: str
    metric: str
    difference: float
    se: float
    low: float
    high: float
    bias: float
    p: float
    p_adjusted: float
    df: float
    mdd: float
    why_not: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for undefined values and an empty reason."""
        return plain(self)


@dataclass(frozen=True, slots=True)
class ClassPair(Pair):
    """The difference of two detectors on a class; two classes may have one name, but not one id."""

    name: str
    id: int


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """The result of `detmap.compare`; ``print(comparison)`` shows the verdict and the differences.

    ``comparison["AP"]`` is the `Pair` of a metric, ``comparison.better`` the better detector.

    Parameters
    ----------
    names : of the detectors; values, intervals : metric to those of all detectors
    pairs : one per pair of detectors and metric
    classes : one per pair of detectors, class and metric, lowest adjusted p-value first
    leaderboard : (name, value, letters) by the first metric, best first; the differences between
        detectors with a common letter are not significant
    alpha, test, adjust, seed, units : the method
    signature : of the common data and rules, with the method
    notes : caveats
    """

    _MAIN = "metrics"

    names: tuple[str, ...]
    values: dict[str, tuple[float, ...]]
    intervals: dict[str, tuple[Interval, ...]]
    pairs: tuple[Pair, ...]
    classes: tuple[ClassPair, ...]
    leaderboard: tuple[tuple[str, float, str], ...]
    alpha: float
    test: str
    adjust: str
    seed: int
    units: Units
    signature: str
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON output."""
        return {
            "schema": "detmap-comparison-1",  # docs/schemas
            "names": list(self.names),
            "metrics": {
                metric: list(map(or_none, values)) for metric, values in self.values.items()
            },
            "pairs": [pair.to_dict() for pair in self.pairs],
            "classes": [
                {"class": of.pop("name"), "id": of.pop("id"), **of}
                for of in (one.to_dict() for one in self.classes)
            ],
            "leaderboard": [
                {"name": name, "value": or_none(value), "groups": letters}
                for name, value, letters in self.leaderboard
            ],
            **{key: getattr(self, key) for key in ("alpha", "test", "adjust", "signature")},
            "notes": [note.to_dict() for note in self.notes],
        }

    @property
    def verdict(self) -> str:
        """One sentence about the first metric: which detector is better, and by how much."""
        return verdict.verdict(self)

    @property
    def better(self) -> str | None:
        """The name of the better detector; None if no difference is shown."""
        return verdict.better(self)

    def __getitem__(self, metric: str) -> Pair:
        """Returns the difference in a metric of two detectors, the second minus the first.

        Raises
        ------
        KeyError : no such metric, or more than two detectors; it says what to write
        """
        found = [each for each in self.pairs if each.metric == metric]
        if len(found) == 1:
            return found[0]
        if found:
            raise KeyError(f"there are {len(found)} pairs of detectors; select one from .pairs")
        raise missing(metric, self.values)

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            metrics = () if name.startswith("_") else self.values
            raise missing_attribute(self, name, metrics)

    def tables(self) -> list[Table]:
        """Returns the tables ``leaderboard``, ``pairs``, ``classes``, those of the verdict, and
        ``metrics``.
        """
        metrics, *more = verdict.verdict_tables(self)
        more = [each for each in more if each.name not in TABLES]
        return [*verdict.comparison_tables(self), *more, metrics]

    def tables_of(self, form: str, style: Style, **options: Any) -> list[Table]:
        """Returns the tables that a format shows; the verdict is the title of the first. Markdown
        and LaTeX have one table, detectors x metrics.
        """
        if form == "csv":
            return self.tables()
        papers = form in ("markdown", "latex")
        tables = [verdict.paper_table(self, style)] if papers else verdict.verdict_tables(self)
        return [replace(tables[0], title=self.verdict), *tables[1:]]

    def __repr__(self) -> str:
        first = self.pairs[0].metric
        level = f"{100 * (1 - self.alpha):g} %"
        changes = (
            f"{first} of {one.b} - {one.a}: {one.difference:+.4f}, "
            f"{level} [{one.low:+.4f}, {one.high:+.4f}]"
            for one in self.pairs
            if one.metric == first
        )
        return outline(self, *changes, self.units.counted(), self.signature)

    def images_needed(self, pair: Pair, difference: float) -> int:
        """Number of images for which `difference` would be the minimum detectable difference."""
        return math.ceil(self.units.n * (pair.mdd / difference) ** 2)


def require_comparable(names: Sequence[str], matches: Sequence[Matches]) -> None:
    """Raise `DataError` if protocol, classes, images or ground truth differ, and name which."""
    first = matches[0]
    for name, other in zip(names[1:], matches[1:], strict=True):
        both = f"{names[0]} and {name}"
        if protocol_digest(first.protocol) != protocol_digest(other.protocol):
            own, its = first.protocol.to_dict(), other.protocol.to_dict()
            what = f"{both} differ in {few([key for key in own if own[key] != its[key]])}"
            raise DataError("compare: protocol", what, "match both under one protocol")
        if first.categories != other.categories:
            strange = {*first.categories.names} ^ {*other.categories.names}
            what = f"{both} differ: {few(sorted(strange))}"
            raise DataError("compare: classes", what, "match both on one truth")
        if not np.array_equal(first.image_ids, other.image_ids):
            ids = {*first.image_ids.tolist()} ^ {*other.image_ids.tolist()}
            what = f"{both} differ: {few(sorted(ids))}"
            raise DataError("compare: images", what, "match both on the same images")
        changed = first.digest[:, 0] != other.digest[:, 0]
        if changed.any():
            what = f"{both} have other objects on {few(first.image_ids[changed].tolist())}"
            raise DataError("compare: truth", what, "match both on one truth")


def check(alpha: float, adjust: str) -> None:
    """Raise `DataError` for an unknown value."""
    if not isinstance(alpha, float) or not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        fix = f"give a significance level from {LEAST_ALPHA} to {MOST_ALPHA}, such as 0.05"
        raise DataError("alpha", f"{alpha!r}", fix)
    if adjust not in multiple.ADJUSTMENTS:
        raise DataError("adjust", f"{adjust!r}", f"choose one of {', '.join(multiple.ADJUSTMENTS)}")


AnyPair = TypeVar("AnyPair", Pair, ClassPair)


class Maker:
    """Builds a `Comparison` from the numbers of detectors on common subsets."""

    def __init__(
        self,
        names: Sequence[str],
        evaluated: Sequence[Evaluated],
        categories: Categories,
        alpha: float,
        adjust: str,
    ) -> None:
        self.names, self.evaluated, self.categories = tuple(names), evaluated, categories
        self.alpha, self.adjust = alpha, adjust
        self.units = evaluated[0].estimates.subsets.units
        self.metrics, self.cells = evaluated[0].metrics, evaluated[0].cells
        self.order = list(combinations(range(len(names)), 2))
        every = [each.estimates for each in evaluated]
        self.apart = [every[b].differences(every[a], alpha) for a, b in self.order]

    def values(self) -> dict[str, tuple[float, ...]]:
        """Metric to the values of all detectors."""
        every = [each.estimates.value.tolist() for each in self.evaluated]
        return dict(zip(self.metrics, zip(*every, strict=True), strict=False))

    def intervals(self) -> dict[str, tuple[Interval, ...]]:
        """Metric to the confidence intervals of all detectors."""
        every = [each.estimates.intervals(1 - self.alpha) for each in self.evaluated]
        return dict(zip(self.metrics, zip(*every, strict=True), strict=False))

    def pairs(self) -> list[Pair]:
        """One `Pair` per pair of detectors and metric; p-values adjusted per metric."""
        rows = [
            [self.pair(i, *of) for of in zip(self.metrics, apart, strict=False)]
            for i, apart in enumerate(self.apart)
        ]
        columns = [self.adjusted(column) for column in zip(*rows, strict=True)]
        return [pair for row in zip(*columns, strict=True) for pair in row]

    def pair(self, i: int, metric: str, one: Difference) -> Pair:
        """The difference of pair i, not adjusted."""
        a, b = (self.names[k] for k in self.order[i])
        numbers = (one.value, one.se, one.low, one.high, one.bias, one.p, one.p)
        why = one.why_not
        if not why and self.units.n < LEAST_OF_TEST:
            why = f"fewer than {LEAST_OF_TEST} {self.units.noun}: no p-value; use the interval"
        return Pair(a, b, metric, *numbers, one.df, one.mdd, why)

    def classes(self) -> list[ClassPair]:
        """One `ClassPair` per pair, metric and class with objects; adjusted over the classes."""
        rows: list[ClassPair] = []
        for i, apart in enumerate(self.apart):
            of_metric: dict[str, list[ClassPair]] = {}
            for (k, name), one in zip(self.cells, apart[len(self.metrics) :], strict=True):
                if not math.isnan(one.value):
                    pair, id = asdict(self.pair(i, name, one)), int(self.categories.ids[k])
                    named = ClassPair(**pair, name=self.categories.names[k], id=id)
                    of_metric.setdefault(name, []).append(named)
            rows += chain.from_iterable(map(self.adjusted, of_metric.values()))
        return sorted(rows, key=lambda one: (_last(one.p_adjusted), -abs(one.difference)))

    def adjusted(self, pairs: Sequence[AnyPair]) -> list[AnyPair]:
        """Pairs with adjusted p-values; missing ones are not counted."""
        fixed = multiple.ADJUSTMENTS[self.adjust]([one.p for one in pairs])
        return [replace(one, p_adjusted=p) for one, p in zip(pairs, fixed, strict=True)]

    def leaderboard(self, pairs: Sequence[Pair]) -> list[tuple[str, float, str]]:
        """The detectors by the first metric, with a letter per group without differences."""
        metric, values = self.metrics[0], [float(of.estimates.value[0]) for of in self.evaluated]
        sign = 1 if verdict.lower_is_better([metric]) else -1
        order = sorted(range(len(values)), key=lambda i: _last(sign * values[i]))
        place = {self.names[i]: at for at, i in enumerate(order)}
        mine = [pair for pair in pairs if pair.metric == metric]
        tested = not any(pair.why_not or math.isnan(pair.p) for pair in mine)
        apart = [(place[one.a], place[one.b]) for one in mine if one.p_adjusted < self.alpha]
        groups = multiple.groups(len(order), apart) if tested else []

        def letters(at: int) -> str:
            return "".join(_letter(k) for k, members in enumerate(groups) if at in members)

        return [(self.names[i], values[i], letters(at)) for at, i in enumerate(order)]

    def notes(self) -> tuple[Note, ...]:
        """Caveats."""
        if self.units.n >= LEAST_OF_TEST:
            return ()
        few = self.units.n < LEAST_UNITS
        least = LEAST_UNITS if few else LEAST_OF_TEST
        lacking = "intervals and p-values" if few else "p-values; use the intervals"
        text = f"{self.units.noun} are fewer than {least}: too few for {lacking}"
        return (Note("few-images", text, self.units.n),)


def _last(value: float) -> float:
    """A key by which undefined fractions are last."""
    return 2.0 if math.isnan(value) else value


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else f"({number + 1})"
