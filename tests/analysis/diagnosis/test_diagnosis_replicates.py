"""Numbers of a diagnosis on subsets of the images, against a diagnosis of the selected images."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detmap.analysis.diagnosis import Diagnosis, diagnose, tide
from detmap.analysis.diagnosis import breakdowns as slicing
from detmap.analysis.diagnosis import diagnosis_replicates as sampling
from detmap.analysis.diagnosis.calibration import bins, calibration
from detmap.analysis.diagnosis.diagnosis_intervals import estimate_ap
from detmap.analysis.diagnosis.olrp import olrp, overlap_taken
from detmap.analysis.diagnosis.operating_sweep import OVERALL, Point, operating_points
from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.protocol import load
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from detmap.core.tables import Detections, Truth
from tests.analysis.diagnosis import troublesome_tables as drawing
from tests.support.tier import some

pytestmark = pytest.mark.slow

N, B, SEED = 7, 20, 3
PROTOCOLS = ("coco-bbox", "voc2007", "voc2012")


def tables(seed: int, times: Any = None) -> tuple[Truth, Detections]:
    """Drawn tables, no two scores of an image alike; or of them each image as often as told, its
    copies beside each other.
    """
    truth, detections = drawing.tables(100 + seed, n_images=N)
    rng = random.Random(seed)
    score = np.array([(k + rng.random()) / (len(detections) + 1) for k in range(len(detections))])
    rng.shuffle(score)
    copies = np.repeat(np.arange(N), [1] * N if times is None else times)
    rows, objects = (
        [(i, row) for i, of in enumerate(copies) for row in np.flatnonzero(table.image == of)]
        for table in (detections, truth)
    )
    names = dict(zip(truth.categories.ids.tolist(), truth.categories.names, strict=True))
    ids = truth.categories.ids

    def columns(table: Truth | Detections, which: list[Any]) -> tuple[Any, Any, Any]:
        at = np.array([row for _, row in which], dtype=int)
        boxes = table.boxes[at].reshape(-1, 4)
        return [i for i, _ in which], ids[table.label[at]].tolist(), boxes

    again = truth_from_arrays(
        *columns(truth, objects),
        crowd=[bool(truth.crowd[row]) for _, row in objects],
        images=list(range(len(copies))),
        categories=names,
    )
    side = np.full(len(copies), 60.0)
    again = replace(again, images=replace(again.images, width=side, height=side))
    found = columns(detections, rows)
    return again, detections_from_arrays(again, *found, score[[row for _, row in rows]])


DEALT = subsets(units(np.arange(N)), SEED)


def selected(seed: int, b: int) -> tuple[Truth, Detections]:
    """The tables of the images of subset b."""
    return tables(seed, DEALT.keep[b].astype(int))


def smooth(protocol: str) -> Any:
    """The protocol by the rule of the subsets."""
    rules = load(protocol)
    grid = rules.ap.integrator == "grid_envelope"
    return rules.override({"ap.integrator": "all_points"}) if grid else rules


def same(found: Any, wanted: Any) -> None:
    assert np.asarray(found) == pytest.approx(np.asarray(wanted), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", some(range(4), 2))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gains_of_tide(seed: int, protocol: str) -> None:
    whole = diagnose(*tables(seed), protocol)
    lists = {name: estimate_ap(ranks, None, DEALT) for name, ranks in tide.lists(whole)}
    known = tide.tide(whole)
    same(100 * lists[""].value[0], known.ap)
    for name, gain in known.gain.items():
        same(100 * lists[name].minus(lists[""]).value[0], gain)
    for b in range(B):
        there = tide.tide(diagnose(*selected(seed, b), smooth(protocol)))
        same(100 * lists[""].parts[b, 0], there.ap)
        for name, gain in there.gain.items():
            same(100 * lists[name].minus(lists[""]).parts[b, 0], gain)


@pytest.mark.parametrize("seed", some(range(4), 2))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_slices(seed: int, protocol: str) -> None:
    whole = diagnose(*tables(seed), protocol)
    known, lists = slicing.slices(whole, confidence=0.5), list(slicing.lists(whole))
    part = sampling.recalled(whole, [ranks.objects for *_, ranks in lists], 0.5)
    recall = sampling.estimate(part, DEALT)
    same(recall.value, [each.recall for each in known])
    ap = [estimate_ap(ranks, "skip", DEALT) for *_, ranks in lists]
    same([each.value[0] for each in ap], [each.ap for each in known])
    for b in range(B):
        found = diagnose(*selected(seed, b), smooth(protocol))
        there = {(each.by, each.name): each for each in slicing.slices(found, confidence=0.5)}
        for k, (by, name, _) in enumerate(lists):
            if by == "objects of the class":  # other classes are frequent in a subset
                continue
            each = there.get((by, name))
            same(recall.parts[b, k], np.nan if each is None else each.recall)
            same(ap[k].parts[b, 0], np.nan if each is None else each.ap)


def at(found: Diagnosis, rows: Any, objects: Any, score: float) -> list[float]:
    kept = rows & ~found.ignored & (found.kind != 6) & (found.detections.score >= score)
    tp, n = float((found.kind[kept] == 0).sum()), float((objects & found.to_find).sum())
    every = float(kept.sum())
    nan = float("nan")
    f1 = 2 * tp / (every + n) if n else nan
    return [tp / every if every else nan, tp / n if n else nan, f1]


def of_classes(points: list[Point]) -> list[Point]:
    """The points of the classes, then their mean."""
    return [*points[len(OVERALL) :], points[OVERALL.index("classwise")]]


def rates(points: list[Point]) -> np.ndarray:
    """(3, n) precision, recall and F1."""
    return np.array([[each.precision, each.recall, each.f1] for each in points]).T


def test_scores_of_many_detections_are_looked_at_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best score of all images is among them."""
    monkeypatch.setattr(sampling, "MOST_SCORES", 3)
    for seed in range(6):
        whole = diagnose(*tables(seed), "coco-bbox")
        points = operating_points(whole)
        n = len(whole.truth.categories)
        lists = sampling._Lists(
            whole, points[len(OVERALL) :], whole.detections.label, whole.truth.label
        )
        assert 0 < np.diff(lists.off).max() <= 4
        once = lists.best(np.ones((N, 16)))[:, :, 0]
        same(once[1:], rates(points[len(OVERALL) :])[1:])
        assert once.shape == (3, n)


