"""Comparison of detectors on the same images: differences with confidence intervals and p-values,
the classes and images that changed most, and a leaderboard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.reprs import outline
from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.statistics import permutation, support
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.formulas import multiple_comparisons as multiple
from detmap.core.statistics.formulas.quantiles import normal, two_sided
from detmap.core.statistics.intervals import signature as drawing_signature
from detmap.core.statistics.paired_differences import Paired
from detmap.core.statistics.sampling_units import Units
from detmap.core.tables import Note
from detmap.errors import DataError

TESTS = ("z", "permutation", "plain-permutation")
LEAST_UNITS = 100  # no p-value for fewer images or groups: the test is not reliable
POWER = 0.8  # of the test for the minimum detectable difference
SHOWN = 10  # images that changed most


@dataclass(frozen=True, slots=True)
class Pair:
    """The difference of two detectors, `b` minus `a`, as a fraction; NaN if undefined.

    Parameters
    ----------
    a, b : names of the detectors
    metric : name of the metric
    difference, se : the difference, and the standard error of the difference minus its bias
    low, high : confidence interval of the difference, corrected for its bias
    bias : small-sample bias of the difference
    p, p_adjusted : p-value of no difference, corrected for the bias like the interval; and adjusted
        for the number of comparisons (intervals are not)
    mdd : minimum detectable difference: this test detects it with a power of 0.8
    why_not : why there is no interval and no test; "" if there are
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
    mdd: float
    why_not: str

    @property
    def outside(self) -> bool:
        """Whether the difference is outside its interval, which is corrected for the bias."""
        return self.difference < self.low or self.difference > self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for undefined values and an empty reason."""
        plain = {key: or_none(value) for key, value in asdict(self).items()}
        return {**plain, "why_not": self.why_not or None}


@dataclass(frozen=True, slots=True)
class ClassPair(Pair):
    """The difference of two detectors on the class `name`; `place` is its index, because two
    classes may have the same name.
    """

    name: str
    place: int

    def to_dict(self) -> dict[str, Any]:
        """Like `Pair.to_dict`, without the index."""
        plain = Pair.to_dict(self)
        del plain["place"]
        return plain


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """The result of `detmap.compare`.

    Parameters
    ----------
    names : of the detectors; values : metric to the values of all detectors
    pairs : one per pair of detectors and metric
    classes : one per pair of detectors, class and metric, lowest adjusted p-value first
    images : (a, b, unit, change): the images or groups that changed the first metric most; without
        one of them the difference would be about `change` smaller
    leaderboard : (name, value, letters) by the first metric, best first; the differences between
        detectors with a common letter are not significant
    alpha, test, adjust, replicates, seed, units : the method
    signature : of the common data and rules, with the method
    notes : caveats
    """

    names: tuple[str, ...]
    values: dict[str, tuple[float, ...]]
    pairs: tuple[Pair, ...]
    classes: tuple[ClassPair, ...]
    images: tuple[tuple[str, str, str, float], ...]
    leaderboard: tuple[tuple[str, float, str], ...]
    alpha: float
    test: str
    adjust: str
    replicates: int
    seed: int
    units: Units
    signature: str
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON output."""
        return {
            "names": list(self.names),
            "metrics": {
                metric: [None if math.isnan(x) else x for x in values]
                for metric, values in self.values.items()
            },
            "pairs": [pair.to_dict() for pair in self.pairs],
            "classes": [
                {"class": of.pop("name"), **of} for of in (one.to_dict() for one in self.classes)
            ],
            self.units.noun: [
                {"a": a, "b": b, self.units.noun[:-1]: unit, "change": change}
                for a, b, unit, change in self.images
            ],
            "leaderboard": [
                {"name": name, "value": or_none(value), "groups": letters}
                for name, value, letters in self.leaderboard
            ],
            "alpha": self.alpha,
            "test": self.test,
            "adjust": self.adjust,
            "signature": self.signature,
            "notes": [asdict(note) for note in self.notes],
        }

    def tables(self) -> list[Table]:
        """Returns the tables ``leaderboard``, ``pairs``, ``classes``, ``images`` or ``groups``."""
        from detmap.core.statistics.interval_tables import comparison_tables

        return comparison_tables(self)

    def __repr__(self) -> str:
        first = self.pairs[0].metric
        changes = (
            f"{one.metric} of {one.b} - {one.a}: {one.difference:+.4f}, "
            f"{100 * (1 - self.alpha):g} % [{one.low:+.4f}, {one.high:+.4f}]"
            for one in self.pairs
            if one.metric == first
        )
        return outline(self, *changes, f"{self.units.n} {self.units.noun}", self.signature)

    def images_needed(self, pair: Pair, difference: float) -> int:
        """Number of images for which `difference` would be the minimum detectable difference."""
        return math.ceil(self.units.n * (pair.mdd / difference) ** 2)


