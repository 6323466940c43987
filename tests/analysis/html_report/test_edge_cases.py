"""What the page says of two classes with one name, of nothing that changed, of odd scores."""

import re
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis import html_report as page
from detmap.analysis.html_report import charts
from detmap.analysis.html_report.figures import multiples, operating
from detmap.analysis.html_report.gather import Run, gather
from detmap.analysis.html_report.markdown import text as comment
from detmap.analysis.html_report.what_changed import changed, class_differences, difference
from detmap.core.tables import Detections, Truth

BOX = [10.0, 10, 20, 20]


def truth_of(*names: str, n: int = 8) -> Truth:
    """An object of each class on each image."""
    k = len(names)
    return detmap.truth_from_arrays(
        np.repeat(np.arange(1, n + 1), k),
        np.tile(np.arange(1, k + 1), n),
        np.tile(BOX, (n * k, 1)),
        categories=dict(enumerate(names, 1)),
    )


def found_by(truth: Truth, rows: list[tuple[int, int, float]]) -> Detections:
    """Image, class and score of each."""
    image, label, score = zip(*rows, strict=True) if rows else ((), (), ())
    boxes = np.tile(BOX, (len(rows), 1))
    return detmap.detections_from_arrays(truth, list(image), list(label), boxes, list(score))


def gathered(truth: Truth, rows: list[tuple[int, int, float]], rules: str = "coco-bbox") -> Run:
    protocol = detmap.load_protocol(rules)
    return gather("d", truth, found_by(truth, rows), protocol)


def whole(truth: Truth, *rows: list[tuple[int, int, float]], kind: str = "html") -> str:
    tables = {f"d{k}": found_by(truth, each) for k, each in enumerate(rows)}
    return page.report(truth, tables, detmap.load_protocol("coco-bbox"), kind=kind).decode()


def every(n: int, label: int, score: float = 0.9) -> list[tuple[int, int, float]]:
    return [(i, label, score) for i in range(1, n + 1)]


@pytest.mark.slow
def test_two_classes_of_one_name_have_each_their_own_numbers() -> None:
    truth = truth_of("a", "a")
    a = gathered(truth, every(8, 1) + every(8, 2))
    b = gathered(truth, every(4, 1) + every(8, 2))
    apart = class_differences(a, b, "AP")
    assert (apart[1].difference < -0.4, apart[2].difference) == (True, 0)
    texts = [text for _, _, text in multiples([a, b])]
    assert texts == ["100.0 / 50.5", "100.0 / 100.0"]
    assert a.intervals is not None
    assert b.intervals is not None
    values = [each["AP"].value for each in b.intervals.classes]
    assert values == [row["AP"] for row in b.result.per_class]


def test_the_small_curves_have_the_ap_of_the_protocol() -> None:
    """Of VOC 2007 the mean of eleven points, as in the table."""
    truth = truth_of("a")
    run = gathered(truth, every(5, 1), "voc2007")
    wanted = [f"{100 * run.result.per_class[0]['AP']:.1f}"]
    assert [text for _, _, text in multiples([run])] == wanted


@pytest.mark.slow
def test_equal_detectors_changed_nothing_and_have_no_p_value() -> None:
    truth = truth_of("a", "b")
    run, same = (gathered(truth, every(5, 1)) for _ in "ab")
    told = changed(run, same)
    assert len(told) == 1
    assert told[0].startswith("No change: AP is ")
    assert "p 1" not in str(difference(run, same, "AP"))
    assert np.isnan([each.p for each in class_differences(run, same, "AP").values()]).all()


@pytest.mark.slow
def test_objects_are_found_at_the_score_of_the_best_f1() -> None:
    """One true box below many false ones is in the list and no detection anybody would keep."""
    truth = truth_of("a")
    kept = every(6, 1)
    low = [(i % 8 + 1, 1, 0.5) for i in range(90)]
    a, b = gathered(truth, kept), gathered(truth, [*kept, *low, (8, 1, 0.1)])
    assert (b.diagnosis.by >= 0).all()
    assert a.points[0].score == b.points[0].score == 0.9
    assert changed(a, b)[-1].endswith(": 0 by A, 0 by B.")


