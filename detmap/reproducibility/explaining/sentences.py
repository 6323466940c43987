"""Says in words what a change of protocol keys means: `detmap explain` prints a sentence per step.

A key without a row here is named by its meaning in the table of keys.
"""

from collections.abc import Sequence

import msgspec

from detmap.core.protocol.keys import table

INTEGRATORS = {
    "eleven_point": "the 11-point rule",
    "all_points": "the area under the envelope",
    "grid_envelope": "the envelope at 101 points",
    "step": "the sum of steps",
    "trapezoid": "the trapezoid rule",
    "left_envelope": "the area under the envelope from the left",
    "between_ranks": "trapezoids between ranks",
    "score_samples": "samples of scores",
}
NEUTRAL = {
    "ignore": "one detection",
    "absorb": "any number of detections",
    "absent": "none (they are removed)",
    "count": "one detection and count",
    "region": "any number of detections, after all objects",
    "region_to_find": "any number of detections, after all objects, and one of these counts",
}
SIDES = {
    "continuous": "continuous edges",
    "inclusive": "whole pixels, the last one included",
    "padded": "edges one pixel further right and below",
    "as_written": "differences of the written numbers",
}
RULES = {"best_free": "its best unmatched object", "best_any": "its best object, matched or not"}
WORDS: dict[str, tuple[str, dict[str, str]]] = {
    "ap.integrator": ("AP is integrated by {}", INTEGRATORS),
    "boxes.extent": ("boxes have {}", SIDES),
    "boxes.precision": ("coordinates are {}", {}),
    "detections.above": ("detections must score more than {}", {"[]": "nothing (no floor)"}),
    "iou.arithmetic": ("overlaps are computed in {}", {}),
    "iou.comparison": ("overlaps are compared with the threshold by {}", {}),
    "iou.epsilon": ("the union is increased by {}", {}),
    "iou.of": ("overlaps are those of {}", {"boundary": "masks and their boundaries"}),
    "limits.max_dets": ("the limit of detections is {}", {"[]": "none"}),
    "limits.scope": ("the limit holds for each {}", {}),
    "matching.rule": ("a detection matches {}", RULES),
    "matching.neutral.crowd": ("crowd objects match {}", NEUTRAL),
    "matching.neutral.ignore": ("objects with the flag ignore match {}", NEUTRAL),
    "matching.neutral.difficult": ("difficult objects match {}", NEUTRAL),
    "mean.undefined": ("the mean takes a class without objects as {}", {"skip": "none"}),
    "ranking.ties": ("tied scores are in the order of {}", {}),
    "ranking.sort": ("the sort by score is {}", {}),
    "ranking.equal": (
        "of tied scores, {}",
        {"order": "the first of them", "true_first": "true positives come first"},
    ),
    "ranking.of": ("ranks are those of {}", {"class": "each class", "all": "all classes"}),
}
"""By key: a phrase with a place for the value, and the values in words."""


def of(changed: Sequence[tuple[str, str, str]]) -> str:
    """Returns one sentence about changed keys, each with both values as JSON; without subsets."""
    meanings = {row.name: row.meaning for row in table()}
    return "; ".join(_clause(meanings, *each) for each in changed if each[0][:8] != "subsets.")


def _clause(meanings: dict[str, str], key: str, old: str, new: str) -> str:
    phrase, words = WORDS.get(key, ("", {}))
    if words is NEUTRAL:  # a role that is not listed is that of ordinary objects
        old, new = (each.replace("null", '"count"') for each in (old, new))
    if "null" in (old, new):  # a table has an entry more, or less
        return f"{key} is {'new' if old == 'null' else 'gone'}"
    values = [words.get(each, each) for each in (_plain(new), _plain(old))]
    if not phrase:
        name, _, last = key.rpartition(".")
        known = meanings.get(key) or f"{meanings.get(name, name)} ({last})"
        phrase = f"{known.partition(':')[0].partition('. ')[0]}, `{key}`, is {{}}"
    return f"{phrase.format(values[0])} instead of {values[1]}"


def _plain(value: str) -> str:
    """Returns a value of JSON without its marks."""
    read = msgspec.json.decode(value)
    if isinstance(read, list):
        return ", ".join(map(str, read)) if read else "[]"
    return str(read)
