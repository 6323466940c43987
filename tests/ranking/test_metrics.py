"""`detmap.ranking` on arrays: worked examples, scikit-learn, the definitions, and what is
refused."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn
from sklearn.exceptions import UndefinedMetricWarning

import detmap
from detmap import DataError, ranking
from detmap.core.base.resources import folder
from detmap.core.protocol import integrators
from detmap.ranking.label_inputs import Samples
from tests.reference import ranking as naive
from tests.reference import voc
from tests.support.running import python
from tests.support.tier import drawn

relaxed = settings(deadline=None, max_examples=drawn(60))
AVERAGES = [None, "macro", "micro", "weighted", "samples"]

# Few values, so that ties abound; two zeros that are equal, and neighbours a rounding apart.
LEVELS = [0.0, -0.0, 0.1, 0.25, 0.5, np.nextafter(0.5, 1), 1.0, -3.0, 1e-300, 1e300]
WEIGHTS = [0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 1e3]


@st.composite
def binary(draw: st.DrawFn, both: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores (N,); with `both`, of each label at least one."""
    n = draw(st.integers(2, 40))
    truth = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    if both:
        truth[:2] = [0, 1]
    return truth, np.array(draw(st.lists(st.sampled_from(LEVELS), min_size=n, max_size=n)))


