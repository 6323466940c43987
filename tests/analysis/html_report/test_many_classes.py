"""A report on thousands of classes samples their curves in blocks."""

import tracemalloc

import numpy as np
import pytest

import detmap
from detmap.analysis.html_report import gather, report_tables
from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.results.result import Result


def evaluated(n_classes: int) -> Result:
    """Every second class has an object; every third class has a detection that matches."""
    label, box = np.arange(n_classes), np.array([[0.0, 0.0, 9.0, 9.0]])
    some, found = label[::2], label[::3]
    truth = truth_from_arrays(
        np.ones(len(some), int),
        some,
        np.repeat(box, len(some), axis=0),
        images=[1],
        categories={int(k): f"class {k}" for k in label},
    )
    score = np.linspace(0, 1, len(found))
    ones, boxes = np.ones(len(found), int), np.repeat(box, len(found), axis=0)
    detections = detections_from_arrays(truth, ones, found, boxes, score)
    return detmap.evaluate(truth, detections, "coco-bbox", threads=1)


def test_blocks_of_classes_have_the_curves_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    result = evaluated(9)
    whole = gather._precision(result, 0.5, 1)
    monkeypatch.setattr(gather, "CLASSES_AT_ONCE", 2)
    parts = gather._precision(result, 0.5, 1)
    assert np.array_equal(whole[0], parts[0], equal_nan=True)
    assert np.isnan(whole[0][:, 1::2]).all()
    assert np.allclose(whole[0][:, ::6], 1)
    assert np.allclose(whole[0][:, 2::6], 0)
    assert np.allclose(whole[1], 2 / 5)
    assert np.array_equal(whole[1], parts[1])


def test_curves_of_thousands_of_classes_take_little_memory() -> None:
    result = evaluated(4000)
    tracemalloc.start()
    precision, mean = gather._precision(result, 0.5, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert precision.shape == (101, 4000)
    assert mean.shape == (10, 101)
    assert peak < 80 << 20  # all curves at once: 500 MB


@pytest.mark.parametrize("two", [False, True])
def test_of_thousands_of_classes_those_with_most_objects_are_listed(
    two: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    label = rng.integers(0, 5, 60)
    image, box = np.arange(60) % 20 + 1, np.tile([0.0, 0.0, 9.0, 9.0], (60, 1))
    truth = truth_from_arrays(image, label, box, categories={k: f"class {k}" for k in range(5)})
    found = detections_from_arrays(truth, image, label, box, rng.random(60))
    rules = detmap.load_protocol("voc2012")
    runs = [gather.gather(name, truth, found, rules) for name in "ab"[: 1 + two]]
    whole = {row[0]: row for row in report_tables.classes(runs)["rows"]}
    assert (len(whole), report_tables.unlisted_classes(runs)) == (5, "")
    monkeypatch.setattr(gather, "MOST_CLASSES", 2)
    few = [gather.gather(name, truth, found, rules) for name in "ab"[: 1 + two]]
    most = np.sort(np.argsort(-np.bincount(truth.label), kind="stable")[:2])
    listed = report_tables.classes(few)["rows"]
    assert [row[0] for row in listed] == [f"class {k}" for k in most]
    assert [str(row) for row in listed] == [str(whole[row[0]]) for row in listed]
    assert "the 2 classes with the most objects of 5" in report_tables.unlisted_classes(few)
    before, after = (runs[0].uncertainty, few[0].uncertainty)
    assert before is not None
    assert after is not None
    assert before.classes.values[before.rates(5)[2]] == after.classes.values[after.rates(5)[2]]
