"""Intervals of a diagnosis whose ranked lists are partly equal: equal lists are evaluated once."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import Diagnosis, breakdowns, diagnose, diagnosis_intervals, tide
from detmap.analysis.diagnosis.diagnosis_intervals import estimate_ap
from detmap.analysis.diagnosis.summary import parts
from detmap.core.statistics.estimates import Estimates, Rule
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets

N, SEED = 12, 3


def detector() -> Diagnosis:
    """Of squares of one size and alone, with one false positive and one missed object; the class
    "c" has detections and no object. Slices of all objects have the list of AP without any fix.
    """
    square, far = [10.0, 10.0, 20.0, 20.0], [60.0, 60.0, 20.0, 20.0]
    images = [i for i in range(N) for _ in range(2)]
    truth = detmap.truth_from_arrays(
        images,
        [1, 2] * N,
        np.array([square, far] * N),
        images=list(range(N)),
        categories={1: "a", 2: "b", 3: "c"},
    )
    found = [(i, k, box) for i in range(1, N) for k, box in ((1, square), (2, far))]
    found += [(0, 1, far), (3, 3, square)]
    columns = (list(column) for column in zip(*found, strict=True))
    image, label, boxes = columns
    score = np.linspace(0.3, 0.9, len(found))
    detections = detmap.detections_from_arrays(truth, image, label, np.array(boxes), score)
    rules = detmap.load_protocol("coco-bbox").override({"mean.undefined": "zero"})
    return diagnose(truth, detections, rules)


@pytest.mark.slow
def test_equal_lists_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, dealt, computed = detector(), subsets(units(np.arange(N)), SEED), []

    def counted(*arguments: Any) -> Any:
        computed.append(arguments)
        return estimate_ap(*arguments)

    monkeypatch.setattr(diagnosis_intervals, "estimate_ap", counted)
    known = parts(found, macro=False)
    own = diagnosis_intervals.uncertainty(found, known, np.array([0.5]), seed=SEED)
    gains = {name: estimate_ap(each, None, dealt) for name, each in tide.lists(found)}
    for name, gain in own.gain.items():
        alone = gains[name].minus(gains[""]) if name else gains[""]
        np.testing.assert_array_equal(gain.values, alone.value)
        np.testing.assert_array_equal(gain.estimates.parts, alone.parts)
    of_slices = [estimate_ap(each, "skip", dealt) for *_, each in breakdowns.lists(found)]
    np.testing.assert_array_equal(own.slice_ap.values, [each.value[0] for each in of_slices])
    together = np.column_stack([each.parts for each in of_slices])
    np.testing.assert_array_equal(own.slice_ap.estimates.parts, together)
    assert len({each.value[0] for each in of_slices} | {gains[""].value[0]}) > 1
    assert len(computed) < len(gains) + len(of_slices)  # some lists are equal


def test_joined_numbers_have_their_intervals() -> None:
    own = diagnosis_intervals.uncertainty(detector(), parts(detector()), np.array([0.5]))
    both = diagnosis_intervals.joined([own.best, own.olrp])
    assert both.intervals == (*own.best.intervals, *own.olrp.intervals)
    assert tuple(both.estimates.intervals(0.95)) == both.intervals
    assert both.values.tolist() == [*own.best.values, *own.olrp.values]


def test_the_gain_of_few_cases_has_no_interval() -> None:
    found = detector()
    lists = dict(tide.lists(found))
    changed = {name: each.n_changed(lists[""]) for name, each in lists.items()}
    assert (changed[""], changed["Miss"], changed["Dupe"]) == (0, 1, 0)
    many = subsets(units(np.arange(60)), 0)
    half = np.array([0.5])
    before = Estimates(half, half, np.full((57, 1), 0.5), many, (Rule(),))
    parts = before.parts + np.linspace(0, 0.01, 57)[:, None]
    for n, gain, why in (
        (20, 0.003, "cases on 20 images"),
        (21, 0.001, "a gain below 0.2 points"),
        (21, 0.003, ""),
    ):
        after = replace(before, value=half + gain, whole=half + gain, parts=parts)
        (one,) = diagnosis_intervals._gain(after, before, n).intervals(0.95)
        assert one.why_not.startswith(why)
        assert bool(one.why_not) == bool(why)
    assert one.low < 0 < one.high  # not away from 0
    bounds = {}
    for apart in (0.001, 0.05):
        shifted = replace(after, value=after.value + apart, whole=after.whole + apart)
        shifted = replace(shifted, parts=after.parts + apart)
        (one,) = diagnosis_intervals._gain(shifted, before, 21).intervals(0.95)
        bounds[apart] = one.high - (one.value - one.bias), (one.value - one.bias) - one.low
    assert bounds[0.001][0] == pytest.approx(bounds[0.001][1])
    assert bounds[0.05][0] > bounds[0.05][1]
    (rule,) = diagnosis_intervals._gain(after, before, 21).rules
    assert (rule.wider, rule.step) == (1.2, 0.0)


def test_lists_that_differ_in_one_column_have_other_digests() -> None:
    found = detector()
    plain = next(each for name, each in tide.lists(found) if not name)
    right, objects, rows = plain.right.copy(), plain.objects.copy(), plain.rows.copy()
    right[0] = ~right[0]
    objects[0] = ~objects[0]
    rows[[0, 1]] = rows[[1, 0]]
    lists = [
        plain,
        replace(plain, right=right),
        replace(plain, objects=objects),
        replace(plain, rows=rows),
        replace(plain, off=plain.off + (np.arange(len(plain.off)) == 1)),
    ]
    assert replace(plain, rows=plain.rows.copy()).digest() == plain.digest()
    for one, other in combinations(lists, 2):
        assert one.digest() != other.digest()
