"""The first screen: who is better, or what limits a detector, with intervals."""

import math
import re

import numpy as np
import pytest

import detmap
from detmap.analysis import html_report as page
from detmap.analysis.html_report.gather import Run, gather
from detmap.analysis.html_report.numbers import digits, known, points
from detmap.analysis.html_report.row_figures import ENOUGH, _ends
from detmap.analysis.html_report.row_plots import Mark, Panel, Row, axis
from detmap.analysis.html_report.verdict import Verdict, better, decide
from detmap.core.statistics.intervals import Interval
from detmap.core.tables import Truth
from tests.analysis.html_report.test_edge_cases import every, found_by, truth_of

N = 120


def truth() -> Truth:
    return truth_of("a", n=N)


Rows = list[tuple[int, int, float]]


def detector(found: int, *, false: int = 0) -> Rows:
    """True detections on the first images, false ones on the last."""
    right = every(found, 1)
    return [*right, *((N - k, 1, 0.95) for k in range(false))]


def gathered(known_truth: Truth, *rows: Rows, rules: str = "coco-bbox") -> list[Run]:
    protocol = detmap.load_protocol(rules)
    return [
        gather(name, known_truth, found_by(known_truth, each), protocol)
        for name, each in zip("ab", rows, strict=False)
    ]


def verdict(*rows: Rows, rules: str = "coco-bbox") -> Verdict:
    return decide(gathered(truth(), *rows, rules=rules))


NUMBER = r"\+\d+(\.\d+)?"


@pytest.mark.parametrize(("found", "letter"), [((40, 90), "B"), ((90, 40), "A")])
def test_the_better_one_is_named_with_the_interval(found: tuple[int, int], letter: str) -> None:
    made = verdict(*map(detector, found))
    text = rf"{letter} is better: {NUMBER} AP, 95 % interval {NUMBER} to {NUMBER}, 120 images\."
    assert re.fullmatch(text, made.sentence), made.sentence
    assert made.style == letter.lower()
    text = f"Use {letter} with a confidence threshold of 0.9: precision 100 %, recall 75 %."
    assert made.more.startswith(text)
    assert 3 <= len(made.facts) <= 5


@pytest.mark.slow
def test_no_difference_says_what_would_have_been_seen() -> None:
    one, other = detector(80), [*detector(79), (100, 1, 0.9)]
    made = verdict(one, other)
    assert made.sentence.startswith("No difference can be seen: B - A is 0.0 AP")
    assert re.search(r"A difference of \d+\.\d would be detected \(power 80 %\)\.", made.sentence)
    assert made.style == ""


def test_equal_detectors_are_no_difference() -> None:
    made = verdict(detector(80), detector(80))
    assert re.fullmatch(r"No difference: AP is 66(\.\d)? for both, 120 images\.", made.sentence)
    assert made.facts[0].note == "B - A 0.0 (0.0 to 0.0, p 1)"


@pytest.mark.slow
def test_on_few_images_only_an_interval_is_approximate() -> None:
    for n in (30, 20):  # no difference; a difference without an interval
        runs = gathered(truth_of("a", n=40), every(30, 1), every(n, 1))
        assert "is approximate" not in decide(runs).more
    runs = gathered(truth_of("a", n=90), every(70, 1), every(20, 1))
    assert "is approximate" in decide(runs).more


@pytest.mark.slow
def test_a_single_class_by_the_eleven_point_rule_has_no_interval() -> None:
    made = verdict(detector(40), detector(90), rules="voc2007")
    assert re.search(rf"B - A is {NUMBER} mAP, without an interval: a single class", made.sentence)
    fixed = verdict(detector(40), detector(90), rules="voc2012")  # the all-point rule
    assert re.search(rf"B is better: {NUMBER} mAP, 95 % interval", fixed.sentence)


