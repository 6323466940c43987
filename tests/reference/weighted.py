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


def influence(
    rows: Rows, objects: Sequence[int], n_images: int, own_rank: bool = False
) -> list[float]:
    """How much each image moves AP, by section 5.2 of the study; by `step` each true positive is
    read at its own rank.

    objects : the image of each object to find
    """
    n = len(objects)
    at = [r for r, (_, verdict) in enumerate(rows) if verdict == "T"]

    def counts(r: int, image: int | None = None) -> tuple[int, int]:
        upto = [v for i, v in rows[: r + 1] if image is None or i == image]
        return upto.count("T"), upto.count("F")

    precision = {r: counts(r)[0] / sum(counts(r)) for r in at}
    read = {
        r: r
        if own_rank
        else min(
            j for j in at if j >= r and precision[j] == max(precision[i] for i in at if i >= r)
        )
        for r in at
    }
    ap = sum(precision[read[r]] for r in at) / n
    found = []
    for image in range(n_images):
        total = sum(precision[read[r]] for r in at if rows[r][0] == image)
        for r in at:
            p = precision[read[r]]
            true, false = counts(read[r], image)
            total += ((1 - p) * true - p * false) / sum(counts(read[r]))
        found.append((total - ap * objects.count(image)) / n)
    return found
