"""`detmap.report`, `inspect`, `convert`, `show`: what the commands give, in Python."""

import json
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.analysis.html_report import data_set_name
from detmap.analysis.html_report.image_folders import find_folder
from detmap.core.base.display_names import detector_names
from tests.support import builders as make
from tests.support.running import run

TRUTH = make.SHAPES / "instances_test.json"
A, B = (make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template"))


@pytest.mark.slow
def test_a_report_of_files_and_objects(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    truth, found = json.loads(TRUTH.read_text()), json.loads(A.read_text())
    place = detmap.report(truth, {"base": found, "new": B}, output=tmp_path / "two.md")
    text = place.read_text()
    assert "| metric | base | new | change |" in text
    assert detmap.report(TRUTH, A, B, output=tmp_path / "one.md").read_text()
    assert detmap.report(TRUTH, A, output=tmp_path / "page.html").stat().st_size > 10_000
    for wrong in ("r.docx", "r.csv"):
        with pytest.raises(detmap.DataError, match="the formats are html, md, pdf, png"):
            detmap.report(TRUTH, A, output=tmp_path / wrong)
    with pytest.raises(detmap.DetmapError, match="give one, or two"):
        detmap.report(TRUTH, {}, output=tmp_path / "none.md")
    listed = detmap.report(TRUTH, [A, B], output=tmp_path / "list.md")
    assert listed.read_text() == (tmp_path / "one.md").read_text()
    (tmp_path / "empty").mkdir()
    with pytest.warns(UserWarning, match="images without a file"):
        detmap.report(TRUTH, A, output=tmp_path / "pages", images=tmp_path / "empty")


@pytest.mark.slow
@pytest.mark.parametrize("given", [({"a": A, "b": B}, "out/"), (A, B, "out.md"), (A, "out.html")])
def test_an_output_given_by_position_is_named(
    given: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(detmap.DataError, match=f"write output='{given[-1]}'"):
        detmap.report(TRUTH, *given)
    assert detmap.report(TRUTH, *given[:-1], output=given[-1]).exists()


def test_names_of_classes_in_diagnose_and_compare() -> None:
    box = {"boxes": [[0, 0, 9, 9]], "scores": [0.5]}
    for label in (1, "cat"):
        truth, found = [{**box, "labels": [label]}], [{**box, "labels": [1]}]
        options: dict[str, Any] = {"class_names": {0: "dog", 1: "cat"}}
        assert detmap.diagnose(truth, found, **options).counts()["TP"] == 1
        compared = detmap.compare(truth * 2, {"a": found * 2, "b": found * 2}, **options)
        assert {row.name for row in compared.classes} == {"cat"}


def test_inspect_and_convert_take_objects(tmp_path: Path) -> None:
    truth = json.loads(TRUTH.read_text())
    assert detmap.inspect(truth)["boxes"] == detmap.inspect(TRUTH)["boxes"]
    assert detmap.inspect(A, TRUTH)["read_as"] == "detections"
    assert json.loads(detmap.inspect(TRUTH).to_json())["images"] == 60
    written = detmap.convert(truth, tmp_path / "gt.csv")
    assert len(written) == len(detmap.read_truth(tmp_path / "gt.csv"))
    detmap.convert(A, tmp_path / "dt.json", truth=TRUTH)
    assert detmap.evaluate(TRUTH, tmp_path / "dt.json")["AP"] == detmap.evaluate(TRUTH, A)["AP"]
    with pytest.raises(detmap.DetmapError, match="exists"):
        detmap.convert(truth, tmp_path / "gt.csv")
    with pytest.raises(detmap.DataError, match="choose one of coco, voc, yolo, csv"):
        detmap.convert(truth, tmp_path / "gt.xml")
    assert run("convert", TRUTH, tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "gt.csv").read_bytes()


@pytest.mark.slow
def test_show_and_reproduce() -> None:
    assert detmap.show("coco-bbox") == run("show", "coco-bbox").out
    assert "tide" in detmap.show()
    found = detmap.reproduce("60.60", TRUTH, A, depth=0, metric="AP50")
    assert "coco-bbox" in [each.rules for each in found.found]
    assert "60.60" in str(found)


def test_names_of_detectors_and_data_sets() -> None:
    assert detector_names(["a/x.json", "b/x.json"]) == ["a", "b"]
    assert detector_names(["a/x.json", "b/y.json"]) == ["x", "y"]
    assert detector_names(["r/a/labels", "r/b/labels"]) == ["a", "b"]
    assert detector_names(["x.json", "x.json"]) == ["x", "x'"]
    assert detector_names([object(), "x.json"]) == ["detector 1", "x"]
    assert data_set_name("boats/labels") == "boats"
    assert data_set_name("VOCdevkit/VOC2007") == "VOC2007"
    assert data_set_name("data.yaml") == "data"


@pytest.mark.parametrize(
    ("truth", "folder"),
    [
        ("annotations/instances_val2017.json", "val2017"),
        ("annotations/instances_val2017.json", "images/val2017"),
        ("set/gt.json", "set/images"),
        ("set/gt.json", "set"),
        ("labels/gt.json", "images"),
    ],
)
def test_images_are_found_beside_the_ground_truth(tmp_path: Path, truth: str, folder: str) -> None:
    file = make.write(tmp_path / truth, make.instances())
    images = detmap.read_truth(file).images
    found, tried = find_folder(images, file)
    assert found is None
    assert tried
    make.write(tmp_path / folder / images.files[0], "x")
    assert find_folder(images, file)[0] == tmp_path / folder
    assert find_folder(images, {"images": []}) == (None, [])


def test_images_of_a_voc_folder() -> None:
    truth = detmap.read_truth(make.SHAPES)
    assert find_folder(truth.images, make.SHAPES)[0] == make.SHAPES / "JPEGImages"