def test_one_detector_is_told_its_largest_loss_and_where_to_run_it() -> None:
    made = verdict(detector(80))
    assert re.match(r"AP 66(\.\d)? \(95 % interval .*, 120 images\)\. The largest", made.sentence)
    assert "missed objects (Miss)" in made.sentence
    text = "Use it with a confidence threshold of 0.9: precision 100 %, recall 67 %."
    assert made.more.startswith(text)


@pytest.mark.parametrize(("found", "text"), [(0, "undefined"), (2, "Almost nothing matches")])
def test_a_number_that_says_nothing_is_no_verdict(found: int, text: str) -> None:
    known_truth = truth()
    if not found:
        known_truth = detmap.truth_from_arrays(
            [], [], np.zeros((0, 4)), images=[1, 2], categories={1: "a"}
        )
    assert text in decide(gathered(known_truth, every(2, 1))).sentence


@pytest.mark.slow
@pytest.mark.parametrize(("found", "text"), [(2, "Almost nothing"), (0, "No detections: AP is 0")])
def test_where_almost_nothing_matches_no_error_is_blamed(found: int, text: str) -> None:
    known_truth, rules = truth(), detmap.load_protocol("coco-bbox")
    made = page.report(known_truth, {"a": found_by(known_truth, every(found, 1))}, rules).decode()
    first = made.split('<section id="classes">')[0]
    assert text in first
    assert "Key findings" not in first
    assert "what limits" not in first
    assert "Run it at" not in first


def test_findings_of_the_doctor_are_above_the_verdict() -> None:
    known_truth = truth()
    tables = {"d": found_by(known_truth, detector(40))}
    rules = detmap.load_protocol("coco-bbox")
    text = page.report(known_truth, tables, rules, findings=["<b>boxes-xyxy</b>"]).decode()
    assert text.index("&lt;b&gt;boxes-xyxy") < text.index('class="verdict')


@pytest.mark.slow
def test_the_better_run_is_that_of_the_higher_metric() -> None:
    runs = gathered(truth(), detector(90), detector(40))
    assert better(runs) is runs[0]


def test_no_difference_has_no_sign() -> None:
    signed = [points(x, 1, sign=True) for x in (0.0, -0.0001, 0.001, -0.001)]
    assert signed == ["0.0", "0.0", "+0.1", "-0.1"]


def test_an_axis_of_fractions_ends_at_0_and_100() -> None:
    rows = [Row("a", "", ((Mark(96.0, 70.0, 122.0), Mark(3.0, -9.0, 15.0)),), known(0.9, None), "")]
    ticks = axis(Panel("AP", "dots"), rows, 0).ticks
    assert (ticks[0], ticks[-1]) == (0, 100)
    few = [Row("a", "", ((Mark(3.0, -9.0, 15.0),),), known(0.03, None), "")]
    assert axis(Panel("AP", "dots"), few, 0).ticks[0] == 0
    assert axis(Panel("B - A", "change"), few, 0).ticks[0] < 0


def test_of_many_classes_the_first_shown_have_enough_objects() -> None:
    rows = [
        Row(str(k), "", (), known(0.5, None), "", objects=1 if k % 2 else ENOUGH)
        for k in range(200)
    ]
    (shown, others), note = _ends(rows)
    assert {row.objects for row in shown} == {ENOUGH}
    assert [row.name for row in shown][::39] == ["0", "198"]
    assert len(others) == 160
    assert note == "The 20 highest and 20 lowest of 100 classes with 20 objects or more."
    assert _ends(rows[:40]) == ([rows[:40]], "")


@pytest.mark.parametrize(
    ("half", "n", "text"),
    [(0.15, 0, "44"), (0.05, 1, "44.4"), (0.004, 2, "44.44"), (0.0001, 2, "44.44")],
)
def test_a_number_has_the_digits_of_its_interval(half: float, n: int, text: str) -> None:
    one = Interval(0.4444, half / 2, 0.4444 - half, 0.4444 + half, 0.0, 0.95)
    assert (digits(one), known(one.value, one).text) == (n, text)
    rough = Interval(0.4444, half, math.nan, math.nan, 0.0, 0.95, "few")
    assert digits(rough) == n
