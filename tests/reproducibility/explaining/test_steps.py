"""Why two numbers differ: steps that add up exactly, between the very ends."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from detmap.core.base.resources import folder
from detmap.core.overlaps.box_edges import written
from detmap.core.protocol.keys import table
from detmap.reproducibility import explaining
from detmap.reproducibility.explaining import sentences, shapley
from detmap.reproducibility.explaining.deciding_examples import GONE
from detmap.reproducibility.explaining.record_changes import compared
from detmap.reproducibility.explaining.records import signature_record
from tests.protocol.test_keys import FAR, A, B, data
from tests.support.running import run

SAMPLE = folder("datasets") / "shapes"
FILES = (SAMPLE, SAMPLE / "detections" / "contours")
PAIRS = (
    ("voc-devkit-12", "ultralytics-8.4"),
    ("ultralytics-8.3", "ultralytics-8.4"),
    ("coco-bbox", "tide"),
    ("keras-retinanet", "tfod-weighted"),
    ("voc2007", "voc2007"),
)


@pytest.fixture(scope="module")
def tables() -> tuple[detmap.Truth, detmap.Detections]:
    truth = detmap.read_truth(FILES[0])
    return truth, detmap.read_detections(FILES[1], truth)


def headline(result: detmap.Result) -> float:
    return next(iter(result.metrics.values()))


def test_every_rule_belongs_to_one_switch() -> None:
    keys = [key for switch in explaining.SWITCHES for key in switch.keys]
    prose = {"name", "version", "summary", "source", "files.truth", "files.detections"}
    assert sorted(keys) == sorted(set(protocol.keys()) - prose)


def test_every_key_has_a_sentence() -> None:
    for row in table():
        one = [(row.name, '"a"', '"b"')]
        assert not re.search(r"[{}]|: ", sentences.of(one)), row.name
        assert sentences.of(one).endswith(" b instead of a") or row.name == "subsets"
    gone = sentences.of([("matching.neutral.crowd", '"absorb"', "null")])
    assert gone == "crowd objects match one detection and count instead of any number of detections"


@pytest.mark.parametrize(
    "start, end, metric",
    [
        ("voc2012", "coco-bbox", "AP50"),
        ("coco-bbox", "crowdhuman", "AP50"),
        ("coco-bbox", "lvis", "AP"),
        ("pycocotools", "fiftyone", "AP"),
        ("voc2012", "ultralytics-8.4", "mAP"),
    ],
)
def test_like_is_compared_with_like(start: str, end: str, metric: str, tables: Any) -> None:
    found = detmap.explain(*tables, start, end)
    assert found.metric[0] == metric
    assert bool(found.remark) == (metric == "AP50")
    ends = [detmap.evaluate(*tables, name) for name in (start, end)]
    if not start.startswith("voc"):
        assert found.before == ends[0][metric]
    assert all(step.sentence for step in found.steps)
    steps, words = found.tables()[:2]
    assert len(steps.lines) == bool(found.remark)
    assert len(words.rows) == sum(bool(step.change) for step in found.steps)


@pytest.mark.parametrize("start, end", PAIRS)
def test_the_ends_are_evaluations_and_the_steps_add_up(start: str, end: str, tables: Any) -> None:
    found = detmap.explain(*tables, start, end, metric="first")
    before, after = (headline(detmap.evaluate(*tables, name)) for name in (start, end))
    assert (found.before, found.after) == (before, after)
    assert found.total == Fraction(after) - Fraction(before)
    value = Fraction(before)
    for step in found.steps:
        value += step.change
        assert value == Fraction(step.value)
    assert bool(found.steps) == (start != end)


@pytest.mark.slow
def test_shapley_values_add_up_exactly_and_are_the_mean_over_all_orders(tables: Any) -> None:
    found = detmap.explain(*tables, "voc-devkit-12", "ultralytics-8.4", shapley=True)
    assert sum(step.shapley or Fraction(0) for step in found.steps) == found.total
    assert found.orders == 0
    assert all(step.error == 0 for step in found.steps)


def game(taken: frozenset[str]) -> float:
    """1 for a, 2 for b, 4 more for both; c is worth nothing."""
    return 1 * ("a" in taken) + 2 * ("b" in taken) + 4 * ({"a", "b"} <= taken)


PARTS = [(name, name, "") for name in "abc"]


def test_a_game_by_hand() -> None:
    steps = explaining.walk(PARTS, game)
    assert [step.change for step in steps] == [1, 6, 0]
    found, drawn = shapley.averaged(steps, game, 0)
    assert [step.shapley for step in found] == [3, 4, 0]
    assert drawn == 0


def test_many_switches_are_sampled_with_seed_and_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapley, "MOST_EXACT", 1)
    steps = explaining.walk(PARTS, game)
    one, two, other = (shapley.averaged(steps, game, seed)[0] for seed in (1, 1, 2))
    assert one == two != other
    assert sum(step.shapley or 0 for step in one) == 7
    assert abs(float(one[0].shapley or 0) - 3) < 4 * one[0].error
    assert one[0].error > 0


def test_detections_that_are_judged_otherwise_are_named() -> None:
    truth, found = data([A, B], [A, FAR, B], roles={"crowd": [True, False]})
    rules = detmap.load_protocol("voc2012")
    counted = rules.override({"matching.neutral.crowd": "count"})
    why = detmap.explain(truth, found, rules, counted)
    assert [step.name for step in why.steps] == ["neutral"]
    (one,) = why.decided
    assert (one.row, one.category, one.image) == (0, "cat", 1)
    assert (one.before, one.after, one.overlap) == ("IGNORED", "TP", 1.0)
    assert [move.name for move in why.classes] == ["cat"]


# ---- two inputs

TRUTH, FOUND = data([A, B, FAR], [A, FAR, B, A], [0.9, 0.8, 0.8, 0.3])


def of(**changes: Any) -> Any:
    """The detections, changed."""
    return replace(FOUND, **changes)


def found_at(*rows: int) -> Any:
    return FOUND.take(np.array(rows))


def objects_at(*rows: int) -> Any:
    return TRUTH.take(np.array(rows))


OTHER_SCORES, CROWD = np.array([0.1, 0.8, 0.8, 0.3]), np.array([True, False, False])
HIGHER = FOUND.boxes + np.array([[0, 0, 0, 9], *[[0] * 4] * 3])
ASIDE = TRUTH.boxes + np.array([[9, 9, 0, 0], [0] * 4, [0] * 4])
OTHERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "scores": ({"other_detections": of(score=OTHER_SCORES)}, ["detections.scores"]),
    "boxes": ({"other_detections": of(boxes=HIGHER)}, ["detections.moved"]),
    "fewer": ({"other_detections": found_at(0, 1)}, ["detections.removed"]),
    "more": ({"other_detections": found_at(0, 1, 2, 3, 3)}, ["detections.added"]),
    "ties": ({"other_detections": found_at(0, 2, 1, 3)}, ["detections.order"]),
    "objects": ({"other_truth": objects_at(0, 2)}, ["truth.removed"]),
    "more objects": ({"other_truth": objects_at(0, 1, 2, 1)}, ["truth.added"]),
    "objects in order": ({"other_truth": objects_at(2, 1, 0)}, ["truth.order"]),
    "flags": ({"other_truth": replace(TRUTH, roles={"crowd": CROWD})}, ["truth.flags"]),
    "moved": ({"other_truth": replace(TRUTH, boxes=ASIDE)}, ["truth.moved"]),
    "both": (
        {"other_truth": objects_at(0), "other_detections": found_at(1, 2)},
        ["truth.removed", "detections.removed"],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_inputs_part_by_part(name: str) -> None:
    others, parts = OTHERS[name]
    found = detmap.explain(TRUTH, FOUND, "voc2012", **others)
    assert [step.name for step in found.steps] == parts
    truth = others.get("other_truth", TRUTH)
    after = headline(detmap.evaluate(truth, others.get("other_detections", FOUND), "voc2012"))
    before = headline(detmap.evaluate(TRUTH, FOUND, "voc2012"))
    assert (found.before, found.after) == (before, after)
    assert found.total == Fraction(after) - Fraction(before)


def row(decided: Any) -> tuple[Any, ...]:
    return (decided.kind, decided.file, decided.row, decided.before, decided.after)


def test_what_decided_between_two_detections() -> None:
    other = FOUND.take(np.array([1, 2, 0, 3]))
    boxes = np.concatenate([other.boxes[:3], [[0.0, 0.0, 7.0, 7.0]]])
    other = replace(other, boxes=boxes, score=np.array([0.8, 0.8, 0.1, 0.05]), source="new")
    why = detmap.explain(TRUTH, FOUND, "voc2012", other_detections=other)
    parts = ("removed", "added", "scores", "order")
    assert [step.name for step in why.steps] == [f"detections.{part}" for part in parts]
    assert [step.detail for step in why.steps[:2]] == ["1 row", "1 row"]
    gone, new = (
        [each for each in why.decided if GONE in (each.before, each.after)][k] for k in (0, 1)
    )
    assert row(gone) == ("detection", FOUND.source, 3, "FP", GONE)
    assert row(new) == ("detection", "new", 3, GONE, "FP")
    assert (gone.category, gone.image, gone.score) == ("cat", 1, 0.3)
    assert np.isnan(gone.overlap)


def test_what_decided_between_two_truths() -> None:
    """An object that nobody finds, and one that is no longer there."""
    lonely = replace(TRUTH, boxes=TRUTH.boxes + np.array([[0.0] * 4, [0.0] * 4, [400, 400, 0, 0]]))
    why = detmap.explain(TRUTH, FOUND, "voc2012", other_truth=lonely)
    assert [row(each) for each in why.decided] == [("detection", FOUND.source, 1, "TP", "FP")]
    more = TRUTH.take(np.array([0, 1, 2, 2]))
    moved = replace(more, boxes=more.boxes + np.array([[0.0] * 4] * 3 + [[400, 400, 0, 0]]))
    why = detmap.explain(TRUTH, FOUND, "voc2012", other_truth=moved)
    assert [row(each) for each in why.decided] == [("object", moved.source, 3, GONE, "missed")]
    back = detmap.explain(moved, FOUND, "voc2012", other_truth=TRUTH)
    assert [row(each) for each in back.decided] == [("object", moved.source, 3, "missed", GONE)]
    assert back.tables()[-1].rows[0][:2] == ("object", "1")
    assert back.to_dict()["decided"][0]["score"] is None


def test_objects_are_named_where_rules_make_them_count() -> None:
    truth, found = data([A, B], [A], roles={"crowd": [False, True]})
    rules = detmap.load_protocol("voc2012")
    why = detmap.explain(truth, found, rules, rules.override({"matching.neutral.crowd": "count"}))
    (one,) = why.decided
    assert row(one) == ("object", truth.source, 1, "ignored", "missed")
    taken_out = detmap.explain(truth, found, rules, "ultralytics-8.4")
    assert all(each.kind == "detection" for each in taken_out.decided)


def test_ties_that_are_broken_otherwise_are_counted() -> None:
    truth, found = data([A, B], [A, FAR, B], [0.9, 0.5, 0.5])
    for order, told in ((np.array([0, 2, 1]), "2 of 3 rows"), (np.array([1, 2, 0]), "0 of 3 rows")):
        why = detmap.explain(truth, found, "voc2012", other_detections=found.take(order))
        (step,) = why.steps
        assert step.detail == told
        assert bool(step.change) == (told[0] == "2")


def test_no_more_than_five_are_named_and_the_classes_that_moved_most_come_first() -> None:
    one = (SAMPLE / "instances_test.json", SAMPLE / "detections" / "template.json")
    why = detmap.explain(*one, "voc2012", other_detections=SAMPLE / "detections/contours.json")
    moves = [abs(each.change) for each in why.classes]
    assert moves == sorted(moves, reverse=True)
    assert len(why.decided) == len(why.classes) == 5
    assert {each.category for each in why.decided} == {why.classes[0].name}
    scores = [each.score for each in why.decided]
    assert scores == sorted(scores, reverse=True)


def test_classes_of_one_name_are_two() -> None:
    """By name the second's AP stood for both, so that nothing moved."""
    names = detmap.Categories(np.array([1, 2]), ("a", "a"))
    truth = replace(TRUTH, categories=names, label=np.array([0, 0, 1], np.int32))
    found = replace(FOUND, categories=names, label=np.array([0, 1, 0, 0], np.int32))
    for lost in (0, 1):
        other = found.take(np.flatnonzero(found.label != lost))
        why = detmap.explain(truth, found, "voc2012", other_detections=other)
        assert [(each.label, each.after) for each in why.classes] == [(lost, 0.0)]
        assert [each["class"] for each in why.to_dict()["classes"]] == ["a"]


