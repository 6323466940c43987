"""The path of tools' rules gives the fast path's bits under every protocol that both know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import detmap
from detmap.ordered import match_in_order
from tests.drawing import CocoData, coco_data
from tests.tables import read_coco
from tests.tier import drawn

COLUMNS = ("image", "rank", "position", "score", "tp", "ignored", "off", "obj_off", "obj_image")
PROTOCOLS = ("coco-bbox", "voc2007", "voc2012-python", "lvis")


@pytest.mark.parametrize("name", PROTOCOLS)
@settings(max_examples=drawn(25))
@given(data=coco_data())
def test_both_paths_agree_in_every_bit(name: str, data: CocoData) -> None:
    truth, detections = read_coco(*data)
    rules = detmap.load_protocol(name)
    fast = detmap.match(truth, detections, rules, taken=True)
    slow = match_in_order(truth, detections, rules, taken=True)
    for column in (*COLUMNS, "counted", "beyond", "unjudged", "digest"):
        np.testing.assert_array_equal(getattr(slow, column), getattr(fast, column), err_msg=column)
    assert slow.taken is not None
    assert fast.taken is not None
    for column in ("off", "object", "overlap", "words"):
        np.testing.assert_array_equal(getattr(slow.taken, column), getattr(fast.taken, column))
