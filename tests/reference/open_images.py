"""Slow restatement of Open Images' rule, from rows of its files to the mean of the classes."""

from typing import NamedTuple

from tests.reference.ilsvrc_visdrone import area_below
from tests.reference.own_rules import Box, iou, shared, size

LEAST = 0.5
Labels = dict[tuple[str, str], int]
"""Verified labels by image and class: 1 present, 0 absent."""


class Row(NamedTuple):
    """A row of boxes or of predictions."""

    image: str
    name: str
    box: Box
    group: bool = False
    score: float = 0.0


def above(name: str, parent: dict[str, str]) -> list[str]:
    """All classes above one."""
    return [] if name not in parent else [parent[name], *above(parent[name], parent)]


def expanded(
    objects: list[Row], labels: Labels, parent: dict[str, str]
) -> tuple[list[Row], set[tuple[str, str]]]:
    """Objects of their class and all above; and the verified pairs of image and class."""
    every = [
        row._replace(name=name) for row in objects for name in [row.name, *above(row.name, parent)]
    ]
    verified = {(row.image, row.name) for row in every}
    for (image, name), present in labels.items():
        below = [each for each in parent if name in above(each, parent)]
        verified |= {(image, each) for each in [name, *(above(name, parent) if present else below)]}
    return every, verified


def image_class(objects: list[Row], found: list[Row], weight: int) -> list[tuple[float, bool]]:
    """Scores of an image's detections of a class, and whether each is true.

    What finds no new object may lie in a group: the best of a group counts `weight` times, if its
    score is above 0.
    """
    plain = [row.box for row in objects if not row.group]
    groups = [row.box for row in objects if row.group]
    taken: set[int] = set()
    best: dict[int, float] = {}
    scored = []
    for row in sorted(found, key=lambda row: -row.score):
        ious = [iou(row.box, box) for box in plain]
        place = ious.index(max(ious)) if ious else -1
        if ious and ious[place] >= LEAST and place not in taken:
            taken.add(place)
            scored.append((row.score, True))
            continue
        shares = [shared(row.box, box) / size(row.box) for box in groups]
        place = shares.index(max(shares)) if shares else -1
        if shares and shares[place] >= LEAST:
            best.setdefault(place, row.score)
        else:
            scored.append((row.score, False))
    return scored + [(score, True) for score in best.values() if score > 0] * weight


def average_precision(scored: list[tuple[float, bool]], n_objects: int) -> float:
    """The area below the envelope of precision."""
    found, points = 0, []
    for rank, (_, true) in enumerate(sorted(scored, reverse=True), start=1):
        found += true
        points.append((found / n_objects, found / rank))
    return area_below(points)


def mean_ap(
    objects: list[Row], found: list[Row], labels: Labels, parent: dict[str, str], weight: int
) -> float | None:
    """The mean over classes with objects; None without any.

    `weight` of a group: 0 (V2), or 1 (Challenge), which also drops detections of classes that are
    not verified on the image.
    """
    every, verified = expanded(objects, labels, parent)
    if weight:
        found = [row for row in found if (row.image, row.name) in verified]
    values = []
    for name in {row.name for row in every}:
        own = [row for row in every if row.name == name]
        n_objects = sum(weight if row.group else 1 for row in own)
        scored = []
        for image in {row.image for row in [*own, *found]}:
            here = [row for row in own if row.image == image]
            there = [row for row in found if (row.image, row.name) == (image, name)]
            scored += image_class(here, there, weight)
        if n_objects:
            values.append(average_precision(scored, n_objects))
    return sum(values) / len(values) if values else None
