"""Random orders of tied scores: each number is that of an order, by enumeration and definition."""

import numpy as np
import pytest

import detmap
from detmap.core.curves import scores as curves
from detmap.core.statistics import ties
from detmap.core.statistics.random_words import TIES, random_words
from detmap.kernels.curves import Ranked
from tests.statistics.drawn_matches import draw
from tests.support.tier import drawn
from tools.fuzzing.ties import case

BOX = [0, 0, 9, 9]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(48)))
def test_a_random_order_gives_the_number_of_an_order(seed: int) -> None:
    """Also inside an image: all rules of matching, limits, areas, neutral objects."""
    assert case(seed) is None


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_a_random_order_of_few_sets_gives_the_number_of_an_order(first: int) -> None:
    assert [case(seed) for seed in range(first, first + 4)] == [None] * 4


@pytest.mark.parametrize(
    ("objects", "found", "metric"),
    [
        ([[0, 0, 10, 10]], [[0, 0, 10, 10], [50, 50, 10, 10]], "AR1"),
        ([[0, 0, 10, 10], [4, 0, 10, 10]], [[0, 0, 10, 10], [1.8, 0, 10, 10]], "AP50"),
    ],
    ids=["within the limit", "which object is matched"],
)
def test_the_order_inside_an_image_decides(
    objects: list[list[float]], found: list[list[float]], metric: str
) -> None:
    seen = []
    for boxes in (found, found[::-1]):
        truth = detmap.truth_from_arrays([1] * len(objects), [1] * len(objects), objects)
        table = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.5, 0.5])
        result = detmap.evaluate(truth, table, "coco-bbox")
        seen.append(result.metrics[metric])
        one = result.ties(orders=20)[metric]
        alone = detmap.summarize(result.matches).ties(orders=20)[metric]  # without the boxes
        assert alone.low == pytest.approx(alone.high)
    assert (one.low, one.high) == (min(seen), max(seen))
    assert one.shows


def test_a_duplicate_is_false_in_every_order_and_no_order_puts_it_first() -> None:
    """No outer bound is printed: each order of two equal boxes gives an AP of 1."""
    truth = detmap.truth_from_arrays([1], [1], [BOX])
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], [BOX] * 2, [0.5, 0.5])
    result = detmap.evaluate(truth, found, "voc2012")
    one = result.ties()["mAP"]
    assert (one.low, one.value, one.high, one.sd) == (1, 1, 1, 0)
    assert "ties-show" not in [note.code for note in result.notes]


