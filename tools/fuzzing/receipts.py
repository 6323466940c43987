"""A receipt of which bytes are changed: refused, or it contradicts itself, or says the same."""

import json
import random

import detmap
from detmap.core.base.resources import folder
from detmap.reproducibility import receipt, receipt_contradictions
from tools.fuzzing import _bounds

PIECES = [b"0", b"1", b'"', b",", b"{", b"[", b"e9", b"null", b'"digest": "",', b'"AP": 0.9,']
WHOLE: list[tuple[bytes, str]] = []
"""The receipt's bytes, and its content with sorted keys."""


def prepare() -> None:
    """The receipt of the sample."""
    place = folder("datasets") / "shapes"
    paths = {
        "truth": place / "instances_test.json",
        "detections": place / "detections/contours.json",
    }
    result = detmap.evaluate(paths["truth"], paths["detections"])
    made = receipt.make(
        result, ("0" * 12, "1" * 12), paths, dict.fromkeys(receipt.OPTIONS), ["detmap"]
    )
    WHOLE.append((made.to_bytes(), json.dumps(made.content, sort_keys=True)))


def case(seed: int) -> str | None:
    """What is wrong with one changed receipt."""
    whole, content = WHOLE[0]
    data = _bounds.mutated(random.Random(seed), whole, PIECES)
    try:
        found = receipt.parse(data, "mutated")
    except detmap.DetmapError:
        return None
    if json.dumps(found.content, sort_keys=True) == content:
        return None
    return (
        None if receipt_contradictions.contradictions(found) else "a changed receipt was believed"
    )
