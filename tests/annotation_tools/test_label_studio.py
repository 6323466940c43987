"""Label Studio's JSON and JSON-MIN: percent, several annotations, predictions, and bad files."""

from pathlib import Path
from typing import Any

import pytest

from detmap import read_detections, read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make
from tests.support.format_samples import SAMPLES

Tree = dict[str, Any]


def region(value: Tree | None = None, **more: Any) -> Tree:
    box = {"x": 10, "y": 25, "width": 50, "height": 12.5, "rectanglelabels": ["cat"]}
    size = {"original_width": 200, "original_height": 80}
    return {"type": "rectanglelabels", "value": value or box, **size, **more}


def task(*regions: Tree, **more: Any) -> Tree:
    annotations = [{"result": list(regions), "updated_at": "2026-01-02"}]
    return {"id": 1, "data": {"image": "/data/upload/1/0a1b2c3d-x%201.jpg"}} | (
        {"annotations": annotations} | more
    )


def written(path: Path, *tasks: Any) -> Path:
    return make.write(path / "export.json", list(tasks))


def test_percent_of_the_original_size(tmp_path: Path) -> None:
    truth = read_truth(written(tmp_path, task(region())))
    assert truth.boxes.tolist() == [[20, 20, 100, 10]]
    assert truth.images.stems == ("0a1b2c3d-x 1",)
    assert (truth.images.width.tolist(), truth.images.height.tolist()) == ([200], [80])


@pytest.mark.parametrize(
    ("value", "box", "code"),
    [
        (
            {"x": 10, "y": 25, "width": 50, "height": 12.5, "rotation": 90},
            (10, 20, 10, 100),
            "box-rotated",
        ),
        (
            {"points": [[10, 10], [20, 50], [5, 20]], "polygonlabels": ["cat"]},
            (10, 8, 30, 32),
            "shape-around",
        ),
        (
            {"x": 50, "y": 50, "radiusX": 10, "radiusY": 20, "ellipselabels": ["cat"]},
            (80, 24, 40, 32),
            "shape-around",
        ),
        (
            {"x": 50, "y": 50, "radiusX": 10, "radiusY": 10, "rotation": 90, "labels": ["cat"]},
            (92, 20, 16, 40),
            "shape-around",
        ),
        (
            {"x": 50, "y": 50, "width": 10, "height": 10, "rotation": 45},
            (100 - 8 / 2**0.5, 40, 28 / 2**0.5, 28 / 2**0.5),
            "box-rotated",
        ),
    ],
)
def test_boxes_around_other_shapes(
    tmp_path: Path, value: Tree, box: tuple[float, ...], code: str
) -> None:
    value = {"labels": ["cat"]} | value
    truth = read_truth(written(tmp_path, task(region(value))))
    assert truth.boxes[0].tolist() == pytest.approx(box)
    codes = {code, *(["box-rotated"] if "rotation" in value else [])}
    assert {note.code: note.count for note in truth.notes} == dict.fromkeys(codes, 1)


def test_the_annotation_that_counts(tmp_path: Path) -> None:
    """Marked as ground truth, else updated last; never one that was skipped."""
    created = ("2026-01-01", "2026-01-02", "2026-01-03")
    updated = ("2026-01-03", "2026-01-05", "2026-01-04")

    def choose(drop: str = "", **marks: Any) -> list[str]:
        results = [
            {
                "result": [region({**region()["value"], "rectanglelabels": [name]})],
                **{"created_at": begin, "updated_at": end},
            }
            for name, begin, end in zip("abc", created, updated, strict=True)
        ]
        for each in results:
            each.pop(drop, None)
        for key, place in marks.items():
            results[place][key] = True
        truth = read_truth(written(tmp_path, task(annotations=results)))
        assert [note.code for note in truth.notes] == ["annotations-several"]
        return list(truth.categories.names)

    assert choose() == ["b"]
    assert choose(ground_truth=0) == ["a"]
    assert choose(was_cancelled=1) == ["c"]
    assert choose("updated_at") == ["c"]
    assert choose("created_at") == ["b"]


def test_an_annotation_that_was_skipped_is_not_one_of_several(tmp_path: Path) -> None:
    done, skipped = {"result": [region()]}, {"result": [region()], "was_cancelled": True}
    truth = read_truth(written(tmp_path, task(annotations=[done, skipped])))
    assert (len(truth), truth.notes) == (1, ())


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    keypoint = region({"x": 1, "y": 1, "width": 1, "keypointlabels": ["nose"]})
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    both = region({**region()["value"], "rectanglelabels": ["cat", "pet"]})
    bare = task(annotations=[], data={"image": "b.jpg"})
    truth = read_truth(written(tmp_path, task(keypoint, relation, both), bare))
    assert [str(note) for note in truth.notes] == [
        "1 task has no annotation: read as images without objects",
        "1 region has several labels: each is an object",
        "2 regions have no box or no label: ignored",
    ]
    assert (len(truth), len(truth.images)) == (2, 2)


@pytest.mark.parametrize(
    ("data", "stem"),
    [
        ({"image": "s3://bucket/a/b.jpg"}, "b"),
        ({"image": "https://x.org/a/c.png?sig=1/2.3"}, "c"),
        ({"photo": "/data/local-files/?d=set%20a/d.jpg", "text": "a dog"}, "d"),
        ({"image": "C:\\pictures\\e.jpg"}, "e"),
        ({"image": "f.jpg", "mask": "f_mask.png"}, "f"),
    ],
)
def test_how_a_task_names_its_image(tmp_path: Path, data: Tree, stem: str) -> None:
    assert read_truth(written(tmp_path, task(region(), data=data))).images.stems == (stem,)


