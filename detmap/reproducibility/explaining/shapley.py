"""Shapley values: the mean change of each step over all orders of the steps."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from detmap.core.base.sums import add_floats
from detmap.reproducibility.explaining.steps import MOST_EXACT, Step, exact

ORDERS = 64
"""Orders that are drawn where there are too many switches for all."""

Value = Callable[[frozenset[str]], float]


def averaged(steps: Sequence[Step], value: Value, seed: int) -> tuple[tuple[Step, ...], int]:
    """The steps with their Shapley values, and the number of sampled orders; 0 for all orders.

    Steps without effect at the start, at the end and in their turn form one player; the first of
    them carries its value, which is nearly always 0.
    """
    names = [step.name for step in steps]
    whole = frozenset(names)
    start, end = exact(value(frozenset())), exact(value(whole))
    matters = [
        step.name
        for step in steps
        if step.change
        or exact(value(frozenset({step.name}))) != start
        or exact(value(whole - {step.name})) != end
    ]
    rest = frozenset(names) - frozenset(matters)
    players = [frozenset({name}) for name in matters] + ([rest] if rest else [])
    if len(matters) <= MOST_EXACT:
        means, errors, drawn = _all_orders(players, value), [0.0] * len(players), 0
    else:
        means, errors, drawn = _some_orders(players, value, seed)
    of = {min(player, key=names.index): i for i, player in enumerate(players)}
    found = []
    for step in steps:
        i = of.get(step.name)
        mean, error = (Fraction(0), 0.0) if i is None else (means[i], errors[i])
        found.append(replace(step, shapley=mean, error=error))
    return tuple(found), drawn


def _all_orders(players: Sequence[frozenset[str]], value: Value) -> list[Fraction]:
    """Exact means, over all subsets."""
    n = len(players)
    found = []
    for i, player in enumerate(players):
        others = [each for j, each in enumerate(players) if j != i]
        total = Fraction(0)
        for size in range(n):
            weight = Fraction(
                math.factorial(size) * math.factorial(n - size - 1), math.factorial(n)
            )
            for chosen in combinations(others, size):
                taken = frozenset[str]().union(*chosen)
                total += weight * (exact(value(taken | player)) - exact(value(taken)))
        found.append(total)
    return found


def _some_orders(
    players: Sequence[frozenset[str]], value: Value, seed: int
) -> tuple[list[Fraction], list[float], int]:
    """Means over sampled orders, and their standard errors."""
    draw = random.Random(seed)
    changes: list[list[Fraction]] = [[] for _ in players]
    for _ in range(ORDERS):
        order = list(range(len(players)))
        draw.shuffle(order)
        taken, before = frozenset[str](), exact(value(frozenset()))
        for i in order:
            taken |= players[i]
            after = exact(value(taken))
            changes[i].append(after - before)
            before = after
    means = [sum(each, Fraction(0)) / ORDERS for each in changes]
    errors = []
    for each, mean in zip(changes, means, strict=True):
        variance = add_floats(float(x - mean) ** 2 for x in each) / (ORDERS - 1)
        errors.append(math.sqrt(variance / ORDERS))
    return means, errors, ORDERS