def test_parts_of_two_inputs_are_averaged_over_their_orders_too() -> None:
    others, parts = OTHERS["both"]
    found = detmap.explain(TRUTH, FOUND, "voc2012", shapley=True, **others)
    assert [step.name for step in found.steps] == parts
    assert sum(step.shapley or Fraction(0) for step in found.steps) == found.total
    other = {name: others[name] for name in ("other_detections",)}
    alone = detmap.explain(TRUTH, FOUND, "voc2012", **other).total
    truth = {name: others[name] for name in ("other_truth",)}
    last = found.total - detmap.explain(TRUTH, FOUND, "voc2012", **truth).total
    assert found.steps[1].shapley == (alone + last) / 2


def test_the_same_input_explains_nothing() -> None:
    assert detmap.explain(TRUTH, FOUND, "voc2012", other_detections=FOUND).steps == ()


def test_what_cannot_be_explained_is_refused() -> None:
    with pytest.raises(detmap.DataError, match="two protocols or two inputs"):
        detmap.explain(TRUTH, FOUND, "voc2012")
    other, _ = data([A], [A], images=[1, 2])
    with pytest.raises(detmap.DataError, match="other images"):
        detmap.explain(TRUTH, FOUND, "voc2012", other_truth=other)
    none, found = data([], [A])
    with pytest.raises(detmap.DataError, match="has no number"):
        detmap.explain(none, found, "voc2012", "voc2007")
    with pytest.raises(detmap.DataError, match="compares boxes"):
        detmap.explain(TRUTH, FOUND, "voc2012", "coco-segm")


