"""Bounds over all orders of equal scores: the goldens, enumeration, and real detectors."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import equal_scores
from detmap.core.curves import scores as curves
from detmap.core.curves import tie_bounds as tied_bounds
from detmap.core.curves.extremes import extremes_of
from detmap.core.statistics import tie_search, ties
from detmap.errors import DetmapError
from detmap.kernels.curves import Ranked
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS, as_matches, load
from tests.support.tier import drawn
from tools.fuzzing.ties import case
from tools.fuzzing.ties import draw as draw_set


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("short", ["grid", "all", "step"])
def test_bounds_are_the_goldens(number: int, short: str) -> None:
    case, expected = load(number)
    matches = as_matches(case["case"], 0, INTEGRATORS[short])
    scores = curves.scores(matches)
    low, high = extremes_of(matches, scores)
    cells = [(k, t) for k in range(3) for t in range(3)]
    for (k, t), golden in zip(cells, expected["ties_k_t"], strict=True):
        j = scores.judged.tolist().index(k)
        assert low.terms[0, t, :, j].mean() == pytest.approx(golden[short]["low"], abs=1e-12)
        assert high.terms[0, t, :, j].mean() == pytest.approx(golden[short]["high"], abs=1e-12)
        if short == "step":
            mean = ties._expected(matches, scores, 1).terms[0, t, 0, j]
            assert mean == pytest.approx(golden["step"]["mean"], abs=1e-12)


def orders(matches: detmap.Matches) -> list[Ranked]:
    """Every order of equal scores."""
    groups = ties._Groups(matches)
    runs = [groups.tied[groups.number[groups.tied] == g] for g in set(groups.number[groups.tied])]
    found = []
    for each in product(*(permutations(run) for run in runs)):
        order = np.arange(len(matches))
        for run, new in zip(runs, each, strict=True):
            order[run] = new
        columns = (matches.tp, matches.ignored, matches.rank)
        found.append(Ranked(matches.off, *(np.ascontiguousarray(x[order]) for x in columns)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_all_orders_of_a_small_set(integrator: str) -> None:
    compared = 0
    for seed in range(12):
        matches = draw(seed, 6, integrator)
        every = orders(matches) if len(ties._Groups(matches).tied) < 9 else []
        if not 2 <= len(every) <= 500:
            continue
        scores = curves.scores(matches)
        found = [detmap.Result(matches, each).metrics for each in extremes_of(matches, scores)]
        values = np.array(
            [
                list(detmap.Result(matches, curves.scores(matches, rows=rows)).metrics.values())
                for rows in every
            ]
        )
        for q, row in enumerate(matches.protocol.rows()[0]):
            low, high = (each[row.name] for each in found)
            assert low <= values[:, q].min() + 1e-12
            assert values[:, q].max() <= high + 1e-12
            if row.iou is not None:
                assert (low, high) == pytest.approx((values[:, q].min(), values[:, q].max()))
                compared += 1
            if integrator == "step" and row.kind == "AP":
                mean = detmap.Result(matches, ties._expected(matches, scores, 1)).metrics[row.name]
                assert mean == pytest.approx(values[:, q].mean(), abs=1e-12)
    assert compared > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(24)))
def test_bounds_hold_for_every_order_of_drawn_sets(seed: int) -> None:
    """Also inside an image: all rules of matching, limits, areas, neutral objects."""
    assert case(seed) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objects", "found", "metric"),
    [
        ([[0, 0, 10, 10]], [[0, 0, 10, 10], [50, 50, 10, 10]], "AR1"),
        ([[0, 0, 10, 10], [4, 0, 10, 10]], [[0, 0, 10, 10], [1.8, 0, 10, 10]], "AP50"),
    ],
    ids=["within the limit", "who takes what"],
)
def test_the_order_inside_an_image_decides(
    objects: list[list[float]], found: list[list[float]], metric: str
) -> None:
    seen = []
    for boxes in (found, found[::-1]):
        truth = detmap.truth_from_arrays([1] * len(objects), [1] * len(objects), objects)
        table = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.5, 0.5])
        result = detmap.evaluate(truth, table, "coco-bbox")
        one = result.ties()[metric]
        seen.append(result.metrics[metric])
        assert "ties-show" in [note.code for note in result.notes]
        wide = detmap.summarize(result.matches).ties()[metric]  # without the boxes
        assert wide.low <= one.low
        assert one.high <= wide.high
        assert not wide.attained
        assert np.isnan(wide.mean)
    assert one.low <= min(seen) + 1e-12
    assert one.high == pytest.approx(max(seen), abs=1e-12)
    assert one.attained == (metric == "AR1")


def test_a_duplicate_is_false_in_every_order_and_no_order_puts_it_first() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], [[0, 0, 9, 9]] * 2, [0.5, 0.5])
    one = detmap.evaluate(truth, found, "voc2012").ties()["mAP"]
    assert one.low <= one.value == one.high == 1
    assert one.attained == (one.low == 1)


def test_what_a_limit_over_the_image_keeps_is_not_in_the_matches() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], [[0, 0, 9, 9]] * 2, [0.5, 0.5])
    settings = {"limits.scope": "image", "limits.max_dets": [1], "metrics": ["AP"]}
    result = detmap.evaluate(truth, found, "coco-bbox", settings=settings)
    assert result.ties()["AP"].high == pytest.approx(1)
    with pytest.raises(detmap.DetmapError, match="limits"):
        detmap.summarize(result.matches).ties()


def test_the_note_comes_where_a_digit_changes() -> None:
    noted = [tied_bounds.note(m, curves.scores(m)) for m in (draw(seed, 30) for seed in range(4))]
    assert any(noted)
    for seed, notes in enumerate(noted):
        bounds = detmap.summarize(draw(seed, 30)).ties(orders=0)
        changing = [name for name, one in bounds.items() if one.shows]
        for note in notes:  # of orders among images alone; `ties` knows all
            assert 0 < note.count <= len(changing)
            named = [word for word in note.text.split() if word in bounds]
            assert set(named) <= set(changing)
            verb = "metric depends " if note.count == 1 else "metrics depend "
            assert note.text.startswith(verb)


def test_without_equal_scores_there_is_one_number() -> None:
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [[0, 0, 9, 9]] * 2)
    found = detmap.detections_from_arrays(truth, [1, 2], [1, 1], [[0, 0, 9, 9]] * 2, [0.9, 0.8])
    result = detmap.evaluate(truth, found)
    for one in result.ties(orders=5).values():
        assert one.low == one.high == one.value or np.isnan(one.value)
    assert "ties-show" not in [note.code for note in result.notes]


def test_looking_for_notes_changes_no_number() -> None:
    """The terms of a rule without areas and thresholds are contiguous however they are turned."""
    truth = detmap.truth_from_arrays([1, 1], [1, 1], [[0, 0, 9, 9], [50, 0, 9, 9]])
    boxes = [[0, 0, 9, 9], [100, 100, 9, 9], [50, 0, 9, 9]]
    found = detmap.detections_from_arrays(truth, [1] * 3, [1] * 3, boxes, [0.9, 0.5, 0.5])
    for name in ("voc2007", "voc2012", "coco-bbox"):
        plain, noted = (detmap.evaluate(truth, found, name) for _ in range(2))
        assert noted.notes
        assert noted.metrics == plain.metrics


@pytest.mark.parametrize("scope", ["class", "image"])
def test_heaps_of_tied_boxes_have_wide_bounds_or_are_refused(
    scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = [[0.0, 0, 10, 10]]
    truth = detmap.truth_from_arrays([1] * 3, [1] * 3, box * 3)
    found = detmap.detections_from_arrays(truth, [1] * 4, [1] * 4, box * 4, [0.5] * 4)
    rules = {"limits.max_dets": [2], "limits.scope": scope, "metrics": ["AP50"]}
    result = detmap.evaluate(truth, found, "coco-bbox", settings=rules)
    narrow = result.ties()["AP50"]
    monkeypatch.setattr(equal_scores, "MOST_PAIRS", 11)  # there are 12
    monkeypatch.setattr(equal_scores, "PAIRS_PER_ROW", 0)
    if scope == "image":
        with pytest.raises(DetmapError, match="lie in heaps"):
            result.ties()
        return
    wide = result.ties()["AP50"]
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert np.isnan(wide.mean)
    assert not np.isnan(narrow.mean)


def test_the_numbers_over_orders_by_definition() -> None:
    """Mean and standard deviation of the random orders; the closed mean of the step rule for AP."""
    matches = draw(3, 12, "step")
    groups, rows = ties._Groups(matches), matches.protocol.rows()[0]
    result = detmap.summarize(matches)
    every = [curves.scores(matches, rows=groups.random_order(3, b)) for b in range(4)]
    ordered = [list(detmap.Result(matches, each).metrics.values()) for each in every]
    found = ties.ties(matches, curves.scores(matches), orders=4, seed=3)
    by_step = detmap.Result(matches, ties._expected(matches, curves.scores(matches), 1)).metrics
    for q, row in enumerate(rows):
        one, column = found[row.name], np.array(ordered)[:, q]
        assert one.value == result.metrics[row.name]
        assert (one.mean, one.sd) == pytest.approx((column.mean(), column.std(ddof=1)), abs=1e-15)
        assert one.expected == (by_step[row.name] if row.kind == "AP" else one.value)
        assert one.low <= min(one.mean, one.expected) <= max(one.mean, one.expected) <= one.high
    assert found["AP50"].expected != found["AP50"].value
    single = ties.ties(matches, curves.scores(matches), orders=1)
    assert not np.isnan(single["AP"].mean)
    assert np.isnan(single["AP"].sd)
    none = ties.ties(matches, curves.scores(matches), orders=0)
    assert np.isnan(none["AP"].mean)
    assert none["AP"].low == found["AP"].low
    envelope = detmap.summarize(draw(3, 12)).ties(orders=0)
    assert np.isnan(envelope["AP"].expected)


def test_groups_of_equal_scores_are_of_one_class() -> None:
    matches = draw(2, 6)
    groups = ties._Groups(matches)
    label = np.repeat(np.arange(3), np.diff(matches.off))
    keys = list(zip(label.tolist(), matches.score.tolist(), strict=True))
    tied = [i for i, key in enumerate(keys) if keys.count(key) > 1]
    assert groups.tied.tolist() == tied
    same = {(keys[i], int(groups.number[i])) for i in range(len(keys))}
    assert len(same) == len(set(keys)) == len(set(groups.number.tolist()))
    listed = groups.random_order(0, 0)
    others = np.setdiff1d(np.arange(len(keys)), tied)
    assert np.array_equal(listed.tp[others], matches.tp[others])
    assert not np.array_equal(listed.tp, matches.tp)
    again = groups.random_order(0, 1)
    assert not np.array_equal(listed.tp, again.tp)


@pytest.mark.parametrize("worst", [True, False])
@pytest.mark.parametrize("a", [0, 1])
def test_rows_by_their_match_results(a: int, worst: bool) -> None:
    """The worst order: fewest thresholds with a true positive first, then most with a false one."""
    matches = draw(2, 12)
    groups = ties._Groups(matches)
    listed = groups.match_order(a, worst)

    def quality(tp: np.ndarray, ignored: np.ndarray, i: int) -> tuple[int, int]:
        true, left_out = (bin(int(word[i, a])).count("1") for word in (tp, ignored))
        return true, -(3 - true - left_out)

    for number in set(groups.number[groups.tied].tolist()):
        mine = np.flatnonzero(groups.number == number)
        found = [quality(listed.tp, listed.ignored, i) for i in mine]
        own = [quality(matches.tp, matches.ignored, i) for i in mine]
        assert found == sorted(own, reverse=not worst)


def test_more_true_positives_come_before_fewer_false_ones() -> None:
    """A row that is true at one threshold of three, and one that is ignored at all of them."""
    matches = draw(2, 12)
    groups = ties._Groups(matches)
    tp, ignored = (np.zeros_like(matches.tp) for _ in range(2))
    number = groups.number[groups.tied[0]]
    first, second = np.flatnonzero(groups.number == number)[:2]
    for true, left_out in ((first, second), (second, first)):
        tp[:], ignored[:] = 0, 0
        tp[true, 0], ignored[left_out, 0] = 1, 7
        groups.matches = Words(matches, tp, ignored)  # type: ignore[assignment]
        rows = np.flatnonzero(groups.number == number)
        assert groups.match_order(0, worst=False).tp[rows[0], 0] == 1
        assert groups.match_order(0, worst=True).tp[rows[-1], 0] == 1


class Words:
    """Matches with other results, which need not be possible."""

    def __init__(self, matches: detmap.Matches, tp: np.ndarray, ignored: np.ndarray) -> None:
        self.protocol, self.off, self.rank = matches.protocol, matches.off, matches.rank
        self.tp, self.ignored = tp, ignored

    def __len__(self) -> int:
        return len(self.tp)


@pytest.mark.parametrize("seed", [3, 4, 7, 8, 9])
def test_orders_by_match_results_reach_the_bounds(seed: int) -> None:
    """Of a mean over thresholds, without any random order."""
    matches = draw(seed, 12)
    found = ties.ties(matches, curves.scores(matches), orders=0)
    assert found["AP"].low < found["AP"].high
    assert found["AP"].attained
    assert found["APs"].attained  # by orders of its own


def test_an_order_reaches_the_bounds_of_a_single_curve_though_none_is_tried() -> None:
    matches = draw(3, 12)
    rules = matches.protocol.override({"metrics": ["AP50"]})
    matches = replace(matches, protocol=rules)
    found = ties.ties(matches, curves.scores(matches), orders=0)["AP50"]
    assert found.low < found.value < found.high
    assert found.attained


def test_the_spread_of_two_orders_of_equal_values_and_of_undefined_ones() -> None:
    matches = draw(3, 12)
    tp, counted = matches.tp.copy(), matches.counted.copy()
    tp[:, 1], counted[:, 1] = 0, False  # no small object
    matches = replace(matches, tp=tp, counted=counted)
    found = ties.ties(matches, curves.scores(matches), orders=2)
    assert found["AP"].sd > 0
    assert np.isnan([found["APs"].low, found["APs"].high, found["APs"].sd]).all()
    assert found["APs"].attained


@pytest.mark.parametrize("seed", [3, 9, 20])
def test_equal_values_have_no_spread_by_rounding(seed: int) -> None:
    matches = draw(seed, 12)
    found = ties.ties(matches, curves.scores(matches), orders=5, seed=1).values()
    equal = [one.sd for one in found if one.low == one.high]
    assert equal
    assert not any(equal)


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_bounds_hold_for_every_order_of_few_drawn_sets(first: int) -> None:
    assert [case(seed) for seed in range(first, first + 4)] == [None] * 4


@pytest.mark.parametrize("seed", [9, 11, 13, 20, 23, 32, 47, 52, 53, 57, 59])
def test_the_search_finds_orders_that_reach_the_bounds(seed: int) -> None:
    """Of every metric of these sets, whose equal scores of one image overlap objects."""
    truth, found, protocol = draw_set(np.random.default_rng(seed))
    result = detmap.evaluate(truth, found, protocol, threads=1)
    cells = tied_bounds.open_cells(result.matches, result.matched, 1)
    assert cells is not None
    assert cells.orders is not None
    wide = [one for one in result.ties(orders=3, threads=1).values() if one.high > one.low]
    assert wide
    assert all(one.attained for one in wide)


SEARCHED = detmap.load_protocol("coco-bbox").override({"iou.thresholds": [0.5, 0.6, 0.75]})
ROWS = {row.name: row for row in SEARCHED.rows()[0]}


class Positions:
    """The table's position of each row, in the place of matches."""

    def __init__(self, position: np.ndarray) -> None:
        self.position = position

    def __len__(self) -> int:
        return len(self.position)


