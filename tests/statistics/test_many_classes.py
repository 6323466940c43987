"""Statistics of thousands of classes: read in blocks, and only as far as a number depends on them;
both are forced here on few classes.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.matching.matches import Matches
from detmap.core.statistics import bias as bias_module
from detmap.core.statistics import comparison, intervals, paired_differences
from detmap.core.statistics import intervals as intervals_module
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.influence import each_batch, influence, variance
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.test_influence import planned


def same(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("integrator", ["all_points", "grid_envelope", "step"])
def test_blocks_of_classes_change_no_bit(monkeypatch: pytest.MonkeyPatch, integrator: str) -> None:
    matches = draw(3, 60, integrator)
    own, of = planned(matches), units(matches.image_ids)
    n_units = influence(own, of).n_units

    def both() -> tuple[drawing.Replicates, bias_module.Bias, int]:
        read = drawing.reader(own)
        made = drawing.replicates(own, of, 20, 3, read=read)
        return made, bias_module.bias(own, of, n_units, 20, 3, read=read), len(read.blocks)

    whole, its_bias, n = both()
    monkeypatch.setattr(drawing, "AT_ONCE", 1)
    parts, their_bias, more = both()
    assert (n, more) == (1, len(own.positives))
    assert same(whole.metrics, parts.metrics)
    assert same(whole.classes, parts.classes)
    assert same(its_bias.terms, their_bias.terms)
    assert same(its_bias.classes, their_bias.classes)
    some = np.array([0, 2])
    assert same(drawing.replicates(own, of, 20, 3, kept=some).classes, whole.classes[:, :, some])


@pytest.mark.parametrize("method", ["influence", "percentile"])
@pytest.mark.parametrize("integrator", ["all_points", "eleven_point"])
def test_intervals_hold_the_replicates_of_some_classes_at_a_time(
    monkeypatch: pytest.MonkeyPatch, integrator: str, method: str
) -> None:
    result = detmap.summarize(draw(5, 60, integrator))
    done: list[tuple[int, int]] = []

    def both() -> list[Any]:
        made = result.intervals(replicates=40, method=method, progress=lambda *n: done.append(n))
        return [{name: one.to_dict() for name, one in row.items()} for row in made.classes] + [
            {name: one.to_dict() for name, one in made.metrics.items()}
        ]

    whole, shapes, original = both(), [], intervals.Maker.class_intervals

    def spy(self: Any, some: Any, values: Any, sampled: Any) -> Any:
        shapes.append(None if sampled is None else sampled.shape[2])
        return original(self, some, values, sampled)

    monkeypatch.setattr(intervals.Maker, "class_intervals", spy)
    monkeypatch.setattr(drawing, "MOST_TAKEN", 1)
    assert both() == whole
    drawn = method == "percentile" or integrator == "eleven_point"
    assert shapes == ([1] * (len(whole) - 1) if drawn else [None])
    assert done[-1] == (40, 40)
    assert all(n <= of for n, of in done)


def test_classes_on_one_image_are_not_read_for_the_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = draw(3, 60)
    own, of = planned(matches), units(matches.image_ids)
    n_units = influence(own, of).n_units
    n_units[:, 1] = np.minimum(n_units[:, 1], 1)
    whole = bias_module.bias(own, of, n_units, 20, 3)
    monkeypatch.setattr(drawing, "AT_ONCE", 1)
    read, seen = drawing.reader(own), set()

    def spy(weights: Any, block: slice) -> Any:
        seen.add(block.start)
        return read.read(weights, block)

    found = bias_module.bias(own, of, n_units, 20, 3, read=drawing.Reader(spy, read.blocks))
    assert 1 not in seen
    assert {0, 2} <= seen
    assert same(whole.terms, found.terms)
    assert same(whole.classes, found.classes)


def test_an_interval_by_influence_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicates would not change a bit of it."""
    result = detmap.summarize(draw(5, 90))
    calls = []
    monkeypatch.setattr(
        drawing, "replicates", lambda *given, **named: calls.append(1) or original(*given, **named)
    )
    lean = result.intervals(replicates=20)
    assert not calls
    monkeypatch.setattr(intervals, "needs_replicates", lambda *given: True)
    whole = result.intervals(replicates=20)
    assert calls == [1]
    assert {name: one.to_dict() for name, one in lean.metrics.items()} == {
        name: one.to_dict() for name, one in whole.metrics.items()
    }


