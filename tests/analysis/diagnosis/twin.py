"""The pass of a diagnosis and tidecv's numbers, slowly and as they are told in words."""

from typing import Any

import numpy as np

from detmap.core.tables import Detections, Truth
from tests.reference.people import overlap, share


def iou(a: Any, b: Any, crowd: bool = False) -> float:
    return float(share(a, b) if crowd else overlap(a, b))


def tide_counts(
    truth: Truth, detections: Detections, pos: float = 0.5, bg: float = 0.1
) -> dict[str, int]:
    """Errors of each kind; the rules of tidecv 1.0.1, box by box."""
    counts = dict.fromkeys(("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss"), 0)
    for i in range(len(truth.images)):
        rows = [d for d in range(len(detections)) if detections.image[d] == i]
        rows = sorted(rows, key=lambda d: -detections.score[d])[:100]
        objects = [g for g in range(len(truth)) if truth.image[g] == i and not truth.crowd[g]]
        used: set[int] = set()
        wrong = []
        for d in rows:
            mine = [g for g in objects if truth.label[g] == detections.label[d] and g not in used]
            overlaps = [iou(detections.boxes[d], truth.boxes[g]) for g in mine]
            if overlaps and max(overlaps) >= pos:
                used.add(mine[int(np.argmax(overlaps))])
            else:
                wrong.append(d)
        usable: set[int] = set()
        for d in wrong:
            overlap = {g: iou(detections.boxes[d], truth.boxes[g]) for g in objects}
            same = {g: o for g, o in overlap.items() if truth.label[g] == detections.label[d]}
            other = {g: o for g, o in overlap.items() if g not in same}
            taken = [o for g, o in same.items() if g in used]
            if not objects:
                counts["Bkg"] += 1
            elif same and bg <= max(same.values()) <= pos:
                counts["Loc"] += 1
                usable.add(max(same, key=lambda g, same=same: (same[g], -g)))
            elif other and max(other.values()) >= pos:
                counts["Cls"] += 1
                usable.add(max(other, key=lambda g, other=other: (other[g], -g)))
            elif taken and max(taken) >= pos:
                counts["Dupe"] += 1
            elif max(overlap.values()) <= bg:
                counts["Bkg"] += 1
            else:
                counts["Both"] += 1
        counts["Miss"] += len([g for g in objects if g not in used and g not in usable])
    return counts
