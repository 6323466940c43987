"""What the quick checks are for: cuts, shifts, shuffled images, missing labels; and the budget."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis import row_overlaps
from detmap.analysis.commands import doctor_consultation
from detmap.analysis.doctor import ROWS, clock, examine_quickly, quick_checks, repeated_rows, trial
from detmap.analysis.doctor.clock import CROWD_PAIRS, Clock, OutOfTimeError
from detmap.analysis.doctor.examine import Examination
from detmap.analysis.doctor.quick_checks import is_suspicious
from detmap.analysis.doctor.raw_rows import from_table
from detmap.analysis.doctor.trial import trial_of
from detmap.cli import doctor_notes, evaluation_inputs
from detmap.core.base.resources import folder
from detmap.core.matching.engine import match
from detmap.core.protocol import load
from detmap.core.results.findings import Findings
from detmap.core.tables import boxes_as, selection
from tests.analysis.diagnosis.troublesome_tables import tables as troublesome
from tests.support.running import run
from tests.support.tier import drawn
from tools.doctor_battery import MISTAKES

SHAPES = folder("datasets") / "shapes"


@pytest.fixture(scope="module")
def tables() -> Any:
    truth = detmap.read_truth(SHAPES / "instances_test.json")
    return truth, detmap.read_detections(SHAPES / "detections" / "contours.json", truth)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each match of a trial."""
    done: list[int] = []

    def counted(truth: Any, detections: Any, *others: Any, **options: Any) -> Any:
        done.append(len(truth) + len(detections))
        return match(truth, detections, *others, **options)

    monkeypatch.setattr(trial, "match", counted)
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "strength"),
    [
        ("cut", 0.4),
        ("cut", 0.5),
        ("cut", 0.6),  # 37 rows
        ("shift", 20.0),
        ("scale", 1.02),
        ("shuffled", 1.0),
        ("permuted", 6),
        ("labels", 0.75),
        ("negated", -1),
    ],
)
def test_a_mistake_is_found(tables: Any, mistake: str, strength: float) -> None:
    truth, right = tables
    make, expected = MISTAKES[mistake][:2]
    found = examine_quickly(*make(truth, right, strength), load("coco-bbox"), seconds=60)
    assert {each.name for each in found} & set(expected)


