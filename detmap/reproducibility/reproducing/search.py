"""Searches for the rules behind a published number: tools, changed rules and changed inputs.

>>> import detmap
>>> import detmap.reproducibility.reproducing.search
>>> from detmap.core.base.resources import folder
>>> sample = folder("datasets") / "shapes"
>>> truth = detmap.read_truth(sample)
>>> found = detmap.read_detections(sample / "detections" / "contours", truth)
>>> search = detmap.reproducibility.reproducing.search.reproduce("60.43", truth, found, depth=0)
>>> [each.rules for each in search.found][:2]
['voc2012', 'cartucho']
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from detmap import files as inputs
from detmap.core.adapters.truth_by_protocol import TruthByProtocol
from detmap.core.base.suggestions import did_you_mean
from detmap.core.base.sums import add_floats, add_integers
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol, load, names, tools
from detmap.core.protocol.default_protocol import choose_protocol
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.statistics.ties import evaluated
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError, DetmapError
from detmap.files import takes_reading
from detmap.reproducibility.parity.restated_tools import MatchedLast, count_pairs, limit_crowds
from detmap.reproducibility.reproducing import changed_rules
from detmap.reproducibility.reproducing.changed_inputs import Supposition, suppositions
from detmap.reproducibility.reproducing.printed_numbers import Wanted, parse

Progress = Callable[[str, int, int], None]

KINDS = ("named", "tie order", "one change", "two changes", "input", "input and change")
"""How a number was found, from likely to unlikely: the rules of a tool as they are, with another
order of equal scores, with rules changed; of another input; of another input by a changed rule.
"""

NEAR = 0.005  # of a fraction: what is close enough to look at orders of ties, and at chance
FEW = 20_000  # detections up to which orders of ties are looked at wherever the number is
NEAREST = 5
MOST_SHOWN = 20  # of each kind in a table
MOST_ROWS = {"input": 100_000_000, "input and change": 50_000_000}
"""Detections that are evaluated at most, over all rules, of inputs that are changed,"""
EVALUATIONS = 150
"""Evaluations that compare every pair of an image and class, about."""
MOST_COMPARED, COMPARED_PER_ROW = 400_000_000, 100_000
"""Pairs of an image and class in all evaluations: about 20 s of processor time in a crowd."""
MOST_CLASSES, CLASSES_PER_ROW = 1_500_000, 45
"""Classes in all evaluations: about 10 s of processor time of thousands of classes."""
ORDERS, OF_TIES = 20, 5  # random orders of tied scores, and evaluations that take as long as these
LEAST_RULES = 8  # and the rules that each is evaluated under even so: those that come closest


@dataclass(frozen=True, slots=True)
class Candidate:
    """Rules and their number.

    Parameters
    ----------
    kind : of `KINDS`
    rules : name of the protocol
    changes : dotted keys and their changed values
    metric : name of the number in the result
    value : a fraction
    order : number of the random order of tied scores that gives the value; for `tie order` only
    input : name and text of the changed input; None for the given one
    """

    kind: str
    rules: str
    changes: tuple[tuple[str, str], ...]
    metric: str
    value: float
    order: int | None = None
    input: tuple[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": self.kind,
            "rules": self.rules,
            "changes": dict(self.changes),
            "metric": self.metric,
            "value": self.value,
            "order": self.order,
            "input": self.input and {"name": self.input[0], "text": self.input[1]},
        }


@dataclass(frozen=True, slots=True)
class Chance:
    """The probability of accidental hits.

    Parameters
    ----------
    tried : how many numbers were compared
    expected : how many of them would round to a random number of this precision nearby
    """

    tried: int
    expected: float


@dataclass(frozen=True, slots=True)
class Search(Tabular):
    """The result of a search.

    Parameters
    ----------
    wanted : the number
    found : rules that give it, most likely first; no changes of rules that give it unchanged
    nearest : the closest ones, if none gives it
    chances : per searched kind
    untried : what was left out, a sentence each
    """

    wanted: Wanted
    found: tuple[Candidate, ...]
    nearest: tuple[Candidate, ...]
    chances: Mapping[str, Chance]
    untried: tuple[str, ...] = ()

    @property
    def tried(self) -> int:
        """How many numbers were compared."""
        return add_integers(each.tried for each in self.chances.values())

    @property
    def expected_hits(self) -> float:
        """The expected number of accidental hits."""
        return add_floats(each.expected for each in self.chances.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "target": self.wanted.text,
            "found": [each.to_dict() for each in self.found],
            "nearest": [each.to_dict() for each in self.nearest],
            "tried": self.tried,
            "untried": list(self.untried),
            "by_chance": self.expected_hits,
            "chances": {
                kind: {"tried": each.tried, "by_chance": each.expected}
                for kind, each in self.chances.items()
            },
        }

    def tables(self) -> list[Table]:
        """Returns the table ``rules``: the first matches of each kind, or the nearest rules."""
        digits, scale = self.wanted.digits + 2, self.wanted.scale
        rows, lines = [], []
        for kind in KINDS:
            mine = [each for each in self.found or self.nearest if each.kind == kind]
            rows += [
                (kind, each.rules, each.metric, f"{scale * each.value:.{digits}f}", described(each))
                for each in mine[:MOST_SHOWN]
            ]
            if len(mine) > MOST_SHOWN:
                lines.append(f"{len(mine) - MOST_SHOWN} more by {kind}: see --format json")
            if kind in self.chances:
                tried, expected = self.chances[kind].tried, self.chances[kind].expected
                lines.append(
                    f"{kind}: {tried} numbers tried, {expected:.2g} expected to match by chance"
                )
        text = self.wanted.text
        found = f"rules that reproduce {text}"
        none = f"none of {self.tried} numbers rounds to {text}; the nearest"
        header = ("found by", "rules", "metric", "value", "changes")
        below = (*lines, *self.untried)
        title = found if self.found else none
        return [Table(title, header, tuple(rows), below, name="rules")]


@takes_reading
def reproduce(
    number: str | float,
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None = None,
    *,
    metric: str | None = None,
    depth: int = 2,
    others: Iterable[Supposition] = (),
    threads: int | None = None,
    progress: Progress = lambda kind, done, of: None,
    settings: Mapping[str, Any] | None = None,
    **reading: Any,
) -> Search:
    """Searches for rules that give a number.

    >>> import detmap
    >>> detections = "shapes/detections/contours"
    >>> found = detmap.reproduce("60.08", "shapes", detections, depth=0, metric="mAP")
    >>> [each.rules for each in found.found][:2]
    ['darknet-11', 'voc-devkit-07']

    Parameters
    ----------
    number : as printed; a float has no trailing zeros
    truth, detections, protocol, settings : as in `detmap.evaluate`; the roles of a `Truth` are
        those of all rules, a `TruthByProtocol` has those of each
    metric : name of the number; by default the first metric, AP50 and AP75
    depth : 0: named protocols and tools, and their orders of tied scores; 1: also one change of the
        default protocol and of the closest tools, and changed inputs under the named tools
        (`detmap.reproducibility.reproducing.changed_inputs`); 2: if nothing was found, also two
        changes of the default protocol, and changed inputs with one change
    others : further inputs, such as another split
    threads : how many to use
    progress : callback with kind, done and total
    reading : options of ``detmap reproduce``: ``split``, ``truth_format``, ``unknown`` ...

    Raises
    ------
    DataError : not a number, no rules have the metric, or too crowded images
    """
    wanted = parse(str(number))
    if depth not in (0, 1, 2):
        raise DataError("reproduce: depth", f"{depth!r}", "give 0, 1 or 2")
    if not isinstance(truth, TruthByProtocol):
        read = inputs.read(truth, detections, protocol, settings, reading)
        truth, detections = read.truths, read.detections
    truths: TruthByProtocol = truth
    limit_crowds("reproduce", truths.first, detections, EVALUATIONS)
    seen = _Seen(truths, detections, wanted, metric, others, threads)
    stock = choose_protocol(None, truths.first)
    shipped = [load(name) for name in (*names(), *tools())]
    boxes = [rules for rules in shipped if rules.iou.of == "boxes" and not rules.groups]
    every = list(changed_rules.ordered([*boxes, *([] if stock in boxes else [stock])]))
    seen.look("named", every, progress)
    if metric is not None and metric not in seen.metrics:
        hint = did_you_mean("metric", metric, seen.metrics)
        fix = f"{hint}there are {', '.join(seen.metrics)}"
        raise DataError("reproduce: metric", f"no rules have {metric!r:.40}", fix)
    seen.orders_of_ties(every)
    if depth >= 1:
        around = {protocol_digest(rules): rules for rules in [stock, *seen.closest(every, 8)]}
        singles = [
            changed for rules in around.values() for changed in changed_rules.changed(rules, 1)
        ]
        seen.look("one change", list(changed_rules.ordered(singles)), progress)
        unlike = changed_rules.different([stock, *seen.closest(every, len(every))])
        seen.suppose("input", unlike, progress)
    if depth == 0:
        seen.untried.append("changed rules and changed inputs: not tried at depth 0")
    elif depth == 1 or seen.found:
        why = "after a match" if seen.found else "at depth 1"
        seen.untried.append(f"two changed rules, and changed inputs with a rule: not tried {why}")
    else:
        seen.look(
            "two changes", list(changed_rules.ordered(changed_rules.changed(stock, 2))), progress
        )
        seen.suppose("input and change", list(changed_rules.changed(stock, 1)), progress)
    return seen.search()


class _Seen:
    """All numbers that were tried."""

    def __init__(
        self,
        truths: TruthByProtocol,
        detections: Detections,
        wanted: Wanted,
        metric: str | None,
        others: Iterable[Supposition],
        threads: int | None,
    ) -> None:
        self.truths, self.detections, self.threads = truths, detections, threads
        self.others, self._inputs = list(others), dict[int, list[Supposition]]()
        self.wanted, self.metric = wanted, metric
        self.digests: set[str] = set()
        self.metrics: dict[str, None] = {}
        self.all: list[Candidate] = []
        self.found: list[Candidate] = []
        self.known = MatchedLast(truths, detections, threads)
        self.untried: list[str] = []
        n_rows = len(truths.first) + len(detections)
        most = max(MOST_COMPARED, COMPARED_PER_ROW * n_rows)
        n_classes = max(MOST_CLASSES, CLASSES_PER_ROW * n_rows) // max(
            1, len(detections.categories)
        )
        n_pairs = most // max(1, count_pairs(truths.first, detections))
        self.left = max(LEAST_RULES, min(n_pairs, n_classes))

    def _spend(self, kind: str, done: int, n: int, times: int = 1) -> bool:
        """Counts an evaluation; False, with a sentence in `untried`, if none is left."""
        self.left -= times
        if self.left < 0:
            self.untried.append(
                f"{kind}: {done} of {n} evaluations were made, because the images are crowded or "
                "the classes many"
            )
        return self.left >= 0

    def look(self, kind: str, rules: list[Protocol], progress: Progress) -> None:
        """Evaluates under each protocol that was not tried before."""
        for done, each in enumerate(rules, 1):
            progress(kind, done, len(rules))
            digest = protocol_digest(each)
            if digest in self.digests and kind != KINDS[0]:
                continue
            if not self._spend(kind, done - 1, len(rules)):
                return
            self.digests.add(digest)
            for name, value in self._numbers(self.known, each):
                self._take(Candidate(kind, each.name, each.changes, name, value))

    def suppose(self, kind: str, rules: list[Protocol], progress: Progress) -> None:
        """Evaluates changed inputs, under the closest rules if there are too many; skips equal
        numbers.
        """
        inputs = self._inputs_of(self.truths.first)
        rows = max(1, len(inputs) * len(self.detections))
        some = list(changed_rules.ordered(rules[: max(LEAST_RULES, MOST_ROWS[kind] // rows)]))
        if inputs and len(some) < len(rules):
            self.untried.append(
                f"{kind}: {len(inputs)} changed inputs were evaluated under the {len(some)} "
                f"closest of {len(rules)} rules, which limits the time"
            )
        before = {(each.rules, each.changes, each.metric, each.value) for each in self.all}
        work = [
            (one, mine)
            for truth, mine in self._group_by_truth(some)
            for one in self._inputs_of(truth)
        ]
        done, total = 0, sum(len(mine) for _, mine in work)
        for supposed, mine in work:
            known = MatchedLast(*supposed.make(), self.threads)
            for each in mine:
                if not self._spend(kind, done, total):
                    return
                progress(kind, done := done + 1, total)
                for name, value in self._numbers(known, each):
                    if (each.name, each.changes, name, value) not in before:
                        told = supposed.name, supposed.text
                        self._take(
                            Candidate(kind, each.name, each.changes, name, value, input=told)
                        )

    def _group_by_truth(self, rules: list[Protocol]) -> list[tuple[Truth, list[Protocol]]]:
        """The rules of each table of ground truth, in order."""
        found: dict[int, tuple[Truth, list[Protocol]]] = {}
        for each in rules:
            truth = self.truths.table(each)
            found.setdefault(id(truth), (truth, []))[1].append(each)
        return list(found.values())

    def _inputs_of(self, truth: Truth) -> list[Supposition]:
        """The changed inputs of a table of ground truth."""
        if id(truth) not in self._inputs:
            self._inputs[id(truth)] = [*self.others, *suppositions(truth, self.detections)]
        return self._inputs[id(truth)]

    def _take(self, candidate: Candidate) -> None:
        self.all.append(candidate)
        if self.wanted.prints(candidate.value):
            self.found.append(candidate)

    def orders_of_ties(self, rules: list[Protocol]) -> None:
        """Finds named rules with a close number that another order of tied scores would give."""
        near = {
            each.rules
            for each in self.all
            if (len(self.detections) <= FEW or abs(each.value - self.wanted.value) <= NEAR)
            and not self.wanted.prints(each.value)
        }
        some = [each for each in rules if each.name in near and each.ranking.of == "class"]
        for done, each in enumerate(some):
            if not self._spend("tie order", done, len(some), OF_TIES):
                return
            try:
                result, tables = self.known.result(each), (self.truths.table(each), self.detections)
                known = result.matches, result.scores, tables
                names, own, drawn = evaluated(*known, ORDERS, seed=0, threads=self.threads)
            except DetmapError:  # without an order of tied scores
                continue
            for name, _ in self._numbers(self.known, each):
                if name not in names:
                    continue
                q = names.index(name)
                seen = {float(own[q])}
                for order, value in enumerate(drawn[:, q].tolist()):
                    if value in seen:
                        continue
                    seen.add(value)
                    self.all.append(Candidate("tie order", each.name, (), name, value, order))
                    if self.wanted.prints(value) and not self.wanted.prints(float(own[q])):
                        self.found.append(self.all[-1])

    def closest(self, rules: list[Protocol], n: int) -> list[Protocol]:
        """The n rules with the closest numbers."""
        distance = {each.name: float("inf") for each in rules}
        for each in self.all:
            if each.rules in distance and each.kind == KINDS[0]:
                off = abs(each.value - self.wanted.value)
                distance[each.rules] = min(distance[each.rules], off)
        return sorted(rules, key=lambda each: (distance[each.name], each.name))[:n]

    def search(self) -> Search:
        """The result, ordered by kind, by search order, and with the default protocol first."""
        stock = choose_protocol(None, self.truths.first).name
        plain = {each.rules for each in self.found if each.kind == KINDS[0]}
        news = [each for each in self.found if each.kind in KINDS[:2] or each.rules not in plain]
        inputs = list(dict.fromkeys(each.input for each in news))
        found = sorted(
            news,
            key=lambda each: (
                KINDS.index(each.kind),
                inputs.index(each.input),
                each.rules != stock,
                each.rules,
                each.changes,
            ),
        )
        off = sorted(self.all, key=lambda each: abs(each.value - self.wanted.value))
        nearest = [each for each in off if each.input is None][:NEAREST]
        nearest += [each for each in off if each.input is not None][:NEAREST]
        nearest = [] if found else nearest
        chances, untried = self._chances(), tuple(self.untried)
        return Search(self.wanted, tuple(found), tuple(nearest), chances, untried)

    def _chances(self) -> dict[str, Chance]:
        """The expected number of accidental hits per kind, from the density of nearby numbers."""
        near = max(NEAR, 10 * self.wanted.width)
        chances = {}
        for kind in KINDS:
            mine = [each for each in self.all if each.kind == kind]
            beside = sum(abs(each.value - self.wanted.value) <= near for each in mine)
            if mine:
                chances[kind] = Chance(len(mine), beside * self.wanted.width / (2 * near))
        return chances

    def _numbers(self, known: MatchedLast, rules: Protocol) -> Iterator[tuple[str, float]]:
        """The metrics to compare; none if the rules need data that the tables lack."""
        known.truths.table(rules)  # an error in the file is no lack of data
        try:
            result = known.result(rules)
        except DetmapError:
            return
        first = True
        self.metrics |= dict.fromkeys(result.metrics)
        for name, value in result.metrics.items():
            wanted = name == self.metric if self.metric else first or name in ("AP50", "AP75")
            first = False
            if wanted and value == value:
                yield name, value


def described(candidate: Candidate) -> str:
    """Describes the changes in short."""
    if candidate.order is not None:
        return f"random order {candidate.order + 1} of tied scores"
    rules = [f"{key}={value}" for key, value in candidate.changes]
    if candidate.input is None:
        return "; ".join(rules)
    name, text = candidate.input
    return "; ".join((f"{name}: {text}", *rules))
