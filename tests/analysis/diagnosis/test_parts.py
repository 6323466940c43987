"""What follows from a diagnosis: laws that hold for any tables."""

import dataclasses
import json
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import diagnose
from detmap.analysis.diagnosis.breakdowns import slices
from detmap.analysis.diagnosis.calibration import calibration
from detmap.analysis.diagnosis.confusion import RULES, confusion
from detmap.analysis.diagnosis.mistakes import doubt, errors, images, suspects
from detmap.analysis.diagnosis.olrp import olrp, overlap_taken
from detmap.analysis.diagnosis.operating_sweep import OVERALL, best_f1, operating_points, sweeps
from detmap.analysis.diagnosis.summary import parts, sentences, summary
from detmap.analysis.diagnosis.tide import tide, tidecv
from detmap.analysis.html_report import gather as content
from detmap.errors import DataError
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.analysis.html_report import two_detectors
from tests.support.tier import drawn

SEEDS = range(drawn(40))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_confusion_matrix_sums_to_objects_and_detections(seed: int) -> None:
    truth, detections = tables(seed)
    found = diagnose(truth, detections, "coco-bbox")
    n = len(truth.categories)
    for rule in RULES:
        matrix = confusion(found, rule=rule, confidence=0.3, iou=0.5).matrix
        assert matrix[n, n] == 0
        objects = np.bincount(truth.label[found.to_find], minlength=n)
        if rule not in ("mmdet",):  # there an object counts as often as it is overlapped
            assert np.array_equal(matrix[:n].sum(axis=1), objects)
        if rule in ("supervision", "ultralytics-8.4", "detmap"):
            some = detections.score > 0.3
            if rule == "detmap":
                some &= ~found.ignored & (found.kind != 6)
            counts = np.bincount(detections.label[some], minlength=n)
            assert np.array_equal(matrix[:, :n].sum(axis=0), counts)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_f1_is_the_best_of_all_thresholds(seed: int) -> None:
    found = diagnose(*tables(seed), "coco-bbox")
    listed = ~found.ignored & (found.kind != 6)
    right, score = found.kind[listed] == 0, found.detections.score[listed]
    n = int(found.to_find.sum())
    best = best_f1(found)
    every = {
        float(t): (int(right[score >= t].sum()), int((~right[score >= t]).sum())) for t in score
    }
    if not every or not n:
        assert np.isnan(best.score)
        return
    f1 = {t: 2 * tp / (tp + fp + n) for t, (tp, fp) in every.items()}
    assert best.f1 == max(f1.values())
    assert best.score == max(t for t, value in f1.items() if value == best.f1)
    assert (best.tp, best.fp) == every[best.score]
    assert sum(each.n_objects for each in sweeps(found)) == n


@pytest.mark.parametrize("seed", SEEDS)
def test_operating_points_are_those_of_the_evaluation(seed: int) -> None:
    truth, detections = tables(seed)
    found = diagnose(truth, detections, "voc2012")
    points = operating_points(found)
    best = detmap.evaluate(truth, detections, "voc2012").best_f_beta()
    expected = [{"name": name, **getattr(best, name)} for name in OVERALL[:2]] + best.per_class
    for point, row in zip([*points[:2], *points[3:]], expected, strict=True):
        np.testing.assert_equal(list(asdict(point).values()), list(row.values()))
    classes = [point.f1 for point in points[3:] if not np.isnan(point.f1)]
    assert points[2].name == "classwise"
    np.testing.assert_equal(points[2].f1, np.mean(classes) if classes else np.nan)
    assert not points[2].f1 < points[1].f1 - 1e-12  # a threshold for each class is no worse


@pytest.mark.parametrize("seed", SEEDS)
def test_slices_of_a_property_share_out_the_objects(seed: int) -> None:
    found = diagnose(*tables(seed), "coco-bbox")
    total: Counter[str] = Counter()
    for each in slices(found):
        total[each.by] += each.objects
        assert 0 <= each.recall <= 1
    assert set(total.values()) <= {int(found.to_find.sum())}


