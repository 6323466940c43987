"""Published numbers: read as printed, found from the number alone, or by nobody."""

import json
import sys
from pathlib import Path

import pytest

import detmap
from detmap.core.protocol import tools
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError
from detmap.reproducibility.parity.restated_tools import numbers
from detmap.reproducibility.reproducing import search
from detmap.reproducibility.reproducing.printed_numbers import parse
from detmap.reproducibility.reproducing.search import MOST_ROWS, reproduce
from tests.support import builders as make
from tests.support.running import run

SAMPLE, FOUND = make.SHAPES, make.SHAPES / "detections" / "contours"


@pytest.fixture(scope="module")
def sample() -> tuple[Truth, Detections]:
    truth = detmap.read_truth(SAMPLE)
    return truth, detmap.read_detections(FOUND, truth)


@pytest.mark.parametrize(
    ("text", "value", "digits"),
    [
        ("72.1", 0.721, 1),
        ("72.10%", 0.721, 2),
        ("0.721", 0.721, 3),
        ("72", 0.72, 0),
        ("1", 0.01, 0),
    ],
)
def test_a_number_is_read_as_printed(text: str, value: float, digits: int) -> None:
    wanted = parse(text)
    assert wanted.value == pytest.approx(value, abs=1e-15)
    assert wanted.digits == digits
    assert wanted.prints(value)
    assert not wanted.prints(value + 0.51 * wanted.width)
    assert wanted.prints(value + 0.49 * wanted.width)


@pytest.mark.parametrize("text", ["", "AP", "-1", "101", "7e1", "1.2.3", "72,1", "\u0667\u0662"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(DataError):
        parse(text)


@pytest.mark.slow
def test_every_tool_is_found_from_its_number(sample: tuple[Truth, Detections]) -> None:
    rows = numbers(*sample, detmap.load_protocol("voc2012"), tools()[::9])
    for row in rows:
        search = reproduce(f"{100 * row.value:.6f}", *sample, metric=row.metric, depth=0)
        assert row.tool in {each.rules for each in search.found if each.kind == "named"}


@pytest.mark.slow
def test_a_changed_rule_is_found(
    sample: tuple[Truth, Detections], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys.modules["detmap.reproducibility.reproducing.search"], "MOST_ROWS", {"input": 0}
    )
    changed = detmap.evaluate(*sample, "voc2007", settings={"iou.thresholds": [0.6]})
    text = f"{100 * changed.metrics['mAP']:.4f}"
    search = reproduce(text, *sample, depth=1)
    told = {(each.rules, "=".join(each.changes[0])) for each in search.found if each.changes}
    assert ("voc2007", "iou.thresholds=[0.6]") in told
    assert search.expected_hits < 0.5


@pytest.mark.slow
def test_an_order_of_equal_scores_is_found() -> None:
    truth = detmap.truth_from_arrays([1, 1], [1, 1], [[0, 0, 9, 9], [50, 0, 9, 9]])
    boxes = [[0, 0, 9, 9], [100, 100, 9, 9], [50, 0, 9, 9]]
    detections = detmap.detections_from_arrays(truth, [1] * 3, [1] * 3, boxes, [0.9, 0.5, 0.5])
    assert detmap.evaluate(truth, detections).metrics["AP50"] < 1
    search = reproduce("100.0", truth, detections, metric="AP50", depth=0)
    assert ("tie order", "coco-bbox") in {(each.kind, each.rules) for each in search.found}


@pytest.mark.slow
def test_a_number_that_nobody_prints(sample: tuple[Truth, Detections]) -> None:
    search = reproduce("12.345678", *sample, depth=0)
    assert not search.found
    assert len(search.nearest) == 5
    assert search.tried > 40


@pytest.mark.slow
def test_a_search_lists_what_it_left_out(
    sample: tuple[Truth, Detections], monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = reproduce("12.345678", *sample, depth=1).untried
    assert "at depth 1" in whole
    monkeypatch.setitem(MOST_ROWS, "input", 1)
    cut, _ = reproduce("12.345678", *sample, depth=1).untried
    assert "under the 8 closest of" in cut


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    value = detmap.evaluate(SAMPLE, FOUND, "voc2007").metrics["mAP"]
    text = f"{100 * value:.3f}"
    assert run("reproduce", text, SAMPLE, FOUND, "--depth", 0, "-o", file).code == 0
    content = json.loads(file.read_text())
    assert "voc2007" in {each["rules"] for each in content["found"]}
    outcome = run("reproduce", "12.345678", SAMPLE, FOUND, "--depth", 0)
    assert outcome.code == 1
    assert "the nearest" in outcome.out
    assert run("reproduce", "AP", SAMPLE, FOUND).code == 2
    outcome = run("reproduce", "12.3", SAMPLE, FOUND, "--metric", "foo")
    assert outcome.code == 2
    assert "no rules have 'foo'" in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["detector-8603", "yolov2-voc"])
def test_real_detectors_from_the_number_alone(voc2007: Path, detector: str) -> None:
    truth = detmap.read_truth(voc2007 / "VOCdevkit" / "VOC2007")
    found = detmap.read_detections(voc2007 / detector, truth)
    wanted = ("voc-devkit-07", "ultralytics-8.4", "rafaelpadilla-odm-11", "keras-retinanet")
    for row in numbers(truth, found, detmap.load_protocol("voc2007"), wanted):
        search = reproduce(f"{100 * row.value:.4f}", truth, found, depth=0)
        assert row.tool in {each.rules for each in search.found}


@pytest.mark.slow
def test_the_command_reports_a_number_that_an_unstable_sort_decides(
    sample: tuple[Truth, Detections],
) -> None:
    tool = "ultralytics-8.4"  # its number depends on NumPy and the processor
    (row,) = numbers(*sample, detmap.load_protocol("voc2007"), [tool])
    done = run("reproduce", f"{100 * row.value:.4f}", SAMPLE, FOUND, "--depth", 0)
    assert f"{tool}: ties: NumPy's unstable sort" in done.err


@pytest.mark.slow
def test_crowded_images_get_few_evaluations_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0.0, 0, 10, 10]])
    found = detmap.detections_from_arrays(truth, [1], [1], [[0.0, 0, 10, 9]], [0.5])
    whole = search.reproduce("12.3", truth, found, depth=0)
    assert not [each for each in whole.untried if "crowded" in each]
    monkeypatch.setattr(search, "MOST_COMPARED", 20)
    monkeypatch.setattr(search, "COMPARED_PER_ROW", 0)
    part = search.reproduce("12.3", truth, found, depth=0)
    (sentence,) = [each for each in part.untried if each.startswith("named: 20 of ")]
    assert "crowded" in sentence
    assert 0 < part.tried < whole.tried


@pytest.mark.slow
def test_many_classes_get_fewer_evaluations_and_bounds_of_ties_count_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = [[0.0, 0, 10, 10]] * 2
    truth = detmap.truth_from_arrays([1, 1], [1, 2], box)
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 2], box, [0.5, 0.5])
    whole = search.reproduce("12.3", truth, found, depth=0)
    assert not [each for each in whole.untried if "the classes many" in each]
    monkeypatch.setattr(search, "CLASSES_PER_ROW", 0)
    for evaluations, place in ((20, "named: 20 of "), (80, "tie order: ")):
        monkeypatch.setattr(search, "MOST_CLASSES", evaluations * 2)
        part = search.reproduce("12.3", truth, found, depth=0)
        (sentence,) = [each for each in part.untried if each.startswith(place)]
        assert sentence.endswith("because the images are crowded or the classes many")
        assert 0 < part.tried <= whole.tried
