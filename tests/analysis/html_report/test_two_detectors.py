"""The numbers of the page, beside what is known of two detectors by construction."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detmap.analysis.diagnosis.breakdowns import Slice
from detmap.analysis.html_report import (
    charts,
    gallery,
    numbers,
    page,
    report_tables,
    row_figures,
    verdict,
)
from detmap.analysis.html_report import what_changed as changes
from detmap.analysis.html_report.confusion_figures import confused
from detmap.analysis.html_report.gather import Run, nearest
from detmap.analysis.html_report.image_files import Pictures
from detmap.core.statistics.estimates import Interval
from detmap.core.statistics.refusals import LEAST_OF_TEST
from tests.analysis.html_report.two_detectors import CLASSES, N, runs

DRAWN = Pictures()


@pytest.fixture(scope="module", autouse=True)
def gathered(every_page_is_small: None) -> None:
    """The runs are made before the first test, which does not pay for them."""
    runs()


def backwards() -> tuple[Run, Run]:
    """The better detector first."""
    a, b = runs()
    return b, a


def cells(table: dict[str, Any], row: str) -> dict[str, str]:
    """A row of a table as texts by heading."""
    found = next(each for each in table["rows"] if row in each[:3])
    return {
        head: getattr(cell, "text", str(cell))
        for head, cell in zip(table["header"], found, strict=True)
    }


def facts(made: verdict.Verdict) -> dict[str, tuple[str, str]]:
    return {each.name: (each.value, each.note) for each in made.facts}


# --- the first screen -----------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["A", "B"])
def test_the_first_screen_is_of_the_better_detector(letter: str) -> None:
    both = runs() if letter == "B" else backwards()
    made = verdict.decide(both)
    ends = re.search(r"better: \+(\S+) AP, 95 % interval \+(\S+) to \+(\S+), 120", made.sentence)
    assert ends is not None
    value, low, high = map(float, ends.groups())
    assert low < value < high
    assert verdict.better(both).name == "B"
    shown = facts(made)
    assert shown["AP (A | B)"][0] == ("52.4 | 60.9" if letter == "B" else "60.9 | 52.4")
    assert shown[f"what limits {letter} most"][1] == "Miss: +33.2 AP50 if all 168 cases are fixed"
    hardest = ("2 to 3", "recall 50 %, 60 of 120 objects")
    assert shown[f"hardest for {letter}: objects per image"] == hardest
    own = "51 | 66" if letter == "B" else "66 | 51"
    assert shown["found only by A | found only by B"][0] == own
    text = "with a confidence threshold of 0.9: precision 100 %, recall 59 %."
    assert made.more == f"Use {letter} {text}"


def test_the_first_screen_of_one_detector() -> None:
    shown = facts(verdict.decide(runs()[:1]))
    assert shown["score of highest F1"] == ("0.9", "precision 94 %, recall 56 %")
    assert shown["what limits it most"][0] == "missed objects"


def test_the_hardest_subset_has_the_lowest_recall_of_those_with_enough_objects() -> None:
    run = runs()[0]
    subsets = [
        Slice("size", "tiny", 19, 1, 1 / 19, 0.1, 0.9),
        Slice("objects of the class", "1 to 10", 50, 1, 0.02, 0.1, 0.9),
        Slice("size", "large", 40, 36, 0.9, 0.9, 0.9),
        Slice("size", "small", 20, 5, 0.25, 0.2, 0.9),
        Slice("size", "medium", 40, 12, 0.3, 0.2, 0.9),
    ]
    shown = facts(verdict.decide([replace(run, slices=subsets)]))
    assert shown["hardest: size"] == ("small", "recall 25 %, 5 of 20 objects")


def test_of_a_rate_the_lower_one_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = runs("MR", "AP50")
    assert a.result.metrics["MR"] > b.result.metrics["MR"]
    assert [verdict.better(each).name for each in ((a, b), (b, a), (b, b))] == ["B"] * 3
    pair = changes.pair_of(*runs(), "AP")
    assert pair is not None
    fallen = replace(pair, difference=-0.19, low=-0.25, high=-0.13)
    monkeypatch.setattr(verdict, "pair_of", lambda *_: fallen)
    made = verdict.decide((a, b))
    text = "B is better: -19.2 MR (lower is better), 95 % interval -25.0 to -13.0, 120 images."
    assert (made.sentence, made.style) == (text, "b")


def test_of_equal_detectors_the_second_one_is_shown() -> None:
    a, b = runs()[0], replace(runs()[0], name="other")
    assert verdict.better((a, b)).name == "other"


@pytest.mark.parametrize(("units", "enough"), [(LEAST_OF_TEST - 1, False), (LEAST_OF_TEST, True)])
def test_intervals_of_few_images_are_approximate(
    monkeypatch: pytest.MonkeyPatch, units: int, enough: bool
) -> None:
    """The limit moves instead of the number of images."""
    monkeypatch.setattr(verdict, "LEAST_OF_TEST", LEAST_OF_TEST + N - units)
    assert ("the interval is approximate" in verdict.decide(runs()).more) != enough


# --- what changed ---------------------------------------------------------------------------------


def test_the_largest_changes_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owls differ by chance only."""
    pairs = changes.class_differences(*runs(), "AP")
    pairs[4] = replace(pairs[4], difference=-0.05, low=-0.11, high=0.01)
    monkeypatch.setattr(changes, "class_differences", lambda *_: pairs)
    text = changes.changed(*runs())
    assert re.match(r"Largest change of errors: Miss .* 41\.6 with A, 33\.2 with B\.", text[0])
    assert re.fullmatch(r"2 of 4 classes better .*: fox \+38\.6, dog \+25\.7\.", text[1])
    assert re.fullmatch(r"1 of 4 classes worse .*: cat -30\.2\.", text[2])
    assert text[3].endswith("at its highest F1: 51 by A, 66 by B.")


