"""Drawn rules of matching on boxes, masks and keypoints: both paths give the same bits where both
know the rules, at every size of a step, and parts make the whole or are refused.
"""

import numpy as np

import detmap
from detmap.core.matching import candidate_pairs as candidates
from detmap.core.matching.assignments import ARRAYS
from detmap.core.matching.engine import match_images
from detmap.core.matching.general_engine import match_in_order
from detmap.core.matching.matches import Matches
from detmap.core.overlaps import box_iou as boxes
from detmap.core.overlaps import dense_pairs as dense
from detmap.core.overlaps import masks
from detmap.errors import MergeError
from tests.support.drawing_rules import PROTOCOLS, draw_data, draw_rules
from tests.support.drawn_tables import Tables, read_coco

COLUMNS = ("image", "rank", "position", "score", "tp", "ignored", "off", "obj_off", "obj_image")
COLUMNS += ("counted", "beyond", "unjudged", "digest", "image_ids")
COUNTS = {"merged": 0, "refused": 0}


def case(seed: int) -> str | None:
    """What differs on one drawn data set under two drawn protocols."""
    rng = np.random.default_rng(seed)
    kind = tuple(PROTOCOLS)[seed % len(PROTOCOLS)]
    tables = read_coco(*draw_data(rng, kind), shapes=kind)
    candidates.AT_ONCE = dense.AT_ONCE = int(rng.choice([1, 7, 1 << 20]))
    boxes.BUFFER = masks.BUFFER = int(rng.choice([1, 7, 1 << 15]))
    boxes.CROWDED = int(rng.choice([1, 24, boxes.NEVER]))
    rules = draw_rules(rng, kind, stock=True)
    fast = detmap.match(*tables, rules, taken=True, threads=1)
    wrong = difference(match_in_order(*tables, rules, taken=True), fast)
    if wrong is None and fast.notes != match_in_order(*tables, rules).notes:
        wrong = "notes"
    if wrong is not None:
        return f"paths, {kind}, {dict(rules.changes)}: {wrong}"
    rules = draw_rules(rng, kind, stock=False)
    wrong = parts_differ(tables, detmap.match(*tables, rules, taken=True), rng)
    return f"parts, {kind}, {dict(rules.changes)}: {wrong}" if wrong else None


def parts_differ(tables: Tables, whole: Matches, rng: np.random.Generator) -> str | None:
    """What differs between the whole and its parts, each matched alone."""
    if difference(whole.merge(), whole):
        return "a single part"
    part_of = rng.integers(0, 3, whole.n_images)
    rows = [np.flatnonzero(part_of == i).astype(np.int32) for i in rng.permutation(3)]
    parts = [match_images(*tables, whole.protocol, some, taken=True) for some in rows]
    try:
        merged = parts[0].merge(*parts[1:])
    except MergeError:
        COUNTS["refused"] += 1
        return "refused" if whole.protocol.image_by_image() else None
    COUNTS["merged"] += 1
    if detmap.summarize(merged).signature != detmap.summarize(whole).signature:
        return "signature"
    return difference(merged, whole)


def difference(one: Matches, other: Matches) -> str | None:
    """The first column that differs."""
    for column in COLUMNS:
        if not np.array_equal(getattr(one, column), getattr(other, column)):
            return column
    for column in ARRAYS:
        if not np.array_equal(getattr(one.taken, column), getattr(other.taken, column)):
            return f"taken.{column}"
    return None
