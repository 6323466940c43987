"""Comparisons: against plain loops, what has to be so, the command line."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.statistics import gate as gates
from detmap.core.statistics.formulas import multiple_comparisons as multiple
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from tests.reference import jackknife as reference
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS
from tests.support import builders as make
from tests.support.running import run
from tools.coverage import exchanged

SHAPES = make.SHAPES
A, B = (SHAPES / "detections" / name for name in ("contours", "template"))


def two(seed: int = 0, n_images: int = 120, integrator: str = "all_points") -> list[detmap.Matches]:
    """Two detectors on the same objects: the second misses a part of what the first finds."""
    first = draw(seed, n_images, integrator)
    rng = np.random.default_rng(seed)
    missed = rng.random(len(first)) < 0.15
    return [first, replace(first, tp=np.where(missed[:, None], 0, first.tp).astype(np.uint16))]


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_a_comparison_is_that_of_plain_loops(integrator: str) -> None:
    """Subsets are evaluated one by one; errors and bounds are those of the reference."""
    first, second = two(5, 150, integrator)
    found = detmap.compare(first, second, seed=3)
    made = subsets(units(first.image_ids), 3)
    area = {"ap.integrator": "all_points"} if integrator == "grid_envelope" else {}
    rules = first.protocol.override(area)

    def differences(ids: Any, metric: str) -> float:
        values = []
        for each in (first, second):
            part = replace(each, protocol=rules).select(ids)
            values.append(detmap.summarize(part).metrics[metric])
        return values[1] - values[0]

    for metric, n_thresholds in (("AP50", 1), ("AR@1", 3)):
        pair = next(one for one in found.pairs if one.metric == metric)
        apart = [differences(ids, metric) for ids in made.ids(first.image_ids)]
        whole, rate = differences(first.image_ids, metric), 2 / 3 if metric == "AP50" else 1.0
        _, bias = reference.errors(whole, apart[:25], apart[25:], rate)
        step = math.sqrt(2) / (101 * math.sqrt(12 * 3 * n_thresholds))
        step = step if area and metric == "AP50" else 0.0
        error = reference.error_of_difference(apart[:25], apart[25:], bias, step)
        assert (pair.se, pair.bias) == pytest.approx((error, bias), abs=1e-12)
        half = reference.T24[0.975] * error
        expected = pair.difference - bias / 2 - half, pair.difference - bias / 2 + half
        assert (pair.low, pair.high) == pytest.approx(expected, abs=1e-12)
        assert pair.mdd == pytest.approx(reference.detectable(error), abs=1e-12)
        assert (pair.p < 0.05) == (pair.low > 0 or pair.high < 0)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS.values())
@pytest.mark.parametrize("n_images", [30, 60, 120])
def test_a_detector_against_itself(integrator: str, n_images: int) -> None:
    """What has no interval has none where nothing differs either."""
    matches = draw(1, n_images, integrator)
    found = detmap.compare(matches, matches)
    for one in (*found.pairs, *found.classes):
        assert (one.difference, one.se) == (0, 0)
        refused = n_images == 30 or "few recall points" in one.why_not
        p = "nan" if refused or n_images < 100 else "1.0"
        assert [str(each) for each in (one.p, one.p_adjusted)] == [p] * 2
        assert {str(one.low), str(one.high)} == {"nan" if refused else "0.0"}
    for kind, points in (("fail-if-drop", 0.0), ("require-within", 1e-9)):
        assert gates.judge(found, gates.Gate(kind, points), 0.05).passed
    assert not gates.judge(found, gates.Gate("require-within", 0.0), 0.05).passed
    for adjust in ("bh", "none"):
        again = detmap.compare(matches, matches, adjust=adjust)
        assert {str(one.p_adjusted) for one in again.pairs} == {"nan" if n_images < 100 else "1.0"}


@pytest.mark.slow
def test_three_detectors_and_their_groups() -> None:
    first, second = two(2)
    found = detmap.compare(first, second, first, names=["x", "y", "z"])
    assert [one.a + one.b for one in found.pairs if one.metric == "AP"] == ["xy", "xz", "yz"]
    assert [name + letters for name, _, letters in found.leaderboard] == ["xa", "za", "yb"]
    for adjust in ("bh", "none"):
        other = detmap.compare(first, second, first, adjust=adjust)
        assert all(p.p_adjusted >= p.p for p in other.pairs)


@pytest.mark.slow
def test_threads_change_no_bit() -> None:
    pair = two(4)
    texts = {json.dumps(detmap.compare(*pair, threads=threads).to_dict()) for threads in (1, 2, 4)}
    assert len(texts) == 1


def test_too_few_images_have_no_p_value() -> None:
    found = detmap.compare(SHAPES, A, B)
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
    for bad in ({"alpha": 0.0}, {"adjust": "x"}, {"seed": -1}):
        with pytest.raises(detmap.DataError):
            detmap.compare(first, second, **bad)
    result = tmp_path / "result.json"
    run("eval", SHAPES, A, "-o", result)
    told = run("compare", SHAPES, A, result)
    assert told.code == 2
    assert "no match results for a paired comparison" in told.err


@pytest.mark.slow
def test_the_command_prints_what_the_call_gives(tmp_path: Path) -> None:
    told = run("compare", SHAPES, A, B, "--format=json", "--names=old,new")
    assert told.code == 0
    content = json.loads(told.out)
    keys = ["a", "b", "metric", "difference", "se", "low", "high", "bias", "p"]
    keys += ["p_adjusted", "df", "mdd"]
    assert [list(pair) for pair in content["pairs"]] == [[*keys, "why_not"]]
    assert (content["pairs"][0]["a"], content["pairs"][0]["b"]) == ("old", "new")
    values = [detmap.evaluate(SHAPES, each).metrics["mAP"] for each in (A, B)]
    assert content["pairs"][0]["difference"] == values[1] - values[0]
    assert content["signature"].endswith("|ci:jackknife.8|B=57|seed=0|t+holm")
    saved = [tmp_path / f"{path.name}.npz" for path in (A, B)]
    for path, file in zip((A, B), saved, strict=True):
        assert run("match", SHAPES, path, "-o", file).code == 0
    again = run("compare", *saved, "--format=json", "--names=old,new")
    assert again.out == told.out
    mixed = run("compare", SHAPES, saved[0], B, "--format=json")
    assert json.loads(mixed.out)["pairs"][0]["p"] is None
    text = run("compare", SHAPES, A, B, A, "--percent", "--names=a,b,c").out
    for words in ("leaderboard", "all pairs", "needs "):
        assert words in " ".join(text.split())
    told = run("compare", *saved, "--table=classes")
    assert "classes that changed most" in told.out
    assert run("compare", *saved, "-p", "coco-bbox").code == 2
    assert run("compare", SHAPES, *saved).err.startswith("detmap: error: TRUTH: has no effect")
    by_suffix = tmp_path / "x.json"  # the table's option, as the action passes it
    done = run("compare", *saved, "--names=old,new", "--percent", "-o", by_suffix)
    assert done.code == 0
    assert "--percent has no effect" in done.err
    assert json.loads(by_suffix.read_text()) == json.loads(again.out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "code", "words"),
    [
        ("--fail-if-drop=.005", 1, "FAIL: mAP dropped "),
        ("--fail-if-drop=mAP=.99", 0, "PASS"),
        ("--fail-if-drop=mAP/circle=.99", 0, "AP of circle"),
        ("--require-within=.005", 1, "to detect a drop of 0.005 takes about"),
        ("--require-within=.99", 0, ", to show: a drop smaller than 0.99 ("),
        ("--fail-if-drop=x", 2, "fraction from 0 to 1"),
    ],
)
def test_gates_pass_and_fail_as_they_say(option: str, code: int, words: str) -> None:
    told = run("compare", SHAPES, A, B, option)
    assert told.code == code
    assert words in told.err
    assert "Traceback" not in told.err


def test_gates_are_decided_as_by_hand() -> None:
    first, second = two(7, 150)
    found = detmap.compare(first, second)
    one = found.pairs[0]
    center = one.difference - one.bias / 2
    t = (center + 0.001) / one.se
    assert gates.judge(found, gates.Gate("fail-if-drop", 0.1), 0.05).passed == (t >= -1.7108821)
    edge = 100 * (1.7108821 * one.se - center)
    for kind, margin, passed in (("require-within", 1e-3, True), ("require-within", -1e-3, False)):
        assert gates.judge(found, gates.Gate(kind, edge + margin), 0.05).passed is passed


def test_adjusted_p_values_are_those_by_hand() -> None:
    """By hand."""
    p = [0.01, 0.04, math.nan, 0.03, 0.005]
    nan = math.nan
    np.testing.assert_allclose(multiple.holm(p), [0.03, 0.06, nan, 0.06, 0.02], atol=1e-15)
    np.testing.assert_allclose(multiple.bh(p), [0.02, 0.04, nan, 0.04, 0.02], atol=1e-15)
    assert multiple.groups(4, {(0, 2), (0, 3), (1, 3)}) == [[0, 1], [1, 2], [2, 3]]


def test_the_difference_of_a_single_class_needs_as_many_images_as_a_class() -> None:
    """A protocol whose mean skips classes without objects, on 20 and 21 images of the only one."""
    for n, why in ((20, "a single class on 20 images"), (21, "")):
        box = [[0.0, 0, 10, 10]] * n
        truth = detmap.truth_from_arrays(range(n), [1] * n, box, images=list(range(120)))
        score = np.linspace(0, 1, n)
        found = detmap.detections_from_arrays(truth, range(n), [1] * n, box, score)
        few = detmap.detections_from_arrays(truth, [3], [1], box[:1], [0.5])
        pair = detmap.compare(truth, found, few, protocol="voc2012").pairs[0]
        assert pair.why_not.startswith(why)
        assert bool(pair.why_not) == bool(why)


@pytest.mark.parametrize("integrator", ["eleven_point", "step"])
def test_means_of_any_rule_have_tests(integrator: str) -> None:
    found = detmap.compare(*two(2, 100, integrator))
    assert not math.isnan(found.pairs[0].p)
    assert "" not in {letters for *_, letters in found.leaderboard}
    few = [one for one in found.classes if "few recall points" in one.why_not]
    assert bool(few) is (integrator == "eleven_point")


@pytest.mark.slow
def test_equal_detectors_are_rarely_rejected() -> None:
    """By a coin per image, each detector is the one or the other."""
    rejected = 0
    for seed in range(100):
        first, second = two(seed, 120)
        coin = np.random.default_rng(seed).random(120) < 0.5
        pair = exchanged(first, second, coin)
        rejected += detmap.compare(*pair).pairs[0].p < 0.05
    assert rejected <= 12  # 5 of 100, plus three standard errors
