"""The numbers of tools for crowded images: none for rules that would list too many pairs."""

import math

import numpy as np
import pytest

from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.base import pair_limits
from detmap.core.protocol import load
from detmap.errors import CrowdedError
from detmap.reproducibility import explaining, parity
from detmap.reproducibility.explaining import explain
from detmap.reproducibility.parity.restated_tools import EVALUATIONS, numbers
from detmap.reproducibility.reproducing.search import reproduce


def test_tools_of_too_crowded_images_have_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [1] * 30, [1] * 30, np.tile([0.0, 0.0, 9.0, 9.0], (30, 1))
    truth = truth_from_arrays(*columns, images=[1], categories={1: "c"})
    tables = truth, detections_from_arrays(truth, *columns, [0.5] * 30)
    stock, names = load("voc2012"), ("pycocotools", "yolov5")
    assert [math.isnan(row.value) for row in numbers(*tables, stock, names)] == [False, False]
    monkeypatch.setattr(pair_limits, "MOST_LISTED", 899)
    monkeypatch.setattr(pair_limits, "LISTED_PER_ROW", 1)
    listed = numbers(*tables, stock, names)
    assert listed[0].value == 1.0  # matched without a list
    assert math.isnan(listed[1].value)
    assert listed[1].remark == "crowded"
    monkeypatch.setattr(pair_limits, "MOST_COMPARED", 899 * EVALUATIONS)
    monkeypatch.setattr(pair_limits, "COMPARED_PER_ROW", 1)
    with pytest.raises(CrowdedError, match="tools: the images are too crowded: 900 pairs of boxes"):
        numbers(*tables, stock, names)
    monkeypatch.setattr(pair_limits, "MOST_COMPARED", 899 * explaining.EVALUATIONS)
    with pytest.raises(CrowdedError, match="explain: the images are too crowded: 900 pairs"):
        explain(*tables, "voc2012", "yolov5")
    monkeypatch.setattr(pair_limits, "MOST_COMPARED", 899 * EVALUATIONS)
    with pytest.raises(CrowdedError, match="parity: the images are too crowded: 900 pairs"):
        parity.beside(parity.find("pycocotools"), load("coco-bbox"), *tables)
    with pytest.raises(CrowdedError, match="reproduce: the images are too crowded: 900 pairs"):
        reproduce("50.1", *tables)