def test_a_slice_of_everything_has_the_ap_of_the_evaluation() -> None:
    for seed in SEEDS:
        truth, detections = tables(seed)
        found = diagnose(truth, detections, "coco-bbox")
        wanted = detmap.evaluate(truth, detections, "coco-bbox").metrics["AP50"]
        whole = [each for each in slices(found) if each.by == "objects of the class"]
        if len(whole) == 1:  # all classes are as frequent, those without objects are in no mean
            assert whole[0].ap == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_errors_are_all_false_positives_and_missed_objects(seed: int) -> None:
    truth, detections = tables(seed)
    found = diagnose(truth, detections, "coco-bbox")
    rows, counts = errors(found), found.counts()
    kinds = Counter(row.kind for row in rows)
    missed = sum(n for kind, n in kinds.items() if kind.lower().startswith("miss"))
    assert missed == counts["missed"]
    assert kinds["Miss"] == tide(found).counts["Miss"]
    wanted = sum(counts[kind] for kind in ("Cls", "Loc", "Both", "Dupe", "Bkg", "missed"))
    assert kinds.total() == wanted
    totals = images(found, confidence=-1.0)
    assert sum(each.fp for each in totals) + counts["missed"] == kinds.total()
    assert sum(each.tp for each in totals) == counts["TP"]
    assert len(totals) == len(truth.images)


def test_attributes_are_slices() -> None:
    truth = detmap.truth_from_arrays(
        [1, 1, 2], [1, 1, 1], [[0, 0, 9, 9], [20, 0, 9, 9], [0, 0, 9, 9]]
    )
    occluded = {**truth.attributes, "occluded": np.array([0.0, 1.0, np.nan])}
    truth = dataclasses.replace(truth, attributes=occluded)
    detections = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    found = [each for each in slices(diagnose(truth, detections)) if each.by == "occluded"]
    wanted = [("0", 1, 1.0, 1.0), ("1", 1, 0.0, 0.0)]
    assert [(each.name, each.objects, each.recall, round(each.ap, 9)) for each in found] == wanted


def test_suspects_of_every_kind() -> None:
    truth = detmap.truth_from_arrays(
        [1, 1, 1, 1],
        [1, 1, 2, 2],
        [[0, 0, 20, 20], [0, 0, 20, 20], [50, 50, 20, 20], [80, 10, 60, 1]],
    )
    detections = detmap.detections_from_arrays(
        truth,
        [1, 1, 1, 1],
        [1, 1, 1, 1],
        [[0, 0, 20, 20], [50, 50, 20, 20], [200, 200, 30, 30], [201, 200, 30, 30]],
        [0.9, 0.8, 0.95, 0.7],
    )
    found = suspects(diagnose(truth, detections), confidence=0.5)
    assert [(each.kind, each.row) for each in found] == [
        ("missing label", 2),
        ("wrong label", 1),
        ("label twice", 0),
        ("label twice", 1),
        ("odd box", 3),
    ]
    assert found[1].other == "2"
    told = [doubt(each) for each in found]
    wanted = [*(("", "1"), ("2", "1"), ("1", ""))]
    assert [(each["label"], each["detected"]) for each in told[:3]] == wanted
    assert told[-1]["reason"] == "a side under 2 pixels"
    assert not any(each["reason"] for each in told[:-1])


def test_scores_that_are_no_probabilities_have_no_calibration() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    logits = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [3.5])
    found = diagnose(truth, logits)
    with pytest.raises(DataError, match="no probabilities"):
        calibration(found)
    assert summary(found)["calibration"] is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_summary_is_plain(seed: int) -> None:
    content = summary(diagnose(*tables(seed), "coco-bbox"))
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert set(content["tide"]) >= {
        *("AP50", "Cls", "Loc", "Both", "Dupe", "Bkg", "Miss", "FalsePos", "FalseNeg", "counts")
    }
    assert set(content["olrp"]) >= {"olrp", "loc", "fp", "fn"}
    assert content["calibration"] is None or set(content["calibration"]) >= {"ece", "d_ece"}


def test_a_perfect_detector_has_no_error() -> None:
    truth = detmap.truth_from_arrays([1, 2], [1, 2], [[0, 0, 9, 9], [3, 3, 9, 9]])
    detections = detmap.detections_from_arrays(
        truth, [1, 2], [1, 2], [[0, 0, 9, 9], [3, 3, 9, 9]], [1.0, 1.0]
    )
    found = diagnose(truth, detections)
    assert olrp(found)[""].olrp == 0
    assert errors(found) == []
    assert [point.f1 for point in operating_points(found)] == [1.0] * 5
    assert np.array_equal(np.diag(confusion(found).matrix), [1, 1, 0])


