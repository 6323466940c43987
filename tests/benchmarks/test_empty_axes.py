"""Sets with an empty axis, under every protocol and by every route: a number, or a refusal."""

import contextlib

import numpy as np
import pytest

import detmap
from detmap.core.protocol import names
from detmap.core.protocol.load_toml import tools
from detmap.errors import DetmapError
from tests.support.empty_axes import CONDITIONS, ROUTES, evaluated

EVERY = (*names(), *tools())
DIFFERENT = ("coco-segm", "coco-keypoints", "dior-r", "imagenet-vid", "scoreless", "crowdhuman")


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", DIFFERENT)
def test_an_empty_axis_has_a_number_or_a_refusal(name: str, condition: str) -> None:
    with contextlib.suppress(DetmapError):
        evaluated(name, *CONDITIONS[condition](name))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_an_empty_axis_by_every_route(name: str) -> None:
    for make in CONDITIONS.values():
        for route in ROUTES:
            with contextlib.suppress(DetmapError):
                route(name, *make(name))


def test_a_perfect_detector_of_imagenet_vid() -> None:
    """No detection is unmatched. The original gives mAP 1."""
    truth, found = CONDITIONS["perfect, no roles"]("imagenet-vid")
    assert len(found)
    assert detmap.evaluate(truth, found, "imagenet-vid").metrics["mAP"] == 1


@pytest.mark.parametrize("name", ["scoreless", "coco-segm", "coco-keypoints", "crowdpose"])
def test_no_detections_recall_nothing(name: str) -> None:
    truth, found = CONDITIONS["no detections"](name)
    metrics = detmap.evaluate(truth, found, name).metrics
    assert set(np.nan_to_num(list(metrics.values())).tolist()) <= {0.0}