def part(seed: int, empty: bool = False) -> tuple[Any, list[Any]]:
    """What the search reads of orders, with components of two levels each, and five orders."""
    rng, n = np.random.default_rng(seed), 12
    row, off, level = (
        ([], [0], [0]) if empty else ([7, 2, 5, 0, 9, 11, 3], [0, 4, 7], [0, 2, 4, 5, 7])
    )
    orders = SimpleNamespace(
        protocol=SEARCHED,
        whole=Positions(rng.permutation(n)),
        components=equal_scores.Components(*(np.array(x, np.int64) for x in (row, off, level))),
        ordered=np.array([0, 2, 3, 5, 7, 8, 9, 11]),
    )
    kept = []
    for _ in range(5):
        true, left_out = rng.integers(0, 8, (2, n, 4)).astype(np.uint16)
        if seed % 2:  # the highest and the lowest value alone
            true, left_out = np.where(true < 4, 0, 7).astype(np.uint16), 0 * left_out
        listed = Ranked(np.array([0, n]), true, left_out & ~true, np.zeros(n, np.int32))
        kept.append((rng.permutation(n).astype(np.uint64), listed))
    return orders, kept


def test_the_value_of_a_match_result() -> None:
    """Of three thresholds a true positive is worth more than all false ones cost."""
    true, ignored = [7, 1, 4, 0, 0, 0], [0, 0, 3, 7, 4, 0]
    words = np.zeros((2, 6, 4), np.uint16)
    words[0, :, 1], words[1, :, 1] = true, ignored
    words[0, :, 0] = 5  # of another subset
    listed = Ranked(np.array([0, 6]), *words, np.zeros(6, np.int32))
    orders: Any = SimpleNamespace(protocol=SEARCHED)
    rows = {iou: replace(ROWS["APs"], iou=iou) for iou in (None, 0.5, 0.75)}
    found = {iou: tie_search._value(orders, row, listed) for iou, row in rows.items()}
    assert found[None].tolist() == [12, 2, 4, 0, -2, -3]
    assert found[0.5].tolist() == [2, 2, 0, 0, -1, -1]
    assert found[0.75].tolist() == [2, -1, 2, 0, 0, -1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("best", [True, False])
def test_components_take_the_order_with_the_most_true_positives(seed: int, best: bool) -> None:
    orders, kept = part(seed)
    of, position = orders.components, orders.whole.position
    kept = [(key, tie_search._take(listed, of.row)) for key, listed in kept]
    expected = kept[0][0].astype(float)
    for first, end in zip(of.off[:-1], of.off[1:], strict=True):
        sums = []
        for _, listed in kept:
            value = tie_search._value(orders, ROWS["AP"], listed)
            left = [end - max(x for x in of.level if x <= i) for i in range(first, end)]
            sums.append(sum(value[first:end] * left))
        chosen = sums.index(max(sums) if best else min(sums))
        for r in of.row[first:end]:
            expected[position[r]] = kept[chosen][0][position[r]]
    assert tie_search._combined(orders, ROWS["AP"], kept, best).tolist() == expected.tolist()
    orders, kept = part(seed, empty=True)
    assert tie_search._combined(orders, ROWS["AP"], kept, best).tolist() == kept[0][0].tolist()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("best", [True, False])
@pytest.mark.parametrize("empty", [True, False])
def test_keys_by_match_result(seed: int, best: bool, empty: bool) -> None:
    """Best first, or worst first, where no row of a level passes one that was before it."""
    orders, kept = part(seed, empty)
    (key, listed), of = kept[0], orders.components
    rows = tie_search._take(listed, orders.ordered)
    value = tie_search._value(orders, ROWS["AP"], rows)
    turn = {r: -v if best else v for r, v in zip(orders.ordered, value, strict=True)}
    own = key[orders.whole.position]
    for first, end in zip(of.level[:-1], of.level[1:], strict=True):
        highest = -99
        for r in sorted(of.row[first:end], key=lambda r: own[r]):
            highest = max(highest, turn[r])
            turn[r] = turn[r] if best else highest
    expected = [0] * len(key)
    for i, r in enumerate(sorted(orders.ordered, key=lambda r: (turn[r], own[r]))):
        expected[orders.whole.position[r]] = i
    found = tie_search._verdict_key(orders, ROWS["AP"], key.astype(float), listed, best)
    assert found.tolist() == expected


@pytest.mark.parametrize("n", [0, 3, 17])
def test_how_many_orders_a_search_evaluates(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six for each subset and threshold, from the components of 16 random orders."""
    truth, table, protocol = draw_set(np.random.default_rng(12))
    matches = detmap.evaluate(truth, table, protocol, threads=1).matches
    orders = equal_scores.Orders(matches, (truth, table), 1)
    combined, sizes = tie_search._combined, []

    def noted(orders: Any, row: Any, kept: list[Any], best: bool) -> Any:
        sizes.append(len(kept))
        return combined(orders, row, kept, best)

    monkeypatch.setattr(tie_search, "_combined", noted)
    rows = protocol.rows()[0]
    found = tie_search.searched(orders, [*rows, *rows], lambda _: [0.5], n, 0, 1)
    assert found == ([[0.5]] * n, [[0.5]] * 6 * len({(row.subset, row.iou) for row in rows}))
    assert set(sizes) == {16}
    assert len(orders.row) > 1
    for most in (0, 16 * len(orders.row)):
        monkeypatch.setattr(tie_search, "MOST_PAIRS", most)
        drawn, _ = tie_search.searched(orders, rows, lambda _: [0.5], n, 0, 1)
        assert drawn == [[0.5]] * min(n, 16)


def test_many_terms_get_fewer_random_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = curves.scores(draw(3, 12, "step"))
    size = int(np.prod(scores.terms.shape))
    for terms, wanted in ((100 * size, 100), (37 * size, 37), (0, ties.ORDERS_OF_MANY)):
        monkeypatch.setattr(ties, "MOST_TERMS", terms)
        assert ties._n_orders(scores, 100) == wanted
    monkeypatch.setattr(ties, "MOST_TERMS", 40)
    for n_terms in (0, 1):
        assert ties._n_orders(replace(scores, terms=scores.terms.ravel()[:n_terms]), 100) == 40


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


def test_crowds_of_tied_boxes_get_fewer_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the pairs of detections and objects; 1 here."""
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 10, 10]])
    boxes = [[0, 0, 10, 10], [50, 50, 10, 10]]
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.5, 0.5])
    result = detmap.evaluate(truth, found, "coco-bbox")
    cells = tied_bounds.open_cells(result.matches, result.matched, 1)
    assert cells is not None
    assert cells.orders is not None
    assert len(cells.orders.row) == 1
    for most, expected in ((30, 30), (17, 17), (3, tie_search.TRIED)):
        monkeypatch.setattr(tie_search, "MOST_PAIRS", most)
        assert result.ties(orders=40)["AR1"].orders == expected
