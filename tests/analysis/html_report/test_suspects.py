"""Lists of suspected label errors that annotation tools import, and the figure for a paper."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import detmap
from detmap.analysis import html_report as page
from detmap.analysis.diagnosis.mistakes import SUSPECTS
from detmap.analysis.html_report import suspects
from detmap.analysis.html_report.gather import Run, gather
from detmap.analysis.html_report.paper_figure import COLUMNS, SUFFIXES, check, picture
from detmap.core.tables import Truth, boxes_as
from detmap.errors import DetmapError
from tests.support import builders as make

HOSTILE = '</script><b a="1">&'


def reviewed(tmp_path: Path) -> Run:
    """Two missing labels, a wrong one, one twice and an odd box."""
    box, odd = [10.0, 10, 20, 20], [5.0, 5, 1, 60]
    objects = [(1, 1, box), (2, 1, box), (2, 1, box), (3, 2, box), (4, 1, odd)]
    content = {
        "images": [
            {"id": k, "file_name": f"{k}.jpg", "width": 100, "height": 80} for k in range(1, 5)
        ],
        "categories": [{"id": 1, "name": "circle"}, {"id": 2, "name": HOSTILE}],
        "annotations": [
            {
                **{"id": k, "image_id": image, "category_id": label, "bbox": place},
                **{"area": place[2] * place[3], "iscrowd": 0},
            }
            for k, (image, label, place) in enumerate(objects, 1)
        ],
    }
    truth = detmap.read_truth(make.write(tmp_path / "truth.json", content))
    there, beside = [60.0, 40, 24, 16], [50.0, 60, 24, 16]
    image, label = [1, 1, 4, 3], [1, 2, 1, 1]
    score = [0.9, 0.9, 0.95, 0.9]
    found = detmap.detections_from_arrays(truth, image, label, [box, there, beside, box], score)
    rules = detmap.load_protocol("coco-bbox")
    return gather("d", truth, found, rules)


def test_every_kind_is_in_every_list(tmp_path: Path) -> None:
    run = reviewed(tmp_path)
    kinds = sorted(each.kind for each in run.suspects)
    assert set(kinds) == set(SUSPECTS)
    made = {name: content for name, (_, content) in suspects.exports(run).items()}
    rows = json.loads(made["COCO JSON"])["annotations"]
    assert sorted(row["attributes"]["suspect"] for row in rows) == kinds
    boxes = ET.fromstring(made["CVAT"]).findall("image/box")
    named = [str(box.findtext("attribute[@name='suspect']")) for box in boxes]
    assert sorted(named) == kinds
    tasks = json.loads(made["Label Studio"])
    results = [one for task in tasks for one in task["predictions"][0]["result"]]
    assert len(results) == len(kinds)
    assert len(suspects.table(run)) == len(kinds)


def read_back(name: str, content: str, file: Path) -> Truth:
    """A list as an annotation tool would have it once a reviewer has accepted all."""
    if name == "Label Studio":
        tasks = json.loads(content)
        content = json.dumps(
            [{"data": each["data"], "annotations": each["predictions"]} for each in tasks]
        )
    file.write_text(content)
    return detmap.read_truth(file)


@pytest.mark.parametrize("name", ["COCO JSON", "CVAT", "Label Studio"])
def test_a_list_is_read_as_annotations(tmp_path: Path, name: str) -> None:
    run = reviewed(tmp_path)
    file, content = suspects.exports(run)[name]
    truth = read_back(name, content, tmp_path / file)
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh").round(2)
    names, stems = truth.categories.names, truth.images.stems
    found = [
        (stems[i], names[k], *box)
        for i, k, box in zip(truth.image, truth.label, boxes.tolist(), strict=True)
    ]
    wanted = [(str(each.image), each.category, *each.box) for each in run.suspects]
    assert sorted(found) == sorted(wanted)
    assert HOSTILE in names
    assert set(truth.images.width) == {100}
    assert set(truth.images.height) == {80}
    assert truth.area.tolist() == pytest.approx((boxes[:, 2] * boxes[:, 3]).tolist())


def test_a_list_of_coco_keeps_the_ids_of_images_and_classes(tmp_path: Path) -> None:
    run = reviewed(tmp_path)
    rows = json.loads(suspects.exports(run)["COCO JSON"][1])["annotations"]
    kept = [(row["image_id"], row["category_id"], row["attributes"]["suspect"]) for row in rows]
    missing, wrong, twice, odd = SUSPECTS
    assert kept == [
        *((4, 1, missing), (1, 2, missing), (3, 1, wrong)),
        *((2, 1, twice), (2, 1, twice), (4, 1, odd)),
    ]
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5, 6]
    images = run.diagnosis.truth.images
    named = replace(images, ids=np.array(["a", "b", "c", "d"]))
    assert [suspects._image_id(named, k) for k in range(4)] == [1, 2, 3, 4]
    assert [suspects._image_id(images, k) for k in range(4)] == [1, 2, 3, 4]


def test_lists_keep_the_highest_scores_of_each_kind_and_more_than_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = reviewed(tmp_path)
    monkeypatch.setattr(suspects, "TABLE", 1)
    assert [row[:2] for row in suspects.table(run)] == [
        [file, kind]
        for file, kind in zip(("4.jpg", "3.jpg", "2.jpg", "4.jpg"), SUSPECTS, strict=True)
    ]
    assert [row[4] for row in suspects.table(run)] == [0.95, 0.9, None, None]
    assert len(json.loads(suspects.exports(run)["COCO JSON"][1])["annotations"]) == 6
    monkeypatch.setattr(suspects, "MOST", 1)
    assert len(json.loads(suspects.exports(run)["COCO JSON"][1])["annotations"]) == 4


@pytest.mark.slow
def test_lists_cannot_leave_their_element(tmp_path: Path) -> None:
    run = reviewed(tmp_path)
    truth, found = run.diagnosis.truth, run.diagnosis.detections
    text = page.report(truth, {"d": found}, detmap.load_protocol("coco-bbox")).decode()
    assert text.count("</script>") == text.count("<script")
    assert "</script><b" not in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", SUFFIXES)
@pytest.mark.parametrize("two", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_figure_of_a_paper_is_the_same_every_time(tmp_path: Path, kind: str, two: bool) -> None:
    runs = [reviewed(tmp_path)] * (1 + two)
    made = picture(runs, kind, "double")
    assert made[:4] in (b"%PDF", b"<?xm", b"\x89PNG", b"%!PS")
    assert kind == "eps" or picture(runs, kind, "double") == made


@pytest.mark.slow
def test_the_figure_has_the_width_of_a_column(tmp_path: Path) -> None:
    run = reviewed(tmp_path)
    for column, width in COLUMNS.items():
        text = picture([run], "svg", column).decode()
        points = float(re.search(r'width="([\d.]+)pt"', text)[1])  # type: ignore[index]
        assert points == pytest.approx(width / 25.4 * 72, abs=0.1)


@pytest.mark.parametrize("name", ["figure", "figure.jpeg", "report.html"])
def test_a_figure_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DetmapError, match="is not the name of a picture"):
        check(tmp_path / name)