@pytest.mark.parametrize(
    ("rule", "confidence", "words"), [("coco", None, "rule"), ("detmap", "sure", "confidence")]
)
def test_a_confusion_that_makes_no_sense(rule: str, confidence: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        confusion(diagnose(*tables(1)), rule=rule, confidence=confidence)  # type: ignore[arg-type]


def test_tidecvs_mean_drops_the_classes_that_mending_empties() -> None:
    """The numbers are those that tidecv 1.0.1 printed of these boxes."""
    box, away = [0, 0, 20, 20], [100, 100, 20, 20]
    truth = detmap.truth_from_arrays(
        [1, 1, 2],
        [1, 2, 4],
        [box, away, box],
        categories={1: "a", 2: "b", 3: "without objects", 4: "missed"},
    )
    detections = detmap.detections_from_arrays(truth, [1, 1], [2, 3], [away, box], [0.9, 0.8])
    found = tidecv(truth, detections)
    assert found.ap == pytest.approx(25)
    assert found.gain == pytest.approx(
        {
            **{"Cls": 125 / 3, "Loc": 0, "Both": 0, "Dupe": 0, "Bkg": 0, "Miss": 25 / 3},
            **{"FalsePos": 0, "FalseNeg": 25},
        }
    )


def test_classes_that_share_a_name_are_told_apart() -> None:
    """As a class without a name is from the mean, and one called micro from the row of all."""
    box, away = [0, 0, 20, 20], [100, 100, 20, 20]
    names = {1: "a", 2: "a", 3: "", 4: "micro"}
    truth = detmap.truth_from_arrays(
        [1, 1, 1, 1], [1, 2, 3, 4], [box, away, box, away], categories=names
    )
    detections = detmap.detections_from_arrays(truth, [1], [2], [away], [0.9])
    found = diagnose(truth, detections, "coco-bbox")
    told = ("a (id 1)", "a (id 2)", "(id 3)", "micro (id 4)")
    wanted = {"": 0.75, **dict(zip(told, (1.0, 0.0, 1.0, 1.0), strict=True))}
    assert {name: each.olrp for name, each in olrp(found).items()} == wanted
    assert [point.name for point in operating_points(found)] == [*OVERALL, *told]
    assert tuple(tide(found).per_class) == confusion(found).classes == told


def test_every_true_positive_is_in_a_bin_of_overlap() -> None:
    boxes = np.random.default_rng(0).uniform(1, 90, (200, 4))
    truth = detmap.truth_from_arrays(list(range(200)), [1] * 200, boxes)
    detections = detmap.detections_from_arrays(
        truth, list(range(200)), [1] * 200, boxes, [0.5] * 200
    )
    found = diagnose(truth, detections, "coco-bbox")
    assert overlap_taken(found, np.arange(200)).max() > 1  # the last bit of a quotient
    assert content._overlaps(found)[0][1].sum() == 200


def told(objects: list[list[float]], found: list[list[float]]) -> list[str]:
    """What is said of boxes, each on an image of its own, of which the first few are detected."""
    n = len(objects)
    truth = detmap.truth_from_arrays(
        list(range(n)), [1] * n, np.reshape(objects, (-1, 4)), images=range(n or 2)
    )
    rows = list(range(len(found)))
    detections = detmap.detections_from_arrays(
        truth, rows, [1] * len(rows), np.reshape(found, (-1, 4)), [0.9] * len(rows)
    )
    return sentences(parts(diagnose(truth, detections, "coco-bbox")))


def test_nothing_stands_out_of_a_perfect_detector() -> None:
    boxes = [[0.0, 0.0, 10.0 * (1 + k % 3), 10.0] for k in range(75)]
    shown = told(boxes, boxes)
    assert shown[0].endswith("Fixing a single kind of error would not raise it.")
    assert len(shown) == 2
    assert "recall 1.000" in shown[1]


def test_sentences_of_no_detections_hold_no_nan() -> None:
    shown = told([[0, 0, 10, 10]] * 30, [])
    assert shown[1:] == ["No object is matched at any score."]
    assert "nan" not in " ".join(shown)


def test_the_sentence_of_slices_is_about_fewer_than_elsewhere() -> None:
    small, large = [[0.0, 0.0, 10.0, 10.0]] * 20, [[0.0, 0.0, 100.0, 300.0]] * 10
    assert not [text for text in told([*small, *large], small[:18]) if "fewest" in text]
    shown = told([*large, *small], large)
    assert any("0 to 16 px (0%, 0 of 20; others 100%)" in text for text in shown)


def test_the_key_findings_of_known_errors() -> None:
    """Counted by hand; of kinds and of ranges the worst one."""
    truth = two_detectors.truth()
    found = two_detectors.found(truth, "A")
    assert sentences(parts(diagnose(truth, found, "coco-bbox"))) == [
        "AP50 is 52.4. The largest loss is Miss (missed object, without a Cls or Loc error on it): "
        "fixing 189 cases would add 41.6 points.",
        "The highest F1 is 0.699, at score 0.9 (the lowest score: the file may have been cut "
        "there): precision 0.939, recall 0.557 (16 FP, 195 missed).",
        "Lowest recall: objects per image 2 to 3 (45%, 54 of 120; others 60%), at score 0.9.",
        "Most frequent confusion: dog predicted as cat (6 times).",
        "Suspected label errors: 10 missing label, 6 wrong label.",
    ]


def test_what_is_found_is_found_at_the_best_f1() -> None:
    """The object that a detection of low score found is missed there."""
    box = [0, 0, 20, 20]
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [box, box])
    away = [[100 + 30 * k, 100, 20, 20] for k in range(8)]
    detections = detmap.detections_from_arrays(
        truth, [1, *[1] * 8, 2], [1] * 10, [box, *away, box], [0.9, *[0.5] * 8, 0.1]
    )
    found = diagnose(truth, detections, "coco-bbox")
    (size,) = [each for each in slices(found) if each.by == "size"]
    assert (size.found, size.objects, size.score) == (1, 2, 0.9)
    assert slices(found, confidence=0.0)[0].found == 2