def check(alpha: float, adjust: str, test: str) -> None:
    """Raise `DataError` for an unknown value."""
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise DataError("alpha", f"{alpha!r}", "give a fraction between 0 and 1, such as 0.05")
    for name, value, known in (("adjust", adjust, multiple.ADJUSTMENTS), ("test", test, TESTS)):
        if value not in known:
            raise DataError(name, f"{value!r}", f"choose one of {', '.join(known)}")


class Maker:
    """Builds a `Comparison` from paired differences."""

    def __init__(
        self, names: Sequence[str], paired: Paired, alpha: float, adjust: str, test: str
    ) -> None:
        self.names, self.paired = tuple(names), paired
        self.alpha, self.adjust, self.test = alpha, adjust, test
        self.plan = paired.plans[0]  # all have the same rows and classes
        self.trusted = paired.units.n >= LEAST_UNITS
        self.first, self.second = (list(side) for side in zip(*paired.pairs, strict=True))

    def difference(self) -> NDArray[np.float64]:
        """(P, Q) differences of the metrics."""
        own: NDArray[np.float64] = self.paired.values
        return own[self.second] - own[self.first]

    def p_of(self, difference: float, bias: float, se: float, why_not: str) -> float:
        """Two-sided p-value from z; 1 without any difference; NaN for too few images."""
        if self.trusted and support.same(difference, se):
            return 1.0
        if not self.trusted or why_not or math.isnan(difference) or not se > support.ROUNDING:
            return math.nan
        return two_sided((difference - bias) / se)

    def permutation_p_values(
        self, n: int, seed: int, threads: int | None, progress: drawing.Progress
    ) -> NDArray[np.float64]:
        """(P, Q) p-values from exchanged detectors."""
        own = self.paired
        tests = [
            permutation.p_values(
                own.plans[a],
                own.plans[b],
                own.units,
                difference,
                n,
                seed,
                studentised=self.test == "permutation",
                threads=threads,
                progress=progress,
            )
            for (a, b), difference in zip(own.pairs, self.difference(), strict=True)
        ]
        p = np.array(tests)
        same = self.trusted & support.same(self.difference(), own.se)
        tested = np.array([self.trusted and not why for why in own.why_not])
        return np.where(same, 1.0, np.where(tested & (own.se > support.ROUNDING), p, np.nan))

    def pairs(self, p: NDArray[np.float64] | None = None) -> list[Pair]:
        """One `Pair` per pair of detectors and metric; p-values adjusted per metric."""
        own, difference = self.paired, self.difference()
        pairs = []
        adjusted = np.empty_like(difference)
        if p is None:
            p = np.array(
                [
                    [self.p_of(*one) for one in zip(*each, own.why_not, strict=True)]
                    for each in zip(
                        difference.tolist(), own.bias.tolist(), own.se.tolist(), strict=True
                    )
                ]
            )
        for q in range(len(self.plan.metrics)):
            why_not = [own.why_not[q]] * len(p)
            adjusted[:, q] = self.adjusted(
                p[:, q], difference[:, q], own.bias[:, q], own.se[:, q], own.draws[:, :, q], why_not
            )
        for i, (a, b) in enumerate(own.pairs):
            for q, row in enumerate(self.plan.metrics):
                d, se = float(difference[i, q]), float(own.se[i, q])
                pairs.append(
                    Pair(
                        self.names[a],
                        self.names[b],
                        row.name,
                        *self.numbers(d, se, float(own.bias[i, q]), own.why_not[q]),
                        float(p[i, q]),
                        float(adjusted[i, q]),
                        *self.seen(d, se, own.why_not[q]),
                    )
                )
        return pairs

    def classes(self) -> list[ClassPair]:
        """One `ClassPair` per pair, metric and class with objects; adjusted over the classes."""
        own, rows = self.paired, []
        for i, (a, b) in enumerate(own.pairs):
            for c, row in enumerate(self.plan.classes):
                differ = own.class_values[b, c] - own.class_values[a, c]
                mine = np.flatnonzero(~np.isnan(differ))
                se, bias = own.class_se[i, c], own.class_bias[i, c]
                why_not = [own.class_why_not[c][k] for k in mine]
                p = np.array(
                    [
                        self.p_of(float(differ[k]), float(bias[k]), float(se[k]), why)
                        for k, why in zip(mine, why_not, strict=True)
                    ]
                )
                adjusted = self.adjusted_classes(i, c, p, differ)
                for k, raw, fixed, why in zip(
                    mine.tolist(), p.tolist(), adjusted, why_not, strict=True
                ):
                    d, s = float(differ[k]), float(se[k])
                    rows.append(
                        ClassPair(
                            self.names[a],
                            self.names[b],
                            row.name,
                            *self.numbers(d, s, float(bias[k]), why),
                            raw,
                            fixed,
                            *self.seen(d, s, why),
                            self.plan.matches.categories.names[k],
                            int(self.plan.places[k]),
                        )
                    )

        def first_moved(one: ClassPair) -> tuple[float, float]:
            return (2.0 if math.isnan(one.p_adjusted) else one.p_adjusted, -abs(one.difference))

        return sorted(rows, key=first_moved)

    def adjusted_classes(
        self, i: int, c: int, p: NDArray[np.float64], differ: NDArray[np.float64]
    ) -> list[float]:
        """Adjusted p-values of the classes with a difference, of pair i and row c.

        Parameters
        ----------
        p : of these classes; differ : (K,) the differences, NaN if undefined
        """
        own, there = self.paired, ~np.isnan(differ)

        def adjusted(
            some: NDArray[np.int64], p: NDArray[np.float64], draws: NDArray[np.float64]
        ) -> list[float]:
            se, bias = own.class_se[i, c, some], own.class_bias[i, c, some]
            why_not = [own.class_why_not[c][k] for k in some.tolist()]
            return self.adjusted(p, differ[some], bias, se, draws, why_not)

        mine, nothing = np.flatnonzero(there), np.empty((len(own.class_draws), 0))
        if self.adjust != "maxt":
            return adjusted(mine, p, nothing)
        drawn = there[own.drawn]
        found = np.full(len(differ), np.nan)
        if self.trusted:  # a class without replicates has no test, but may not differ at all
            found[support.same(differ, own.class_se[i, c])] = 1.0
        some = own.drawn[drawn]
        found[some] = adjusted(some, p, own.class_draws[:, i, c][:, drawn])
        listed: list[float] = found[mine].tolist()
        return listed

    def adjusted(
        self,
        p: NDArray[np.float64],
        difference: NDArray[np.float64],
        bias: NDArray[np.float64],
        se: NDArray[np.float64],
        draws: NDArray[np.float64],
        why_not: Sequence[str],
    ) -> list[float]:
        """Adjusted p-values; missing ones are not counted."""
        if self.adjust == "maxt":
            untested = np.array(why_not, dtype=bool) & (se > support.ROUNDING)
            se = np.where(untested, np.nan, se)
            adjusted = multiple.maxt(difference - bias, se, draws - bias)
            return [x if self.trusted else math.nan for x in adjusted]
        if self.adjust == "none":
            return [float(x) for x in p]
        return multiple.holm(p.tolist()) if self.adjust == "holm" else multiple.bh(p.tolist())

    def numbers(
        self, d: float, se: float, bias: float, why_not: str
    ) -> tuple[float, float, float, float, float]:
        """Difference, standard error, low, high, bias."""
        if self.untested(d, se, why_not):
            return d, se, math.nan, math.nan, bias
        half = normal(1 - self.alpha / 2) * se
        return d, se, d - bias - half, d - bias + half, bias

    def seen(self, d: float, se: float, why_not: str) -> tuple[float, str]:
        """The minimum detectable difference, or why there is none.

        Source: the power of a two-sided z-test.
        """
        if why := self.untested(d, se, why_not):
            return math.nan, why
        return (normal(1 - self.alpha / 2) + normal(POWER)) * se, ""

    def untested(self, d: float, se: float, why_not: str) -> str:
        """Why there is no test; "" if nothing differs, because then none is needed."""
        still = support.no_spread(self.paired.units) if se <= support.ROUNDING else ""
        return "" if support.same(d, se) else why_not or still

    def images(self) -> list[tuple[str, str, str, float]]:
        """The images or groups that changed the first metric most, per pair."""
        own, rows = self.paired, []
        for a, b in own.pairs:
            apart = own.moved[b, 0] - own.moved[a, 0]
            for i in np.argsort(-np.abs(apart), kind="stable")[:SHOWN].tolist():
                if apart[i] != 0:
                    name = own.units.names[i]
                    rows.append((self.names[a], self.names[b], name, float(apart[i])))
        return rows

    def leaderboard(self, pairs: Sequence[Pair]) -> list[tuple[str, float, str]]:
        """The detectors by the first metric, with a letter per group without differences."""
        metric, values = self.plan.metrics[0].name, self.paired.values[:, 0]
        order = sorted(range(len(values)), key=lambda i: (-np.nan_to_num(values[i], nan=-1), i))
        place = {self.names[i]: at for at, i in enumerate(order)}
        apart = set()
        for pair in pairs:
            if pair.metric == metric and pair.p_adjusted < self.alpha:
                low, high = sorted((place[pair.a], place[pair.b]))
                apart.add((low, high))
        letters = [""] * len(order)
        tested = self.trusted and not any(p.why_not for p in pairs if p.metric == metric)
        together = multiple.groups(len(order), apart) if tested else []
        for number, members in enumerate(together):
            for at in members:
                letters[at] += _letter(number)
        return [(self.names[i], float(values[i]), letters[at]) for at, i in enumerate(order)]

    def notes(self, replicates: int = 0) -> tuple[Note, ...]:
        """Caveats; `replicates` is the number that the user wants."""
        notes, units = [], self.paired.units
        if not self.trusted:
            text = f"{units.noun} are fewer than {LEAST_UNITS}: no p-value is printed"
            notes.append(Note("few-images", text, units.n))
        n = len(self.paired.draws)
        if n < replicates:
            text = (
                f"classes are too many for {replicates} replicates, and no number has an interval: "
                f"standard errors are from {n} replicates"
            )
            notes.append(Note("fewer-replicates", text, len(self.plan.places)))
        if self.test == "plain-permutation":
            text = (
                "this test assumes exchangeable detectors, not only equal AP: its level is wrong "
                "if the scores have different scales; use --test permutation"
            )
            notes.append(Note("plain-permutation", text, 1))
        return tuple(notes)

    def signature(self, common: str, n: int, seed: int) -> str:
        """Signature of rules, data and method."""
        test = f"{self.test}+{self.adjust}"
        return f"{common}|{drawing_signature(test, n, seed, self.paired.units)}"


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else f"({number + 1})"
