"""Terms of curves at every rank: short lists that are alike share theirs, all others do not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detmap.core.curves import every_rank, score_threshold
from detmap.core.matching.matches import Matches
from detmap.core.protocol.integrators import INTEGRATORS, Curve, Integrator, integrator
from detmap.core.tables.grouping import labels
from tests.curves.test_scores import asking
from tests.statistics.drawn_matches import draw, rows_of_cell
from tests.statistics.goldens import as_matches


def rare_classes(seed: int) -> Matches:
    """Sixty classes of few detections each: many lists of verdicts are alike, scores mostly not."""
    rng = np.random.default_rng(seed)
    objects, rows = [], []
    for k in range(60):
        n_objects = int(rng.integers(1, 3))
        objects += [{"cls": k, "image": i, "counted": [True, i == 0]} for i in range(n_objects)]
        for image in range(int(rng.integers(0, 4))):
            verdict = [
                [str(rng.choice(["T", "T", "I"] if good else ["F", "I"]))]
                for good in (image < n_objects, image == 0)
            ]
            score = float(rng.choice([0.25, 0.5, 0.75, rng.random()]))
            rows.append({"cls": k, "image": image, "score": score, "verdict": verdict})
    case: dict[str, Any] = {"I": 4, "K": 60, "A": 2, "T": 1, "objects": objects}
    return as_matches({**case, "detectors": [rows]}, 0, "step")


RULES: list[dict[str, Any]] = [
    {},
    {"ap.arithmetic": "float32"},
    {"ranking.equal": "true_first"},
    {"ap.sum": "pairwise"},
]


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("rule", INTEGRATORS, ids=lambda rule: rule.name)
@pytest.mark.parametrize("seed", range(4))
def test_lists_that_are_alike_share_the_terms_they_have_alone(
    monkeypatch: pytest.MonkeyPatch, seed: int, rule: Integrator, rules: dict[str, Any]
) -> None:
    drawn = rare_classes(seed) if seed < 3 else draw(seed)
    matches = asking(drawn, {"ap.integrator": rule.name, **rules})
    judged = np.arange(len(matches.categories))
    positives = np.ones((len(judged), 2)) + judged[:, None] % 2
    shared = every_rank.terms(matches, matches.protocol.ap, positives, judged)
    monkeypatch.setattr(every_rank, "SHORT", -1)
    alone = every_rank.terms(matches, matches.protocol.ap, positives, judged)
    assert shared.tobytes() == alone.tobytes()
    assert np.isfinite(alone).all()


def test_as_many_curves_are_shared_as_lists_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Any] = []
    whole = every_rank.integrate

    def counted(*given: Any) -> Any:
        computed.append(given)
        return whole(*given)

    monkeypatch.setattr(every_rank, "integrate", counted)
    matches = asking(rare_classes(0), {"ap.integrator": "between_ranks"})
    every_rank.terms(matches, matches.protocol.ap, np.ones((60, 2)), np.arange(60))
    lists = set()
    for k in range(60):
        mine = slice(matches.off[k], matches.off[k + 1])
        ties = tuple(np.diff(matches.score[mine]) == 0)
        for a in range(2):
            lists.add((*matches.tp[mine, a], "I", *matches.ignored[mine, a], *ties))
    assert len(computed) == len(lists) < 60


def test_only_rules_that_say_so_get_scores() -> None:
    hit, score = np.array([True, False, True]), np.array([0.9, 0.5, 0.1])
    protocol = draw(0).protocol
    for rule in INTEGRATORS:
        ap = protocol.override({"ap.integrator": rule.name}).ap
        seen: list[Any] = []

        def at_ranks(curve: Any, seen: list[Any] = seen, rule: Integrator = rule) -> Any:
            seen.append(curve.score)
            return rule.at_ranks(curve)

        read = rule._replace(at_ranks=at_ranks)
        every_rank.integrate(hit, 2.0, _with_rule(ap, read), None, score)
        assert len(seen[0]) == (3 if rule.name == "score_samples" else 0), rule.name


def _with_rule(ap: Any, rule: Integrator) -> Any:
    class Asked:
        def __getattr__(self, name: str) -> Any:
            return rule if name == "rule" else getattr(ap, name)

    return Asked()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("block", [1, 2000, 3000, 1 << 20])
def test_the_best_f1_is_that_of_one_array_at_any_block(
    monkeypatch: pytest.MonkeyPatch, seed: int, block: int
) -> None:
    """Against precision and recall of all classes in one array, and their mean."""
    drawn = draw(seed) if seed else rare_classes(5)
    matches = asking(drawn, {"metrics": ["AP", "P50"], "operating.rule": "best_mean_f1"})
    n_classes = len(matches.categories)
    positives = np.ones((n_classes, 2)) + np.arange(n_classes)[:, None] % 3
    judged = np.arange(n_classes)
    monkeypatch.setattr(score_threshold, "BLOCK", block)
    (values,) = score_threshold.points(matches, positives, judged).values()
    samples, share = matches.protocol.operating.samples, matches.protocol.operating.smooth
    t, a = matches.protocol.threshold(0.5), matches.protocol.subset()
    x = np.linspace(0, 1, samples)
    precision, recall = np.zeros((2, n_classes, samples))
    score = [matches.score[labels(matches.off) == k] for k in range(n_classes)]
    for k in range(n_classes):
        verdicts = [verdict for _, verdict in rows_of_cell(matches, k, a, t)]
        kept = [i for i, verdict in enumerate(verdicts) if verdict != "I"]
        if kept:
            hits = np.cumsum([verdicts[i] == "T" for i in kept])
            ranks = np.arange(1, len(kept) + 1)
            recall[k] = np.interp(-x, -score[k][kept], hits / (positives[k, a] + 1e-16), left=0)
            precision[k] = np.interp(-x, -score[k][kept], hits / ranks, left=1)
    f1 = 2 * precision * recall / (precision + recall + 1e-16)
    width = round(samples * share * 2) // 2 + 1
    mean = np.pad(f1.mean(0), width // 2, mode="edge")
    best = int(np.convolve(mean, np.ones(width) / width, mode="valid").argmax())
    expected = np.stack([each[:, best] for each in (precision, recall, f1)])
    assert values[:, 1:].tobytes() == expected.tobytes()
    assert values[:, 0].tolist() == [row.copy().mean() for row in expected]


def by_hand(
    rows: list[tuple[bool, float, float]], n_objects: float, rule: Integrator, epsilon: float
) -> Any:
    """The AP, or its terms, of ranked detections: hit, weight, score."""
    there = [row for row in rows if row[1] > 0]
    if not there:
        return 0.0
    hit, weight, score = (np.array(column) for column in zip(*there, strict=True))
    true, false = np.cumsum(weight * hit), np.cumsum(weight * ~hit.astype(bool))
    points = np.linspace(0, 1, 11) if rule.name == "eleven_point" else np.linspace(0, 1, 101)
    return rule.at_ranks(
        Curve(true / n_objects, true / (true + false + epsilon), points, score=score)
    )


@pytest.mark.parametrize("rule", INTEGRATORS, ids=lambda rule: rule.name)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_terms_by_hand(rule: Integrator, weighted: bool, seed: int) -> None:
    """Short lists of one class and of many; ignored detections, images of weight 0."""
    drawn = draw(seed, 8) if seed else rare_classes(7)
    matches = asking(drawn, {"ap.integrator": rule.name})
    rng = np.random.default_rng(seed)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], matches.n_images) if weighted else None
    n_classes, n_thresholds = len(matches.categories), len(matches.protocol.thresholds())
    positives = 1.0 + np.arange(2 * n_classes).reshape(-1, 2) % 3
    found = every_rank.terms(matches, matches.protocol.ap, positives, np.arange(n_classes), weight)
    assert found.shape == (2, n_thresholds, 101 if rule.samples else 1, n_classes)
    label = labels(matches.off)
    for k in range(n_classes):
        score = matches.score[label == k].tolist()
        for a in range(2):
            for t in range(n_thresholds):
                cell = zip(rows_of_cell(matches, k, a, t), score, strict=True)
                rows = [
                    (verdict == "T", 1.0 if weight is None else float(weight[image]), value)
                    for (image, verdict), value in cell
                    if verdict != "I"
                ]
                expected = by_hand(rows, positives[k, a], rule, matches.protocol.ap.epsilon)
                np.testing.assert_allclose(found[a, t, :, k], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", ["input", "ranking"])
@pytest.mark.parametrize("ignored", ["leave", "stay"])
@pytest.mark.parametrize("sort", ["stable", "unstable"])
def test_one_curve_of_all_classes_by_hand(order: str, ignored: str, sort: str) -> None:
    rules = {"ap.pool": "all", "ap.integrator": "step", "matching.order": order}
    rules["ranking.sort"] = sort
    matches = asking(draw(5, 12), {**rules, "ranking.ignored": ignored})
    rng = np.random.default_rng(1)
    position = rng.permutation(len(matches)).astype(np.int32)
    matches = replace(matches, position=position, score=np.round(matches.score, 1))
    positives = np.array([[3.0, 2.0], [4.0, 0.0], [2.0, 5.0]])
    found = every_rank.pooled(matches, matches.protocol.ap, positives)
    label, turn = labels(matches.off), position if order == "input" else matches.rank
    for a in range(2):
        for t in range(3):
            bit = 1 << t
            rows = [
                (int(label[r]), int(matches.image[r]), int(turn[r]), r)
                for r in range(len(matches))
                if positives[label[r], a] > 0
            ]
            listed = [r for *_, r in sorted(rows)]
            if ignored == "leave":
                listed = [r for r in listed if not matches.ignored[r, a] & bit]
            kind = "stable" if sort == "stable" else "quicksort"
            ranked = np.argsort(-matches.score[listed], kind=kind)
            listed = [listed[i] for i in ranked]
            verdicts = [
                (bool(matches.tp[r, a] & bit), 1.0, float(matches.score[r]))
                for r in listed
                if not matches.ignored[r, a] & bit
            ]
            expected = by_hand(
                verdicts, positives[:, a].sum(), integrator("step"), matches.protocol.ap.epsilon
            )
            assert found[a, t, 0] == pytest.approx(expected, abs=1e-12)


def test_one_curve_without_objects_is_undefined() -> None:
    matches = asking(draw(5, 12), {"ap.pool": "all", "ap.integrator": "step"})
    positives = np.array([[3.0, 0.0], [4.0, 0.0], [2.0, 0.0]])
    found = every_rank.pooled(matches, matches.protocol.ap, positives)
    assert found.shape == (2, 3, 1)
    assert np.isnan(found[1]).all()
    assert not np.isnan(found[0]).any()


def test_running_sums_stop_where_adding_one_has_no_effect() -> None:
    """Shown with a type of eleven bits: 2048 + 1 is 2048."""
    hit = np.random.default_rng(0).random(9000) < 0.5
    true, false = every_rank._running_sums(hit, None, np.arange(9000), np.float16)
    assert true.tolist() == np.cumsum(hit, dtype=np.float16).tolist()
    assert false.tolist() == np.cumsum(~hit, dtype=np.float16).tolist()
    assert true[-1] == 2048


def test_no_class_with_objects_has_no_best_f1() -> None:
    matches = asking(draw(1), {"metrics": ["AP", "P50"], "operating.rule": "best_mean_f1"})
    (values,) = score_threshold.points(matches, np.zeros((3, 2)), np.zeros(0, np.int64)).values()
    assert values.shape == (3, 1)
    assert np.isnan(values).all()


def test_precision_is_one_above_the_scores_of_a_class() -> None:
    """The best mean F1 is at a score that the second class does not reach."""
    objects = [{"cls": k, "image": i, "counted": [True, True]} for k in (0, 1) for i in range(4)]
    rows = [
        {"cls": 0, "image": i, "score": 0.9 - i / 100, "verdict": [["T"], ["T"]]} for i in range(4)
    ]
    rows += [{"cls": 0, "image": i, "score": 0.5, "verdict": [["F"], ["F"]]} for i in range(40)]
    rows += [{"cls": 1, "image": 0, "score": 0.1, "verdict": [["F"], ["F"]]}]
    case: dict[str, Any] = {"I": 40, "K": 2, "A": 2, "T": 1, "objects": objects}
    made = as_matches({**case, "detectors": [rows]}, 0, "step")
    matches = asking(made, {"metrics": ["AP", "P50"], "operating.rule": "best_mean_f1"})
    (values,) = score_threshold.points(matches, np.full((2, 2), 4.0), np.arange(2)).values()
    assert values[0, 2] == 1.0
    assert values[1, 2] == values[2, 2] == 0.0


def test_smoothing_is_a_moving_mean_with_repeated_ends() -> None:
    values = np.random.default_rng(3).random(1000)
    found = score_threshold._smoothed(values, 0.1)
    longer = np.concatenate([np.full(50, values[0]), values, np.full(50, values[-1])])
    expected = [longer[i : i + 101].mean() for i in range(1000)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