def test_labels_pasted_twice_as_a_block() -> None:
    boxes = [[30.0 * k, 0.0, 20.0, 20.0] for k in range(6)]
    truth = detmap.truth_from_arrays([1] * 12, [1] * 12, boxes * 2)
    found = suspects(diagnose(truth, detmap.detections_from_arrays(truth, [], [], [], [])))
    assert [each.kind for each in found] == ["label twice"] * 12


def test_a_label_that_is_there_is_neither_missing_nor_wrong() -> None:
    """One detection on a neutral object, one beside an object of its own class that is taken."""
    box, crowd = [0, 0, 20, 20], [100, 100, 20, 20]
    truth = detmap.truth_from_arrays(
        [1, 1, 1], [1, 2, 1], [box, box, crowd], crowd=[False, False, True]
    )
    detections = detmap.detections_from_arrays(
        truth, [1, 1, 1, 1], [1, 2, 1, 2], [box, box, [2, 0, 20, 20], [105, 105, 30, 30]], [0.9] * 4
    )
    found = diagnose(truth, detections)
    assert (found.counts()["Cls"], found.counts()["Bkg"]) == (1, 1)
    kinds = {each.kind for each in suspects(found, confidence=0.5)}
    assert not kinds & {"missing label", "wrong label"}


def test_supervision_takes_the_first_of_equal_pairs_in_the_file() -> None:
    box = [0, 0, 20, 20]
    truth = detmap.truth_from_arrays([1], [1], [box], categories={1: "a", 2: "b", 3: "c"})
    detections = detmap.detections_from_arrays(truth, [1, 1], [2, 3], [box, box], [0.5, 0.9])
    matrix = confusion(diagnose(truth, detections, "coco-bbox"), rule="supervision").matrix
    assert matrix[0].tolist() == [0, 1, 0, 0]


def test_at_iou_one_there_is_no_olrp() -> None:
    truth, detections = tables(3)
    found = olrp(diagnose(truth, detections, "coco-bbox", iou=1.0))
    assert all(np.isnan(value) for each in found.values() for value in dataclasses.astuple(each))


def test_a_truth_without_classes_has_a_summary() -> None:
    truth = detmap.truth_from_arrays([], [], np.zeros((0, 4)), images=[1, 2], categories={})
    detections = detmap.detections_from_arrays(truth, [], [], np.zeros((0, 4)), [])
    content = summary(diagnose(truth, detections, "coco-bbox"))
    assert content["sentences"] == ["No class has a ground-truth object, so AP is undefined."]