def test_a_large_loss_that_both_have_is_no_change() -> None:
    a, b = (
        replace(run, tide=replace(run.tide, gain={**run.tide.gain, "Miss": miss, "Loc": loc}))
        for run, miss, loc in zip(runs(), (40, 40.5), (1, 6), strict=True)
    )
    assert re.match(r"Largest change of errors: Loc .* 1\.0 with A, 6\.0", changes.changed(a, b)[0])


def test_classes_are_in_the_order_of_the_difference_or_of_ap() -> None:
    key, rows = row_figures.class_rows(runs())
    assert key == "AP, points"
    assert [row.name for row in rows] == ["fox", "dog", "owl", "cat"]
    assert [round(row.marks[1][0].value, 1) for row in rows] == [38.6, 25.7, 0.0, -30.2]
    (rows_of_one,) = (row_figures.class_rows(runs()[:1])[1],)
    assert [row.name for row in rows_of_one] == ["dog", "cat", "owl", "fox"]
    rough = row_figures._mark(0.5, Interval(0.5, 0.02, np.nan, np.nan, 0.0, 0.95, "few"))
    assert (rough.low, rough.high, rough.rough) == (48, 52, True)


# --- tables ---------------------------------------------------------------------------------------


def test_tables_have_the_counts_by_construction() -> None:
    both = runs()
    best = report_tables.best(both)
    assert (cells(best, "A")["FP"], cells(best, "A")["missed"]) == ("16", "195")
    assert (cells(best, "B")["FP"], cells(best, "B")["missed"]) == ("0", "180")
    costs = report_tables.costs(both)
    assert [cells(costs, "Cls")[f"{letter} cases"] for letter in "AB"] == ["6", "0"]
    assert cells(costs, "Loc")["B - A"] == "+2.48"
    assert cells(costs, "Bkg")["A cases"] == "10"
    pairs = report_tables.confused(both)["rows"]
    assert [[str(cell) for cell in row[:4]] for row in pairs] == [["A", "dog", "cat", "6"]]
    assert pairs[0][4] == "6.00"  # of 100 dogs
    one = report_tables.classes(both[:1])
    cats = cells(one, "cat")
    assert (cats["precision"], cats["recall"]) == ("84.9", "75.0")  # 90 of 106, 90 of 120
    assert (cats["FP"], cats["missed"]) == ("16", "30")


