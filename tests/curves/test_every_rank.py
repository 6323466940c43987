"""Terms of curves at every rank: short lists that are alike share theirs, all others do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from detmap.curves import every_rank, score_threshold
from detmap.matching.matches import Matches
from detmap.protocol.integrators import INTEGRATORS, Integrator
from detmap.tables.grouping import labels
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


def test_the_number_of_shared_curves_is_that_of_different_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