@pytest.mark.parametrize("scores", [(1e308, -1e308), (1e308, 1e308), (1e17, 1e17 + 16), (5, 5)])
def test_huge_scores_have_a_page(scores: tuple[float, float]) -> None:
    rows = [(k + 1, 1, float(score)) for k, score in enumerate(scores)]
    text = whole(truth_of("a"), rows)
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf)\b", shown)
    assert not re.search(r"[0-9]{30}", re.sub(r"<pre.*?</pre>", "", shown, flags=re.DOTALL))


@pytest.mark.slow
def test_no_detections_have_no_readings_and_no_nan() -> None:
    text = whole(truth_of("a"), [])
    assert "No detections; 8 missed" in text
    section = text.split('<section id="curves">')[1].split("</section>")[0]
    assert "nan" not in section
    assert "strip" not in operating(gathered(truth_of("a"), []), False)["chart"]


@pytest.mark.slow
def test_images_without_an_error_are_not_listed() -> None:
    truth = truth_of("a")
    listed = re.findall(r'<table id="t-images".*?</table>', whole(truth, every(7, 1)), re.DOTALL)
    assert len(re.findall("<tr><td", listed[0])) == 1
    text = whole(truth, every(8, 1))
    assert '<table id="t-images"' not in text
    assert "No image has an error" in text


@pytest.mark.slow
def test_names_are_no_markup_in_a_comment() -> None:
    name = "<img src=x onerror=alert(1)>|[a](b)`"
    rows: list[Any] = [every(8, 2, 0.9), every(8, 1, 0.8)]
    text = whole(truth_of(name, "b"), *rows, kind="md")
    assert "<img" not in text
    assert "](b)" not in text.replace("\\](b)", "")
    assert "**&lt;b&gt;**" in comment([gathered(truth_of("a"), every(3, 1))], "<b>")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(-1e308, 1e308, 5), (1e308, 1e308, 1), (0, 1, 6), (-3, 7, 5), (1e17, 1e17 + 16, 1)],
)
def test_ticks_of_any_range(low: float, high: float, ticks: int) -> None:
    found = charts.ticks(low, high)
    assert len(found) == ticks
    assert all(low <= each <= high for each in found)


def test_steps_of_any_edges_are_on_the_chart() -> None:
    edges = np.array([-1e308, 0, 1e308])
    line = charts.stepped(edges, np.array([1.0, 2]), "", "a")
    span = (float(edges[0]), float(edges[-1]))
    text = charts.lines("T", "", [line], ("x", "y"), x_range=span, y_range=(0, 2))
    places = re.findall(r'points="([^"]+)"', text)[0].split()
    assert all(charts.LEFT <= float(each.split(",")[0]) <= charts.WIDTH for each in places)


@pytest.mark.slow
@pytest.mark.parametrize("empty", ["A", "B", "both"])
def test_detectors_without_detections_are_named_in_the_verdict(empty: str) -> None:
    truth = truth_of("a", "b", n=60)
    good = every(60, 1) + every(60, 2)
    rows = {"A": ([], good), "B": (good, []), "both": ([], [])}[empty]
    text = whole(truth, *rows, kind="md")
    verdict = text.split("\n")[0]
    named = "Neither detector has a detection" if empty == "both" else f"{empty} has no detections"
    assert named in verdict
    assert text.count("Fixing a single kind") == int(empty != "both")  # of the one without errors
    assert "no object is matched. The loss is Miss" in text
    if empty != "both":
        assert "almost no object, so AP gains cannot be compared. Miss" in text
        assert "120" in text.split("cannot be compared.")[1].split("\n")[0]


@pytest.mark.slow
def test_too_few_images_have_no_interval_and_no_remark_on_one() -> None:
    truth = truth_of("a", "b")
    verdict = whole(truth, every(8, 1), every(4, 1), kind="md").split("\n")[0]
    assert "without an interval" in verdict
    assert "approximate" not in verdict


def test_controls_of_text_direction_are_escaped_in_the_page() -> None:
    truth = truth_of("a\u202eb\u2066", "c")
    text = whole(truth, every(8, 1))
    assert "a\\u202eb\\u2066" in text
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.slow
def test_a_class_without_objects_that_counts_in_the_mean_is_named() -> None:
    truth = truth_of("a", "b").take(np.arange(0, 16, 2))
    rules = detmap.load_protocol("coco-bbox")
    tables = {"d": found_by(truth, every(8, 1))}
    for undefined, named in (("skip", False), ("zero", True)):
        own = rules.override({"mean.undefined": undefined})
        text = page.report(truth, tables, own).decode()
        assert ("Classes without objects count as 0 in the mean: b." in text) is named