original = drawing.replicates


def test_rules_whose_errors_are_spreads_of_replicates_draw_them() -> None:
    for integrator, n_images, wanted in (
        ("eleven_point", 60, True),
        ("eleven_point", 2, True),
        ("all_points", 60, False),
        ("eleven_point", 1, False),
    ):
        matches = draw(5, n_images, integrator)
        own, of = planned(matches), units(matches.image_ids)
        assert intervals.needs_replicates(own, of) == wanted
        assert intervals.needs_replicates(own, of, "percentile") == (n_images > 1)


def two(n_images: int, equal: int | None = None) -> tuple[Matches, Matches]:
    """Two detectors on the same objects, with two classes on many images and one on few; `equal`
    is a class that both detect at the same places.
    """
    rng = np.random.default_rng(3)
    label = [1, 2] * n_images + [3] * 5
    image = [*np.repeat(np.arange(1, n_images + 1), 2).tolist(), *range(1, 6)]
    box = np.tile([0.0, 0.0, 9.0, 9.0], (len(label), 1)) + np.array(label)[:, None] * [20, 0, 0, 0]
    images = list(range(1, n_images + 1))
    truth = detmap.truth_from_arrays(image, label, box, images=images)
    made = []
    for _ in range(2):
        moved = box + rng.choice([0.0, 2.0, 30.0], (len(box), 1)) * [1, 0, 0, 0]
        score = rng.random(len(box))
        if equal is not None:
            same_class = np.array(label) == equal
            moved[same_class], score[same_class] = box[same_class], 0.5
        found = detmap.detections_from_arrays(truth, image, label, moved, score)
        made.append(detmap.match(truth, found, "voc2012"))
    return made[0], made[1]


@pytest.mark.parametrize("adjust", ["maxt", "holm"])
def test_replicates_of_classes_without_interval_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, adjust: str
) -> None:
    both, seen = two(120), []
    pair_up = paired_differences.pair_up

    def spy(*given: Any, **named: Any) -> Any:
        seen.append(pair_up(*given, **named))
        return seen[-1]

    monkeypatch.setattr(importlib.import_module("detmap.compare"), "pair_up", spy)
    whole = detmap.compare(*both, replicates=40, adjust=adjust)
    monkeypatch.setattr(paired_differences, "MOST_KEPT", 0)
    lean = detmap.compare(*both, replicates=40, adjust=adjust)
    assert [each.drawn.tolist() for each in seen] == [[0, 1, 2], [0, 1]]
    assert lean.to_dict() == whole.to_dict()
    assert all(np.isnan(one.p_adjusted) == (one.place == 2) for one in whole.classes)


def test_many_classes_without_interval_get_fewer_replicates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drawing, "MOST_DRAWN", 60)
    monkeypatch.setattr(paired_differences, "LEAST_DRAWN", 5)
    made = detmap.compare(*two(30), replicates=40)
    (note,) = (note for note in made.notes if note.code == "fewer-replicates")
    assert "for 40 replicates" in note.text
    assert "are from 20 replicates" in note.text
    assert note.count == 3
    assert all(pair.why_not for pair in made.pairs)
    enough = detmap.compare(*two(120), replicates=40)
    assert not [note for note in enough.notes if note.code == "fewer-replicates"]
    assert comparison.LEAST_UNITS > 30


def test_variances_of_differences_are_those_of_dense_rows() -> None:
    a, b = (planned(each) for each in two(40))
    of = units(a.matches.image_ids)
    for one, other in zip(each_batch(a, of), each_batch(b, of), strict=True):
        found = one.variances_of_difference(other, of.n)
        for j in range(len(one.classes)):
            apart = one.dense(j, one.corrected, of.n) - other.dense(j, other.corrected, of.n)
            assert found[:, j].tolist() == [variance(row) for row in apart]


