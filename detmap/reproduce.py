"""Which rules print a published number: named tools, then one and two changes of rules around them.

>>> import detmap
>>> from detmap.resources import folder
>>> sample = folder("datasets") / "shapes"
>>> truth = detmap.read_truth(sample)
>>> found = detmap.read_detections(sample / "detections" / "contours", truth)
>>> search = detmap.reproduce.reproduce("60.38", truth, found, depth=0)
>>> [each.rules for each in search.found]
['ultralytics-8.4']
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from detmap.errors import DataError, ProtocolError
from detmap.evaluate import choose_protocol, summarize
from detmap.matching import match
from detmap.protocol import Protocol, load, names, tools
from detmap.result import Result
from detmap.signature import protocol_digest
from detmap.statistics.ties import ties
from detmap.tables import Detections, Truth
from detmap.tools import matching_rules

Settings = Mapping[str, Any]

SWITCHES: tuple[tuple[str, tuple[Settings, ...]], ...] = (
    (
        "integrator",
        tuple(
            {"ap.integrator": name}
            for name in ("eleven_point", "all_points", "grid_envelope", "step")
        ),
    ),
    ("extent of a box", ({"boxes.extent": "continuous"}, {"boxes.extent": "inclusive"})),
    ("who takes an object", ({"matching.rule": "best_free"}, {"matching.rule": "best_any"})),
    ("comparison", ({"iou.comparison": ">="}, {"iou.comparison": ">"})),
    (
        "difficult objects",
        tuple({"matching.neutral.difficult": role} for role in ("ignore", "absorb", "count")),
    ),
    ("limit", ({"limits.max_dets": []}, {"limits.max_dets": [100]}, {"limits.max_dets": [300]})),
    (
        "IoU thresholds",
        tuple(
            {"iou.thresholds": value} for value in ("0.5:0.05:0.95", [0.5], [0.6], [0.7], [0.75])
        ),
    ),
    ("equal scores", ({"ranking.ties": "image"}, {"ranking.ties": "input"})),
    ("classes without objects", ({"mean.undefined": "skip"}, {"mean.undefined": "zero"})),
    (
        "confidence cut",
        tuple(
            {"detections.above": [cut]} for cut in (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.3, 0.5)
        ),
    ),
    ("scores as text", ({"detections.score_decimals": 3}, {"detections.score_decimals": 2})),
    ("boxes as text", ({"detections.box_decimals": 0}, {"detections.box_decimals": 1})),
    ("0-based boxes of the truth", ({"boxes.object_shift": -1},)),
    ("mean", ({"mean.weights": "objects"}, {"ap.pool": "all"})),
)
"""What people set otherwise, each with its values: what is changed in the search."""

KINDS = ("named", "tie order", "one change", "two changes")
"""How a number was found, from likely to unlikely."""

NEAR = 0.005  # of a fraction: what is close enough to look at orders of ties, and at chance
FEW = 20_000  # detections up to which orders of ties are looked at wherever the number is
NEAREST = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """A printed number.

    Parameters
    ----------
    text : its digits, without a percent sign
    scale : 100 for points, 1 for a fraction
    digits : after the point
    """

    text: str
    scale: float
    digits: int

    @property
    def value(self) -> float:
        """The middle, as a fraction."""
        return float(self.text) / self.scale

    @property
    def width(self) -> float:
        """How many fractions print so."""
        return float(10.0**-self.digits) / self.scale

    def prints(self, value: float) -> bool:
        """Whether a fraction prints as these digits, rounded either way where it is halfway."""
        return abs(value - self.value) <= self.width / 2 * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Rules, and the number that they give.

    Parameters
    ----------
    kind : of `KINDS`
    rules : name of the protocol
    changes : what is changed of it, dotted keys and values
    metric : which number of the result
    value : a fraction
    bounds : the least and most that any order of equal scores gives; for `tie order` only
    """

    kind: str
    rules: str
    changes: tuple[tuple[str, str], ...]
    metric: str
    value: float
    bounds: tuple[float, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": self.kind,
            "rules": self.rules,
            "changes": dict(self.changes),
            "metric": self.metric,
            "value": self.value,
            "bounds": None if self.bounds is None else list(self.bounds),
        }


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found.

    Parameters
    ----------
    wanted : the number
    found : rules that print it, from likely to unlikely; no changes of those that print it as is
    nearest : where none does, those that come closest
    tried : how many rules were tried
    by_chance : how many of them one would expect to print some number near by, of as many digits
    """

    wanted: Wanted
    found: tuple[Candidate, ...]
    nearest: tuple[Candidate, ...]
    tried: int
    by_chance: float


def parse(text: str) -> Wanted:
    """A number as it was printed: ``72.1``, ``72.1%``, ``0.721``.

    Raises
    ------
    DataError : it is none between 0 and 100
    """
    digits = text.strip().removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{0,12})?|\.[0-9]{1,12}", digits):
        raise DataError("reproduce", f"{text!r:.40} is no number", "give one as printed, 72.1")
    value, after = float(digits), len(digits.partition(".")[2])
    fraction = value <= 1 and after > 0 and "%" not in text
    if value > 100:
        raise DataError("reproduce", f"{text!r:.40} is above 100", "give one as printed, 72.1")
    return Wanted(digits, 1.0 if fraction else 100.0, after)


def reproduce(
    number: str,
    truth: Truth,
    detections: Detections,
    *,
    metric: str | None = None,
    depth: int = 2,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Search:
    """Search for rules that print a number.

    Parameters
    ----------
    number : as it was printed
    truth, detections : tables with boxes
    metric : which number of a result; the first one, AP50 and AP75 when left out
    depth : 0: named protocols and tools, and the orders of their ties; 1: also one change of a rule
        around the benchmark's protocol and the tools that come closest; 2: also two changes around
        the benchmark's protocol
    threads : how many to use
    progress : told how many rules were tried, of how many

    Raises
    ------
    DataError : the number is none
    """
    wanted = parse(number)
    if depth not in (0, 1, 2):
        raise DataError("reproduce: depth", f"{depth!r}", "give 0, 1 or 2")
    seen = _Seen(truth, detections, wanted, metric, threads)
    stock = choose_protocol(None, truth)
    shipped = [load(name) for name in (*names(), *tools())]
    boxes = [rules for rules in shipped if rules.iou.of == "boxes" and not rules.groups]
    every = list(_ordered(rules for rules in boxes))
    seen.look("named", every, progress)
    seen.orders_of_ties(every)
    if depth >= 1:
        around = {protocol_digest(rules): rules for rules in [stock, *seen.closest(every, 8)]}
        singles = [changed for rules in around.values() for changed in _changed(rules, 1)]
        seen.look("one change", list(_ordered(singles)), progress)
    if depth >= 2 and not seen.found:
        seen.look("two changes", list(_ordered(_changed(stock, 2))), progress)
    return seen.search()


class _Seen:
    """What was tried so far."""

    def __init__(
        self,
        truth: Truth,
        detections: Detections,
        wanted: Wanted,
        metric: str | None,
        threads: int | None,
    ) -> None:
        self.truth, self.detections, self.threads = truth, detections, threads
        self.wanted, self.metric = wanted, metric
        self.digests: set[str] = set()
        self.all: list[Candidate] = []
        self.found: list[Candidate] = []
        self._last: tuple[str, Any] = ("", None)

    def look(self, kind: str, rules: list[Protocol], progress: Callable[[int, int], None]) -> None:
        """Evaluate under each, unless under the same rules before."""
        for done, each in enumerate(rules):
            progress(done, len(rules))
            digest = protocol_digest(each) if kind != "named" else f"{each.name} {done}"
            if digest in self.digests:
                continue
            self.digests |= {digest, protocol_digest(each)}
            for name, value in self._numbers(self._result(each)):
                candidate = Candidate(kind, each.name, each.changes, name, value)
                self.all.append(candidate)
                if self.wanted.prints(value):
                    self.found.append(candidate)

    def orders_of_ties(self, rules: list[Protocol]) -> None:
        """Look whether another order of equal scores prints the number, under the named rules whose
        own number is near.
        """
        near = {
            each.rules
            for each in self.all
            if (len(self.detections) <= FEW or abs(each.value - self.wanted.value) <= NEAR)
            and not self.wanted.prints(each.value)
        }
        for each in rules:
            if each.name not in near or each.ranking.of != "class":
                continue
            result = self._result(each)
            try:
                bounds = ties(result.matches, result.scores, orders=1, threads=self.threads)
            except ProtocolError:  # the bounds know the rules of benchmarks only
                continue
            for name, value in self._numbers(result):
                if name not in bounds or self.wanted.prints(value):
                    continue
                low, high = bounds[name].low, bounds[name].high
                half = self.wanted.width / 2
                if low - half <= self.wanted.value <= high + half:
                    self.found.append(
                        Candidate("tie order", each.name, (), name, value, (low, high))
                    )

    def closest(self, rules: list[Protocol], n: int) -> list[Protocol]:
        """The n rules whose number is closest."""
        distance = {each.name: float("inf") for each in rules}
        for each in self.all:
            if each.rules in distance:
                off = abs(each.value - self.wanted.value)
                distance[each.rules] = min(distance[each.rules], off)
        return sorted(rules, key=lambda each: (distance[each.name], each.name))[:n]

    def search(self) -> Search:
        """All in order."""
        order = {kind: place for place, kind in enumerate(KINDS)}
        plain = {each.rules for each in self.found if each.kind == KINDS[0]}
        news = [each for each in self.found if each.kind in KINDS[:2] or each.rules not in plain]
        found = sorted(news, key=lambda each: (order[each.kind], each.rules, each.changes))
        off = sorted(self.all, key=lambda each: abs(each.value - self.wanted.value))
        near = max(NEAR, 10 * self.wanted.width)
        beside = sum(abs(each.value - self.wanted.value) <= near for each in self.all)
        return Search(
            self.wanted,
            tuple(found),
            () if found else tuple(off[:NEAREST]),
            len(self.digests),
            beside * self.wanted.width / (2 * near),
        )

    def _result(self, rules: Protocol) -> Result:
        key = matching_rules(rules)
        if self._last[0] != key:  # neighbours in the order match alike
            self._last = key, match(self.truth, self.detections, rules, threads=self.threads)
        found = self._last[1]
        same = found if found.protocol == rules else replace(found, protocol=rules)
        return summarize(same, threads=self.threads)

    def _numbers(self, result: Result) -> Iterator[tuple[str, float]]:
        first = True
        for name, value in result.metrics.items():
            wanted = name == self.metric if self.metric else first or name in ("AP50", "AP75")
            first = False
            if wanted and value == value:
                yield name, value


def _ordered(rules: Any) -> Iterator[Protocol]:
    """Those that match alike one after the other, so that they are matched once."""
    groups: dict[str, list[Protocol]] = {}
    for each in rules:
        groups.setdefault(matching_rules(each), []).append(each)
    for group in groups.values():
        yield from group


def _changed(rules: Protocol, n: int) -> Iterator[Protocol]:
    """The protocol with n switches changed, where the language allows it."""
    for switches in itertools.combinations(SWITCHES, n):
        for values in itertools.product(*(options for _, options in switches)):
            settings = {key: value for each in values for key, value in each.items()}
            try:
                changed = rules.override(settings)
            except ProtocolError:
                continue
            if len(changed.changes) >= n:
                yield changed


def described(candidate: Candidate) -> str:
    """What is changed, in short."""
    if candidate.bounds is not None:
        low, high = (100 * value for value in candidate.bounds)
        return f"orders of equal scores give {low:.4f} to {high:.4f}"
    return "; ".join(f"{key}={value}" for key, value in candidate.changes)
