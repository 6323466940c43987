"""Reference implementations of benchmarks of faces and people, one box at a time.

Boxes are x, y, width, height; a detection is (box, score), an object (box, ignored).
"""

import math
from itertools import pairwise, permutations

Box = tuple[float, float, float, float]
Found = list[tuple[Box, float]]
Objects = list[tuple[Box, bool]]
Verdicts = list[tuple[float, int]]  # score, and 1 for TP, 0 for FP


def shared(a: Box, b: Box, pixel: float = 0.0) -> float:
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0]) + pixel
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1]) + pixel
    return max(width, 0.0) * max(height, 0.0)


def share(a: Box, b: Box) -> float:
    """The part of the first box in the second."""
    both = shared(a, b)
    return both / (a[2] * a[3]) if both else 0.0


def overlap(a: Box, b: Box, epsilon: float = 0.0, pixel: float = 0.0) -> float:
    both = shared(a, b, pixel)
    sides = [(c[2] + pixel) * (c[3] + pixel) for c in (a, b)]
    return both / (sum(sides) - both + epsilon) if both else 0.0


def greedy(
    found: Found, objects: Objects, threshold: float, *, strict: bool, epsilon: float = 0.0
) -> Verdicts:
    """Each detection, by score, matches the best unmatched object, else an ignored one by the
    overlap over its own area; strict: the first of equal overlaps, which must be larger than the
    threshold.
    """
    taken, verdicts = set(), []
    for box, score in sorted(found, key=lambda each: -each[1]):
        best, best_overlap = None, threshold
        for j, (other, ignored) in enumerate(objects):
            if not ignored and j not in taken:
                value = overlap(box, other, epsilon)
                if value > best_overlap or (value == best_overlap and not strict):
                    best, best_overlap = j, value
        if best is not None:
            taken.add(best)
            verdicts.append((score, 1))
            continue
        shares = [shared(box, o) / (box[2] * box[3] + epsilon) for o, ign in objects if ign]
        if not any(x > threshold or (x == threshold and not strict) for x in shares):
            verdicts.append((score, 0))
    return verdicts


def curve(images: list[Verdicts], n_objects: int) -> list[tuple[float, float, float]]:
    """FPPI, recall and precision at each rank."""
    points, tp, fp = [], 0, 0
    for _, hit in sorted((v for image in images for v in image), key=lambda each: -each[0]):
        tp, fp = tp + hit, fp + 1 - hit
        points.append((fp / len(images), tp / n_objects, tp / (tp + fp)))
    return points


def miss_rate(
    points: list[tuple[float, float, float]], references: list[float], lookup: str, before: str
) -> float:
    if lookup == "first_reached" and not points:  # database.py, eval_MR: the mean of no number
        return math.nan
    product = 1.0
    for reference in references:
        recall = 0.0
        if lookup == "first_reached":
            recall = next((r for f, r, _ in points if f >= reference), points[-1][1])
        elif points:
            within = [r for f, r, _ in points if f <= reference]
            recall = within[-1] if within else points[-1][1] if before == "last" else 0.0
        product *= 1 - recall
    return product ** (1 / len(references))


def straight_lines(points: list[tuple[float, float, float]]) -> float:
    area = 0.0
    for (_, r, p), (_, s, q) in pairwise(points):
        area += (s - r) * (p + q) / 2
    return area


def wider(images: list[tuple[Found, Objects]], samples: int) -> float:
    """AP of faces: detections in file order against the best face, the curve read at scores."""
    scores = [score for found, _ in images for _, score in found]
    low, high = min([1.0, *scores]), max([0.0, *scores])
    n_objects = sum(not ignored for _, objects in images for _, ignored in objects)
    thresholds = [1 - (t + 1) / samples for t in range(samples)]
    totals = [[0, 0] for _ in thresholds]
    for found, objects in images:
        if not found or not objects:
            continue
        state, counts, proposals, right = [0] * len(objects), [], 0, 0
        for box, _ in found:
            values = [overlap(box, other, pixel=1.0) for other, _ in objects]
            best = values.index(max(values))
            proposals += 1
            if values[best] >= 0.5 and objects[best][1]:
                proposals -= 1
            elif values[best] >= 0.5 and not state[best]:
                state[best], right = 1, right + 1
            counts.append((proposals, right))
        for total, threshold in zip(totals, thresholds, strict=True):
            reached = [i for i, (_, s) in enumerate(found) if (s - low) / (high - low) >= threshold]
            if reached:
                total[0] += counts[reached[-1]][0]
                total[1] += counts[reached[-1]][1]
    area, before = 0.0, 0.0
    for i, (_, right) in enumerate(totals):
        if right / n_objects != before:
            later = [b / a for a, b in totals[i:] if a]
            area += (right / n_objects - before) * max(later)
            before = right / n_objects
    return area


def heaviest(edges: dict[tuple[int, int], float]) -> float:
    """The largest sum of weights of one-to-one pairs, by trying all."""
    rows, columns = ({edge[side] for edge in edges} for side in (0, 1))
    if not edges:
        return 0.0
    few, many = sorted((sorted(rows), sorted(columns)), key=len)
    turned = few == sorted(columns) and len(rows) != len(columns)
    return max(
        math.fsum(
            edges.get((b, a) if turned else (a, b), 0.0) for a, b in zip(few, order, strict=False)
        )
        for order in permutations(many)
    )