# ---- a signature


def test_a_step_names_the_entries_of_a_table_that_change(tables: Any) -> None:
    why = detmap.explain(*tables, "voc-devkit-12", "ultralytics-8.4")
    (neutral,) = [step for step in why.steps if step.title == "ignored objects"]
    assert neutral.detail == (
        'matching.neutral.crowd: "ignore" -> "absent"; '
        'matching.neutral.difficult: "ignore" -> "absent"'
    )


def test_a_signature_says_which_part_is_another() -> None:
    result = detmap.evaluate(TRUTH, FOUND, "voc2012")
    mine = signature_record(result.signature)
    assert all(part.same for part in compared(signature_record(result.signature), mine))
    other = detmap.evaluate(TRUTH, FOUND.take(np.arange(3)), "voc2012", settings={"iou.cap": 0.9})
    found = [
        part.name for part in compared(signature_record(other.signature), mine) if not part.same
    ]
    assert found == ["changes", "proto", "iou.cap", "data"]
    older = result.signature.replace("proto:", "proto:00")
    (part,) = [part for part in compared(signature_record(older), mine) if not part.same]
    assert (part.name, part.remark[:12]) == ("proto", "this version")
    with pytest.raises(detmap.DataError, match="is not a signature"):
        signature_record("no signature")