def test_parts_of_olrp_and_of_calibration_are_in_their_columns() -> None:
    lrp = report_tables.lrp(runs())
    row = {key: float(cells(lrp, "A")[key]) for key in lrp["header"][1:]}
    assert row["localization"] == 0
    assert row["mean IoU"] == 100
    assert row["missed"] == pytest.approx(np.mean([30 / 120, 36 / 100, 0.7, 59 / 120]) * 100, abs=1)
    assert row["false positives"] == pytest.approx(16 / 106 * 25, abs=0.1)
    assert cells(lrp, "B - A")["oLRP"] == "-8.1"
    ece = cells(report_tables.calibrated(runs()), "B")
    assert ece["ECE"] == "13.3"
    assert ece["largest deviation"] == "85.00"  # the twelve at score .85
    assert ece["mean deviation"] == "47.50"  # of .1 and of .85


def test_images_are_in_the_order_of_the_last_detector() -> None:
    own, other = runs()
    listed = [[row[0] for row in report_tables.images(each)["rows"]] for each in (runs(), [own])]
    assert [each.image for each in other.images[: len(listed[0])]] == list(map(int, listed[0]))
    assert [each.image for each in own.images[: len(listed[1])]] == list(map(int, listed[1]))
    some = replace(own, images=sorted(own.images, key=lambda each: each.image))
    row = report_tables.images([some])
    assert row["header"] == ["image", "objects", "TP", "FP", "missed"]
    assert row["rows"][0] == ["1", 3, 2, 2, 1]


# --- curves and scores ----------------------------------------------------------------------------


def test_scores_of_right_and_wrong_detections_are_counted_apart() -> None:
    edges, right, wrong = runs()[0].scores
    assert (right.sum(), wrong.sum()) == (245, 16)
    assert right[np.searchsorted(edges, 0.9, "right") - 1] == 245
    assert wrong[np.searchsorted(edges, 0.95, "right") - 1] == 10


def test_curves_are_of_the_threshold_nearest_to_the_analysis() -> None:
    thresholds = np.linspace(0.5, 0.95, 10)
    assert [nearest(thresholds, iou) for iou in (0.1, 0.5, 0.74, 0.95)] == [0, 0, 5, 9]


# --- pictures -------------------------------------------------------------------------------------


def test_a_missed_object_is_marked_among_the_others() -> None:
    (title, strips) = gallery.mistakes(runs(), DRAWN)[-1]
    assert title.startswith("Miss")
    assert [len(each.shown) for each in strips] == [gallery.PER_KIND[1]] * 2
    first = strips[0].shown[0]
    assert (first.picture.count('"box lost"'), first.picture.count('"box object"')) == (1, 3)


def test_the_first_suspects_are_shown_and_those_of_the_better_detector() -> None:
    a, b = runs()
    ranked = [replace(each, score=0.99 - k / 100) for k, each in enumerate(a.suspects)]
    (first, *_) = gallery.suspected(replace(a, suspects=ranked), DRAWN)
    assert first.title == "missing label: 10"
    assert first.shown[0].text == "cat detected, score 0.99; no label there"
    for both in ((a, b), (b, a)):
        made = page._pictured(both, DRAWN)
        assert (made["reviewed"], made["suspected"], made["suspects"]) == ("B", [], [])


# --- numbers and charts ---------------------------------------------------------------------------


