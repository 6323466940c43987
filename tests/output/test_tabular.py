"""What notebooks and scripts show of results: HTML, text, data frames, short reprs."""

from dataclasses import replace
from typing import Any

import pytest

import detmap
from detmap.analysis.doctor import Finding, Findings
from detmap.benchmarks.suites import evaluate_suite
from detmap.core.base.resources import folder

SHAPES = folder("datasets") / "shapes"
TRUTH = SHAPES / "instances_test.json"
A, B = (SHAPES / "detections" / name for name in ("contours.json", "template.json"))
SUITE = f"""protocol = "coco-bbox"
[[data]]
name = "shapes"
truth = "{TRUTH.as_posix()}"
detections = "{A.as_posix()}"
[[figures]]
name = "mean"
take = "mean"
"""


def found() -> Findings:
    return Findings([Finding("boxes-xyxy", "the <cause>", 0.1, 0.6, "--fix boxes-xyxy", "b.json")])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, str, str]]:
    """An object of each kind, the name of one of its tables, and a word of its repr."""
    file = tmp_path_factory.mktemp("suite") / "suite.toml"
    file.write_text(SUITE)
    return {
        "comparison": (detmap.compare(TRUTH, A, B), "pairs", "AP of template"),
        "diagnosis": (detmap.diagnose(TRUTH, A), "points", "Diagnosis at IoU 0.5"),
        "findings": (found(), "findings", "b.json: boxes-xyxy: the <cause> (AP50 0.100"),
        "suite": (evaluate_suite(file), "figures", "mean=0.4478"),
    }


@pytest.mark.parametrize("kind", ["comparison", "diagnosis", "findings", "suite"])
def test_a_notebook_shows_tables(shown: Any, kind: str) -> None:
    each, table, word = shown[kind]
    assert word in repr(each)
    assert len(repr(each)) < 1500
    assert "<table" in each._repr_html_() or "<div" in each._repr_html_()
    assert "<cause>" not in each._repr_html_()
    pytest.importorskip("pandas")
    assert len(each.to_frame(table))
    with pytest.raises(detmap.DetmapError, match="no table"):
        each.to_frame("nothing")


def test_every_error_is_a_row_of_a_frame(shown: Any) -> None:
    pytest.importorskip("pandas")
    diagnosis = shown["diagnosis"][0]
    counts = diagnosis.counts()
    frame = diagnosis.to_frame("errors")
    assert (frame["kind"] == "Cls").sum() == counts["Cls"]


def test_findings_are_a_list_with_a_text() -> None:
    assert (Findings() == [], repr(Findings())) == (True, "no findings")
    assert repr(Findings(not_checked="no files")) == "not checked: no files"
    assert repr(Findings(left_out=["fixes"])).endswith("not checked, for lack of time: fixes")
    assert str(found()) == repr(found())
    (table,) = Findings(left_out=["boxes"]).tables()
    assert table.lines == ("not checked, for lack of time: boxes",)


def test_a_result_shows_findings_above_its_numbers() -> None:
    truth = detmap.read_truth(TRUTH)
    right = detmap.read_detections(A, truth)
    assert "probable mistakes" not in detmap.evaluate(truth, right)._repr_html_()
    wrong = replace(right, score=100 * right.score)
    html = detmap.evaluate(truth, wrong)._repr_html_()
    assert 0 <= html.index("scores-percent") < html.index("AP75")


def test_the_lowest_score_is_in_every_result() -> None:
    truth = detmap.read_truth(TRUTH)
    detections = detmap.read_detections(A, truth)
    result = detmap.evaluate(truth, detections)
    assert result.lowest_score == detections.score.min() == result.to_dict()["lowest_score"]
    assert "lowest score 0.22" in str(result)
    nothing = detmap.evaluate(truth, detections.take([]))
    assert nothing.to_dict()["lowest_score"] is None
    assert "lowest score" not in str(nothing)
