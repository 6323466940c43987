"""Whole image weights under every protocol: the numbers of files that repeat the images, or a
refusal by name.
"""

import numpy as np
import pytest

import detmap
from detmap.core.protocol import names
from detmap.core.protocol.load_toml import tools
from tests.support.tier import drawn
from tests.support.weighted_images import draw, fault, repeated

EVERY = [*names(), *tools()]
BY_MATCHING = [name for name in EVERY if detmap.load_protocol(name).evaluation.rule == "matching"]


@pytest.mark.parametrize("name", EVERY)
def test_whole_weights_are_repeated_images(name: str) -> None:
    for seed in range(drawn(24)):
        found = fault(name, seed)
        assert not isinstance(found, str), (seed, found)


@pytest.mark.parametrize("name", BY_MATCHING)
def test_weights_are_refused_only_where_scores_tie(name: str) -> None:
    """Without ties every protocol of match rows has weighted numbers, but WIDER FACE's scale."""
    truth, found = draw(name, np.random.default_rng(3), ties=False)
    weights = np.arange(len(truth.images)) % 3 + 1
    matches = detmap.match(truth, found, name)
    if matches.protocol.detections.score_scale != "no":
        with pytest.raises(detmap.DataError, match=rf"weights: {name} orders all detections"):
            detmap.summarize(matches, weights=weights)
        return
    detmap.summarize(matches, weights=weights)


def test_p_and_r_count_each_copy() -> None:
    """Between two scores P and R are read on a line to the first copy, not to the last."""
    images = [1, 1, 2]
    truth = detmap.truth_from_arrays(
        [1, 2, 2],
        [1, 1, 1],
        [[0, 0, 10, 10], [0, 0, 10, 10], [30, 30, 10, 10]],
        categories={1: "a"},
    )
    boxes = [[0, 0, 10, 10], [50, 50, 10, 10], [0, 0, 10, 10]]
    found = detmap.detections_from_arrays(truth, images, [1, 1, 1], boxes, [0.9, 0.4, 0.6])
    for name in ("yolov5", "ultralytics-8.4"):
        weighed = detmap.summarize(detmap.match(truth, found, name), weights=[2, 1])
        whole = detmap.evaluate(*repeated(truth, found, [2, 1]), name)
        assert weighed.metrics == pytest.approx(whole.metrics, abs=1e-12)
        assert weighed.metrics["P"] < 1


@pytest.mark.parametrize("name", ["yolov5", "crowdhuman", "caltech", "darknet-0"])
def test_rules_of_every_rank_refuse_weights_that_are_not_whole(name: str) -> None:
    truth, found = draw(name, np.random.default_rng(3), ties=False)
    weights = np.where(np.arange(len(truth.images)) == 2, 1.5, 1.0)
    with pytest.raises(
        detmap.DataError, match=r"weights: image 3: 1\.5 is not whole: .* every rank"
    ):
        detmap.summarize(detmap.match(truth, found, name), weights=weights)


@pytest.mark.parametrize("seed", [10_819, 53_767, 107_568])
def test_one_curve_of_all_classes_ties_across_classes(seed: int) -> None:
    """An unstable sort orders equal scores of two classes by what else is in the list."""
    counts = {"compared": 0, "refused": 0}
    assert fault("tfod-weighted", seed, counts) is None
    assert fault("tfod-ava-weighted", seed, counts) is None
    assert counts == {"compared": 0, "refused": 2}
