"""Terms of AP that are made by blocks give the bits of those that are kept."""

import pickle
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import terms
from detmap.core.statistics.ties import evaluated
from tests.statistics.drawn_matches import draw, tables
from tests.support.numpy_sums import HALVES

RULES = {
    "grid": {},
    "float32": {"ap.arithmetic": "float32", "mean.precision": "float32"},
    "zero": {"mean.undefined": "zero", "mean.weights": "objects"},
    "detected": {"mean.undefined": "detected", "mean.precision": "rounded"},
    "all_points": {"ap.integrator": "all_points"},
    "true_first": {"ranking.equal": "true_first"},
}


@pytest.mark.parametrize("n", [0, 1, 127, 129, 1001, 4097, 99_999])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_sum_of_parts_is_numpys_of_the_whole(
    n: int, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terms, "BLOCK", 1)
    rng = np.random.default_rng(n)
    numbers = rng.random(n).astype(kind)
    parts = np.split(numbers, np.sort(rng.integers(0, n + 1, 7)))
    if n > 8192 and not HALVES:
        assert terms.total(iter(parts), n) == pytest.approx(np.sum(numbers), rel=1e-6)
        return
    assert terms.total(iter(parts), n) == np.sum(numbers)
    if n:
        assert kind(terms.total(iter(parts), n) / np.intp(n)) == np.mean(numbers)


def numbers(matches: detmap.Matches, weights: Any) -> list[Any]:
    result = detmap.summarize(matches, weights=weights)
    columns = [list(map(repr, row.values())) for row in result.per_class]
    rest = evaluated(matches, result.scores, None, 3, 0) if weights is None else ()
    return [*map(repr, (result.metrics, *rest)), columns]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_blocks_change_no_bit(rule: str, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, detections = tables(3)
    matches = detmap.match(truth, detections, "coco-bbox", settings=RULES[rule])
    weights = np.arange(matches.n_images) % 3 if weighted else None
    kept = numbers(matches, weights)
    monkeypatch.setattr(terms, "MOST_KEPT", 0)
    monkeypatch.setattr(terms, "BLOCK", 1)
    assert numbers(matches, weights) == kept


def test_the_whole_array_is_made_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = draw(1, 30)
    kept = detmap.summarize(matches).scores.terms
    monkeypatch.setattr(terms, "MOST_KEPT", 0)
    made = detmap.summarize(matches).scores.terms
    assert isinstance(made, terms.Blocks)
    assert np.array_equal(made, kept, equal_nan=True)
    assert np.array_equal(pickle.loads(pickle.dumps(made)), kept, equal_nan=True)
    monkeypatch.setattr("detmap.core.base.memory.SPARE", -1)
    monkeypatch.setattr("detmap.core.base.memory.available", lambda: 0)
    with pytest.raises(detmap.DataError, match=r"array of all terms .* fewer iou.thresholds"):
        np.asarray(made)
