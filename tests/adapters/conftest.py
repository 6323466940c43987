"""What several tests of readers share."""

import pytest

from detmap import Detections, Truth, read_detections, read_truth
from detmap.core.adapters.coco import scan_json
from tests.support import builders as make


@pytest.fixture(scope="session")
def sample() -> tuple[Truth, Detections]:
    """The sample in VOC's files."""
    truth = read_truth(make.SHAPES)
    return truth, read_detections(make.SHAPES / "detections" / "contours", truth)


@pytest.fixture(params=[0, 1 << 60], ids=["fast", "reference"])
def coco_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reader of COCO's files, for files of every size."""
    monkeypatch.setattr(scan_json, "LEAST_SIZE", request.param)