def test_records_of_json_min_with_one_id_are_one_task(tmp_path: Path) -> None:
    def record(name: str, time: str, **more: Any) -> Tree:
        value = {**region()["value"], "rectanglelabels": [name]}
        label = [{**value, "original_width": 200, "original_height": 80}]
        keys = {"id": 4, "image": "a.jpg", "annotator": 1, "annotation_id": 1, "lead_time": 1}
        return {**keys, "label": label, "updated_at": time, **more}

    records = [record("new", "2026-01-02"), record("old", "2026-01-01")]
    truth = read_truth(make.write(tmp_path / "min.json", records))
    assert truth.categories.names == ("new",)
    for each in records:
        each["created_at"] = each.pop("updated_at")
    assert read_truth(make.write(tmp_path / "min.json", records)).categories.names == ("new",)
    records.reverse()
    assert [note.code for note in truth.notes] == ["annotations-several"]
    records[1]["label"][0]["x"] = "1"
    says = "min.json[1].label[0].x: type str, the field needs float or null (export as JSON"
    refuses(read_truth, make.write(tmp_path / "min.json", records), says=says)


def minimal(label: Any) -> Tree:
    keys = {"annotator": 1, "annotation_id": 1, "lead_time": 1}
    return {"id": 4, "image": "a.jpg", "label": label, **keys}


@pytest.mark.parametrize(
    ("drop", "says"),
    [
        ("original_width", "original_width: no size of the image"),
        ("original_height", "original_width: no size of the image"),
        (None, "min.json[1].label: type str, the field needs array"),
        (0, "min.json[1].label[1]: type str, the field needs object"),
    ],
)
def test_damaged_records_of_json_min(tmp_path: Path, drop: Any, says: str) -> None:
    whole = {**region()["value"], "original_width": 200, "original_height": 80}
    damaged: Any = [{key: value for key, value in whole.items() if key != drop}]
    damaged = {None: "cat", 0: [whole, "cat"]}.get(drop, damaged)
    file = make.write(tmp_path / "min.json", [minimal([whole]), minimal(damaged)])
    refuses(read_truth, file, says=says)


@pytest.mark.parametrize("label", ["cat", [], [{"x": 1}], None])
def test_json_min_without_regions(tmp_path: Path, label: Any) -> None:
    file = make.write(tmp_path / "min.json", [minimal(label)])
    refuses(read_truth, file, says="min.json: no task has a region")


def test_tasks_without_annotations(tmp_path: Path) -> None:
    file = written(tmp_path, {"data": {"image": "a.jpg"}})
    says = "export.json[0].annotations: missing in all tasks"
    refuses(read_truth, file, says=says, format="labelstudio")


LABELLED = region()["value"]
BAD = {
    "type": (
        task(region({**LABELLED, "x": "1"})),
        "export.json[0].annotations[0].result[0].value.x: type str, the",
    ),
    "no size": (task(region(original_width=None)), "result[0].original_width: no size"),
    "size": (task(region(original_width=0)), "image /data/upload/1/0a1b2c3d-x 1.jpg: a size of 0"),
    "two sizes": (task(region(), region(original_width=9)), "result[1].original_width: 9 x 80"),
    "side": (task(region({**LABELLED, "y": None})), "result[0].value.y: missing"),
    "negative": (task(region({**LABELLED, "width": -1})), "result[0]: box ...negative"),
    "turned": (task(region(image_rotation=90)), "image_rotation: 90 degrees: ...(export"),
    "image": (task(data={"text": "a"}), "export.json[0].data: no field names an image (name"),
    "images": (task(data={"a": "1.jpg", "b": "2.jpg"}), "export.json[0].data: the image may be"),
    "twice": ([task(), task()], "two images have the name"),
    "no name": (
        [task(data={"image": name}) for name in ("a.jpg", ".", "b/a.jpg", ".")],
        "name '.'",
    ),
    "data": ({"annotations": [], "data": 3}, "export.json[0].data: type int, the field needs"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, name: str) -> None:
    tasks, says = BAD[name]
    path = written(tmp_path, *(tasks if isinstance(tasks, list) else [tasks]))
    refuses(read_truth, path, says=says, format="labelstudio")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"data": {}, "annotations": [', "e.json: line 1, column 31: not JSON"),
        ("", "e.json: the file is empty"),
        ('[{"data": {"image": NaN}}]', "e.json[0].data.image: NaN is not valid JSON"),
        ('{"data": {}}', "e.json: type object, the field needs array (export as JSON"),
    ],
)
def test_text_that_is_no_export(tmp_path: Path, text: str, says: str) -> None:
    refuses(read_truth, make.write(tmp_path / "e.json", text), says=says, format="labelstudio")


def test_predictions(tmp_path: Path) -> None:
    path, _ = SAMPLES["labelstudio"](tmp_path)
    truth = read_truth(path)
    found = read_detections(path, truth)
    assert found.score.tolist() == [0.875, 0.75, 0.625, 0.5, 0.25]

    def predicted(says: str, *predictions: Tree) -> None:
        data = {"image": "a.png"}
        file = written(tmp_path, task(data=data, predictions=list(predictions)))
        refuses(read_detections, file, truth, says=says, format="labelstudio")

    predicted("export.json: no predictions (export a project with predictions")
    predicted("export.json[0].predictions[0].result[0].score: missing", {"result": [region()]})
    runs = [
        {"result": [region(score=score)], "created_at": f"2026-01-0{day}"}
        for day, score in ((2, 0.25), (3, 0.75), (1, 0.5))
    ]
    own = written(tmp_path, task(region(), predictions=runs))
    assert read_detections(own, read_truth(own)).score.tolist() == [0.75]
    two = [{"result": [], "model_version": name} for name in ("v1", "v2")]
    predicted("predictions of 2 models: 'v1', 'v2' (keep the predictions of one", *two)
