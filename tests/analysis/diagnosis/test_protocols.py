"""A diagnosis follows the whole protocol, or refuses it: its AP is that of the evaluation."""

from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import diagnose
from detmap.analysis.diagnosis.summary import summary
from detmap.analysis.diagnosis.tide import tide, tidecv
from detmap.core.protocol import names, tools
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.protocol import test_keys, test_tool_keys
from tests.protocol.test_keys import PLAIN, Data
from tests.support.tier import drawn

SETS = [tables(seed) for seed in range(drawn(24))]  # overlaps with crowds are often exactly 0.5
EXAMPLES = [
    (key, example[0], example[1], list(example[-1]))
    for module in (test_keys, test_tool_keys)
    for table in (module.VERDICTS, module.NUMBERS)
    for key, example in table.items()
]


def agrees(given: Data, protocol: detmap.Protocol) -> bool:
    """Whether both give one AP50; False where a diagnosis refuses the protocol."""
    try:
        found = tide(diagnose(*given, protocol)).ap
    except (detmap.ProtocolError, detmap.DataError):
        return False
    half = protocol.override({"iou.thresholds": [0.5], "metrics": ["AP"]})
    ap = detmap.evaluate(*given, half).metrics["AP"]
    assert found == pytest.approx(100 * ap, abs=1e-10, nan_ok=True), protocol.name
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", [*names(), *tools()])
def test_ap_under_a_protocol(name: str) -> None:
    protocol = detmap.load_protocol(name)
    assert len({agrees(given, protocol) for given in SETS}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("key", "given", "settings", "values"), EXAMPLES)
def test_ap_under_a_key(key: str, given: Data, settings: dict[str, Any], values: list[Any]) -> None:
    for value in values:
        rules = PLAIN | {"ap.integrator": "all_points"} | settings | {key: value}
        agrees(given, detmap.load_protocol("coco-bbox").override(rules))


def test_tidecvs_ap_is_that_of_its_protocol() -> None:
    assert agrees(SETS[0], detmap.load_protocol("tide"))
    for given in SETS:
        ap50 = 100 * detmap.evaluate(*given, "tide").metrics["mAP"]
        assert tidecv(*given).ap == pytest.approx(ap50, abs=1e-10, nan_ok=True)


def test_a_crowd_absorbs_what_overlaps_it_by_more_than_half() -> None:
    box: Any = [[0, 0, 10, 10], [50, 50, 20, 20]]
    truth = detmap.truth_from_arrays([1, 1], [1, 1], box, crowd=[1, 0])
    for left, ap in ((5.0, 50.0), (4.9, 100.0)):
        found: Any = [[left, 0, 10, 10], box[1]]
        detections = detmap.detections_from_arrays(truth, [1, 1], [1, 1], found, [0.9, 0.8])
        assert tidecv(truth, detections).ap == ap
        assert detmap.evaluate(truth, detections, "tide").metrics["mAP"] == ap / 100


def test_a_class_with_ignored_detections_alone_is_in_no_mean() -> None:
    """TIDE counts neither its objects nor its points: `ap.py`, ``is_empty``."""
    truth = detmap.truth_from_arrays([1, 1], [1, 2], np.array([[0, 0, 10, 10]] * 2), crowd=[0, 1])
    detections = detmap.detections_from_arrays(
        truth, [1, 1], [1, 2], np.array([[0, 0, 10, 10]] * 2), [0.9, 0.8]
    )
    assert tidecv(truth, detections).ap == 100.0
    assert detmap.evaluate(truth, detections, "tide").metrics["mAP"] == 1.0


def test_a_sentence_says_where_the_ap_of_tidecv_differs() -> None:
    """A crowd absorbs at an overlap of exactly .5 under COCO's rule, above it under tidecv's."""
    truth = detmap.truth_from_arrays(
        [1, 1],
        [1, 1],
        np.array([[0, 0, 10, 10], [50, 50, 20, 20.0]]),
        crowd=[True, False],
        images=[1],
        categories={1: "a"},
    )
    found = detmap.detections_from_arrays(
        truth, [1, 1], [1, 1], np.array([[5, 0, 10, 10], [50, 50, 20, 20.0]]), [0.9, 0.8]
    )
    said = summary(detmap.diagnose(truth, found, "coco-bbox"))["sentences"]
    assert said[0] == "Under tidecv's rules AP50 is 50.0, under the protocol's 100.0."