def test_a_variance_of_few_units() -> None:
    """One unit has none; of two, it is twice the sum of squares."""
    a, b = (planned(each) for each in two(40))
    of = units(a.matches.image_ids)
    one, other = (next(each_batch(plan, of)) for plan in (a, b))
    n = len(one.classes)
    columns = {"label": np.arange(n), "unit": np.zeros(n, np.int64)}
    values = np.arange(1.0, 1.0 + n * len(one.corrected)).reshape(-1, n)
    one = dataclasses.replace(one, **columns, corrected=values)
    other = dataclasses.replace(other, **columns, corrected=0.0 * values)
    assert not one.variances_of_difference(other, 1).any()
    assert one.variances_of_difference(other, 2).tolist() == (2 * values**2).tolist()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_bias_reads_classes_on_two_images_or_more(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    own, of = planned(draw(3, 60)), units(np.arange(60))
    n_units = influence(own, of).n_units
    n_units[:, 1] = n
    monkeypatch.setattr(drawing, "AT_ONCE", 1)
    read, seen = drawing.reader(own), set()

    def spy(weights: Any, block: slice) -> Any:
        seen.add(block.start)
        return read.read(weights, block)

    found = bias_module.bias(own, of, n_units, 20, 3, read=drawing.Reader(spy, read.blocks))
    assert (1 in seen) == (n == 2)
    assert np.isnan(found.classes[:, 1]).all() == (n == 0)


def test_one_half_with_a_class_is_enough_for_its_bias() -> None:
    own, of = planned(draw(3, 60)), units(np.arange(60))
    n_units = influence(own, of).n_units
    read = drawing.reader(own)
    halves: list[Any] = []

    def in_one_half(weights: Any, block: slice) -> Any:
        values, images = read.read(weights, block)
        if not weights.all():
            values[:, :, 1:] = np.nan
            halves.append(values[:, :, 0])
        return values, images

    made = bias_module.bias(own, of, n_units, 1, 3, read=drawing.Reader(in_one_half, read.blocks))
    (half,) = halves
    whole = read(np.ones((60, drawing.LANES)))[0][:, :, 0]
    rate = np.where(own.readings.limit < 0, bias_module.RATE_OF_AP, bias_module.RATE_OF_RECALL)
    expected = bias_module.extrapolate(half - whole, n_units.T, rate)[:, list(own.of_class)].T
    assert same(made.classes, expected)
    assert (made.classes != 0).any()


def test_a_block_holds_as_many_readings_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for matches, n_readings in ((two(20)[0], 2), (draw(3), 5)):
        own = planned(matches)
        assert len(own.readings.area) == n_readings
        for n, expected in ((1, [1, 1, 1]), (2, [2, 1]), (3, [3])):
            monkeypatch.setattr(drawing, "AT_ONCE", n * drawing.LANES * n_readings)
            assert [block.stop - block.start for block in drawing.reader(own).blocks] == expected


def test_the_steps_of_a_block_are_those_of_its_cells() -> None:
    own = planned(draw(3))
    steps, n_areas = drawing._steps(own), own.positives.shape[1]
    found, n_thresholds = drawing._steps_of(steps, slice(1, 3), own), len(own.protocol.thresholds())
    assert found.row_off.tolist() == steps.row_off[n_areas:].tolist()
    assert found.event_off.tolist() == steps.event_off[n_areas:].tolist()
    assert found.step_off.tolist() == steps.step_off[n_areas * n_thresholds :].tolist()
    first = drawing._steps_of(steps, slice(0, 1), own)
    assert [len(off) for off in (first.row_off, first.event_off)] == [n_areas + 1] * 2
    assert len(first.step_off) == n_areas * n_thresholds + 1


def test_classes_whose_replicates_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    why = [["", "few", "few"], ["", "", "few"]]
    monkeypatch.setattr(paired_differences, "MOST_KEPT", 24)
    assert paired_differences._drawn_classes(["", ""], why, 4).tolist() == [0, 1, 2]
    assert paired_differences._drawn_classes(["", ""], why, 5).tolist() == [0, 1]
    assert paired_differences._drawn_classes(["", "rule"], why, 5).tolist() == [0, 1, 2]


def test_replicates_are_counted_for_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def spy(rules: Any, why: Any, n: int) -> Any:
        asked.append(n)
        return np.arange(len(why[0]))

    monkeypatch.setattr(paired_differences, "_drawn_classes", spy)
    a, b = two(20)
    for given in ((a, b), (a, b, a)):
        results = [(each, detmap.summarize(each).scores) for each in given]
        paired_differences.pair_up(results, units(a.image_ids), 4, 0)
    assert asked == [4, 12]


@pytest.mark.parametrize("n_images", [30, 120])
@pytest.mark.parametrize("kept", [0, 1 << 23])
def test_a_class_without_difference_has_a_p_value_though_none_is_drawn(
    monkeypatch: pytest.MonkeyPatch, n_images: int, kept: int
) -> None:
    monkeypatch.setattr(paired_differences, "MOST_KEPT", kept)
    made = detmap.compare(*two(n_images, equal=3), replicates=40, adjust="maxt")
    found = [one.p_adjusted for one in made.classes if one.place == 2]
    tested = n_images > comparison.LEAST_UNITS
    assert same(found, [1.0 if tested else np.nan] * len(found))
    assert found


def many(n_classes: int, n_images: int) -> tuple[Matches, Matches]:
    """Two detectors of classes on five images each."""
    rng, n = np.random.default_rng(5), 5 * n_classes
    label, image = np.repeat(np.arange(1, n_classes + 1), 5), 1 + np.arange(n) % n_images
    box = np.tile([0.0, 0.0, 9.0, 9.0], (n, 1)) + label[:, None] * [20, 0, 0, 0]
    truth = detmap.truth_from_arrays(image, label, box, images=list(range(1, n_images + 1)))
    made = []
    for _ in range(2):
        moved = box + rng.choice([0.0, 30.0], (n, 1)) * [1, 0, 0, 0]
        found = detmap.detections_from_arrays(truth, image, label, moved, rng.random(n))
        made.append(detmap.match(truth, found, "voc2012"))
    return made[0], made[1]


def test_a_mean_with_an_interval_gets_all_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though no class has one."""
    monkeypatch.setattr(drawing, "MOST_DRAWN", 60)
    monkeypatch.setattr(paired_differences, "LEAST_DRAWN", 5)
    made = detmap.compare(*many(30, 100), replicates=40)
    assert not any(pair.why_not for pair in made.pairs)
    assert all(one.why_not or one.difference == 0 for one in made.classes)
    assert "fewer-replicates" not in [note.code for note in made.notes]


def test_replicates_of_one_class_without_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_DRAWN", 20)
    monkeypatch.setattr(paired_differences, "LEAST_DRAWN", 5)
    made = detmap.compare(*many(1, 10), replicates=40)
    (note,) = (note for note in made.notes if note.code == "fewer-replicates")
    assert "are from 20 replicates" in note.text


def test_replicates_are_kept_of_classes_that_have_an_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two rows of three classes: the first class is refused in both, the second in one."""
    why_not = [["one image", "", ""], ["one image", "one image", ""]]
    kept = paired_differences._drawn_classes
    monkeypatch.setattr(paired_differences, "MOST_KEPT", 5 * 6)
    assert kept(["", ""], why_not, 5).tolist() == [0, 1, 2], "few"
    assert kept(["", ""], why_not, 6).tolist() == [1, 2], "many"
    assert kept(["", "eleven_point"], why_not, 6).tolist() == [0, 1, 2], "spread of replicates"


def test_percentiles_of_many_classes_are_of_fewer_replicates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = detmap.summarize(draw(3))
    whole = result.intervals(replicates=40, method="percentile")
    assert (whole.replicates, whole.notes) == (40, result.intervals(replicates=40).notes)
    monkeypatch.setattr(drawing, "MOST_DRAWN", 60)
    monkeypatch.setattr(intervals_module, "LEAST_DRAWN", 5)
    fewer = result.intervals(replicates=40, method="percentile")
    assert fewer.replicates == 20
    assert "|B=20|" in fewer.signature
    (note,) = [note for note in fewer.notes if note.code == "fewer-replicates"]
    assert note.count == 3
    assert "there are 20 fewer" in note.text
    same = result.intervals(replicates=20, method="percentile")
    assert fewer.metrics == same.metrics
    monkeypatch.setattr(intervals_module, "LEAST_DRAWN", 30)
    assert result.intervals(replicates=40, method="percentile").replicates == 30
    assert result.intervals(replicates=40).replicates == 40
