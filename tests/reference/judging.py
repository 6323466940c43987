"""The two rules over plain lists, one loop a subset and threshold: what the kernels are held
against."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Pair(NamedTuple):
    """A detection (by rank in its cell), an object, their overlap, and what it is measured over."""

    detection: int
    object: int
    overlap: float
    absorbing: bool


class Case(NamedTuple):
    """One cell; words have a bit a subset."""

    pairs: list[Pair]
    thresholds: list[float]
    n_subsets: int
    find: list[int]
    absorb: list[int]
    enough: list[float]
    outside: list[int]
    dropped: list[int]
    first_of_equals: bool = False
    none_free: bool = False


Verdict = tuple[str, int | None, float]  # TP, FP or IGNORED; the object that was taken; the overlap
Rule = Callable[[Case, int, float], list[Verdict]]


def candidates(case: Case, d: int, a: int, threshold: float) -> list[Pair]:
    """The pairs of a detection that are a match in a subset."""
    return [
        pair
        for pair in case.pairs
        if pair.detection == d
        and pair.absorbing == bool(case.absorb[pair.object] >> a & 1)
        and pair.overlap >= min(threshold, case.enough[pair.object])
    ]


def best_free(case: Case, a: int, threshold: float) -> list[Verdict]:
    """Source: COCOeval.evaluateImg; with `none_free` COCOEvaluator.evaluate_boxes of globox."""
    verdicts: list[Verdict] = []
    taken: set[int] = set()
    for d in range(len(case.outside)):
        if case.dropped[d] >> a & 1:
            verdicts.append(("IGNORED" if case.outside[d] >> a & 1 else "FP", None, 0.0))
            continue
        found: Sequence[Pair] = [
            pair
            for pair in candidates(case, d, a, threshold)
            if pair.absorbing or pair.object not in taken
        ]
        to_find = [pair for pair in found if case.find[pair.object] >> a & 1]
        sign = -1 if case.first_of_equals else 1
        free = {g for g, find in enumerate(case.find) if find >> a & 1} - taken
        if case.none_free and free:
            found = to_find
        best = max(to_find or found, key=lambda p: (p.overlap, sign * p.object), default=None)
        if best is None:
            verdicts.append(("IGNORED" if case.outside[d] >> a & 1 else "FP", None, 0.0))
            continue
        if not best.absorbing:
            taken.add(best.object)
        verdicts.append(("TP" if to_find else "IGNORED", best.object, best.overlap))
    return verdicts


def best_any(case: Case, a: int, threshold: float) -> list[Verdict]:
    """Source: VOCevaldet.m."""
    verdicts: list[Verdict] = []
    taken: set[int] = set()
    for d in range(len(case.outside)):
        nothing: Verdict = ("IGNORED" if case.outside[d] >> a & 1 else "FP", None, 0.0)
        found = [pair for pair in candidates(case, d, a, -1.0) if pair.overlap > 0]
        sign = -1 if case.first_of_equals else 1
        best = max(found, key=lambda p: (p.overlap, sign * p.object), default=None)
        if (
            case.dropped[d] >> a & 1
            or best is None
            or best.overlap < min(threshold, case.enough[best.object])
        ):
            verdicts.append(nothing)
        elif not case.find[best.object] >> a & 1:
            verdicts.append(("IGNORED", best.object, best.overlap))
        elif best.object in taken:
            verdicts.append(nothing)
        else:
            taken.add(best.object)
            verdicts.append(("TP", best.object, best.overlap))
    return verdicts
