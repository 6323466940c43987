"""Other inputs that a number may have been made of: each is what it says, and is found from the
number alone.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import detmap
from detmap.analysis.doctor.hypothesis_names import HYPOTHESES
from detmap.core.tables import Detections, Truth, selection
from detmap.reproducibility.reproducing import changed_inputs as supposed
from detmap.reproducibility.reproducing.changed_inputs import suppositions
from detmap.reproducibility.reproducing.search import KINDS, Search, reproduce
from tests.reference.people import overlap as iou
from tests.support import builders as make
from tests.support.running import run

Tables = tuple[Truth, Detections]


def drawn(seed: int = 3, n_images: int = 40) -> Tables:
    """Objects, some difficult, in VOC's pixels on images whose last one is empty; detections on
    most of them and beside, with all scores from 0 to 1, some twice.
    """
    draw = np.random.default_rng(seed)
    n = 4 * (n_images - 1)
    image = np.repeat(np.arange(1, n_images), 4)
    label = draw.integers(1, 4, n)
    corner, side = draw.integers(0, 150, (n, 2)), draw.integers(8, 50, (n, 2))
    boxes = np.concatenate([corner, side], axis=1).astype(float)
    truth = detmap.truth_from_arrays(image, label, boxes, images=range(1, n_images + 1))
    sides = np.full(n_images, 200.0)
    truth = replace(
        truth,
        images=replace(truth.images, width=sides, height=sides),
        roles={"difficult": draw.random(n) < 0.2},
    )
    rows = draw.permutation(np.repeat(np.arange(n), 3))
    noise = draw.normal(0, 0.12, (len(rows), 4)) * np.tile(side[rows], 2)
    found = np.maximum(np.round(boxes[rows] + noise), [0, 0, 1, 1])
    right = np.exp(-np.abs(noise).sum(axis=1) / 20)
    score = np.round(np.clip(right * draw.random(len(rows)), 0, 1), 3)
    detections = detmap.detections_from_arrays(truth, image[rows], label[rows], found, score)
    return replace(truth, family="voc", year=2007), detections


TABLES = drawn()
KNOWN = {(each.name, each.text): each for each in suppositions(*TABLES)}


def test_their_names_are_those_of_the_doctor() -> None:
    names = {each.name for each in HYPOTHESES} | {"boxes-clipped"}
    assert {name for name, _ in KNOWN} <= names


def test_each_changes_something_and_belongs_together() -> None:
    before = detmap.evaluate(*TABLES, "voc2012")
    for each in KNOWN.values():
        result = detmap.evaluate(*each.make(), "voc2012")  # which refuses tables of two truths
        assert result.overview.digest != before.overview.digest, each


def cut(truth: Truth, found: Detections) -> Tables:
    return truth, found.take(np.flatnonzero(found.score >= 0.05))


def cut_above(truth: Truth, found: Detections) -> Tables:
    return truth, found.take(np.flatnonzero(found.score > 0.05))


def best_ten(truth: Truth, found: Detections) -> Tables:
    rows: list[int] = []
    for image in range(len(truth.images)):
        mine = np.flatnonzero(found.image == image)
        rows += mine[np.argsort(-found.score[mine], kind="stable")[:10]].tolist()
    return truth, found.take(np.array(sorted(rows)))


def counted(truth: Truth, found: Detections) -> Tables:
    return replace(truth, roles={}), found


def left_out(truth: Truth, found: Detections) -> Tables:
    return truth.take(np.flatnonzero(~truth.difficult)), found


def one_based(truth: Truth, found: Detections) -> Tables:
    return truth, replace(found, boxes=found.boxes + np.array([1, 1, 0, 0]))


def narrower(truth: Truth, found: Detections) -> Tables:
    return truth, replace(found, boxes=np.maximum(found.boxes - np.array([0, 0, 1, 1]), 0))


def without_empty(truth: Truth, found: Detections) -> Tables:
    return selection.part(truth, found, truth.images.ids[:-1], None)


def suppressed(truth: Truth, found: Detections) -> Tables:
    """Greedy suppression, a box at a time."""
    kept: list[int] = []
    for row in np.argsort(-found.score, kind="stable").tolist():
        cell = (found.image[row], found.label[row])
        others = [k for k in kept if (found.image[k], found.label[k]) == cell]
        if all(iou(found.boxes[row], found.boxes[k]) <= 0.5 for k in others):
            kept.append(row)
    return truth, found.take(np.array(sorted(kept)))


BY_HAND: dict[tuple[str, str], Callable[[Truth, Detections], Tables]] = {
    ("scores-cut", "detections below 0.05 removed"): cut,
    ("scores-cut", "detections of 0.05 and below removed"): cut_above,
    ("scores-top-k", "the 10 highest-scoring detections per image"): best_ten,
    ("truth-benchmark", "difficult objects not marked"): counted,
    ("truth-benchmark", "difficult objects removed"): left_out,
    ("truth-benchmark", "images without objects removed"): without_empty,
    ("boxes-zero-based", "detections moved by +1 +1 +1 +1"): one_based,
    ("boxes-too-wide-by-one", "detections moved by +0 +0 -1 -1"): narrower,
    ("duplicates", "detections suppressed at IoU 0.5"): suppressed,
}


@pytest.mark.parametrize("key", BY_HAND)
def test_it_is_what_it_says(key: tuple[str, str]) -> None:
    made, wanted = KNOWN[key].make(), BY_HAND[key](*TABLES)
    digests = [detmap.evaluate(*each, "voc2012").overview.digest for each in (made, wanted)]
    assert digests[0] == digests[1]


def test_an_object_of_id_zero_is_unmatched_as_in_pycocotools(tmp_path: Path) -> None:
    rows = json.loads((make.SHAPES / "instances_test.json").read_text())
    for number, each in enumerate(rows["annotations"]):
        each["id"] = number
    truth = make.write(tmp_path / "truth.json", json.dumps(rows))
    found = make.SHAPES / "detections" / "contours.json"
    coco = COCO(str(truth))
    ran = COCOeval(coco, coco.loadRes(str(found)), "bbox")
    for step in (ran.evaluate, ran.accumulate, ran.summarize):
        step()
    table = detmap.read_truth(truth)
    first = next(suppositions(table, detmap.read_detections(found, table)))
    assert first.name == "truth-id-zero"
    metrics = detmap.evaluate(*first.make(), "coco-bbox").metrics
    assert [metrics[name] for name in ("AP", "AP50", "AR100")] == ran.stats[[0, 1, 8]].tolist()
    assert metrics["AP"] != detmap.evaluate(truth, found)["AP"]
    empty = table.take(np.array([], dtype=int))
    assert [*suppositions(empty, detmap.read_detections(found, empty).take([]))] == []


def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other inputs under the benchmark's rules and the seven that come closest."""
    rows = {"input": 1, "input and change": 50_000_000}
    monkeypatch.setattr(sys.modules["detmap.reproducibility.reproducing.search"], "MOST_ROWS", rows)


