"""Weighted curves and influence functions, as their definitions read: a curve is a list of rows,
best score first, each (image, verdict) with the verdict "T", "F" or "I"."""

from collections.abc import Sequence

Rows = Sequence[tuple[int, str]]


def repeated(rows: Rows, weights: Sequence[int]) -> list[str]:
    """The verdicts of a file in which each image is there as often as it weighs, copies in
    place."""
    return [verdict for image, verdict in rows for _ in range(weights[image])]


def precisions(verdicts: Sequence[str]) -> list[float]:
    """Precision at each true positive."""
    found, true, false = [], 0, 0
    for verdict in verdicts:
        true += verdict == "T"
        false += verdict == "F"
        if verdict == "T":
            found.append(true / (true + false))
    return found


def all_points(verdicts: Sequence[str], n_objects: int) -> float:
    """The highest precisions at each true positive or later, over the objects."""
    found = precisions(verdicts)
    return sum(max(found[i:]) for i in range(len(found))) / n_objects


def step(verdicts: Sequence[str], n_objects: int) -> float:
    """The precisions at each true positive, over the objects."""
    return sum(precisions(verdicts)) / n_objects


def psi(x: float) -> float:
    """The digamma function of x > 0. Source: Abramowitz and Stegun 6.3.5, 6.3.18."""
    import math

    total = 0.0
    while x < 1000:
        total -= 1 / x
        x += 1
    return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x * x)