@pytest.mark.parametrize("order", ["files joined", "row by row", "shuffled"])
def test_rows_that_are_there_twice_are_noticed(
    tables: Any, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a table of which a small part is looked at."""
    monkeypatch.setattr(repeated_rows, "HEAD", 64)
    monkeypatch.setattr(quick_checks, "LOOKED_AT", 64)
    truth, right = tables
    n = len(right)
    rows = {
        "files joined": np.tile(np.arange(n), 2),
        "row by row": np.repeat(np.arange(n), 2),
        "shuffled": np.random.default_rng(0).permutation(2 * n) % n,
    }[order]
    assert is_suspicious(truth, right.take(rows))
    assert not is_suspicious(truth, right)


def test_missing_labels_are_reported(tables: Any) -> None:
    truth, right = tables
    few = truth.take(np.flatnonzero(truth.image < len(truth.images) // 3))
    assert is_suspicious(few, right)
    assert is_suspicious(truth.take(np.arange(0)), right)
    assert not is_suspicious(truth, right)


@pytest.mark.parametrize("axis", [2, 3])
def test_a_width_or_height_without_its_last_pixel(tables: Any, axis: int) -> None:
    """Seen where boxes are else exact: a real detector's own error is larger than a pixel."""
    truth, _ = tables
    boxes = truth.boxes.copy()
    boxes[:, axis] -= 1
    score = np.linspace(0.2, 0.9, len(truth))
    image, label = truth.images.ids[truth.image], truth.categories.ids[truth.label]
    found = detmap.detections_from_arrays(truth, image, label, boxes, score)
    (finding,) = examine_quickly(truth, found, load("coco-bbox"))
    assert finding.name == ("boxes-narrow-by-one", "boxes-low-by-one")[axis - 2]


@pytest.mark.slow
def test_a_scale_of_voc_boxes_is_found(tables: Any) -> None:
    """Corners that count from 1, as a VOC detector has them, are scaled as corners."""
    truth, right = tables
    boxes = boxes_as(right.boxes * 1.05, right.box_format, "voc")
    wrong = replace(right, boxes=boxes, box_format="voc")
    (finding,) = detmap.doctor(truth, wrong)
    assert (finding.name, finding.ap50_after) == ("boxes-resized", pytest.approx(0.606, abs=0.01))


@pytest.mark.slow
def test_images_are_reported_after_a_fix_that_leaves_nothing(tables: Any) -> None:
    """Scores in percent do not explain an AP50 of 0."""
    truth, right = tables
    wrong = MISTAKES["shuffled"][0](truth, replace(right, score=right.score * 100), 1.0)[1]
    names = [each.name for each in detmap.doctor(truth, wrong)]
    assert names == ["scores-percent", "images-shuffled"]


@pytest.mark.parametrize("seed", range(drawn(24)))
def test_the_best_object_of_a_row_is_the_first_of_highest_overlap(seed: int) -> None:
    truth, found = troublesome(seed)
    rows, objects = np.arange(len(found)), np.argsort(truth.image, kind="stable")
    met = row_overlaps.best_overlaps(found, found.image, rows, truth, 0.1)
    expected = []
    of_found, of_truth = row_overlaps.edges(found), row_overlaps.edges(truth)
    for row in rows:
        places = objects[truth.image[objects] == found.image[row]]
        overlaps = row_overlaps.ious(of_found[[row] * len(places)], of_truth[places])
        if len(places) and overlaps.max() >= 0.1:
            expected.append((row, places[overlaps.argmax()], overlaps.max()))
    assert list(zip(*met, strict=True)) == expected


def test_what_there_is_no_time_for_is_listed(tables: Any) -> None:
    truth, right = tables
    found = Examination(trial_of(truth, "coco-bbox", Clock(-1.0)), from_table(right))
    assert "image names" in found.left_out


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["shift", "permuted", "shuffled"])
def test_trials_end_within_the_budget(
    tables: Any, work: list[int], mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By work instead of time: a clock that advances by the rows that are matched. Trials take no
    more than the budget and the one evaluation of all images that tells how long it takes; so a
    budget below the time of reading is less than reading and evaluating.
    """
    strength = {"shift": 20.0, "permuted": 6, "shuffled": 1.0}[mistake]
    truth, wrong = MISTAKES[mistake][0](*tables, strength)
    whole = len(truth) + len(wrong)
    monkeypatch.setattr(clock, "time", SimpleNamespace(process_time=lambda: float(sum(work))))
    left_out = []
    for budget in (0, whole, 4 * whole, 1000 * whole):
        work.clear()
        found = Examination(trial_of(truth, "coco-bbox", Clock(budget)), from_table(wrong))
        assert sum(work) <= budget + whole
        left_out.append(bool(found.left_out))
    assert left_out == [True, True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 20_000, ROWS])
def test_small_files_are_examined_in_counted_work_whatever_the_time(
    tables: Any, work: list[int], rows: int
) -> None:
    truth, wrong = MISTAKES["shift"][0](*tables, 20.0)
    found = examine_quickly(truth, wrong, load("coco-bbox"), seconds=-1.0, rows=rows, whole=True)
    assert sum(work) <= rows
    assert [each.name for each in found] == ["boxes-shifted"] * (rows == ROWS)
    assert bool(found.left_out) == (rows < ROWS)


@pytest.mark.parametrize(("reading", "allowed"), [(0.0, 0.0), (100.0, 90.0)])
def test_the_budget_of_a_command_is_below_its_reading(
    reading: float, allowed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, budgets = 0.0, []

    def read(*given: Any) -> Any:
        nonlocal now
        now += reading
        return detections_of(*given)

    def examine(*given: Any, seconds: float, rows: int, **options: Any) -> Findings:
        assert rows == ROWS
        budgets.append(seconds)
        return Findings()

    detections_of = evaluation_inputs.read_detections_of
    monkeypatch.setattr(evaluation_inputs, "read_detections_of", read)
    monkeypatch.setattr(doctor_notes, "time", SimpleNamespace(process_time=lambda: now))
    monkeypatch.setattr(doctor_consultation, "examine_quickly", examine)
    found = SHAPES / "detections" / "contours.json"
    assert run("eval", SHAPES / "instances_test.json", found, "--strict").code == 0
    assert budgets == [allowed]


def test_a_result_has_findings(tables: Any) -> None:
    assert detmap.evaluate(*tables).findings == []
    moved = replace(tables[1], boxes=tables[1].boxes * 2)
    assert detmap.evaluate(tables[0], moved).findings


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_partly_shuffled_images_are_found(tables: Any, share: float) -> None:
    truth, wrong = MISTAKES["shuffled"][0](*tables, share)
    assert is_suspicious(truth, wrong)
    (finding,) = examine_quickly(truth, wrong, load("coco-bbox"))
    assert finding.name == "images-shuffled"


def test_a_tenth_of_the_images_without_detections_is_found(tables: Any) -> None:
    (finding,) = detmap.doctor(*MISTAKES["half"][0](*tables, 0.1))
    assert finding.name == "images-without-detections"


def good(seed: int) -> tuple[detmap.Truth, detmap.Detections]:
    """A data set without a mistake, and detections of a random detector."""
    rng = np.random.default_rng(seed)
    n_images, n_classes = int(rng.integers(20, 300)), int(rng.integers(1, 21))
    per_image, side = rng.uniform(1, 8), rng.uniform(0.1, 0.4)
    image = np.repeat(np.arange(n_images), rng.poisson(per_image, n_images))
    weight = rng.dirichlet(np.full(n_classes, 2.0))
    label = rng.choice(n_classes, len(image), p=weight)
    size = np.array([640.0, 480.0])

    def some(n: int) -> np.ndarray:
        sides = np.clip(size * side * rng.lognormal(0, 0.6, (n, 2)), 4, 0.95 * size)
        return np.hstack([rng.uniform(0, 1, (n, 2)) * (size - sides), sides])

    boxes = some(len(image))
    if rng.random() < 0.5:
        boxes = np.maximum(np.round(boxes), [0, 0, 1, 1])
    truth = detmap.truth_from_arrays(
        image + 1,
        label + 1,
        boxes,
        images=np.arange(1, n_images + 1),
        categories={k + 1: f"class {k + 1}" for k in range(n_classes)},
    )
    hard, off = rng.uniform(-1, 2), rng.uniform(0.01, 0.08)
    ease = rng.normal(size=len(image))
    right = np.flatnonzero(ease > rng.normal(hard - 2, 0.5, len(image)))
    moved = boxes[right] + rng.normal(0, off, (len(right), 4)) * np.tile(boxes[right, 2:], 2)
    moved[:, 2:] = np.maximum(moved[:, 2:], 1)
    n_wrong = rng.poisson(rng.lognormal(1, 1), n_images)
    wrong = np.repeat(np.arange(n_images), n_wrong)
    other = rng.random(len(right)) < rng.uniform(0, 0.1)
    found = np.where(other, rng.integers(0, n_classes, len(right)), label[right])
    logit = np.concatenate([ease[right] + 1 - hard / 2, rng.normal(-3, 1, len(wrong))])
    score = 1 / (1 + np.exp(-rng.uniform(0.8, 1.5) * (logit + rng.normal(0, 0.5, len(logit)))))
    return truth, detmap.detections_from_arrays(
        truth,
        np.concatenate([image[right], wrong]) + 1,
        np.concatenate([found, rng.choice(n_classes, len(wrong), p=weight)]) + 1,
        np.vstack([moved, some(len(wrong))]),
        np.round(score, int(rng.integers(3, 7))),
    )


@pytest.mark.slow
def test_two_swapped_classes_of_many_are_found() -> None:
    truth, right = good(10)
    assert len(truth.categories) > 15
    (finding,) = detmap.doctor(*MISTAKES["permuted"][0](truth, right, 2))
    assert finding.name == "classes-permuted"


@pytest.mark.parametrize("seed", [0, 1, 191])  # 191: few boxes are a pixel too wide by chance
def test_a_good_data_set_has_no_finding(seed: int) -> None:
    assert detmap.doctor(*good(seed)) == []


def test_five_images_have_no_finding() -> None:
    """The lowest of 30 scores is high by chance."""
    truth, right = good(232)
    ids = truth.images.ids[:: max(1, len(truth.images) // 5)][:5]
    assert detmap.doctor(*selection.part(truth, right, ids, None)) == []


@pytest.mark.parametrize("rules", ["coco-bbox", "coco-segm", "kitti"])
def test_no_detection_at_all_is_reported(tables: Any, rules: str) -> None:
    truth, right = tables
    nothing = right.take(np.arange(0))
    assert is_suspicious(truth, nothing)
    assert not is_suspicious(truth.take(np.arange(0)), nothing)
    found = examine_quickly(truth, nothing, load(rules), seconds=60)
    assert [each.name for each in found] == ["images-without-detections"]
    assert "no detection at all" in found[0].sentence


@pytest.mark.slow
def test_huge_boxes_give_no_warning(tables: Any) -> None:
    truth, detections = tables
    boxes = detections.boxes.copy()
    boxes[::3] = 1e308
    raw = replace(from_table(detections), boxes=boxes)
    part = truth.select_images(np.arange(4))
    Examination(trial_of(part, load("coco-bbox")), raw)  # pytest makes warnings errors


def test_pairs_of_crowded_images_are_limited_without_a_time() -> None:
    """A trial with more pairs than are left is refused; the pairs of others are counted."""
    clock = Clock()
    with clock.trial(1, 10, CROWD_PAIRS - 1):
        pass
    with clock.trial(1, 10):
        pass
    with pytest.raises(OutOfTimeError), clock.trial(1, 10, 2):
        pass
    assert clock.pairs == 1


@pytest.mark.parametrize(("protocol", "times"), [("coco-bbox", 1), ("caltech", 7)])
def test_pairs_count_as_often_as_they_are_matched(
    protocol: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "CROWDED", 1)
    truth = detmap.truth_from_arrays([1, 1, 2], [1, 1, 1], [[0, 0, 9, 9]] * 3)
    names = ("visible", "left", "top", "right", "bottom")
    ones = {name: np.ones(3) for name in names}
    truth = replace(truth, attributes={**truth.attributes, **ones})
    found = detmap.detections_from_arrays(truth, [1, 2], [1, 1], [[0, 0, 9, 9]] * 2, [0.9, 0.8])
    clock = Clock()
    trial_of(truth, load(protocol), clock).outcome(from_table(found))
    assert clock.pairs == CROWD_PAIRS - 3 * times
