"""The rules that judge pairs, on drawn words, against one loop a subset and threshold."""

import numpy as np
import pytest
from hypothesis import given, settings

from detmap.kernels import match as kernels
from detmap.kernels.cells import Verdicts
from detmap.kernels.pairs import Pairs
from tests.reference import judging as twin
from tests.support.drawing import SEEDS
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(150))
OVERLAPS = (0.5, 0.5, 0.55, 0.6, 0.75, 0.75, 0.9, 1.0, float("inf"))
RULES = {"best_free": twin.best_free, "best_any": twin.best_any}


def draw_case(rng: np.random.Generator) -> twin.Case:
    """A cell whose objects and detections have any role in any of up to 64 subsets."""
    n_subsets = int(rng.choice([1, 2, 4, 9, 64]))
    thresholds = np.linspace(0.5, 0.95, int(rng.choice([1, 3, 10, 20]))).tolist()
    n_objects, n_detections = int(rng.integers(1, 12)), int(rng.integers(1, 12))
    every = 2**n_subsets - 1

    def words(n: int, share: float) -> list[int]:
        flags = rng.random((n, n_subsets)) < share
        return [sum(1 << a for a in np.flatnonzero(row).tolist()) for row in flags]

    absorb = [
        (0, every, some)[kind]
        for kind, some in zip(
            rng.choice(3, n_objects, p=[0.7, 0.15, 0.15]), words(n_objects, 0.5), strict=False
        )
    ]
    find = [word & ~taking for word, taking in zip(words(n_objects, 0.7), absorb, strict=True)]
    own = rng.random(n_objects) < (0.3 if rng.random() < 0.3 else 0)
    enough = np.where(own, rng.choice([0.5, 0.52, 0.7], n_objects), np.inf).tolist()
    pairs = [
        twin.Pair(d, g, float(rng.choice(OVERLAPS)), over)
        for d in range(n_detections)
        for g in range(n_objects)
        if rng.random() < 0.6
        for over in (False, True)
        if (absorb[g] != every if not over else absorb[g] != 0)
    ]
    order = rng.permutation(len(pairs))  # a detection's pairs come in any order
    return twin.Case(
        sorted((pairs[i] for i in order), key=lambda pair: pair.detection),
        thresholds,
        n_subsets,
        find,
        absorb,
        enough,
        words(n_detections, 0.3),
        words(n_detections, 0.2) if rng.random() < 0.5 else [0] * n_detections,
        bool(rng.random() < 0.3),
        bool(rng.random() < 0.3),
    )


def judged(name: str, case: twin.Case, *, asked: bool = True) -> tuple[Verdicts, kernels.Takings]:
    """What a kernel makes of a case."""
    word = np.uint16 if len(case.thresholds) <= 16 else np.uint64
    every, full = 2**case.n_subsets - 1, 2 ** len(case.thresholds) - 1
    n_detections, n_objects = len(case.outside), len(case.find)
    start = np.arange(n_detections, dtype=np.int32)
    outside = np.array(
        [[full * (row >> a & 1) for a in range(case.n_subsets)] for row in case.outside], word
    )
    score_bits = np.zeros(n_detections, np.uint64)
    verdicts = Verdicts(
        np.array([0, n_detections]),
        start,
        start,
        start,
        score_bits,
        np.zeros_like(outside),
        outside,
    )
    detections = sorted({pair.detection for pair in case.pairs})
    counts = [sum(pair.detection == d for pair in case.pairs) for d in detections]
    pairs = Pairs(
        np.array(detections, np.int32),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([pair.object for pair in case.pairs], np.int32),
        np.array([pair.overlap for pair in case.pairs]),
        np.array([pair.absorbing for pair in case.pairs], dtype=bool),
    )
    judging = kernels.Judging(
        np.array(case.thresholds),
        int(case.first_of_equals),
        np.array(case.find, np.uint64),
        np.array([2**64 - 1 if row == every else row for row in case.absorb], np.uint64),
        np.array(case.enough),
        np.array(case.dropped if any(case.dropped) else [], np.uint64),
        np.zeros((n_objects, case.n_subsets), word),
        np.array([[0, n_objects]] * n_objects if case.none_free else []).reshape(-1, 2).astype(int),
    )
    takings = kernels.empty_takings(len(case.pairs) if asked else 0, case.n_subsets, word)
    walk = kernels.walk(case.n_subsets, 2 * n_objects)
    rule = getattr(kernels, name)
    n = rule(len(detections), pairs, judging, verdicts, takings, walk)
    return verdicts, kernels.Takings(*(column[:n] for column in takings))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
@relaxed
@given(SEEDS)
def test_verdicts_and_who_took_what_are_those_of_the_twin(name: str, seed: int) -> None:
    case = draw_case(np.random.default_rng(seed))
    verdicts, takings = judged(name, case)
    assert takings.words.any(axis=1).all()
    who = {
        (d, a, t): (g, overlap)
        for d, g, overlap, words in zip(*(column.tolist() for column in takings), strict=True)
        for a, word in enumerate(words)
        for t in range(len(case.thresholds))
        if word >> t & 1
    }
    for a in range(case.n_subsets):
        for t, threshold in enumerate(case.thresholds):
            for d, (verdict, g, overlap) in enumerate(RULES[name](case, a, threshold)):
                tp, ignored = (
                    int(words[d, a]) >> t & 1 for words in (verdicts.tp, verdicts.ignored)
                )
                found = "TP" if tp else "IGNORED" if ignored else "FP"
                assert (found, who.get((d, a, t))) == (verdict, None if g is None else (g, overlap))


@pytest.mark.parametrize("name", RULES)
@relaxed
@given(SEEDS)
def test_verdicts_do_not_depend_on_whether_anybody_asks_who_took_what(name: str, seed: int) -> None:
    case = draw_case(np.random.default_rng(seed))
    asked, silent = judged(name, case)[0], judged(name, case, asked=False)[0]
    assert (asked.tp == silent.tp).all()
    assert (asked.ignored == silent.ignored).all()