def test_the_note_says_what_the_opposite_order_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows sorted in Python: descending image in each group, rows of an image in order."""
    noted = 0
    for seed in range(6):
        matches = draw(seed, 30)
        scores = curves.scores(matches)
        groups = ties._Groups(matches)
        label = np.repeat(np.arange(len(matches.off) - 1), np.diff(matches.off))
        rows = range(len(matches))
        order = sorted(rows, key=lambda i: (label[i], -matches.score[i], -matches.image[i], i))
        columns = (matches.tp, matches.ignored, matches.rank)
        listed = Ranked(matches.off, *(np.ascontiguousarray(x[order]) for x in columns))
        own, other = (
            detmap.Result(matches, each).metrics
            for each in (scores, curves.scores(matches, rows=listed))
        )
        shown = [
            f"{name} {other[name]:.4f} instead of {own[name]:.4f}"
            for name in own
            if f"{other[name]:.4f}" != f"{own[name]:.4f}"
        ]
        notes = ties.note(matches, scores)
        noted += len(notes)
        assert [note.count for note in notes] == [len(shown)] * bool(shown)
        for note in notes:
            assert ", ".join(shown[:3]) in note.text
            assert len(groups.tied)
        monkeypatch.setattr(ties, "NOTE_ROWS", len(matches) - 1)
        assert not ties.note(matches, scores)
        monkeypatch.undo()
    assert noted


def test_many_rows_get_few_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = draw(3, 12)
    scores = curves.scores(matches)
    for name in ("MOST_ROWS", "MOST_TERMS"):
        monkeypatch.setattr(ties, name, 0)
        few = ties.ties(matches, scores, orders=40)["AP"]
        assert few.orders == ties.ORDERS_OF_MANY
        monkeypatch.undo()
    assert ties.ties(matches, scores, orders=40)["AP"].orders == 40


def test_without_equal_scores_there_is_one_number() -> None:
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [BOX] * 2)
    found = detmap.detections_from_arrays(truth, [1, 2], [1, 1], [BOX] * 2, [0.9, 0.8])
    result = detmap.evaluate(truth, found)
    for one in result.ties(orders=5).values():
        assert one.low == one.high == one.value or np.isnan(one.value)
    assert "ties-show" not in [note.code for note in result.notes]


def test_looking_for_notes_changes_no_number() -> None:
    truth = detmap.truth_from_arrays([1, 1], [1, 1], [BOX, [50, 0, 9, 9]])
    boxes = [BOX, [100, 100, 9, 9], [50, 0, 9, 9]]
    found = detmap.detections_from_arrays(truth, [1] * 3, [1] * 3, boxes, [0.9, 0.5, 0.5])
    for name in ("voc2007", "voc2012", "coco-bbox"):
        plain, noted = (detmap.evaluate(truth, found, name) for _ in range(2))
        assert noted.notes
        assert noted.metrics == plain.metrics


def test_the_numbers_over_orders_by_definition() -> None:
    matches = draw(3, 12, "step")
    groups = ties._Groups(matches)
    every = [curves.scores(matches, rows=groups.random_order(3, b)) for b in range(4)]
    ordered = np.array([list(detmap.Result(matches, each).metrics.values()) for each in every])
    result = detmap.summarize(matches)
    found = ties.ties(matches, curves.scores(matches), orders=4, seed=3)
    for one, column, value in zip(found.values(), ordered.T, result.metrics.values(), strict=True):
        assert one.value == value
        assert (one.low, one.high) == (min(*column, value), max(*column, value))
        assert (one.mean, one.sd) == pytest.approx((column.mean(), column.std(ddof=1)), abs=1e-15)
    single = ties.ties(matches, curves.scores(matches), orders=1)["AP"]
    assert not np.isnan(single.mean)
    assert np.isnan(single.sd)
    none = ties.ties(matches, curves.scores(matches), orders=0)["AP"]
    assert (none.low, none.high) == (none.value, none.value)
    assert np.isnan(none.mean)


def test_orders_depend_on_the_seed_and_not_on_threads() -> None:
    matches = draw(3, 30)
    scores = curves.scores(matches)
    first = ties.ties(matches, scores, orders=8, threads=1)
    assert first == ties.ties(matches, scores, orders=8, threads=3)
    assert first != ties.ties(matches, scores, orders=8, seed=1)


def test_random_words_are_those_of_splitmix64() -> None:
    """The outputs of the published generator, from a state of seed, tag and stream."""
    golden, every = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def mixed(state: int) -> int:
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            state = (state ^ (state >> shift)) * factor & every
        return state ^ (state >> 31)

    def outputs(state: int, n: int) -> list[int]:
        return [mixed((state + golden * (j + 1)) & every) for j in range(n)]

    assert outputs(0, 2) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]  # as published
    assert outputs(1234567, 2) == [6457827717110365317, 3203168211198807973]
    for seed, tag, stream in ((0, 0, 0), (7, TIES, 5), (2**64 - 1, 2, 99)):
        of_tag = mixed((seed + golden * tag) & every)
        state = mixed((of_tag + golden * (stream + 1)) & every)
        assert random_words(seed, tag, stream, (1, 4))[0].tolist() == outputs(state, 4)


def test_rows_of_an_image_stay_in_order() -> None:
    """The order inside an image is that of its matching."""
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [BOX] * 2)
    boxes = [BOX, [50, 50, 9, 9], [80, 80, 9, 9], BOX]
    found = detmap.detections_from_arrays(truth, [1, 1, 2, 2], [1] * 4, boxes, [0.5] * 4)
    groups = ties._Groups(detmap.match(truth, found, "coco-bbox"))
    seen = {groups.random_order(0, b).tp[:, 0].tobytes() for b in range(60)}
    assert len(seen) == 4  # TFFT, TFTF, FTFT, FTTF
    for b in range(60):
        ranks = groups.random_order(0, b).rank.tolist()
        assert sorted(ranks) == [0, 0, 1, 1]
        assert ranks[0] == 0


def test_groups_of_equal_scores_are_classless() -> None:
    matches = draw(2, 6)
    groups = ties._Groups(matches)
    label = np.repeat(np.arange(3), np.diff(matches.off))
    keys = list(zip(label.tolist(), matches.score.tolist(), strict=True))
    tied = [i for i, key in enumerate(keys) if keys.count(key) > 1]
    assert groups.tied.tolist() == tied
    same = {(keys[i], int(groups.number[i])) for i in range(len(keys))}
    assert len(same) == len(set(keys)) == len(set(groups.number.tolist()))
    others = np.setdiff1d(np.arange(len(keys)), tied)
    listed = [groups.random_order(0, b).tp for b in range(9)]
    assert all(np.array_equal(tp[others], matches.tp[others]) for tp in listed)
    assert len({tp.tobytes() for tp in listed}) > 1


@pytest.mark.parametrize("seed", [0, 2])
def test_groups_of_like_rows_are_not_ordered(seed: int) -> None:
    """No order of them is another result."""
    matches = draw(seed, 30)
    label = np.repeat(np.arange(3), np.diff(matches.off))
    keys = list(zip(label.tolist(), matches.score.tolist(), strict=True))
    columns = (matches.tp.tolist(), matches.ignored.tolist(), matches.rank.tolist())
    rows = [str(row) for row in zip(*columns, strict=True)]
    unlike = {
        key: len({row for row, own in zip(rows, keys, strict=True) if own == key}) > 1
        for key in keys
    }
    tied = ties._Groups(matches).tied.tolist()
    assert tied == [i for i, key in enumerate(keys) if unlike[key]]
    assert 0 < len(tied) < sum(keys.count(key) > 1 for key in keys)