def search(tables: Tables, number: float, depth: int = 1) -> Search:
    return reproduce(f"{100 * number:.5f}", *tables, metric="mAP", depth=depth)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*BY_HAND][::4])
def test_it_is_found_from_the_number_alone(
    key: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few_rules(monkeypatch)
    number = detmap.evaluate(*BY_HAND[key](*TABLES), "voc-devkit-07").metrics["mAP"]
    found = search(TABLES, number)
    told = {(each.input, each.rules) for each in found.found if not each.changes}
    assert (key, "voc2007") in told  # whose rules are the devkit's
    assert found.chances["input"].expected < 1
    kinds = [KINDS.index(each.kind) for each in found.found]
    assert kinds == sorted(kinds)


@pytest.mark.slow
def test_an_input_and_a_changed_rule_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rules(monkeypatch)
    truth, found = cut(*TABLES)
    stock = detmap.evaluate(truth, found, settings={"iou.thresholds": [0.6]})
    outcome = search(TABLES, stock.metrics["mAP"], depth=2)
    assert {each.kind for each in outcome.found} == {"input and change"}
    assert outcome.found[0].input == ("scores-cut", "detections below 0.05 removed")


@pytest.mark.slow
def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["detmap.reproducibility.reproducing.search"]
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(module, "MOST_ROWS", {"input": 1, "input and change": 1})
    monkeypatch.setattr(module.changed_rules, "SWITCHES", module.changed_rules.SWITCHES[:1])
    tables = drawn(n_images=5)
    reproduce("12.3456789", *tables, progress=lambda *each: told.append(each))
    count = len(list(suppositions(*tables)))
    assert {of for kind, _, of in told if kind == "input"} == {count * module.LEAST_RULES}
    assert {kind for kind, _, _ in told} == {*KINDS} - {"tie order", "two changes"}


# ---- tables that leave little to suppose


def test_no_detections_and_no_objects() -> None:
    truth, found = TABLES
    none = found.take(np.zeros(0, dtype=int))
    assert {each.name for each in suppositions(truth, none)} == {"truth-benchmark"}
    empty = truth.take(np.zeros(0, dtype=int))
    for each in suppositions(empty, found):
        each.make()


def test_repeated_rows_and_classes_without_detections() -> None:
    truth, found = TABLES
    truth = truth.take(np.concatenate([np.arange(len(truth)), [0, 1]]))
    few = np.flatnonzero(found.label > 0)
    found = found.take(np.concatenate([few, few[:3]]))
    known = {(each.name, each.text): each.make() for each in suppositions(truth, found)}
    assert len(known["truth-duplicates", "duplicate objects removed"][0]) == len(truth) - 2
    assert len(known["duplicates", "duplicate detections removed"][1]) < len(found)
    part = known["classes-without-detections", "only classes with detections"]
    assert len(part[0].categories) == 2


def test_boxes_beyond_their_image_are_cut() -> None:
    truth, found = TABLES
    beyond = replace(found, boxes=found.boxes + np.array([-40, 0, 0, 60]))
    made = {each.text: each.make for each in suppositions(truth, beyond)}
    _, clipped = made["detections clipped to their images"]()
    assert (clipped.boxes[:, :2] >= 0).all()
    assert (clipped.boxes[:, :2] + clipped.boxes[:, 2:] <= 200).all()


def test_boxes_that_are_read_as_others() -> None:
    truth, found = TABLES
    corners = found.boxes + np.concatenate([np.zeros((len(found), 2)), found.boxes[:, :2]], axis=1)
    names = {each.name for each in suppositions(truth, replace(found, boxes=corners))}
    assert "boxes-xyxy" in names
    assert "boxes-xyxy" not in {name for name, _ in KNOWN}


# ---- the command, and other splits


@pytest.mark.slow
def test_the_command_tells_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["detmap.reproducibility.reproducing.search"]
    monkeypatch.setattr(module, "MOST_ROWS", {"input": 1, "input and change": 1})
    monkeypatch.setattr(module.changed_rules, "SWITCHES", ())
    make.write_voc(
        tmp_path / "T",
        pages={f"{i:06}": make.page(make.voc_object()) for i in range(1, 5)},
        lists={"test": "000001\n000002\n000003\n", "val": "000003\n000004\n"},
    )
    lines = "000001 0.9 11 11 30 30\n000002 .8 11 11 25 30\n000003 0.7 70 11 90 30\n"
    make.write_voc_text(tmp_path / "D", {"test_cat": lines + "000004 0.9 11 11 30 30\n"})
    words = ("reproduce", "50.0", tmp_path / "T", tmp_path / "D", "--split", "test")
    words = (*words, "--unknown", "drop", "--depth", 1)
    done = run(*words)
    assert done.code == 0, done.err
    assert "images-other-split: the split val" in " ".join(done.out.split())
    assert "expected to match by chance" in " ".join(done.out.split())
    content = json.loads(run(*words, "--format", "json").out)
    assert content["chances"]["input"]["tried"] > 0
    inputs = [each for each in content["found"] if each["input"]]
    told = {(each["rules"], each["kind"], each["input"]["name"]) for each in inputs}
    assert ("voc2012", "input", "images-other-split") in told


def test_other_splits(tmp_path: Path) -> None:
    pages = {f"{i:06}": make.page(make.voc_object()) for i in range(1, 5)}
    lists = {"test": "000001\n000002\n", "val": "000003\n000004\n", "train": "000001\n000002\n"}
    root = make.write_voc(tmp_path / "T", pages, lists)
    truth = detmap.read_truth(root, split="test")

    lines = "".join(f"{stem} 0.5 11 11 30 30\n" for stem in pages)
    text = make.write_voc_text(tmp_path / "D", {"test_cat": lines})

    def read(split: str) -> Tables:
        other = detmap.read_truth(root, split=split)
        return other, detmap.read_detections(text, other, unknown="drop")

    (found,) = supposed.splits(root, truth, read)
    assert (found.name, found.text) == ("images-other-split", "the split val")
    assert found.make()[0].images.ids.tolist() == ["000003", "000004"]
    assert supposed.splits(make.SHAPES / "instances_test.json", truth, read) == []


@pytest.mark.slow
def test_a_cut_of_a_real_detector_is_found_from_the_number_alone(
    voc2007: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["detmap.reproducibility.reproducing.search"]
    monkeypatch.setattr(module, "MOST_ROWS", {"input": 3_000_000})  # eight rules an input
    monkeypatch.setattr(module.changed_rules, "SWITCHES", module.changed_rules.SWITCHES[:2])
    truth = detmap.read_truth(voc2007 / "VOCdevkit" / "VOC2007")
    found = detmap.read_detections(voc2007 / "detector-8603", truth)
    number = detmap.evaluate(*cut(truth, found), "voc-devkit-07").metrics["mAP"]
    outcome = search((truth, found), number)
    first = outcome.found[0]
    assert (first.kind, first.rules) == ("input", "voc2007")
    assert first.input == ("scores-cut", "detections below 0.05 removed")
    assert outcome.expected_hits < 0.1
