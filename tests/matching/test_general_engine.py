"""The path of tools' rules gives the fast path's bits under every protocol that both know."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import detmap
from detmap.core.base import pair_limits
from detmap.core.matching import candidate_pairs as candidates
from detmap.core.matching import general_engine
from detmap.core.matching.assignments import ARRAYS
from detmap.core.matching.engine import match_images
from detmap.core.matching.general_engine import match_in_order
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.errors import CrowdedError, MergeError, ProtocolError
from tests.protocol.test_keys import FAR, PLAIN, A, data
from tests.support import builders as make
from tests.support.drawing import SEEDS, CocoData, coco_data
from tests.support.drawing_rules import PROTOCOLS, draw_data, draw_rules
from tests.support.drawn_tables import Tables, read_coco
from tests.support.tier import drawn

COLUMNS = ("image", "rank", "position", "score", "tp", "ignored", "off", "obj_off", "obj_image")
COLUMNS += ("counted", "beyond", "unjudged", "digest", "image_ids")


def assert_same(one: Matches, other: Matches) -> None:
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column), err_msg=column)
    assert one.notes == other.notes
    for column in ARRAYS:
        np.testing.assert_array_equal(getattr(one.taken, column), getattr(other.taken, column))


def both(tables: Tables, rules: Protocol) -> tuple[Matches, Matches]:
    return (
        match_in_order(*tables, rules, taken=True),
        detmap.match(*tables, rules, taken=True, threads=1),
    )


@pytest.mark.parametrize("name", ["coco-bbox", "voc2007", "voc2012-python", "lvis"])
@settings(max_examples=drawn(25))
@given(data=coco_data())
def test_both_paths_agree_in_every_bit(name: str, data: CocoData) -> None:
    assert_same(*both(read_coco(*data), detmap.load_protocol(name)))


@pytest.mark.parametrize("at_once", [3, candidates.AT_ONCE], ids=["by piece", "whole"])
@pytest.mark.parametrize("kind", PROTOCOLS)
@settings(max_examples=drawn(40))
@given(seed=SEEDS)
def test_both_paths_agree_under_drawn_rules(kind: str, at_once: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = read_coco(*draw_data(rng, kind), shapes=kind)
    rules = draw_rules(rng, kind, stock=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "AT_ONCE", at_once)
        assert_same(*both(tables, rules))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
@settings(max_examples=drawn(60))
@given(seed=SEEDS)
def test_parts_under_drawn_rules_make_the_whole_or_are_refused(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = read_coco(*draw_data(rng, kind), shapes=kind)
    rules = draw_rules(rng, kind, stock=False)
    whole = detmap.match(*tables, rules, taken=True)
    assert_same(whole.merge(), whole)
    assert_same(whole.merge(Matches.empty(rules, whole.categories)), whole)
    order = rng.permutation(whole.n_images).astype(np.int32)
    parts = [match_images(*tables, rules, order[i : i + 1], taken=True) for i in range(len(order))]
    if len(parts) > 1 and not rules.image_by_image():
        with pytest.raises(MergeError):
            parts[0].merge(*parts[1:])
        return
    merged = parts[0].merge(*parts[1:])
    # A note counts on the whole what each part counts on its own.
    assert_same(without_notes(merged), without_notes(whole))
    assert detmap.summarize(merged).signature == detmap.summarize(whole).signature


def without_notes(matches: Matches) -> Matches:
    return replace(matches, notes=())


# ---- masks and keypoints are not compared as boxes

TRIANGLES: CocoData = (
    make.instances(
        images=[make.image(height=100)],
        annotations=[
            make.annotation(
                area=1800,
                bbox=[10, 10, 60, 60],
                segmentation=[[10, 10, 70, 10, 10, 70]],
                keypoints=[10, 10, 2, 70, 70, 2],
                num_keypoints=2,
            )
        ],
    ),
    [
        make.without(make.detection(), "bbox")
        | {"segmentation": [[70, 10, 70, 70, 10, 70]], "keypoints": [10, 70, 2, 70, 10, 2]}
    ],
)
"""One box, and two halves of it that share nothing."""

HONOURED = (
    {"detections.above": [0]},
    {"matching.neutral.crowd": "absent"},
    {"ranking.of": "all"},
    {"ranking.sort": "unstable"},
    {"matching.equal": "sorted"},
    {"iou.absorb": ">"},
)
REFUSED = (
    {"iou.epsilon": 1.0},
    {"iou.arithmetic": "float32"},
    {"iou.least_union": 1e-6},
    {"boxes.form": "center"},
    {"boxes.extent": "as_written"},
    {"boxes.precision": "float32"},
    {"boxes.object_shift": -1},
    {"boxes.first_pixel": "zero"},
    {"boxes.clip": "crowdhuman"},
    {"detections.box_decimals": 1},
    {"matching.equal": "sorted_own"},
)


@pytest.mark.parametrize("kind", ["masks", "keypoints"])
@pytest.mark.parametrize("settings", HONOURED, ids=str)
def test_a_key_of_tools_compares_shapes(kind: str, settings: dict[str, Any]) -> None:
    more = {"iou.sigmas": [0.05, 0.05]} if kind == "keypoints" else {}
    tables = read_coco(*TRIANGLES, shapes=kind)
    result = detmap.evaluate(*tables, PROTOCOLS[kind], settings=settings | more)
    assert result.metrics["AP50"] == 0
    boxes = detmap.evaluate(*tables, "coco-bbox", settings=settings)
    assert boxes.metrics["AP50"] > 0.99


@pytest.mark.parametrize("kind", ["masks", "keypoints"])
@pytest.mark.parametrize("settings", REFUSED, ids=str)
def test_a_key_of_boxes_is_refused_for_shapes(kind: str, settings: dict[str, Any]) -> None:
    (key,) = settings
    with pytest.raises(ProtocolError, match=f"compares {kind}, but {key}=.* is for boxes only"):
        detmap.load_protocol(PROTOCOLS[kind]).override(settings)


def test_a_tool_that_compares_boxes_is_not_one_of_masks() -> None:
    with pytest.raises(ProtocolError, match=r"iou.epsilon"):
        detmap.load_protocol("yolov5").override({"iou.of": "masks"})


@pytest.mark.parametrize(("kind", "protocol"), [("boxes", "coco-bbox"), ("masks", "coco-segm")])
def test_only_boxes_get_a_list(kind: str, protocol: str, monkeypatch: Any) -> None:
    asked: list[object] = []
    monkeypatch.setattr(general_engine, "list_pairs", lambda *_: asked.append(kind))
    match_in_order(*read_coco(*TRIANGLES, shapes=kind), detmap.load_protocol(protocol))
    assert asked == (["boxes"] if kind == "boxes" else [])


# ---- named faults

SLOW = {"iou.least_union": 1e-9}  # takes the path of tools' rules, and changes no verdict here


def verdicts(tables: Tables, rules: dict[str, Any]) -> list[str]:
    """Of each detection, as they rank, at the last threshold; both paths agree."""
    found = []
    for path in ({}, SLOW):
        protocol = detmap.load_protocol("coco-bbox").override(PLAIN | rules | path)
        matches = detmap.match(*tables, protocol)
        bit = matches.tp.dtype.type(1 << (len(protocol.thresholds()) - 1))
        pairs = zip(matches.tp[:, 0] & bit, matches.ignored[:, 0] & bit, strict=True)
        found.append(["T" if tp else "I" if ignored else "F" for tp, ignored in pairs])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("empty", ["keep", "drop"])
def test_the_limit_cuts_once(empty: str) -> None:
    tables = data([A], [A, FAR], score=[0.5, 0.9])
    rules = {"limits.order": "input", "limits.max_dets": [1], "boxes.empty": empty}
    assert verdicts(tables, rules) == ["T"]


def test_an_object_without_a_width_meets_nothing() -> None:
    tables = data([(0, 0, 0, 10)], [(300, 300, 10, 10)])
    assert verdicts(tables, {"iou.tolerance": 10}) == ["F"]


@pytest.mark.parametrize("thresholds", [[0.7], [0.4, 0.7]])
def test_a_verdict_at_one_threshold_does_not_depend_on_another(thresholds: list[float]) -> None:
    # .444 of the large object, which asks for .498; .25 of the small one, which asks for .198.
    tables = data([(0, 0, 60, 60), (0, 0, 20, 20)], [(0, 0, 40, 40)])
    rules = {"matching.rule": "best_any", "iou.tolerance": 25, "iou.thresholds": thresholds}
    assert verdicts(tables, rules) == ["F"]


def test_objects_without_an_area_are_kept_where_only_detections_leave() -> None:
    tables = data([(0, 0, 0, 10), A], [A, (0, 0, 0, 10)])
    settings = PLAIN | {"boxes.empty": "detections"}
    counts = detmap.evaluate(*tables, "coco-bbox", settings=settings).counts()
    assert (counts["objects"], counts["detections"], counts["missed"]) == (2, 1, 1)


def test_what_lies_beyond_the_limit_is_not_unjudged() -> None:
    tables = data([A], [A, FAR], label=[1, 2], categories={1: "cat", 2: "dog"}, scope=[])
    for path in ({}, SLOW):
        matches = detmap.match(*tables, protocol_of("lvis", {"limits.max_dets": [1]} | path))
        assert (matches.beyond.tolist(), matches.unjudged.tolist()) == ([1], [0])


def protocol_of(name: str, rules: dict[str, Any]) -> Protocol:
    return detmap.load_protocol(name).override(rules)


@pytest.mark.parametrize("path", [{}, SLOW, {"matching.neutral.occluded": "absent"}], ids=str)
def test_every_path_says_what_is_odd(path: dict[str, Any]) -> None:
    tables = data([A], [A], scope=[])
    rules = protocol_of("coco-bbox", {"matching.neutral.occluded": "ignore"} | path)
    codes = {note.code for note in detmap.match(*tables, rules).notes}
    assert codes == {"role-missing", "scope-unused"}


def test_an_object_that_absorbs_in_one_subset_is_taken_by_two_overlaps() -> None:
    tables = data([(0, 0, 10, 20)], [A])
    rules = PLAIN | {
        "matching.outside": "absorb",
        "subsets": {"all": {}, "small": {"area": [0, 100]}},
        "metrics": ["AP"],
        "detections.outside": "count",
    }
    for path in ({}, SLOW, {"iou.absorb": ">"}):
        taken = detmap.match(*tables, protocol_of("coco-bbox", rules | path), taken=True).taken
        assert taken.overlap.tolist() == [0.5, 1.0]
        assert taken.words.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("absorb", [">=", ">"])
def test_the_overlap_with_a_crowd_is_told_as_it_is(absorb: str) -> None:
    tables = data([(0, 0, 10, 20)], [A], roles={"crowd": [True]})
    taken = detmap.match(
        *tables, protocol_of("coco-bbox", {"iou.absorb": absorb}), taken=True
    ).taken
    assert taken.overlap.tolist() == [1.0]


@pytest.mark.parametrize(
    ("rules", "roles"),
    [
        ({"boxes.empty": "drop"}, [False, False]),
        ({"boxes.empty": "drop"} | SLOW, [False, False]),
        ({"matching.neutral.crowd": "absent"}, [True, False]),
    ],
)
def test_an_object_has_its_place_in_the_truth(rules: dict[str, Any], roles: list[bool]) -> None:
    tables = data([(0, 0, 0, 0), A], [A], roles={"crowd": roles})
    matches = detmap.match(*tables, protocol_of("coco-bbox", rules), taken=True)
    assert matches.taken.object.tolist() == [1]


def test_pairs_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = data([A] * 30, [A] * 30)
    monkeypatch.setattr(pair_limits, "MOST_LISTED", 899)
    monkeypatch.setattr(pair_limits, "LISTED_PER_ROW", 1)
    with pytest.raises(CrowdedError, match="too crowded: more than 899 pairs overlap"):
        match_in_order(*tables, detmap.load_protocol("coco-bbox"))
    monkeypatch.setattr(pair_limits, "MOST_LISTED", 900)
    match_in_order(*tables, detmap.load_protocol("coco-bbox"))


def test_a_score_beyond_float32_is_infinite(recwarn: pytest.WarningsRecorder) -> None:
    tables = data([A], [FAR, A], score=[1e39, 1e40])
    rules = PLAIN | {"detections.score_precision": "float32"}
    assert detmap.evaluate(*tables, "coco-bbox", settings=rules).counts()["tp"] == 1
    assert not recwarn.list


def test_parts_rank_equal_scores_as_they_took() -> None:
    tables = data([A], [A, A], image=[2, 1], images=[1, 2], score=[0.5, 0.5])
    rules = protocol_of("voc2012", {"ranking.ties": "matched"})
    whole = detmap.match(*tables, rules)
    parts = [whole.select([i]) for i in (1, 2)]
    assert detmap.summarize(whole).metrics["mAP"] == 1
    assert detmap.summarize(parts[1].merge(parts[0])).metrics["mAP"] == 1
    assert detmap.summarize(whole.merge()).metrics["mAP"] == 1


def test_one_part_is_not_sorted_anew() -> None:
    n = 40
    boxes = [A if i % 3 else FAR for i in range(n)]
    tables = data([A] * 9, boxes, score=[0.5] * n)
    whole = detmap.match(*tables, detmap.load_protocol("tfod-ava"), taken=True)
    assert_same(whole.merge(), whole)
    assert_same(whole.merge(whole.select([])), whole)


def test_objects_keep_their_order_where_neutral_ones_stand_behind() -> None:
    tables = data([A, FAR], [A], roles={"crowd": [True, False]})
    for equal in ("last", "first_to_find"):
        matches = detmap.match(*tables, protocol_of("voc2012", {"matching.equal": equal}))
        assert matches.counted[:, 0].tolist() == [False, True]