@st.composite
def multilabel(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels and scores (N, K) and, or not, weights (N,)."""
    n, k = draw(st.integers(1, 12)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = (rng.random((n, k)) < draw(st.sampled_from([0.1, 0.5, 0.9]))).astype(int)
    score = rng.choice(LEVELS, (n, k))
    return truth, score, draw_weights(rng, n) if draw(st.booleans()) else None


def draw_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    weights = rng.choice(WEIGHTS, n)
    weights[0] = weights[0] or 1.0
    return weights


@contextmanager
def quiet() -> Iterator[None]:
    """Without scikit-learn's warnings that a metric is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.filterwarnings("ignore", "No positive class found")
        yield


# ---- worked examples

QUERIES = [2, 1, 0, 3, 0, 1]
QUERY_SCORES = [
    [0.1, 0.2, 0.6, 0.1],
    [0.8, 0.05, 0.1, 0.05],
    [0.3, 0.4, 0.1, 0.2],
    [0.6, 0.25, 0.1, 0.05],
    [0.1, 0.2, 0.6, 0.1],
    [0.9, 0, 0.03, 0.07],
]
LABELS = [[0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 0]]
LABEL_SCORES = [[0.1, 0.8, 0.3], [0.9, 0.7, 0.5], [0.2, 0.1, 0.9], [0.1, 0.8, 0.6]]


def close(value: float) -> Any:
    return pytest.approx(value, abs=1e-12)


def test_a_worked_multilabel_example_comes_out_as_by_hand() -> None:
    wanted = close([0.75, 1, 1])
    assert ranking.average_precision(LABELS, LABEL_SCORES, average=None).tolist() == wanted
    expected = {"macro": 11 / 12, "weighted": 13 / 14, "micro": 37 / 42, "samples": 11 / 12}
    for average, value in expected.items():
        assert ranking.average_precision(LABELS, LABEL_SCORES, average=average) == close(value)
    assert round(37 / 42, 6) == 0.880952


def test_worked_example_all_point_with_ties_in_input_order() -> None:
    def ap(**options: Any) -> Any:
        return ranking.average_precision(QUERIES, QUERY_SCORES, integrator="all_points", **options)

    assert ap(ties="input", average=None).tolist() == close([1 / 3, 1 / 3, 1, 1 / 6])
    assert ap(ties="input") == close(11 / 24)  # 0.4583
    # class 2 shares its best score
    assert ap(ties="together", average=None).tolist() == close([1 / 3, 1 / 3, 1 / 2, 1 / 6])


# ---- scikit-learn


@relaxed
@given(binary(), st.booleans(), st.integers(0, 10**6))
def test_curves_of_sklearn(data: tuple[np.ndarray, np.ndarray], weighted: bool, seed: int) -> None:
    truth, score = data
    weight = draw_weights(np.random.default_rng(seed), len(truth)) if weighted else None
    with quiet():
        expected = sklearn.precision_recall_curve(truth, score, sample_weight=weight)
        expected_roc = sklearn.roc_curve(
            truth, score, sample_weight=weight, drop_intermediate=False
        )
    found = ranking.precision_recall_curve(truth, score, sample_weight=weight)
    if (
        truth[slice(None) if weight is None else weight > 0] == 0
    ).all():  # scikit-learn: 1; here undefined
        assert np.isnan(found.recall[:-1]).all()
        found = found._replace(recall=expected[1])
    found_roc = ranking.roc_curve(truth, score, sample_weight=weight)
    for mine, theirs in zip((*found, *found_roc), (*expected, *expected_roc), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)


@relaxed
@given(binary(), st.booleans(), st.integers(0, 10**6))
def test_binary_values_of_scikit_learn(
    data: tuple[np.ndarray, np.ndarray], weighted: bool, seed: int
) -> None:
    truth, score = data
    weight = draw_weights(np.random.default_rng(seed), len(truth)) if weighted else None
    with quiet():
        expected = sklearn.average_precision_score(truth, score, sample_weight=weight)
        expected_auc = sklearn.roc_auc_score(truth, score, sample_weight=weight)
    wanted = close(expected)
    assert ranking.average_precision(truth, score, sample_weight=weight, undefined="zero") == wanted
    found = ranking.auc(truth, score, sample_weight=weight)
    assert found == pytest.approx(expected_auc, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("average", AVERAGES)
@relaxed
@given(data=multilabel())
def test_averages_of_scikit_learn(average: str | None, data: Any) -> None:
    truth, score, weight = data
    with quiet():
        expected = sklearn.average_precision_score(
            truth, score, average=average, sample_weight=weight
        )
    found = ranking.average_precision(
        truth, score, average=average, sample_weight=weight, undefined="zero"
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("average", AVERAGES)
@relaxed
@given(data=multilabel())
def test_auc_averages_of_scikit_learn(average: str | None, data: Any) -> None:
    truth, score, weight = data
    found = ranking.auc(truth, score, average=average, sample_weight=weight)
    if weight is not None:
        truth, score, weight = (each[weight > 0] for each in (truth, score, weight))
    with quiet():
        if average == "micro":
            repeated = None if weight is None else np.repeat(weight, truth.shape[1])
            expected = sklearn.roc_auc_score(truth.ravel(), score.ravel(), sample_weight=repeated)
        # undefined ones are left out; scikit-learn's mean of them is NaN
        elif average == "samples":
            each = [sklearn.roc_auc_score(t, s) for t, s in zip(truth, score, strict=True)]
            expected = mean_of_defined(each, np.ones(len(truth)) if weight is None else weight)
        else:
            each = [
                sklearn.roc_auc_score(t, s, sample_weight=weight)
                for t, s in zip(truth.T, score.T, strict=True)
            ]
            support = truth.sum(axis=0) if weight is None else weight @ truth
            by = {"macro": np.ones(len(each)), "weighted": support}
            expected = each if average is None else mean_of_defined(each, by[average])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def mean_of_defined(values: list[float], weight: np.ndarray) -> float:
    defined = ~np.isnan(values)
    total = weight[defined].sum()
    return float((np.array(values)[defined] * weight[defined]).sum() / total) if total else math.nan


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", "samples", None])
@pytest.mark.parametrize(
    "undefined, zero_division", [("skip", np.nan), ("zero", 0.0), ("one", 1.0)]
)
@settings(relaxed, max_examples=drawn(25))
@given(data=multilabel(), threshold=st.sampled_from([*LEVELS, 2.0]))
def test_rates_at_a_threshold_of_scikit_learn(
    average: str, undefined: str, zero_division: float, data: Any, threshold: float
) -> None:
    truth, score, weight = data
    if weight is not None:  # of weightless samples scikit-learn counts the zeros
        truth, score, weight = (each[weight > 0] for each in (truth, score, weight))
    found = ranking.operating_point(
        truth, score, threshold, average=average, undefined=undefined, sample_weight=weight
    )
    expected = sklearn.precision_recall_fscore_support(
        truth,
        (score >= threshold).astype(int),
        average=average,
        zero_division=zero_division,
        sample_weight=weight,
    )[:3]
    for mine, theirs in zip(found[1:], expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    if average == "micro":
        right = (score >= threshold) == truth
        assert found.accuracy == close(np.average(right.mean(axis=1), weights=weight))


def test_weights_that_are_all_0_are_left_out() -> None:
    """Without positives no class has a weight; scikit-learn then takes the plain mean."""
    truth, score = np.zeros((3, 2), int), np.array([[0.9, 0.1], [0.8, 0.7], [0.2, 0.3]])
    one = ranking.operating_point(truth, score, 0.5, average="weighted", undefined="one")
    assert one[1:] == (0.0, 1.0, 0.0)
    skipped = ranking.operating_point(truth, score, 0.5, average="weighted")
    assert (skipped.precision, skipped.f1) == (0.0, 0.0)
    assert math.isnan(skipped.recall)


def test_multiclass_labels_are_one_hot() -> None:
    rng = np.random.default_rng(3)
    truth, score = np.arange(60) % 4, rng.random((60, 4)).round(1)
    for average in ("macro", "micro", "weighted"):
        expected = sklearn.average_precision_score(truth, score, average=average)
        assert ranking.average_precision(truth, score, average=average) == close(expected)
        wanted = close(expected)
        assert ranking.average_precision(np.eye(4)[truth], score, average=average) == wanted
    proba = score + 1e-3
    proba /= proba.sum(axis=1, keepdims=True)
    expected = sklearn.roc_auc_score(truth, proba, multi_class="ovr", average=None)
    np.testing.assert_allclose(
        ranking.auc(truth, proba, average=None), expected, rtol=0, atol=1e-12
    )


# ---- the definitions


@relaxed
@given(binary(both=True))
def test_auc_is_its_definition(data: tuple[np.ndarray, np.ndarray]) -> None:
    truth, score = (each.tolist() for each in data)
    pairs = naive.auc_by_pairs(truth, score)
    assert naive.auc_by_rank_sum(truth, score) == pairs
    assert ranking.auc(truth, score) == float(pairs)  # to the last bit


@relaxed
@given(binary(both=True))
def test_every_integrator_of_the_curve(data: tuple[np.ndarray, np.ndarray]) -> None:
    truth, score = data
    points = naive.curve(truth.tolist(), score.tolist())
    recall, precision = ([float(point[i]) for point in points] for i in (1, 2))
    for name in ranking.INTEGRATORS:
        expected = getattr(integrators, name)(recall, precision)
        assert ranking.average_precision(truth, score, integrator=name) == close(expected)


@relaxed
@given(binary(both=True), st.randoms())
def test_together_does_not_depend_on_the_order_of_the_input(
    data: tuple[np.ndarray, np.ndarray], random: Any
) -> None:
    truth, score = data
    order = list(range(len(truth)))
    random.shuffle(order)
    for name in ranking.INTEGRATORS:
        wanted = ranking.average_precision(truth, score, integrator=name)
        assert ranking.average_precision(truth[order], score[order], integrator=name) == wanted
    for curve in (ranking.precision_recall_curve, ranking.roc_curve):
        for mine, theirs in zip(
            curve(truth[order], score[order]), curve(truth, score), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)


@relaxed
@given(binary(both=True))
def test_ties_in_input_order_are_the_voc_devkits(data: tuple[np.ndarray, np.ndarray]) -> None:
    truth, score = data
    recall, precision = naive.voc_curve([1 if label else -1 for label in truth], score.tolist())
    found = ranking.precision_recall_curve(truth, score, ties="input")
    assert found.recall[-2::-1].tolist() == recall
    assert found.precision[-2::-1].tolist() == precision
    assert found.thresholds[::-1].tolist() == sorted(score.tolist(), reverse=True)
    for name, twin in (("eleven_point", voc.eleven_point), ("all_points", voc.all_points)):
        points = [integrators.VOC_POINTS.values().tolist()] if name == "eleven_point" else []
        found_ap = ranking.average_precision(truth, score, integrator=name, ties="input")
        assert found_ap == close(twin(recall, precision, *points))


@relaxed
@given(binary(), st.sampled_from([*LEVELS, 2.0, -5.0]))
def test_counts_at_a_threshold(data: tuple[np.ndarray, np.ndarray], threshold: float) -> None:
    truth, score = (each.tolist() for each in data)
    tp, fp, tn, fn = naive.counts(truth, score, threshold)
    found = ranking.confusion(truth, score, threshold)
    assert (found.tp, found.fp, found.tn, found.fn) == (tp, fp, tn, fn)
    assert found.accuracy == (tp + tn) / len(truth)
    rates = (
        (found.precision, tp, tp + fp),
        (found.recall, tp, tp + fn),
        (found.f1, 2 * tp, 2 * tp + fp + fn),
    )
    for mine, part, whole in rates:
        assert mine == part / whole if whole else math.isnan(mine)


def test_counts_of_classes_with_a_threshold_each_and_weights() -> None:
    found = ranking.confusion(LABELS, LABEL_SCORES, [0.5, 0.75, 0.5], sample_weight=[1, 0.5, 2, 0])
    assert found.tp.tolist() == [0.5, 1.0, 2.0]
    assert found.fp.tolist() == [0.0, 0.0, 0.5]
    assert found.tn.tolist() == [3.0, 0.0, 1.0]
    assert found.fn.tolist() == [0.0, 2.5, 0.0]


@relaxed
@given(binary(both=True), st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]))
def test_best_f_beta(data: tuple[np.ndarray, np.ndarray], beta: Fraction) -> None:
    truth, score = (each.tolist() for each in data)

    def f(precision: Fraction, recall: Fraction) -> Fraction:
        below = beta**2 * precision + recall
        return (1 + beta**2) * precision * recall / below if below else Fraction(0)

    threshold, value = naive.best(truth, score, f)
    found = ranking.best_f_beta(truth, score, beta=float(beta))
    assert found.f == close(float(value))
    assert found.threshold == threshold
    at = ranking.confusion(truth, score, found.threshold)
    assert (at.precision, at.recall) == (found.precision, found.recall)


@relaxed
@given(binary(both=True), st.sampled_from([0.0, 0.3, 0.5, 2 / 3, 0.9, 1.0]))
def test_thresholds_for_a_wanted_precision_and_recall(
    data: tuple[np.ndarray, np.ndarray], wanted: float
) -> None:
    truth, score = (each.tolist() for each in data)
    points = naive.curve(truth, score)
    precise = [point for point in points if float(point[2]) >= wanted]
    found = ranking.threshold_for_precision(truth, score, wanted)
    assert found.threshold == precise[-1][0] if precise else math.isnan(found.threshold)
    assert (
        found.recall == (max(float(point[1]) for point in precise))
        if precise
        else math.isnan(found.recall)
    )
    enough = [point for point in points if float(point[1]) >= wanted]
    found = ranking.threshold_for_recall(truth, score, wanted)
    assert (found.threshold, found.recall, found.precision) == tuple(map(float, enough[0]))


def test_operating_points_of_classes() -> None:
    found = ranking.best_f_beta(LABELS, LABEL_SCORES)
    assert found.threshold.tolist() == [0.9, 0.1, 0.9]
    assert found.f.tolist() == close([2 / 3, 1, 1])
    found = ranking.threshold_for_precision(LABELS, LABEL_SCORES, 1.0)
    assert found.threshold.tolist() == [0.9, 0.1, 0.9]
    assert found.recall.tolist() == [0.5, 1, 1]
    assert np.isnan(ranking.threshold_for_recall([[0], [0]], [[0.1], [0.2]], 0.5).threshold).all()


def test_detection_curves_are_the_same_code() -> None:
    sample = folder("datasets") / "shapes"
    truth = detmap.read_truth(sample)
    result = detmap.evaluate(
        truth, detmap.read_detections(sample / "detections" / "template", truth), "voc2012"
    )
    matches = result.matches
    for k, name in enumerate(matches.categories.names):
        mine = slice(matches.off[k], matches.off[k + 1])
        counted = matches.ignored[mine, 0] == 0
        hit, score = matches.tp[mine, 0][counted] != 0, matches.score[mine][counted]
        recall, precision, threshold = result.curve(name)
        found = ranking.precision_recall_curve(hit, score, ties="input")
        assert np.array_equal(found.precision[-2::-1], precision)
        assert np.array_equal(found.thresholds[::-1], threshold)
        assert found.recall[-2::-1] * hit.sum() == close(recall * matches.n_objects()[k, 0])
        assert integrators.all_points(recall, precision) == close(result.per_class[k]["AP"])


# ---- retrieval


@relaxed
@given(multilabel(), st.integers(1, 7))
def test_metrics_at_k(data: Any, k: int) -> None:
    truth, score, _ = data
    assume(truth.any())
    metrics = (ranking.precision_at_k, ranking.recall_at_k, ranking.average_precision_at_k)
    found = [metric(truth, score, k) for metric in metrics]
    relevant = truth.any(axis=1)
    for q, (labels, scores) in enumerate(zip(truth.tolist(), score.tolist(), strict=True)):
        if relevant[q]:
            assert [each[q] for each in found] == close(list(naive.at_k(labels, scores, k)))
            one = ranking.average_precision_at_k(labels, scores, k)
            assert one == found[2][q]
        else:
            assert found[0][q] == 0
            assert np.isnan([found[1][q], found[2][q]]).all()
    for undefined, stand_in in (("skip", None), ("zero", 0), ("one", 1)):
        ap = found[2][relevant] if stand_in is None else np.where(relevant, found[2], stand_in)
        wanted = close(ap.mean())
        assert ranking.mean_average_precision_at_k(truth, score, k, undefined=undefined) == wanted


def test_denominators_of_ap_at_k() -> None:
    # 3 relevant, 2 of them within 3 ranks
    truth, score = ([1, 0, 1, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    total = 1 + 2 / 3
    for denominator, n in (("possible", 3), ("relevant", 3), ("found", 2)):
        wanted = close(total / n)
        assert ranking.average_precision_at_k(truth, score, 3, denominator=denominator) == wanted
    assert ranking.average_precision_at_k(truth, score, 2) == close(1 / 2)
    assert ranking.average_precision_at_k(truth, score, 2, denominator="relevant") == close(1 / 3)
    assert ranking.average_precision_at_k([0, 1], [2, 1], 1, denominator="found") == 0
    assert ranking.precision_at_k([1, 1], [2, 1], 10**12) == close(2 / (2**31 - 1))


# ---- undefined


def test_policies_for_classes_without_positives_or_predictions() -> None:
    nothing = -math.inf
    truth = [[1, 0, 1], [0, 0, 1], [1, 0, 0]]
    score = [[0.9, 0.3, nothing], [0.1, 0.2, nothing], [0.8, 0.1, nothing]]
    ap = ranking.average_precision(truth, score, average=None)
    np.testing.assert_array_equal(ap, [1, np.nan, np.nan])
    for undefined, expected in (("skip", 1), ("zero", 1 / 3), ("one", 1)):
        assert ranking.average_precision(truth, score, undefined=undefined) == close(expected)
        assert ranking.auc(truth, score, undefined=undefined) == close(expected)
    zero = {"undefined": "zero"}
    assert ranking.average_precision(truth, score, average=None, **zero).tolist() == [1, 0, 0]
    assert ranking.average_precision(truth, score, average="weighted", **zero) == close(1 / 2)
    best = ranking.best_f_beta(truth, score)
    np.testing.assert_array_equal(best.threshold, [0.8, np.nan, np.nan])
    assert np.isnan(ranking.precision_at_k([[0, 1]], [[nothing, nothing]], 1)).all()


def test_no_prediction_ranks_last() -> None:
    truth, score = [1, 0, 1, 0], [0.5, 0.4, -math.inf, -math.inf]
    found = ranking.precision_recall_curve(truth, score)
    assert found.thresholds.tolist() == [-math.inf, 0.4, 0.5]
    assert found.recall.tolist() == [1, 0.5, 0.5, 0]
    assert ranking.average_precision(truth, score) == 0.75
    assert ranking.threshold_for_recall(truth, score, 1.0).threshold is not None
    # no prediction reaches it
    assert math.isnan(ranking.threshold_for_recall(truth, score, 1.0).threshold)


def test_nothing_at_all_is_undefined() -> None:
    assert math.isnan(ranking.average_precision([], []))
    assert ranking.average_precision([], [], undefined="one") == 1
    assert math.isnan(
        ranking.average_precision(np.zeros((0, 3)), np.zeros((0, 3)), average="samples")
    )
    assert ranking.precision_recall_curve([], []).precision.tolist() == [1]
    assert math.isnan(ranking.auc([1, 1], [0.1, 0.2]))
    assert math.isnan(ranking.average_precision([1, 0], [1, 0], sample_weight=[0, 0]))
    assert ranking.precision_at_k(np.zeros((0, 3)), np.zeros((0, 3)), 1).shape == (0,)


def test_precision_of_nothing_predicted() -> None:
    found = ranking.confusion([0, 1], [0.1, 0.2], 0.5)
    assert math.isnan(found.precision)
    assert found.recall == 0
    assert ranking.operating_point([0, 1], [0.1, 0.2], 0.5, undefined="one").precision == 1


# ---- inputs of any kind


class Foreign:
    """An array of another library."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


@pytest.mark.parametrize(
    "score_kind", [np.float64, np.float32, np.float16, np.int8, np.uint64, object, list, Foreign]
)
@pytest.mark.parametrize(
    "label_kind", [bool, np.int64, np.uint8, np.float32, object, list, Foreign]
)
def test_any_array(label_kind: Any, score_kind: Any) -> None:
    def made(kind: Any, values: list[Any]) -> Any:
        if kind is list:
            return values
        return Foreign(values) if kind is Foreign else np.array(values, dtype=kind)

    truth, score = made(label_kind, [0, 1, 1, 0, 1]), made(score_kind, [1, 3, 2, 2, 0])
    assert ranking.average_precision(truth, score) == close(1 / 3 + 2 / 9 + 1 / 5)
    assert ranking.auc(truth, score) == 3.5 / 6


def test_boolean_scores_and_layouts() -> None:
    assert ranking.auc([0, 1, 1, 0], np.array([False, True, False, False])) == 0.75
    truth, score = np.asfortranarray(LABELS), np.asfortranarray(LABEL_SCORES)
    score.flags.writeable = False
    for average in AVERAGES:
        assert np.array_equal(
            ranking.average_precision(truth, score, average=average),
            ranking.average_precision(LABELS, LABEL_SCORES, average=average),
        )
    assert score.tolist() == LABEL_SCORES


def test_a_positive_label_of_any_kind() -> None:
    score = [0.9, 0.8, 0.3, 0.2]
    expected = ranking.average_precision([1, 0, 1, 0], score)
    assert ranking.average_precision([1, -1, 1, -1], score, pos_label=1) == expected
    animals = ["cat", "dog", "cat", "dog"]
    assert ranking.average_precision(animals, score, pos_label="cat") == expected
    assert ranking.average_precision([0, 1, 0, 1], score, pos_label=0) == expected
    # no positives
    assert math.isnan(ranking.average_precision(["dog", "dog"], [1, 2], pos_label="cat"))
    assert sklearn.average_precision_score([0, 1, 0, 1], score, pos_label=0) == close(expected)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_number_of_threads_never_shows(threads: int) -> None:
    rng = np.random.default_rng(0)
    truth, score = rng.random((100, 300)) < 0.2, rng.random((100, 300)).round(2)
    for average in AVERAGES:
        for metric in (ranking.average_precision, ranking.auc):
            found = metric(truth, score, average=average, threads=threads)
            assert np.array_equal(found, metric(truth, score, average=average, threads=1))


@pytest.mark.slow
def test_a_light_import() -> None:
    code = "import sys, detmap; detmap.ranking.average_precision;"
    code += "print({'numba', 'matplotlib', 'sklearn'} & {*sys.modules})"
    assert python("-c", code).out == "set()\n"


# ---- what is refused

AP, ONE, TABLE = ranking.average_precision, ([[0, 1]], [[1, 2]]), (LABELS, LABEL_SCORES)
PAIR = ranking.from_arrays([0, 1], [1, 2])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: AP([0, 1, 2], [1, 2, 3]), ["y_true[2]", "2 is neither 0 nor 1", "pos_label"]),
        (lambda: AP([-1, 1], [1, 2]), ["y_true[0]", "-1"]),
        (lambda: AP([[0, 1], [0.5, 1]], [[1, 2], [3, 4]]), ["y_true[1, 0]", "0.5"]),
        (lambda: AP(["a", "b"], [1, 2]), ["y_true", "dtype"]),
        (lambda: AP([0, None], [1, 2]), ["y_true[1]", "None"]),
        (lambda: AP([0, 1], [1, math.nan]), ["y_score[1]", "nan"]),
        (lambda: AP([[0, 1]], [[math.inf, 1]]), ["y_score[0, 0]", "inf"]),
        (lambda: AP([0, 1], ["a", "b"]), ["y_score", "dtype"]),
        (lambda: AP([0, 1], [1j, 2]), ["y_score", "complex"]),
        (lambda: AP([0, 1], np.array([None, "x"], dtype=object)), ["y_score", "numbers"]),
        (lambda: AP([0, 1], [1, 2**53 + 1]), ["y_score[1]", str(2**53 + 1)]),
        (lambda: AP([0, 1], [[1, 2], [3]]), ["y_score", "array"]),
        (lambda: AP([0, 1, 1], [1, 2]), ["(3,)", "(2,)"]),
        (lambda: AP([[0, 1]], [[1, 2, 3]]), ["(1, 2)", "(1, 3)"]),
        (lambda: AP([0, 1], [[1], [2]]), ["(2,)", "(2, 1)"]),
        (lambda: AP(1, 2), ["()"]),
        (lambda: AP([[], []], [[], []]), ["(2, 0)", "at least one class"]),
        (lambda: AP([0, 3], [[1, 2], [3, 4]]), ["y_true[1]", "class 3 of 2"]),
        (lambda: AP([0, 0.5], [[1, 2], [3, 4]]), ["y_true", "class indices"]),
        (lambda: AP([0, 1], [[1, 2], [3, 4]], pos_label=1), ["pos_label"]),
        (lambda: AP(["x", "y"], [1, 2], pos_label="z"), ["pos_label", "'z'", "'x', 'y'"]),
        (lambda: AP([0, 1], [1, 2], sample_weight=[1]), ["sample_weight", "(1,)", "(2,)"]),
        (lambda: AP([0, 1], [1, 2], sample_weight=[1, -1]), ["sample_weight[1]", "-1"]),
        (lambda: AP([0, 1], [1, 2], sample_weight=[math.nan, 1]), ["sample_weight[0]", "nan"]),
        (lambda: AP([0, 1], [1, 2], sample_weight=["a", "b"]), ["sample_weight", "dtype"]),
        (lambda: AP([0, 1], [1, 2], average="mean"), ["'mean'", "micro, weighted, samples"]),
        (lambda: AP([0, 1], [1, 2], integrator="trapezoid"), ["integrator", "eleven_point"]),
        (lambda: AP([0, 1], [1, 2], ties="half"), ["ties", "together, input"]),
        (lambda: AP([0, 1], [1, 2], undefined="nan"), ["undefined", "skip, zero, one"]),
        (lambda: ranking.precision_recall_curve([0, 1], [1, 2], ties="x"), ["ties"]),
        (lambda: ranking.precision_at_k([[0, 1]], [[1, 2]], 0), ["k", "0", "from 1"]),
        (lambda: ranking.recall_at_k([[0, 1]], [[1, 2]], 1.5), ["k", "1.5"]),
        (lambda: ranking.average_precision_at_k([[0, 1]], [[1, 2]], True), ["k", "True"]),
        (lambda: ranking.average_precision_at_k(*ONE, 1, denominator="k"), ["possible"]),
        (lambda: ranking.confusion([0, 1], [1, 2], math.nan), ["threshold"]),
        (lambda: ranking.confusion([0, 1], [1, 2], [1, 2]), ["threshold", "1 classes"]),
        (lambda: ranking.best_f_beta([0, 1], [1, 2], beta=0), ["beta"]),
        (lambda: ranking.threshold_for_precision([0, 1], [1, 2], 1.5), ["precision", "1.5"]),
        (lambda: ranking.threshold_for_recall([0, 1], [1, 2], -1), ["recall", "-1"]),
        (lambda: ranking.from_arrays(*TABLE, classes=["a", "b"]), ["classes", "2 names", "3"]),
        (lambda: ranking.from_arrays(*TABLE, ids=list("aabc")), ["ids", "3 different"]),
        (lambda: ranking.evaluate(PAIR, "coco"), ["protocol", "plain, voc2007"]),
        (lambda: ranking.evaluate(PAIR, settings={"grid": 1}), ["option", "grid"]),
        (lambda: ranking.evaluate(PAIR, threshold=math.inf), ["threshold"]),
    ],
)
def test_refused_with_place_and_remedy(call: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(Exception) as caught:
        call()
    error = caught.value
    assert isinstance(error, DataError) or "protocol" in words
    assert error.fix
    for word in words:
        assert word in str(error)


def test_weighted_counts_depend_on_no_order_of_memory_and_no_library() -> None:
    rng = np.random.default_rng(3)
    weight, cells = rng.random(60_000), rng.random((60_000, 3)) < 0.5  # BLAS would use threads
    in_turn = np.cumsum(weight[:, None] * cells, axis=0)[-1]
    for each in (cells, np.asfortranarray(cells)):
        samples = Samples(each, each.astype(np.float64), weight)
        np.testing.assert_array_equal(samples.totals(each), in_turn)
