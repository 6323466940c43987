"""Explains why two numbers differ: two protocols on the same files, or two inputs under one
protocol.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core.adapters import options_of, read_detections
from detmap.core.adapters.truth_by_protocol import TruthByProtocol, truth_by_protocol
from detmap.core.base.suggestions import metric_key, proposes_arguments
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.overlaps import kind_of
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import prepare
from detmap.core.tables import FLAGS, Detections, Truth
from detmap.core.tables.extension import extended
from detmap.core.tables.grouping import positions
from detmap.errors import DataError
from detmap.evaluate import read_truth_and_protocol, summarize
from detmap.reproducibility.explaining import input_changes, sentences
from detmap.reproducibility.explaining.deciding_examples import Side, classes_moved, decided, number
from detmap.reproducibility.explaining.shapley import averaged
from detmap.reproducibility.explaining.steps import ClassMove, Decided, Explanation, Step, walk
from detmap.reproducibility.explaining.switches import SWITCHES, Switch, between, changed
from detmap.reproducibility.parity.restated_tools import MatchedOnce, headline, limit_crowds

FIRST = "first"
"""The first metric of each protocol, in place of the name of a metric."""
EVALUATIONS = 8
"""Evaluations that compare every pair of an image and class, about."""

__all__ = ["SWITCHES", "ClassMove", "Decided", "Explanation", "Step", "Switch", "explain"]


@proposes_arguments
def explain(
    truth: Any,
    detections: Any,
    start: Protocol | str | None = None,
    end: Protocol | str | None = None,
    *,
    other_truth: Any = None,
    other_detections: Any = None,
    settings: Mapping[str, Any] | None = None,
    metric: str | None = None,
    shapley: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> Explanation:
    """Changes one protocol into another, switch by switch; or one input into another, part by part.

    The numbers at both ends equal those of `detmap.evaluate` in every bit. The changes are
    differences of floats as fractions, so they add up exactly.

    >>> import detmap
    >>> detections = "shapes/detections/contours"
    >>> found = detmap.explain("shapes", detections, "voc2012", "voc2007")
    >>> [(step.name, round(float(step.change), 4)) for step in found.steps]
    [('integration', -0.0034)]

    Parameters
    ----------
    truth, detections : as in `detmap.evaluate`. A path or a `TruthByProtocol` gives each protocol
        the flags that it reads; both share those of a table
    start, end : protocols, their names or paths; for two inputs `start` alone, by default the
        protocol of the ground truth's format
    other_truth, other_detections : the other input; the same by default
    settings : changed keys of both protocols
    metric : ``AP``, or AP at one IoU (``AP50``), under the rules of both protocols; or ``first``,
        the first metric of each (default: the same, or if these are at different IoU thresholds,
        AP at one that both have)
    shapley : also average each switch over the orders of all switches: all orders if up to eight
        switches matter, else 64 random orders
    seed : of the random orders
    threads : default: all processors

    Raises
    ------
    DataError : wrong input, or an undefined number
    ProtocolError : an unknown protocol, key or value
    """
    path, known = truth, truth.first if isinstance(truth, TruthByProtocol) else truth
    table, first = read_truth_and_protocol(known, start, settings)
    if end is None:
        first = _restricted(first, metric)
    if not isinstance(detections, Detections):
        detections = _read(detections, table, first)
    if (other_truth is None and other_detections is None) == (end is None):
        raise DataError(
            "explain",
            "two protocols or two inputs are required",
            "give end=, other_truth= or other_detections=",
        )
    if end is None:
        other = _other(table, detections, other_truth, other_detections, first)
        return _explain_inputs((table, detections), other, first, shapley=shapley, seed=seed)
    last = prepare(end, settings)
    common = _common_metric(first, last) if metric is None else metric
    first, last = (_restricted(rules, common) for rules in (first, last))
    truths = path if isinstance(path, TruthByProtocol) else truth_by_protocol(path, table, first)
    found = _explain_rules(
        truths, detections, first, last, shapley=shapley, seed=seed, threads=threads
    )
    if common is None or common == FIRST:
        return found
    steps = [each for each in found.steps if each.name != "headline" or each.change]
    chosen = f"{common}: both protocols have it, and their first metrics are at other thresholds"
    remark = "" if metric else chosen
    return replace(found, steps=tuple(steps), remark=remark)  # both ends have the metric


def _common_metric(one: Protocol, two: Protocol) -> str | None:
    """AP at an IoU threshold of both, if the first metrics are AP at different thresholds."""
    if {one.evaluation.rule, two.evaluation.rule} != {"matching"}:
        return None
    rows = [each.rows()[0][0] for each in (one, two)]
    used = [
        {round(iou, 6) for iou in each.axes().thresholds} if row.iou is None else {row.iou}
        for each, row in zip((one, two), rows, strict=True)
    ]
    known = set(one.axes().thresholds) & set(two.axes().thresholds)
    whole = sorted(each for each in known if round(each * 100, 6) % 1 == 0)
    if {row.kind for row in rows} != {"AP"} or used[0] == used[1] or not whole:
        return None
    return f"AP{round(100 * (0.5 if 0.5 in whole else whole[0]))}"


def _restricted(rules: Protocol, metric: str | None) -> Protocol:
    """A protocol with one metric; None, `FIRST`: as it is."""
    if metric is None or metric == FIRST:
        return rules
    key = re.fullmatch(r"ap(\d\d)?", metric_key(metric))
    if key is None:
        fix = "choose AP, AP at one IoU such as AP50, or first, the first metric of each"
        raise DataError("explain: metric", f"{metric!r:.40} is not an AP", fix)
    rules.rows()  # a benchmark's own rule is refused by name
    main = rules.subsets[rules.subset()]
    alone = replace(rules, subsets=(main,), groups=(), metrics=(key[0].upper(),))
    return alone.override({"iou.thresholds": [int(key[1]) / 100]}) if key[1] else alone


Input = tuple[Truth, Detections]
FLAGS_READ = "flags"


def _assigned(tables: Input, rules: Protocol, threads: int | None = None) -> Matches:
    """The matches, with assignments unless the subsets have boxes or margins of their own."""
    taken = not (rules.boxes.aspect or rules.detections.margins)
    return match(*tables, rules, threads=threads, taken=taken)


def _explain_rules(
    truths: TruthByProtocol,
    detections: Detections,
    first: Protocol,
    last: Protocol,
    *,
    shapley: bool,
    seed: int,
    threads: int | None,
) -> Explanation:
    """Changes one protocol into another; parameters as in `explain`."""
    if kind_of(first.iou.of).reader is not kind_of(last.iou.of).reader:
        raise DataError(
            "explain",
            f"{first.name} compares {first.iou.of}, {last.name} {last.iou.of}",
            "give two protocols of one kind",
        )
    tables = _both_tables(truths, first, last)
    limit_crowds("explain", truths.first, detections, EVALUATIONS)
    rows = [_relabel(table, detections) for table in tables]
    known = [MatchedOnce(*each, threads) for each in zip(tables, rows, strict=True)]
    values: dict[frozenset[str], float] = {}

    def value(taken: frozenset[str]) -> float:
        if taken not in values:
            values[taken] = number(known[FLAGS_READ in taken].result(between(first, last, taken)))
        return values[taken]

    switches = changed(first, last)
    parts = [(each.switch.name, each.switch.title, str(each)) for each in switches]
    parts = [*_flags_read(*tables), *parts]
    steps, orders = walk(parts, value), 0
    words = {each.switch.name: sentences.of(each.keys) for each in switches}
    steps = tuple(replace(each, sentence=words.get(each.name, "")) for each in steps)
    if shapley and steps:
        steps, orders = averaged(steps, value, seed)
    one, two = (
        summarize(_assigned(each, rules, threads), threads=threads)
        for each, rules in zip(zip(tables, rows, strict=True), (first, last), strict=True)
    )
    moves = classes_moved(one, two)
    (name, before), (metric, after) = headline(one), headline(two)
    return Explanation(
        first.name,
        last.name,
        (name, metric),
        before,
        after,
        steps,
        moves,
        decided(
            Side(*first.classes.rename(tables[0], rows[0]), one),
            Side(*last.classes.rename(tables[1], rows[1]), two),
            moves,
        ),
        seed,
        orders,
    )


def _both_tables(truths: TruthByProtocol, first: Protocol, last: Protocol) -> tuple[Truth, Truth]:
    """The ground truth for either end, with what both name, because a step between them may need
    it; the flags of formats as each reads them.
    """
    one, two = truths.table(first), truths.table(last)
    if len(one) != len(two):  # one has the objects of classes that the other protocol does not read
        return one, two
    roles = {**one.roles, **two.roles}
    named = {name: column for name, column in roles.items() if name not in FLAGS}
    numbers = {**one.attributes, **two.attributes}
    one = replace(one, roles={**named, **one.roles}, attributes=numbers)
    same = one.roles.keys() == {*named, *two.roles}
    return one, one if same else replace(two, roles={**named, **two.roles}, attributes=numbers)


def _relabel(truth: Truth, detections: Detections) -> Detections:
    """The detections in the classes of a ground truth, if it has those of every row."""
    found, known = extended(detections, truth), truth.categories
    label = positions(known.ids, found.categories.ids)[found.label]
    if found.categories == known or (label < 0).any():
        return found
    return replace(found, categories=known, label=label.astype(np.int32))


def _flags_read(one: Truth, two: Truth) -> list[tuple[str, str, str]]:
    """The part of a change that is in the flags: one end reads some that the other does not."""
    if len(one) != len(two):
        text = f"objects: {len(one)} -> {len(two)}, in the classes that each protocol reads"
        return [(FLAGS_READ, "objects of further classes in the file", text)]
    texts = [f"{name}: read -> not read" for name in one.roles if name not in two.roles]
    texts += [f"{name}: not read -> read" for name in two.roles if name not in one.roles]
    return [(FLAGS_READ, "flags of objects in the file", "; ".join(texts))] if texts else []


def _other(
    truth: Truth,
    detections: Detections,
    other_truth: Truth | str | Path | None,
    other_detections: Detections | str | Path | None,
    rules: Protocol,
) -> Input:
    """The other input; reads paths."""
    if other_truth is None:
        other_truth = truth
    elif not isinstance(other_truth, Truth):
        other_truth, _ = read_truth_and_protocol(other_truth, rules)
    if other_detections is None:
        other_detections = detections
    elif not isinstance(other_detections, Detections):
        other_detections = _read(other_detections, other_truth, rules)
    return other_truth, other_detections


def _read(path: str | Path, truth: Truth, rules: Protocol) -> Detections:
    """Detections in the format of the protocol."""
    return read_detections(path, truth, **options_of(rules))


def _explain_inputs(
    one: Input, two: Input, rules: Protocol, *, shapley: bool, seed: int
) -> Explanation:
    """Explains the difference of two inputs under one protocol."""
    objects, truth_of, same_objects = input_changes.truth_parts(one[0], two[0])
    found, detections_of, same_detections = input_changes.detection_parts(one[1], two[1])
    parts = [*objects, *found]
    values: dict[frozenset[str], float] = {}

    def value(taken: frozenset[str]) -> float:
        if taken not in values:
            chosen = [
                {name.partition(".")[2] for name in taken if name.startswith(kind)}
                for kind in ("truth.", "detections.")
            ]
            whole = [all(name in taken for name, _, _ in each) for each in (objects, found)]
            truth = two[0] if whole[0] else truth_of(chosen[0])
            detections = two[1] if whole[1] else detections_of(chosen[1])
            values[taken] = number(summarize(match(truth, detections, rules)))
        return values[taken]

    steps, orders = walk(parts, value), 0
    if shapley and steps:
        steps, orders = averaged(steps, value, seed)
    start, end = (summarize(_assigned(each, rules)) for each in (one, two))
    (name, before), (other, after) = headline(start), headline(end)
    moves = classes_moved(start, end)
    names = [f"{a.source} and {b.source}" for a, b in (one, two)]
    return Explanation(
        names[0],
        names[1],
        (name, other),
        before,
        after,
        steps,
        moves,
        decided(
            Side(*rules.classes.rename(*one), start),
            Side(*rules.classes.rename(*two), end),
            moves,
            same_objects,
            same_detections,
        ),
        seed,
        orders,
        len(same_detections.pairs) / max(1, min(len(one[1]), len(two[1])))
        if len(one[1]) and len(two[1])
        else 1.0,
    )
