"""Objects, rows and images of each class against a count one by one, with weights and without."""

import numpy as np
import pytest

import detmap
from detmap.core.curves import counts as counting
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.support.tier import drawn


def test_a_class_that_begins_on_the_image_on_which_another_ends() -> None:
    """Means by images: class a is on two images, b on one, the last one of a."""
    box = np.array([[0, 0, 10, 10]] * 3)
    truth = detmap.truth_from_arrays([1, 2, 2], [1, 1, 2], box, categories={1: "a", 2: "b"})
    found = detmap.detections_from_arrays(truth, [1, 2], [1, 1], box[:2], [0.9, 0.8])
    rules = {"mean.weights": "images", "metrics": ["AP50"]}
    assert detmap.evaluate(truth, found, settings=rules).metrics["AP50"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(drawn(40)))
def test_counts_of_each_class(seed: int, weighted: bool) -> None:
    truth, found = tables(seed)
    matches = detmap.match(truth, found, "coco-bbox")
    weight = np.linspace(0.25, 3, matches.n_images) if weighted else None
    each = np.ones(matches.n_images) if weight is None else weight
    for k in range(len(truth.categories)):
        mine = truth.label == k
        images, to_find = truth.image[mine], truth.image[mine & ~truth.crowd]
        assert counting.n_images(matches, weight)[k] == pytest.approx(each[np.unique(images)].sum())
        wanted = pytest.approx(each[images].sum())
        assert counting.n_objects(matches, weight, counted=False)[k, 0] == wanted
        expected = pytest.approx(each[to_find].sum())
        assert counting.n_objects(matches, weight, counted=True)[k, 0] == expected
        rows = found.image[found.label == k]
        assert counting.count_per_class(matches.image, matches.off, weight)[k] == pytest.approx(
            each[rows].sum()
        )
    first = counting.first_of_image(matches)
    pairs = set(zip(truth.label.tolist(), truth.image.tolist(), strict=True))
    assert first.sum() == len(pairs)


def test_recall_over_all_objects() -> None:
    truth, found = tables(3)
    for over, counted in (("counted", True), ("all", False)):
        rules = detmap.load_protocol("coco-bbox").override({"ap.recall_over": over})
        matches = detmap.match(truth, found, rules)
        expected = counting.n_objects(matches, None, counted)
        assert np.array_equal(counting.positives(matches), expected)
    assert matches.n_objects().sum() < counting.positives(matches).sum()
