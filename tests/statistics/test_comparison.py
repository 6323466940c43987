"""Comparisons: the goldens, a brute-force paired test, what has to be so, the command line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.curves import scores as curves
from detmap.core.statistics import gate as gates
from detmap.core.statistics import permutation
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.bias import bias
from detmap.core.statistics.comparison import TESTS
from detmap.core.statistics.formulas import multiple_comparisons as multiple
from detmap.core.statistics.influence import each_batch, influence, variance
from detmap.core.statistics.paired_differences import pair_up
from detmap.core.statistics.resampled_numbers import differences, resample_ap
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS, as_matches, load
from tests.statistics.test_influence import planned
from tests.support import builders as make
from tests.support.running import run

SHAPES = make.SHAPES
A, B = (SHAPES / "detections" / name for name in ("contours", "template"))


def two(seed: int = 0, n_images: int = 120, integrator: str = "all_points") -> list[detmap.Matches]:
    """Two detectors on the same objects: the second misses a part of what the first finds."""
    first = draw(seed, n_images, integrator)
    rng = np.random.default_rng(seed)
    missed = rng.random(len(first)) < 0.15
    return [first, replace(first, tp=np.where(missed[:, None], 0, first.tp).astype(np.uint16))]


@pytest.mark.parametrize("number", [1, 2])
def test_comparisons_are_the_goldens(number: int) -> None:
    case, expected = load(number)
    first, second = (as_matches(case["case"], i) for i in (0, 1))
    plans = [planned(each) for each in (first, second)]
    own = [each.protocol.override({}) for each in (first, second)]
    assert own[0] == own[1]
    each = units(first.image_ids)
    sampled = [drawing.replicates(x, each, expected["B"], expected["seed"]) for x in plans]
    delta = sampled[1].metrics[:, 0] - sampled[0].metrics[:, 0]
    np.testing.assert_allclose(delta, expected["bootstrap_grid"]["paired_delta"], atol=1e-12)


@pytest.mark.parametrize("number", [1, 2])
def test_every_exchange_of_a_golden(number: int) -> None:
    """All 256 exchanges of eight images: how many move the plain difference as far."""
    case, expected = load(number)
    golden = expected["permutation_exact"]
    plans = [planned(as_matches(case["small"], i, "all_points")) for i in (0, 1)]
    exchange = permutation.Exchange(*plans)
    swapped = np.array(list(product([False, True], repeat=8)))
    values = exchange.values(swapped)[:, :, 0]
    apart = values[1] - values[0]
    assert apart[0] == pytest.approx(golden["observed"], abs=1e-12)
    at_least = int((np.abs(apart) >= abs(golden["observed"]) - 1e-12).sum())
    assert (len(apart), at_least) == (golden["n"], golden["at_least"])


def test_an_exchange_is_an_evaluation_of_exchanged_detections() -> None:
    first, second = two(3, 12)
    exchange = permutation.Exchange(planned(first), planned(second))
    swapped = np.arange(12) % 3 == 0
    values = exchange.values(swapped[None])[:, 0]
    ids = first.image_ids
    for side, (own, other) in enumerate(((first, second), (second, first))):
        merged = own.select(ids[~swapped]).merge(other.select(ids[swapped]))
        expected = list(detmap.summarize(merged).metrics.values())
        np.testing.assert_allclose(values[side], expected, rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["grid_envelope", "all_points", "step"])
def test_a_brute_force_paired_test(integrator: str) -> None:
    """Images left out one at a time: the jackknife's standard error of the difference, and z. An AP
    minus its bias has 8 % more, and the bias of a class is as uncertain as it is large.
    """
    first, second = two(7, 150, integrator)
    found = detmap.compare(first, second, replicates=20)
    one = next(pair for pair in found.pairs if pair.metric == "AP")
    leave = 1 - np.eye(150)
    apart = [
        detmap.summarize(second, weights=w).metrics["AP"]
        - detmap.summarize(first, weights=w).metrics["AP"]
        for w in leave
    ]
    jackknife = math.sqrt(149 / 150 * ((apart - np.mean(apart)) ** 2).sum())
    of_bias = [each.bias for each in found.classes if each.metric == "AP"]
    error = math.hypot(1.08 * jackknife, np.linalg.norm(of_bias) / len(of_bias))
    assert one.se == pytest.approx(error, rel=0.1)
    z = (one.difference - one.bias) / one.se
    assert one.p == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), rel=1e-12)
    assert one.mdd == pytest.approx(2.8015852 * one.se, rel=1e-6)
    assert (one.low + one.high) / 2 == pytest.approx(one.difference, abs=one.se)
    assert one.high - one.low == pytest.approx(2 * 1.9599640 * one.se, rel=1e-6)
    assert one.difference < 0
    assert one.p < 0.05


def with_rare_classes() -> list[detmap.Matches]:
    """A class that is on all of 120 images, and three that are on one image each, of which the
    second detector misses two."""
    ids, box = list(range(120)), [0.0, 0.0, 10.0, 10.0]
    objects = [(i, 0) for i in ids] + [(7, 1), (40, 2), (90, 3)]
    truth = detmap.truth_from_arrays(
        [i for i, _ in objects],
        [k for _, k in objects],
        [box] * len(objects),
        images=ids,
        categories={0: "common", 1: "x", 2: "y", 3: "z"},
    )
    made = []
    for missed in ([], [(7, 1), (90, 3)]):
        rows = [each for each in objects if each not in missed and (each[0] % 5 or each[1])]
        scores = [1 - n / 1000 for n in range(len(rows))]
        images, labels = (list(column) for column in zip(*rows, strict=True))
        found = detmap.detections_from_arrays(truth, images, labels, [box] * len(rows), scores)
        made.append(detmap.match(truth, found, "voc2012"))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("test", ["z", "plain-permutation"])
def test_rare_classes_have_no_interval_and_the_error_of_a_naive_bootstrap(test: str) -> None:
    """Standard errors that knew nothing of lost classes were a third of what resampling gives, and
    the interval did not hold its own estimate."""
    first, second = with_rare_classes()
    found = detmap.compare(first, second, replicates=300, test=test)
    one = found.pairs[0]
    assert one.difference == pytest.approx(-0.5)
    rng = np.random.default_rng(1)
    naive = []
    for _ in range(200):
        w = np.bincount(rng.integers(0, 120, 120), minlength=120).astype(float)
        a, b = (detmap.summarize(each, weights=w).metrics["mAP"] for each in (first, second))
        naive.append(b - a)
    assert one.se == pytest.approx(np.std(naive), rel=0.1)
    assert "3 of 4 classes are on 1 to 3 images: a sample like this lacks 2" in one.why_not
    assert all(map(math.isnan, (one.low, one.high, one.p, one.p_adjusted, one.mdd)))
    assert [letters for *_, letters in found.leaderboard] == ["", ""]
    lost = next(each for each in found.classes if each.name == "x")
    assert (lost.difference, "a single class on 1 image:" in lost.why_not) == (-1, True)
    assert all(map(math.isnan, (lost.se, lost.low, lost.high, lost.p, lost.p_adjusted)))
    common = next(each for each in found.classes if each.name == "common")
    assert (common.difference, common.p, common.why_not) == (0, 1, "")
    for kind, drop, passed in (
        ("fail-if-drop", 99.0, False),
        ("fail-if-drop", 100.0, True),
        ("require-within", 100.0, False),
    ):
        verdict = gates.judge(found, gates.Gate(kind, drop, "AP", "x"), 0.05)
        assert verdict.passed is passed
        assert "standard error unknown" in verdict.line
        assert "no test of it holds its level" in verdict.line


def test_a_difference_of_a_difference_keeps_to_the_same_rule() -> None:
    first, second = with_rare_classes()
    drawn = units(first.image_ids)
    after, before = (resample_ap(each, drawn, 100, 0) for each in (second, first))
    own = differences(after, before)[0]
    assert own.value == pytest.approx(-0.5)
    assert own.se > 0.1
    assert all(map(math.isnan, (own.low, own.high, own.p)))


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS.values())
@pytest.mark.parametrize("n_images", [30, 120])
def test_a_detector_against_itself(integrator: str, n_images: int) -> None:
    matches = draw(1, n_images, integrator)
    found = detmap.compare(matches, matches, replicates=20)
    for one in (*found.pairs, *found.classes):
        assert (one.difference, one.se) == (0, 0)
        assert [str(p) for p in (one.p, one.p_adjusted)] == ["nan" if n_images < 100 else "1.0"] * 2
        assert (one.low, one.high) == (0, 0)
    assert not found.images
    for kind, points in (("fail-if-drop", 0.0), ("require-within", 1e-9)):
        assert gates.judge(found, gates.Gate(kind, points), 0.05).passed
    assert not gates.judge(found, gates.Gate("require-within", 0.0), 0.05).passed
    again = detmap.compare(matches, matches, replicates=5, test="permutation")
    assert {str(one.p) for one in again.pairs} == {"nan" if n_images < 100 else "1.0"}
    for adjust in ("maxt", "bh", "none"):
        again = detmap.compare(matches, matches, replicates=5, adjust=adjust)
        assert {str(one.p_adjusted) for one in again.pairs} == {"nan" if n_images < 100 else "1.0"}


def test_three_detectors_and_their_groups() -> None:
    first, second = two(2)
    found = detmap.compare(first, second, first, replicates=20, names=["x", "y", "z"])
    assert [(one.a, one.b) for one in found.pairs if one.metric == "AP"] == [
        ("x", "y"),
        ("x", "z"),
        ("y", "z"),
    ]
    assert [(name, letters) for name, _, letters in found.leaderboard] == [
        ("x", "a"),
        ("z", "a"),
        ("y", "b"),
    ]
    for adjust in ("bh", "maxt", "none"):
        other = detmap.compare(first, second, first, replicates=50, adjust=adjust)
        assert all(p.p_adjusted >= p.p or adjust == "maxt" for p in other.pairs)


@pytest.mark.slow
def test_the_permutation_test_agrees_with_z() -> None:
    first, second = two(5, 110)
    z = detmap.compare(first, second, replicates=60)
    exchanged = detmap.compare(first, second, replicates=60, test="permutation")
    for one, other in zip(z.pairs, exchanged.pairs, strict=True):
        if not math.isnan(one.p):
            assert abs(one.p - other.p) < 0.15
            assert other.p >= 1 / 61
    plain = detmap.compare(first, second, replicates=20, test="plain-permutation")
    assert [note.code for note in plain.notes] == ["plain-permutation"]


@pytest.mark.parametrize("test", TESTS)
def test_no_p_value_of_ap_by_the_eleven_point_rule(test: str) -> None:
    """It has no influence function to divide by, and no measured level; recalls have tests."""
    first, second = two(2, 100, "eleven_point")
    for adjust in multiple.ADJUSTMENTS:
        found = detmap.compare(first, second, replicates=5, test=test, adjust=adjust)
        rows = [*found.pairs, *found.classes]
        assert {row.metric[:2] for row in rows} == {"AP", "AR"}
        for row in rows:
            by_eleven_points = row.metric.startswith("AP")
            assert ("11-point rule" in row.why_not) == by_eleven_points
            numbers = [row.low, row.high, row.p, row.p_adjusted, row.mdd]
            assert not by_eleven_points or all(map(math.isnan, numbers))
        assert not math.isnan(found.pairs[-1].p)  # of a recall
        assert [letters for *_, letters in found.leaderboard] == ["", ""]
        pairs = found.tables()[1]
        assert [row[5:7] for row in pairs.rows[:3]] == [(None, None)] * 3
        verdict = gates.judge(found, gates.Gate("fail-if-drop", 0.5), 0.05)
        assert "no test of it holds its level: intervals of the 11-point rule" in verdict.line


def test_threads_change_no_bit() -> None:
    pair = two(4)
    texts = {
        json.dumps(detmap.compare(*pair, replicates=40, threads=threads, test=test).to_dict())
        for test in ("z",)
        for threads in (1, 2, 4)
    }
    assert len(texts) == 1


def test_too_few_images_have_no_p_value() -> None:
    found = detmap.compare(SHAPES, A, B, replicates=20)
    assert all(math.isnan(one.p) for one in found.pairs)
    assert [note.code for note in found.notes] == ["few-images"]
    assert {letters for *_, letters in found.leaderboard} == {""}


def test_what_cannot_be_compared_is_named(tmp_path: Path) -> None:
    first, second = two()
    other_rules = replace(first, protocol=first.protocol.override({"ap.integrator": "step"}))
    fewer = second.select(second.image_ids[1:])
    digest = second.digest.copy()
    digest[3, 0] += np.uint64(1)
    for other, what in (
        (other_rules, "protocol: a and b differ in ap"),
        (fewer, "images: a and b differ: 0"),
        (replace(second, digest=digest), "truth: a and b have other objects on 3"),
        (second.select_classes([0, 1]), "classes: a and b differ: class 2"),
    ):
        with pytest.raises(detmap.DataError, match=f"^compare: {what}"):
            detmap.compare(first, other, names=["a", "b"])
    with pytest.raises(detmap.DataError, match="two or more"):
        detmap.compare(first)
    with pytest.raises(detmap.DataError, match="give the ground truth first"):
        detmap.compare(None, A, B)
    with pytest.raises(detmap.DataError, match="names"):
        detmap.compare(first, second, names=["a"])
    for bad in ({"alpha": 0.0}, {"adjust": "x"}, {"test": "x"}, {"replicates": 0}, {"seed": -1}):
        with pytest.raises(detmap.DataError):
            detmap.compare(first, second, **bad)
    result = tmp_path / "result.json"
    run("eval", SHAPES, A, "-o", result)
    told = run("compare", SHAPES, A, result)
    assert told.code == 2
    assert "no match results for a paired comparison" in told.err


@pytest.mark.slow
def test_the_command_prints_what_the_call_gives(tmp_path: Path) -> None:
    told = run("compare", SHAPES, A, B, "--replicates=30", "--format=json", "--names=old,new")
    assert told.code == 0
    content = json.loads(told.out)
    keys = ["a", "b", "metric", "difference", "se", "low", "high", "bias", "p"]
    keys += ["p_adjusted", "mdd"]
    assert [list(pair) for pair in content["pairs"]] == [[*keys, "why_not"]]
    assert (content["pairs"][0]["a"], content["pairs"][0]["b"]) == ("old", "new")
    values = [detmap.evaluate(SHAPES, each).metrics["mAP"] for each in (A, B)]
    assert content["pairs"][0]["difference"] == values[1] - values[0]
    assert content["signature"].endswith("|ci:z+holm.3|B=30|seed=0")
    saved = [tmp_path / f"{path.name}.npz" for path in (A, B)]
    for path, file in zip((A, B), saved, strict=True):
        assert run("match", SHAPES, path, "-o", file).code == 0
    again = run("compare", *saved, "--replicates=30", "--format=json", "--names=old,new")
    assert again.out == told.out
    mixed = run("compare", SHAPES, saved[0], B, "--replicates=30", "--format=json")
    assert json.loads(mixed.out)["pairs"][0]["p"] is None
    text = run("compare", SHAPES, A, B, A, "--replicates=9", "--percent", "--names=a,b,c").out
    for words in ("leaderboard", "all pairs", "needs "):
        assert words in " ".join(text.split())
    for table in ("classes", "images"):
        told = run("compare", *saved, "--replicates=9", "--table", table)
        assert "that changed" in told.out
    assert run("compare", *saved, "-p", "coco-bbox").code == 2
    by_suffix = tmp_path / "x.json"  # the table's option, as the action passes it
    done = run(
        "compare", *saved, "--replicates=30", "--names=old,new", "--percent", "-o", by_suffix
    )
    assert done.code == 0
    assert "--percent has no effect" in done.err
    assert json.loads(by_suffix.read_text()) == json.loads(again.out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "code", "words"),
    [
        ("--fail-if-drop=.005", 1, "FAIL: mAP dropped "),
        ("--fail-if-drop=mAP=.99", 0, "PASS"),
        ("--fail-if-drop=mAP/circle=.99", 0, "mAP of circle".replace("mAP", "AP")),
        ("--require-within=.005", 1, "to detect a drop of 0.5 takes about"),
        ("--require-within=.99", 0, ", to show: a drop smaller than 99 ("),
        ("--require-within=0", 2, "a drop cannot be smaller than 0 points"),
        ("--fail-if-drop=x", 2, "fraction from 0 to 1"),
        ("--fail-if-drop=AP99=1", 2, "there is no AP99"),
        ("--fail-if-drop=nan", 2, "fraction"),
    ],
)
def test_gates_pass_and_fail_as_they_say(option: str, code: int, words: str) -> None:
    told = run("compare", SHAPES, A, B, "--replicates=9", option)
    assert told.code == code
    assert words in told.err
    assert "Traceback" not in told.err


def test_gates_are_decided_as_by_hand() -> None:
    first, second = two(7, 150)
    found = detmap.compare(first, second, replicates=20)
    one = found.pairs[0]
    less_bias = one.difference - one.bias
    z = (less_bias + 0.001) / one.se
    assert gates.judge(found, gates.Gate("fail-if-drop", 0.1), 0.05).passed == (z >= -1.6448536)
    edge = 100 * (1.6448536 * one.se - less_bias)
    for kind, margin, passed in (("require-within", 1e-3, True), ("require-within", -1e-3, False)):
        assert gates.judge(found, gates.Gate(kind, edge + margin), 0.05).passed is passed


def test_adjusted_p_values_are_those_by_hand() -> None:
    """By hand."""
    p = [0.01, 0.04, math.nan, 0.03, 0.005]
    nan = math.nan
    np.testing.assert_allclose(multiple.holm(p), [0.03, 0.06, nan, 0.06, 0.02], atol=1e-15)
    np.testing.assert_allclose(multiple.bh(p), [0.02, 0.04, nan, 0.04, 0.02], atol=1e-15)
    assert multiple.groups(4, {(0, 2), (0, 3), (1, 3)}) == [[0, 1], [1, 2], [2, 3]]
    rng = np.random.default_rng(0)
    draws = rng.normal([5.0, 0.0, 2.4], 1.0, (4000, 3))
    found = multiple.maxt(np.array([5.0, 0.0, 2.4]), np.ones(3), draws)
    assert found[0] == pytest.approx(1 / 4001, abs=1e-3)
    assert found[1] > 0.9
    assert found[2] == pytest.approx(2 * 0.0164, abs=0.01)  # 2.4 among two of them
    assert multiple.maxt(np.zeros(1), np.zeros(1), np.zeros((5, 1))) == [1.0]


@pytest.mark.parametrize(
    ("integrator", "n_rare", "weights"),
    [
        ("all_points", 0, "equal"),
        ("all_points", 1, "images"),
        ("all_points", 2, "equal"),
        ("eleven_point", 1, "equal"),
    ],
)
def test_paired_differences_by_their_parts(integrator: str, n_rare: int, weights: str) -> None:
    """Of three detectors; a class that is on fewer than two images has no standard error; the
    spread of the replicates where a metric has no interval.
    """
    first, second = two(3, 60, integrator)
    kept, begin = first.obj_off[2], first.off[2]
    rare = np.unique(first.image[begin:])[:n_rare]
    cut = {
        "obj_off": np.array([*first.obj_off[:3], kept + n_rare]),
        "obj_image": np.append(first.obj_image[:kept], rare),
        "counted": np.concatenate([first.counted[:kept], np.ones((n_rare, 2), bool)]),
        "protocol": first.protocol.override({"mean.weights": weights}),
    }
    found = begin + np.flatnonzero(np.isin(first.image[begin:], rare))[:1]
    detectors = []
    for each in (first, second, first):  # the first and third find an object of class 2
        tp, ignored = each.tp.copy(), each.ignored.copy()
        tp[begin:], ignored[begin:] = 0, 0
        tp[found] = 0 if each is second else 7
        detectors.append(replace(each, tp=tp, ignored=ignored, **cut))
    of = units(first.image_ids)
    told: list[tuple[int, int]] = []
    results = [(each, curves.scores(each)) for each in detectors]
    own = pair_up(results, of, 20, 3, progress=lambda *now: told.append(now))
    assert told == [(i * 20 + done, 60) for i in range(3) for done in (16, 20)]
    assert own.pairs == [(0, 1), (0, 2), (1, 2)]
    plans = [planned(each) for each in detectors]
    moved = [influence(each, of) for each in plans]
    sampled = [drawing.replicates(each, of, 20, 3) for each in plans]
    off = [bias(each, of, moved[0].n_units, 20, 3) for each in plans]
    eleven = integrator == "eleven_point"
    for i, detector in enumerate(detectors):
        result = detmap.summarize(detector)
        assert own.values[i].tolist() == list(result.metrics.values())
        for c, row in enumerate(plans[0].classes):
            expected = [line[row.name] for line in result.per_class]
            np.testing.assert_array_equal(own.class_values[i, c], expected)
        np.testing.assert_allclose(own.moved[i], moved[i].corrected, atol=1e-15)
    for p, (a, b) in enumerate(own.pairs):
        of_bias = np.sqrt(((off[b].terms - off[a].terms) ** 2).sum(axis=1))
        np.testing.assert_array_equal(
            own.class_draws[:, p], sampled[b].classes - sampled[a].classes
        )
        np.testing.assert_array_equal(own.bias[p], off[b].metrics - off[a].metrics)
        np.testing.assert_array_equal(own.class_bias[p], off[b].classes - off[a].classes)
        for q, row in enumerate(plans[0].metrics):
            drawn = sampled[b].metrics[:, q] - sampled[a].metrics[:, q]
            se, wider = drawn[~np.isnan(drawn)].std(ddof=1), 1.0
            if not own.why_not[q]:
                assert not eleven or row.kind != "AP"
                se = math.sqrt(variance(moved[b].corrected[q] - moved[a].corrected[q]))
                error = math.hypot(1.08 * se if row.kind == "AP" else se, of_bias[q])
                wider, se = (error / se, error) if se > 1e-12 else (1.0, se)
            assert own.se[p, q] == pytest.approx(se, abs=1e-15)
            apart = own.values[b, q] - own.values[a, q]
            expected = apart + (drawn - apart) * wider
            np.testing.assert_allclose(own.draws[:, p, q], expected, rtol=0, atol=1e-14)
        for c, (row, s) in enumerate(zip(plans[0].classes, plans[0].of_class, strict=True)):
            for k in range(3):
                drawn = own.class_draws[:, p, c, k]
                assert k < 2 or moved[0].n_units[s, k] == n_rare
                if moved[0].n_units[s, k] < 2:
                    assert math.isnan(own.class_se[p, c, k])
                elif eleven and row.kind == "AP":
                    se = drawn[~np.isnan(drawn)].std(ddof=1)
                    assert own.class_se[p, c, k] == pytest.approx(se, abs=1e-15)
                else:
                    each = [
                        [
                            one.dense(j, one.corrected, 60)
                            for one in each_batch(plans[i], of)
                            for j in range(len(one.classes))
                        ][k][s]
                        for i in (a, b)
                    ]
                    se = math.sqrt(variance(each[1] - each[0]))
                    assert own.class_se[p, c, k] == pytest.approx(se, abs=1e-15)
    assert f"single class on {n_rare} image" in own.class_why_not[0][2] or eleven
    assert ("11-point" in own.class_why_not[0][0]) == eleven
    assert ["11-point" in why for why in own.why_not] == [eleven] * 3 + [False] * 2
    if n_rare and weights == "equal":
        assert own.why_not[3].startswith("1 of 3 classes are on 1 to 3 images")
    else:
        assert own.why_not[3] == ""


def test_a_class_with_a_test_has_the_error_of_its_bias_too() -> None:
    first, second = two(5, 300, "all_points")
    of = units(first.image_ids)
    own = pair_up([(each, curves.scores(each)) for each in (first, second)], of, 20, 3)
    plans = [planned(each) for each in (first, second)]
    moved = influence(plans[0], of)
    sampled = [drawing.replicates(each, of, 20, 3).classes for each in plans]
    tested = set()
    for c, (row, s) in enumerate(zip(plans[0].classes, plans[0].of_class, strict=True)):
        for k in np.flatnonzero(moved.n_units[s] >= 2).tolist():
            each = [
                [
                    one.dense(j, one.corrected, 300)
                    for one in each_batch(plan, of)
                    for j in range(len(one.classes))
                ][k][s]
                for plan in plans
            ]
            se, wider = math.sqrt(variance(each[1] - each[0])), 1.0
            if not own.class_why_not[c][k]:
                tested.add(row.kind)
                of_bias = float(own.class_bias[0, c, k])
                error = math.hypot(1.08 * se if row.kind == "AP" else se, of_bias)
                wider, se = error / se, error
            assert own.class_se[0, c, k] == pytest.approx(se, abs=1e-15)
            apart = own.class_values[1, c, k] - own.class_values[0, c, k]
            drawn = sampled[1][:, c, k] - sampled[0][:, c, k]
            expected = apart + (drawn - apart) * wider
            np.testing.assert_allclose(own.class_draws[:, 0, c, k], expected, rtol=0, atol=1e-14)
    assert "AP" in tested


def test_the_difference_of_a_single_class_needs_as_many_images_as_a_class() -> None:
    """A protocol whose mean skips classes without objects, on 80 and 81 images of the only one."""
    for n, why in ((80, "a single class on 80 images"), (81, "")):
        box = [[0.0, 0, 10, 10]] * n
        truth = detmap.truth_from_arrays(range(n), [1] * n, box, images=list(range(120)))
        found = detmap.detections_from_arrays(truth, range(n), [1] * n, box, np.linspace(0, 1, n))
        result = detmap.evaluate(truth, found, "voc2012")
        own = pair_up([(result.matches, result.scores)] * 2, units(result.matches.image_ids), 5, 0)
        assert own.why_not[0].startswith(why)
        assert bool(own.why_not[0]) == bool(why)
        assert own.se[0, 0] == 0