def test_numbers_as_they_are_printed() -> None:
    wanted = [*("p 0.2", "p 0.004", "p 0.0001", "p < 0.0001")]
    assert [numbers.p_value(p) for p in (0.2, 0.004, 1e-4, 9e-5)] == wanted
    inside = Interval(0.5, 0.01, 0.48, 0.52, 0.01, 0.95)
    assert numbers.under(inside) == "48.0 to 52.0"
    counts = (7, 999, 999.6, 1000, 12_345, 999_600, 2_000_000, 3e9)
    assert [charts.short(n) for n in counts] == ["7", "999", "1k", "1k", "12k", "1M", "2M", "3G"]


def places(picture: str) -> list[tuple[float, float]]:
    (points,) = re.findall(r'<polyline[^>]*points="([^"]*)"', picture)
    return [(float(x), float(y)) for x, y in (each.split(",") for each in points.split())]


def test_a_higher_value_is_higher_in_the_chart() -> None:
    line = charts.Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    first, last = places(charts.lines("t", "", [line], ("x", "y")))
    assert first == (charts.LEFT, charts.HEIGHT - charts.BOTTOM)
    assert last == (charts.WIDTH - charts.RIGHT, charts.TOP)


@pytest.mark.parametrize("size", [(440, 170), (110, 340), (1, 1)])
def test_a_sketch_fits_its_frame(size: tuple[int, int]) -> None:
    made = charts.sketch("t", size, [("object", (0.0, 0, *size))])
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', made).groups())  # type: ignore[union-attr]
    assert width <= 220
    assert height <= 170
    assert width / height == pytest.approx(size[0] / size[1], rel=0.02)


def test_shares_of_a_whole_add_up() -> None:
    made = charts.shares("t", [("found", "good", 30), ("missed", "bad", 10)])
    wanted = [*(("found", "75.0"), ("missed", "25.0"))]
    assert re.findall(r"(\w+): \d+ \(([\d.]+) %\)</title>", made) == wanted
    bar, _ = made.split("</svg>", 1)
    expected = [*(("0.000", "75.000"), ("75.000", "25.000"))]
    assert re.findall(r'x="([\d.]+)%" width="([\d.]+)%"', bar) == expected


def hits(picture: str) -> dict[str, str]:
    """Color class of each cell of a matrix by its text."""
    found = re.findall(r'<g class="hit"><title>([^<]*)</title><rect class="([^"]*)"', picture)
    return dict(found)


def test_the_confusion_matrix_is_colored_by_share_of_the_true_class() -> None:
    names = ["a", "b", "background"]
    counts = np.array([[8, 2, 0], [0, 30, 10], [50, 0, 0]])
    assert hits(charts.matrix("t", "", names, counts)) == {
        "a predicted as a: 8": "right d8",
        "a predicted as b: 2": "wrong d2",
        "b predicted as b: 30": "right d7",
        "b predicted as background: 10": "wrong d2",
        "background predicted as a: 50": "wrong d9",
    }


def test_a_change_of_the_confusion_matrix_is_signed_and_colored_by_whether_it_is_better() -> None:
    names = ["a", "b", "background"]
    counts = np.array([[8, 1, 1], [4, 30, 0], [0, 0, 0]])
    before = np.array([[5, 4, 1], [0, 34, 0], [0, 0, 0]])
    shown = hits(charts.matrix("t", "", names, counts, before=before))
    styles = {text: style.split()[0] for text, style in shown.items()}
    assert styles == {
        "a predicted as a: +3": "right",
        "a predicted as b: -3": "right",
        "b predicted as a: +4": "wrong",
        "b predicted as b: -4": "wrong",
    }


def test_the_confusion_of_two_detectors_is_what_changed_from_a_to_b() -> None:
    text = str(confused(runs()))
    assert "dog predicted as cat: -6" in text
    assert "dog predicted as dog: +26" in text
    assert f"{CLASSES[0]} predicted as {CLASSES[0]}: -50" in text
