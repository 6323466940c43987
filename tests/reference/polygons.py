"""Shared areas of polygons in rational numbers: the triangles between a point and each edge, cut by
the triangles of the other polygon, with the signs of both. Source: polyiou.cpp of DOTA_devkit.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

Point = tuple[Fraction, Fraction]
Polygon = list[Point]


def exact(corners: Sequence[Sequence[float]]) -> Polygon:
    """Corners as rational numbers."""
    return [(Fraction(float(x)), Fraction(float(y))) for x, y in corners]


def cross(o: Point, a: Point, b: Point) -> Fraction:
    """Twice the signed area of a triangle."""
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def area(polygon: Polygon) -> Fraction:
    """The signed area."""
    closed = [*polygon, polygon[0]]
    return sum((cross(polygon[0], a, b) for a, b in pairwise(closed)), Fraction(0)) / 2


def cut(polygon: Polygon, a: Point, b: Point) -> Polygon:
    """The part of a convex polygon left of a line."""
    kept: Polygon = []
    for p, q in zip(polygon, [*polygon[1:], *polygon[:1]], strict=True):
        at, to = cross(a, b, p), cross(a, b, q)
        if at >= 0:
            kept.append(p)
        if at * to < 0:
            t = at / (at - to)
            kept.append((p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])))
    return kept


def shared(one: Polygon, other: Polygon) -> Fraction:
    """The integral of the product of winding numbers."""
    total, o = Fraction(0), one[0]
    for a, b in pairwise([*one, one[0]]):
        for c, d in pairwise([*other, other[0]]):
            turn, back = cross(o, a, b), cross(o, c, d)
            if not turn or not back:
                continue
            first = [o, a, b] if turn > 0 else [o, b, a]
            second = [o, c, d] if back > 0 else [o, d, c]
            part = first
            for p, q in pairwise([*second, second[0]]):
                part = cut(part, p, q)
            if part:
                total += abs(area(part)) * (1 if turn * back > 0 else -1)
    return total


def iou(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Fraction:
    """IoU of two polygons, from 0 to 1; 0 where one has no area."""
    a, b = (each if area(each) >= 0 else each[::-1] for each in (exact(one), exact(other)))
    if not area(a) or not area(b):
        return Fraction(0)
    if a == b:
        return Fraction(1)
    inner = max(shared(a, b), Fraction(0))
    union = area(a) + area(b) - inner
    return min(inner / union, Fraction(1)) if union > 0 else Fraction(0)
