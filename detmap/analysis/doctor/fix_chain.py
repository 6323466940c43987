"""Fixes by name, in one order whatever order they are given in: what identifies first, so that each
guess of a box or a score is made with the images and classes already fixed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from detmap.analysis.doctor import box_hypotheses as boxes
from detmap.analysis.doctor import class_hypotheses as classes
from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.repair import Repair, group_of
from detmap.analysis.doctor.trial import Sample, Trial, sample

ORDER = ("images", "classes", "scores", "boxes", "masks", "duplicates", "rows")
"""The groups of fixes."""
UNDECIDED = 0.1  # AP50 up to which several readings of a fix are tried with the fixes after it
KEPT = 3  # of these
LAST = ("boxes-mirrored", "boxes-turned", "boxes-shifted")
"""Fixes of boxes that may follow another one."""
PERMUTED = "classes-permuted"

Attempts = Callable[[Sample, Sequence[str]], Iterable[tuple[Repair, Raw, tuple[float, int]]]]
"""Repairs of some groups, the rows of the sample after each, and AP50 with the objects found."""


class Chain(NamedTuple):
    """Fixes on top of each other.

    Parameters
    ----------
    rows : after each fix; the first are those that were given
    repairs : the fixes, in the order in which they are made
    ap50 : after the last of them, on the sample
    """

    rows: tuple[Raw, ...]
    repairs: tuple[Repair, ...]
    ap50: float

    def weight(self) -> int:
        """Returns how many guesses all fixes take."""
        return sum(int(each.weight) for each in self.repairs)


def ordered(names: Iterable[str]) -> list[str]:
    """Returns the names in the order in which their fixes are made, each once."""

    def place(name: str) -> tuple[int, int]:
        return ORDER.index(group_of(name)), LAST.index(name) + 1 if name in LAST else 0

    return sorted(dict.fromkeys(names), key=place)


def chain(
    trial: Trial, raw: Raw, names: Iterable[str], attempts: Attempts
) -> tuple[Chain, list[str]]:
    """Makes fixes in their order; a fix that fits nothing yet is tried again at the end.

    Returns the chain and the names of fixes that fit nothing.
    """
    states = [Chain((raw,), (), 0.0)]
    waiting, put_off = ordered(names), set[str]()
    left: list[str] = []
    while waiting:
        name = waiting.pop(0)
        made = [
            Chain(
                (*state.rows, repair.apply(state.rows[-1], trial.truth)),
                (*state.repairs, repair),
                value,
            )
            for state in states
            for repair, value in _readings(trial, state.rows[-1], name, waiting, attempts)
        ]
        if made:
            states = _likeliest(made, bool(waiting))
        elif waiting and name not in put_off:
            put_off.add(name)
            waiting.append(name)
        else:
            left.append(name)
    best = states[0]
    return best._replace(repairs=tuple(_doubted(trial, best))), left


def _doubted(trial: Trial, made: Chain) -> Iterator[Repair]:
    for rows, repair in zip(made.rows, made.repairs, strict=False):
        is_box = repair.name.startswith("boxes-")
        yield boxes.doubted(repair, sample(trial, rows)) if is_box else repair


def _likeliest(made: list[Chain], more: bool) -> list[Chain]:
    """The best chain, or some while AP50 does not tell them apart and more fixes are to come."""
    made = sorted(made, key=lambda each: (-each.ap50, each.weight()))
    return made[: KEPT if more and made[0].ap50 < UNDECIDED else 1]


def _readings(
    trial: Trial, raw: Raw, name: str, later: Sequence[str], attempts: Attempts
) -> Iterator[tuple[Repair, float]]:
    """What a fix may mean for these rows, with AP50 on the sample."""
    part = sample(trial, raw)
    group = group_of(name)
    if name == PERMUTED and any(each.startswith("boxes-") for each in later):
        yield from _permutations(part, later, attempts)
        return
    found = [
        (repair, value[0]) for repair, _, value in attempts(part, [group]) if repair.name == name
    ]
    if group == "boxes" and max((ap50 for _, ap50 in found), default=0.0) < UNDECIDED:
        view = part.agnostic  # classes are wrong too: compare boxes without them
        found = [
            (repair, value[0] / 1000)
            for repair, _, value in attempts(view, [group])
            if repair.name == name
        ] or found
    yield from found


def _permutations(
    part: Sample, later: Sequence[str], attempts: Attempts
) -> Iterator[tuple[Repair, float]]:
    """An order of classes is seen on boxes that are fixed without classes."""
    view = part.agnostic
    names = [each for each in later if each.startswith("boxes-")]
    tried = [each for each in attempts(view, ["boxes"]) if each[0].name in names]
    for repair, _, _ in sorted(tried, key=lambda each: -each[2][0])[:KEPT]:
        rows = repair.apply(part.raw, part.whole)
        fixed = replace(part, raw=rows)
        for other in classes.repairs(fixed):
            if other.name == PERMUTED:
                yield other, part.trial.whole(other.apply(fixed.rows, part.truth))