def test_what_has_no_interval_at_the_best_score() -> None:
    whole = diagnose(*tables(1), "coco-bbox")
    points = operating_points(whole)
    many = subsets(units(np.arange(60)), 0)
    for part in (sampling.best(whole, points[0]), sampling.classes(whole, points[len(OVERALL) :])):
        q = len(part.values)
        enough = replace(part, of=lambda w, q=q: w[:q], n_units=np.full(q, 30))
        why = [rule.why_not for rule in sampling.estimate(enough, many).rules]
        k = len(why) // 3
        assert all(text.startswith("the score of the best F1 differs") for text in why[: 2 * k])
        assert why[2 * k :] == [""] * k
    part = sampling.calibrated(whole, bins(whole))
    enough = replace(part, of=lambda w: w[:4], n_units=np.full(4, 30))
    why = [rule.why_not for rule in sampling.estimate(enough, many).rules]
    assert [text[:19] for text in why] == ["", *["absolute deviations"] * 3]


def test_without_classes_nothing_is_looked_for() -> None:
    truth = truth_from_arrays([], [], np.empty((0, 4)), images=list(range(N)), categories={})
    found = detections_from_arrays(truth, [], [], np.empty((0, 4)), [])
    whole = diagnose(truth, found, "coco-bbox")
    part = sampling.classes(whole, operating_points(whole)[len(OVERALL) :])
    assert part.values.shape == (3,)
    assert np.isnan(sampling.estimate(part, DEALT).parts).all()


@pytest.mark.parametrize("seed", some(range(6), 3))
def test_operating_points(seed: int) -> None:
    whole = diagnose(*tables(seed), "coco-bbox")
    points = operating_points(whole)
    scores = np.array([0.9, 0.5, 0.2])
    n = len(whole.truth.categories)
    parts = [
        sampling.operating(whole, scores),
        sampling.classes(whole, points[len(OVERALL) :]),
        sampling.best(whole, points[0]),
    ]
    micro, classes, best = (sampling.estimate(part, DEALT) for part in parts)
    same(best.value, rates([points[0]])[:, 0])
    same(classes.value.reshape(3, n + 1), rates(of_classes(points)))
    for b in range(B):
        found = diagnose(*selected(seed, b), "coco-bbox")
        everything = (np.ones(len(found.detections), bool), np.ones(len(found.truth), bool))
        for s, score in enumerate(scores.tolist()):
            same(micro.parts[b].reshape(3, -1)[:, s], at(found, *everything, score))
        there = operating_points(found)  # each at its own best score
        same(best.parts[b], rates([there[0]])[:, 0])
        own, wanted = classes.parts[b].reshape(3, n + 1), rates(of_classes(there))
        same(own, wanted)


@pytest.mark.parametrize("seed", some(range(6), 3))
def test_calibration_localisation_and_olrp(seed: int) -> None:
    whole = diagnose(*tables(seed), "coco-bbox")
    parts = [
        sampling.calibrated(whole, bins(whole, n_bins=5, least=2)),
        sampling.localised(whole),
        sampling.least_lrp(whole),
    ]
    calibrated, overlap, lrp = (sampling.estimate(part, DEALT) for part in parts)
    cases: list[tuple[Any, Any, Any, Diagnosis]] = [
        (calibrated.value, overlap.value, lrp.value, whole)
    ]
    for b in range(B):
        found = diagnose(*selected(seed, b), "coco-bbox")
        cases.append((calibrated.parts[b], overlap.parts[b], lrp.parts[b], found))
    for of_scores, of_boxes, of_all, found in cases:
        own = calibration(found, n_bins=5, least=2)
        same(of_scores, [own.ece, own.mce, own.ace, own.d_ece])
        right = np.flatnonzero(found.kind == 0)
        same(of_boxes, [overlap_taken(found, right).mean() if len(right) else np.nan])
        least = olrp(found)[""]
        same(of_all, [least.olrp, least.loc, least.fp, least.fn])


def test_few_images_and_cases_have_no_interval() -> None:
    whole = diagnose(*tables(1), "coco-bbox")
    part = sampling.operating(whole, np.array([0.5]))
    found = sampling.estimate(part, DEALT).intervals(0.95)
    reasons = {one.why_not for one in found if not np.isnan(one.value)}
    assert reasons == {"fewer than 50 images; more images would help"}
    many = subsets(units(np.arange(60)), 0)
    part = sampling.Part(np.full(2, 0.5), lambda w: w[:2] / 2, np.array([20, 21]))
    few, enough = (rule.why_not for rule in sampling.estimate(part, many).rules)
    assert few.startswith("cases on 20 images")
    assert enough == ""


def test_a_detector_does_not_differ_from_itself() -> None:
    whole = diagnose(*tables(1), "coco-bbox")
    own = estimate_ap(next(tide.lists(whole))[1], None, DEALT)
    (found,) = own.differences(own)
    assert (found.value, found.se) == (0, 0)
    assert np.isnan(found.p)  # of so few images nothing is tested
