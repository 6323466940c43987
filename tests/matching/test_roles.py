"""What a protocol makes of rows, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.errors import DataError


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("reversed_box", [False, True])
def test_reversed_boxes_are_refused_where_the_protocol_says_so(
    refuses: bool, reversed_box: bool
) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: "a"})
    boxes = np.array([[0, 0, 9, 9], [1, 1, 4, 4.0]])
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.9, 0.8])
    if reversed_box:
        boxes[1, 2:] = -4
        found = replace(found, boxes=boxes)
    rules = detmap.load_protocol("coco-bbox")
    rules = rules.override({"boxes.reversed": "refuse" if refuses else "no_overlap"})
    if refuses and reversed_box:
        with pytest.raises(DataError, match="1 box has reversed corners, the first is 1"):
            detmap.match(truth, found, rules)
    else:
        assert len(detmap.match(truth, found, rules)) == 2
