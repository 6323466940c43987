"""What both engines refuse, and the general engine's rules one threshold at a time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import detmap
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.errors import DataError, DetmapError, ProtocolError
from tests.protocol.test_keys import FAR, PLAIN, TWO, A, data
from tests.support.drawing import SEEDS
from tests.support.drawing_rules import draw_data
from tests.support.drawn_tables import read_coco
from tests.support.tier import drawn

PASSES: dict[str, dict[str, Any]] = {
    "sorted": {"matching.equal": "sorted"},
    "to find": {"matching.prefer": "to_find"},
    "flags": {"matching.flags": "repeated"},
    "regions": {"matching.neutral.crowd": "region"},
}
"""Rules that need one pass per threshold."""


def matched(tables: Any, **rules: Any) -> Matches:
    protocol = detmap.load_protocol("coco-bbox").override(PLAIN | rules)
    return match(*tables, protocol, taken=True)


def results(matches: Matches, threshold: int = 0, subset: int = 0) -> str:
    """T, F or I of each detection, as they rank."""
    bit = 1 << threshold
    pairs = zip(matches.tp[:, subset] & bit, matches.ignored[:, subset] & bit, strict=True)
    return "".join("T" if tp else "I" if ignored else "F" for tp, ignored in pairs)


# ---- refused input


@pytest.mark.parametrize(("place", "name"), list(enumerate(("truth", "detections", "protocol"))))
def test_an_argument_of_another_type_is_named(place: int, name: str) -> None:
    given: list[Any] = [*data([A], [A]), detmap.load_protocol("coco-bbox")]
    given[place] = "coco-bbox"
    with pytest.raises(DataError, match=f"match: {name}: a str, not"):
        match(*given)


def test_a_rule_without_matches_is_refused() -> None:
    kitti = detmap.load_protocol("kitti")
    assert kitti.evaluation.rule == "kitti"
    with pytest.raises(ProtocolError, match=r"evaluation.rule kitti has no matches"):
        match(*data([A], [A]), kitti)


def test_detections_of_other_images_are_refused() -> None:
    truth, _ = data([A], [A])
    _, others = data([A], [A], images=[1, 2])
    with pytest.raises(DetmapError, match=r"images"):
        match(truth, others, detmap.load_protocol("coco-bbox"))


# ---- thresholds


@pytest.mark.parametrize("rules", PASSES.values(), ids=PASSES)
@settings(max_examples=drawn(24))
@given(seed=SEEDS)
def test_each_threshold_as_if_it_were_alone(rules: dict[str, Any], seed: int) -> None:
    tables = read_coco(*draw_data(np.random.default_rng(seed), "boxes"), shapes="boxes")
    subsets = {"all": {}, "small": {"area": [0, 120]}, "wide": {"width": [15, 200]}}
    rules = rules | {"subsets": subsets, "iou.tolerance": [0.0, 5.0][seed % 2]}
    thresholds = [0.3, 0.5, 0.75]
    whole = matched(tables, **rules | {"iou.thresholds": thresholds})
    if any(note.code == "choice-undecided" for note in whole.notes):  # by an unstable sort
        return
    for t, threshold in enumerate(thresholds):
        alone = matched(tables, **rules | {"iou.thresholds": [threshold]})
        np.testing.assert_array_equal(whole.position, alone.position)
        for column in ("tp", "ignored"):
            words = getattr(whole, column) >> np.uint16(t) & np.uint16(1)
            np.testing.assert_array_equal(words, getattr(alone, column), err_msg=column)
        assert pairs_at(whole, t) == pairs_at(alone, 0)


def test_a_crowd_that_matches_as_others_do_is_found_many_times() -> None:
    """Under `repeated`: more true positives than objects, as in the tool."""
    tables = data([A, FAR], [FAR, *6 * [A]], roles={"crowd": [True, False]})
    matches = matched(tables, **{"matching.flags": "repeated"})
    assert results(matches).count("T") > 2


def pairs_at(matches: Matches, threshold: int) -> list[tuple[Any, ...]]:
    """Who was matched to what in which subset."""
    taken = matches.taken
    rows, subset = np.nonzero(taken.words >> taken.words.dtype.type(threshold) & 1)
    found = (subset, taken.detection()[rows], taken.object[rows], taken.overlap[rows])
    return sorted(zip(*(column.tolist() for column in found), strict=True))


@pytest.mark.parametrize("rules", PASSES.values(), ids=PASSES)
def test_what_lies_outside_of_a_subset_stays_ignored(rules: dict[str, Any]) -> None:
    tables = data([A], [A, FAR])
    subsets = {"all": {}, "small": {"area": [0, 50]}}
    both = {"iou.thresholds": [0.5, 0.75], "subsets": subsets, "metrics": ["AP"]}
    matches = matched(tables, **rules | both)
    for t in range(2):
        assert results(matches, t) == "TF"
        assert results(matches, t, subset=1)[1] == "I"


# ---- single rules


def test_a_pair_below_its_threshold_hides_another_under_a_small_tolerance() -> None:
    # 25/36 of the large object, which asks for .7; 16/25 of the small one, which asks for 16/25.
    tables = data([(0, 0, 6, 6), (0, 0, 4, 4)], [(0, 0, 5, 5)])
    rules = {"iou.tolerance": 1, "iou.thresholds": [0.7], "matching.rule": "best_any"}
    assert results(matched(tables, **rules)) == "F"
    assert results(matched(tables, **rules, **PASSES["sorted"])) == "F"
    assert results(matched(tables, **rules | {"iou.tolerance": 0.5})) == "F"


def test_a_counted_object_out_of_reach_leaves_the_ignored_one() -> None:
    tables = data([(0, 0, 10, 3), A], [A], roles={"crowd": [False, True]})
    rules = {"matching.neutral.crowd": "ignore", "matching.prefer": "to_find"}
    assert results(matched(tables, **rules, **{"iou.tolerance": 1})) == "I"
    assert results(matched(tables, **rules)) == "I"
    rules |= {"matching.rule": "best_any"}
    assert results(matched(tables, **rules, **{"iou.tolerance": 1})) == "I"


@pytest.mark.parametrize("rules", PASSES.values(), ids=PASSES)
def test_no_note_on_choices_where_none_was_made(rules: dict[str, Any]) -> None:
    codes = {note.code for note in matched(data([A], [A]), **rules).notes}
    assert not codes & {"choice-undecided", "order-undecided"}


def test_ignored_objects_of_every_cell_wait_until_none_is_free() -> None:
    tables = data(
        [A, A, A, A],
        [A, A, A, A],
        object_class=[1, 1, 2, 2],
        label=[1, 1, 2, 2],
        roles={"crowd": [True, False, True, False]},
        **TWO,
    )
    rules = {"matching.neutral.crowd": "ignore", "matching.neutral_when": "none_free"}
    assert results(matched(tables, **rules)) == "TITI"


def test_repeated_flags_are_those_of_another_object() -> None:
    # Of two detections and two objects, the first meets the flag of the first object.
    tables = data([A, FAR], [FAR, (50, 0, 10, 10)], roles={"crowd": [True, False]})
    rules = {"matching.flags": "repeated", "matching.neutral.crowd": "ignore"}
    assert results(matched(tables, **rules)) == "IF"


@pytest.mark.parametrize("order", ["class", "image"])
def test_ties_of_two_classes_are_undecided_where_an_image_is_sorted_as_a_whole(order: str) -> None:
    n = 40
    score = np.repeat(np.linspace(0.1, 0.9, n // 2), 2).tolist()
    tables = data([A], [FAR] * n, score, label=[1, 2] * (n // 2), **TWO)
    rules = {"matching.order": order, "matching.sort": "unstable"}
    noted = [note.count for note in matched(tables, **rules).notes if "undecided" in note.code]
    assert noted == ([n] if order == "image" else [])


def test_the_image_of_a_class_that_was_seen_first_goes_first() -> None:
    tables = data(
        [A],
        [A, FAR, A],
        [0.5, 0.5, 0.5],
        object_image=[0],
        object_class=[3],
        image=[1, 1, 0],
        label=[1, 3, 3],
        images=[0, 1],
        categories={1: "cat", 2: "dog", 3: "elk"},
    )
    assert results(matched(tables, **{"ranking.ties": "first_seen"})) == "FFT"


def test_tied_scores_stay_in_file_order_where_ignored_ones_leave() -> None:
    tables = data([A], [FAR, A], [0.5, 0.5], object_image=[1], image=[2, 1], images=[1, 2])
    rules = {"ranking.ties": "input", "ranking.ignored": "leave"}
    assert results(matched(tables, **rules)) == "FT"


def test_ignored_detections_rank_behind_tied_ones_where_they_leave() -> None:
    tables = data([A, FAR], [A, FAR], [0.5, 0.5], roles={"crowd": [True, False]})
    rules = {"matching.neutral.crowd": "ignore", "ranking.ties": "input"}
    kept = matched(tables, **rules)
    left = matched(tables, **rules, **{"ranking.ignored": "leave"})
    assert (results(kept), kept.position.tolist()) == ("IT", [0, 1])
    assert (results(left), left.position.tolist()) == ("TI", [1, 0])
    assert [pairs[1:3] for pairs in pairs_at(kept, 0)] == [(0, 0), (1, 1)]
    assert [pairs[1:3] for pairs in pairs_at(left, 0)] == [(0, 1), (1, 0)]


def test_images_follow_each_other_as_first_seen() -> None:
    """Tied detections of images 2, 1 and 2: those of image 2 rank together, before image 1."""
    tables = data([A], [FAR, A, A], [0.5] * 3, object_image=[2], image=[2, 1, 2], images=[1, 2])
    for ties, expected in (("first_seen", [0, 2, 1]), ("input", [0, 1, 2]), ("image", [1, 0, 2])):
        matches = matched(tables, **{"ranking.ties": ties})
        assert matches.position.tolist() == expected
