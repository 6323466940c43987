"""Replicates of a diagnosis whose ranked lists are partly equal: equal lists share replicates."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import Diagnosis, breakdowns, diagnose, diagnosis_intervals, tide
from detmap.analysis.diagnosis.summary import parts
from detmap.core.statistics.resampled_numbers import less, resample_ap
from detmap.core.statistics.sampling_units import units

N, B, SEED = 12, 16, 3


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


def test_equal_lists_share_replicates_and_no_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found, drawn, computed = detector(), units(np.arange(N)), []

    def counted(*arguments: object, **options: object) -> object:
        computed.append(arguments)
        return resample_ap(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(diagnosis_intervals, "resample_ap", counted)
    own = diagnosis_intervals.uncertainty(
        found, parts(found, macro=False), np.array([0.5]), replicates=B, of_lists=B, seed=SEED
    )
    gains = {name: resample_ap(each.matches(), drawn, B, SEED) for name, each in tide.lists(found)}
    for name, gain in own.gain.items():
        alone = less(gains[name], gains[""]) if name else gains[""]
        np.testing.assert_array_equal(gain.values, alone.values)
        np.testing.assert_array_equal(gain.draws, alone.draws)
    of_slices = [
        resample_ap(each.matches(undefined="skip"), drawn, B, SEED)
        for *_, each in breakdowns.lists(found)
    ]
    np.testing.assert_array_equal(own.slice_ap.values, [each.values[0] for each in of_slices])
    np.testing.assert_array_equal(
        own.slice_ap.draws, np.column_stack([each.draws for each in of_slices])
    )
    assert len({each.values[0] for each in of_slices} | {gains[""].values[0]}) > 1
    assert len(computed) < len(gains) + len(of_slices)  # some lists are equal


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
