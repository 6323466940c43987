"""A report on keypoints: overlaps are OKS, and boxes say whether an object is there."""

import json

import pytest

import detmap
from detmap.analysis import html_report as page
from detmap.analysis.diagnosis.summary import summary
from detmap.core.tables import Detections, Truth

POINTS = 17


def person(x: float, *, seen: int = 2) -> dict[str, object]:
    flat = [each for k in range(POINTS) for each in (x + 2 * k, 20.0 + k, seen)]
    return {"keypoints": flat, "bbox": [x, 20.0, 34.0, 18.0], "area": 612.0, "category_id": 1}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Truth, Detections]:
    """Three people, one without keypoints; a good detection, one of wrong points on each other."""
    folder = tmp_path_factory.mktemp("keypoints")
    objects = [
        {**person(x, seen=seen), "id": k, "image_id": 1, "iscrowd": 0, "num_keypoints": n}
        for k, (x, seen, n) in enumerate(((10, 2, POINTS), (110, 2, POINTS), (210, 0, 0)), 1)
    ]
    names = [f"p{k}" for k in range(POINTS)]
    content = {
        "images": [{"id": 1, "width": 400, "height": 200, "file_name": "1.jpg"}],
        "categories": [{"id": 1, "name": "person", "keypoints": names, "skeleton": []}],
        "annotations": objects,
    }
    rows = []
    for x, score in ((10, 0.9), (110, 0.8), (210, 0.7), (330, 0.6)):
        row = {**person(x), "image_id": 1, "score": score}
        if x == 110:  # in its box, but each point far from its place
            far = [(144, 38) if k < POINTS / 2 else (110, 20) for k in range(POINTS)]
            row["keypoints"] = [each for point in far for each in (*point, 1)]
        rows.append({key: value for key, value in row.items() if key != "area"})
    paths = folder / "truth.json", folder / "rows.json"
    for path, each in zip(paths, (content, rows), strict=True):
        path.write_text(json.dumps(each))
    truth = detmap.read_truth(paths[0], shapes="keypoints")
    return truth, detmap.read_detections(paths[1], truth)


def test_overlaps_are_oks(tables: tuple[Truth, Detections]) -> None:
    text = page.report(tables[0], {"d": tables[1]}, detmap.load_protocol("coco-keypoints")).decode()
    assert "mean OKS" in text
    assert "AP over OKS" in text
    assert "IoU of true positives" not in text
    assert "on the box of an object (person, box IoU 1.00; OKS 0.00)" in text


def test_tidecv_is_not_compared(tables: tuple[Truth, Detections]) -> None:
    found = detmap.diagnose(*tables, "coco-keypoints")
    assert found.overlap_name == "OKS"
    assert not [each for each in summary(found)["sentences"] if "tidecv" in each]


@pytest.mark.parametrize(
    ("rules", "similar"), [("crowdpose", "use coco-keypoints"), ("ultralytics-obb", "use dota")]
)
def test_the_hint_names_a_protocol_of_the_same_kind(
    tables: tuple[Truth, Detections], rules: str, similar: str
) -> None:
    with pytest.raises(detmap.ProtocolError, match=similar):
        page.report(tables[0], {"d": tables[1]}, detmap.load_protocol(rules))
