"""The mean change of each step over the orders of all: what it is worth when switches interact."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from detmap.explaining.steps import MOST_EXACT, Step, exact

ORDERS = 64
"""Orders that are drawn where there are too many switches for all."""

Value = Callable[[frozenset[str]], float]


def averaged(steps: Sequence[Step], value: Value, seed: int) -> tuple[tuple[Step, ...], int]:
    """The steps with their Shapley values, and how many orders were drawn; 0 for all.

    Steps that neither move the number alone at the start nor at the end, nor in their turn, move
    together as one: its value is told with the first of them, and is nearly always 0.
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
    """Exact, over all subsets."""
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
    """The mean over drawn orders, and its standard error."""
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
        variance = sum(float(x - mean) ** 2 for x in each) / (ORDERS - 1)
        errors.append(math.sqrt(variance / ORDERS))
    return means, errors, ORDERS