# ---- the command


@pytest.mark.slow
def test_the_command_prints_the_steps() -> None:
    done = run("explain", *FILES, "--from", "voc-devkit-12", "--to", "ultralytics-8.4")
    assert done.code == 0
    assert "box convention" in done.out
    words = ("explain", *FILES, "--from", "voc-devkit-12", "--to", "ultralytics-8.4")
    content = json.loads(run(*words, "--format", "json", "--shapley").out)
    steps = content["steps"]
    wanted = Fraction(content["exact_change"])
    assert sum(Fraction(step["exact_change"]) for step in steps) == wanted
    assert content["after"] == steps[-1]["value"]


def test_the_command_compares_a_signature() -> None:
    line = run("eval", *FILES, "-p", "voc2012").out.splitlines()[-1]
    same = run("explain", *FILES, "-p", "voc2012", "--signature", line)
    assert same.code == 0
    other = run("explain", *FILES, "-p", "voc2007", "--signature", line)
    assert other.code == 1
    assert "ap.integrator" in other.out


def test_the_command_explains_other_detections() -> None:
    one = (SAMPLE / "instances_test.json", SAMPLE / "detections" / "template.json")
    done = run("explain", *one, "-p", "voc2012", "--other-detections", FILES[1])
    assert done.code == 0, done.err
    assert "detections only in the other file" in done.out


def test_scores_too_large_for_their_digits_are_their_text() -> None:
    """A product beyond the largest number made an infinity of 1e308."""
    score = np.array([1e308, -1e308, 2.0**53 + 2, 900719925474099.2, 0.25, 0.05])
    for decimals in (1, 3):
        want = [float(f"{each:.{decimals}f}") for each in score]
        assert written(score, decimals).tolist() == want
