"""Everything takes everything: each kind of object gives the numbers of the file."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.adapters.in_memory import python_objects
from tests.support import builders as make

TRUTH = make.SHAPES / "instances_test.json"
FOUND = make.SHAPES / "detections" / "contours.json"
GT, DT = json.loads(TRUTH.read_text()), json.loads(FOUND.read_text())
NAMES = {each["id"]: each["name"] for each in GT["categories"]}
IDS = [each["id"] for each in GT["images"]]


def corners(row: dict[str, Any]) -> list[float]:
    x, y, w, h = row["bbox"]
    return [x, y, x + w, y + h]


def images(rows: list[dict[str, Any]], name: Callable[[int], Any] = int) -> list[dict[str, Any]]:
    """One dict per image, as torchmetrics takes them."""
    every = []
    for image in IDS:
        mine = [row for row in rows if row["image_id"] == image]
        one: dict[str, Any] = {
            "boxes": np.array([corners(row) for row in mine]).reshape(-1, 4),
            "labels": [name(row["category_id"]) for row in mine],
        }
        if "area" in GT["annotations"][0] and rows is GT["annotations"]:
            one |= {key: [row[key] for row in mine] for key in ("area", "iscrowd")}
        if rows is DT:
            one["scores"] = [row["score"] for row in mine]
        every.append(one)
    return every


class Boxes:
    """supervision's `Detections`, as far as detmap looks."""

    def __init__(self, image: dict[str, Any]) -> None:
        self.xyxy, self.class_id = image["boxes"], np.array(image["labels"], dtype=int)
        self.confidence = np.array(image["scores"]) if "scores" in image else None
        self.data = {key: image[key] for key in ("iscrowd", "area") if key in image}


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {key: [row[key] for row in rows] for key in ("image_id", "category_id")}
    for i, side in enumerate("xywh"):
        table[side] = [row["bbox"][i] for row in rows]
    if "score" in rows[0]:
        table["score"] = [row["score"] for row in rows]
    for key in ("area", "iscrowd"):
        if key in rows[0]:
            table[key] = [row[key] for row in rows]
    return table


OPEN: list[Any] = []


@pytest.fixture(autouse=True)
def close_files() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(path: Path, mode: str = "r") -> Any:
    OPEN.append(path.open(mode))
    return OPEN[-1]


TRUTHS: dict[str, Callable[[], Any]] = {
    "path": lambda: TRUTH,
    "text path": lambda: str(TRUTH),
    "table": lambda: detmap.read_truth(TRUTH),
    "file": lambda: opened(TRUTH),
    "bytes": lambda: io.BytesIO(TRUTH.read_bytes()),
    "dict": lambda: GT,
}
FOUNDS: dict[str, Callable[[], Any]] = {
    "path": lambda: FOUND,
    "file": lambda: opened(FOUND, "rb"),
    "text": lambda: io.StringIO(FOUND.read_text()),
    "list": lambda: DT,
    "tuple": lambda: tuple(DT),
    "dict": lambda: {"annotations": DT},
    "numpy values": lambda: [
        {**row, "score": np.float64(row["score"]), "bbox": np.array(row["bbox"])} for row in DT
    ],
    "array": lambda: np.array(
        [[row["image_id"], *row["bbox"], row["score"], row["category_id"]] for row in DT]
    ),
    "columns": lambda: columns(DT),
    "by image": lambda: dict(zip(IDS, images(DT), strict=True)),
    "supervision by image": lambda: dict(zip(IDS, map(Boxes, images(DT)), strict=True)),
    "names by image": lambda: dict(zip(IDS, images(DT, NAMES.__getitem__), strict=True)),
}


@pytest.fixture(scope="module")
def known() -> detmap.Result:
    return detmap.evaluate(TRUTH, FOUND)


@pytest.mark.parametrize("name", TRUTHS)
def test_ground_truth_of_any_kind(known: detmap.Result, name: str) -> None:
    assert detmap.evaluate(TRUTHS[name](), FOUND).metrics == known.metrics


@pytest.mark.parametrize("name", FOUNDS)
def test_detections_of_any_kind(known: detmap.Result, name: str) -> None:
    result = detmap.evaluate(GT, FOUNDS[name]())
    if "image" in name:  # corners: a box may be one rounding away
        assert result.metrics == pytest.approx(known.metrics, abs=1e-3)
    else:
        assert result.metrics == known.metrics


@pytest.mark.parametrize("name", [int, NAMES.__getitem__])
def test_lists_of_images_equal_the_evaluator(name: Callable[[int], Any]) -> None:
    truth, found = images(GT["annotations"], name), images(DT, name)
    evaluator = detmap.Evaluator("coco-bbox")
    evaluator.update(preds=found, target=truth)
    assert any(any(each["iscrowd"]) for each in truth)
    assert detmap.evaluate(truth, found).metrics == evaluator.compute().metrics
    if name is int:
        boxes = [*map(Boxes, truth)]
        assert detmap.evaluate(boxes, found).metrics == evaluator.compute().metrics


def test_a_class_that_only_detections_have_is_added() -> None:
    box = {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    other = {"boxes": [[0, 0, 9, 9], [20, 20, 30, 30]], "labels": [1, 7], "scores": [0.9, 0.5]}
    result = detmap.evaluate([box], [other])
    assert [row["name"] for row in result.per_class] == ["1", "7"]
    named = detmap.evaluate([box | {"labels": ["a"]}], [other | {"labels": ["a", "b"]}])
    assert [row["name"] for row in named.per_class] == ["a", "b"]
    assert named["AP50"] == result["AP50"]


def test_frames(known: detmap.Result) -> None:
    pandas = pytest.importorskip("pandas")
    seen = {row["image_id"] for row in GT["annotations"]}
    rows = [row for row in DT if row["image_id"] in seen]
    truth, found = (pandas.DataFrame(columns(each)) for each in (GT["annotations"], rows))
    result = detmap.evaluate(truth, found)
    assert result.metrics == known.select(sorted(seen)).metrics
    records = [each.to_dict("records") for each in (truth, found)]
    assert detmap.evaluate(*records).metrics == result.metrics
    assert detmap.evaluate(GT, pandas.DataFrame(columns(DT))).metrics == known.metrics
    polars = pytest.importorskip("polars")
    assert detmap.evaluate(truth, polars.DataFrame(columns(rows))).metrics == result.metrics


@pytest.mark.slow
def test_objects_of_pycocotools(known: detmap.Result) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    from detmap.compat import COCO

    for kind in (coco.COCO, COCO):
        truth = kind(str(TRUTH))
        found = truth.loadRes(str(FOUND))
        assert detmap.evaluate(truth, found).metrics == known.metrics
        assert detmap.doctor(truth, found) == detmap.doctor(TRUTH, FOUND)


def test_hugging_face_rows_and_pipelines() -> None:
    truth = [{"image_id": 3, "objects": {"bbox": [[2, 2, 10, 10]], "category": ["cat"]}}]
    box = {"xmin": 2, "ymin": 2, "xmax": 12, "ymax": 12}
    found = {3: {"boxes": [[2, 2, 12, 12]], "labels": ["cat"], "scores": [0.9]}}
    assert detmap.evaluate(truth, found)["AP50"] == pytest.approx(1)
    alone = [{key: row[key] for key in ("objects",)} for row in truth]
    pipeline = [[{"score": 0.9, "label": "cat", "box": box}]]
    assert detmap.evaluate(alone, pipeline)["AP50"] == pytest.approx(1)


@pytest.mark.slow
def test_every_function_takes_objects() -> None:
    assert detmap.match(GT, DT).n_images == len(IDS)
    assert detmap.compare(GT, {"base": DT, "new": FOUND}).names == ("base", "new")
    assert detmap.diagnose(GT, DT).counts() == detmap.diagnose(TRUTH, FOUND).counts()
    explained = detmap.explain(GT, DT, "coco-bbox", "voc2012")
    assert explained.after == detmap.evaluate(TRUTH, FOUND, "voc2012")["mAP"]
    assert detmap.doctor(GT, DT) == detmap.doctor(TRUTH, FOUND)
    assert detmap.doctor(images(GT["annotations"]), images(DT)) is not None
    assert detmap.tools(GT, DT, only=["tide"])["tide"] == pytest.approx(
        detmap.tools(TRUTH, FOUND, only="tide")["tide"]
    )
    assert detmap.Evaluator("coco-bbox", truth=GT).truth is not None


def test_flags_are_read_for_each_protocol() -> None:
    """`difficult` in COCO JSON counts under VOC's rules only, in memory as in a file."""
    hard = [{**row, "difficult": i % 2} for i, row in enumerate(GT["annotations"])]
    truth = GT | {"annotations": hard}
    for protocol in ("voc2012", "coco-bbox"):
        file = io.StringIO(json.dumps(truth))
        results = [detmap.evaluate(each, DT, protocol) for each in (truth, file)]
        assert results[0].metrics == results[1].metrics
    easy = detmap.evaluate(GT, DT, "voc2012")["mAP"]
    assert detmap.evaluate(truth, DT, "voc2012")["mAP"] != easy
    assert detmap.explain(truth, DT, "coco-bbox", "voc2012").after != easy


BOX = {"boxes": [[0, 0, 9, 9]], "labels": [1], "scores": [0.5]}


@pytest.mark.parametrize(
    ("truth", "found", "what"),
    [
        (DT, GT, "truth expected"),
        (GT, [{**DT[0], "bbox": [1, 2, -3, 4]}], r"detections\[0\]\.bbox"),
        (GT, [{**DT[0], "score": float("nan")}], "not JSON compliant|cannot be written"),
        (GT, [{**DT[0], "image_id": 12345}], "no image 12345"),
        (GT, [BOX], r'image_id: missing .* metadata\["image_id"\]'),
        ([BOX], [BOX, BOX], "2 images, but 1"),
        ([BOX], [{**BOX, "image_id": 5}], "no image 5"),
        (GT, {IDS[0]: {**BOX, "labels": ["unicorn"]}}, "no class"),
        ([BOX], [{**BOX, "labels": ["cat"]}], "only class numbers: .*class_names="),
        ([{**BOX, "labels": ["cat"]}], [BOX], "classes are whole numbers here"),
        (GT, [{"boxes": [[9, 9, 0, 0]], "labels": [1], "scores": [0.5], "image_id": 1}], "boxes"),
        (
            GT,
            {{"score": "certainty"}.get(key, key): cells for key, cells in columns(DT).items()},
            "no column of scores, and numbers from 0 to 1 in certainty",
        ),
        (GT, np.zeros((3, 4)), r"shape \(3, 4\)"),
        (GT, object(), "is not a path"),
        (GT, 5, "is not a path"),
        (GT, io.StringIO("not json"), "detections"),
        ([], [], "truth: is an empty list"),
        (GT, {"annotations": object()}, "cannot be written as JSON"),
        (detmap.detections_from_arrays, DT, "path"),
    ],
)
def test_bad_objects_are_refused_by_place(truth: Any, found: Any, what: str) -> None:
    with pytest.raises(detmap.DetmapError, match=what) as refused:
        detmap.evaluate(truth, found)
    assert "detmap-" not in str(refused.value)  # the folder of a temporary file
    assert refused.value.fix


def test_options_of_objects() -> None:
    with pytest.raises(detmap.DataError, match="split 'val' is not an option of images"):
        detmap.read_truth([BOX], split="val")
    truth = detmap.read_truth([{**BOX, "boxes": [[0, 0, 9, 9]]}], box_format="xywh")
    assert truth.boxes.tolist() == [[0, 0, 9, 9]]
    with pytest.raises(detmap.DataError, match="choose one of"):
        detmap.read_truth([BOX], box_format="yxyx")


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh", "voc"])
def test_box_formats_of_arrays(box_format: str) -> None:
    x, y, w, h = 10.0, 20.0, 30.0, 40.0
    boxes = {
        "xyxy": [x, y, x + w, y + h],
        "xywh": [x, y, w, h],
        "cxcywh": [x + w / 2, y + h / 2, w, h],
        "voc": [x + 1, y + 1, x + w, y + h],
    }
    truth = detmap.truth_from_arrays([1], [1], [boxes[box_format]], box_format=box_format)
    assert truth.attributes["area"].tolist() == [w * h]
    found = detmap.detections_from_arrays(
        truth, [1], [1], [boxes[box_format]], [0.5], box_format=box_format
    )
    assert detmap.evaluate(truth, found)["AP50"] == pytest.approx(1)
    other = detmap.detections_from_arrays(truth, [1], [1], [[x, y, w, h]], [0.5])
    assert detmap.evaluate(truth, other, "coco-bbox")["AP"] == pytest.approx(1, abs=0.2)


def test_the_documentation_lists_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    for kind in python_objects.KINDS:
        assert kind.what.split(":")[0] in page, kind.name


@pytest.mark.parametrize("form", ["xywh", "cxcywh"])
def test_boxes_of_lists_and_frames_have_a_format(form: str) -> None:
    """Lists of images, data frames, and a mixture with a file of another format."""
    corner, size = np.array([10.0, 20]), np.array([30.0, 40])
    box = [*(corner if form == "xywh" else corner + size / 2), *size]
    truth = [{"boxes": [box], "labels": ["cat"]}]
    found = [{"boxes": [box], "labels": ["cat"], "scores": [0.9]}]
    right = {"box_format": form}
    assert detmap.evaluate(truth, found, "coco-bbox", **right)["AP"] == pytest.approx(1)
    assert len(detmap.match(truth, found, "coco-bbox", **right)) == 1
    own = [{"boxes": [[*corner, *(corner + size)]], "labels": ["cat"]}]
    table = detmap.read_truth(own)
    assert detmap.evaluate(table, found, "coco-bbox", **right)["AP"] == pytest.approx(1)
    assert not detmap.evaluate(own, found, "coco-bbox", **right)["AP"] > 0.9  # both have one format


@pytest.mark.parametrize("key", ["image_id", "file_name", "path", ""])
@pytest.mark.parametrize("name", ["{:06d}", "{:06d}.jpg", "JPEGImages/{:06d}.jpg"])
def test_images_of_a_list_are_named_by_file(known: detmap.Result, key: str, name: str) -> None:
    names = list(map(name.format, IDS))
    found: Any = dict(zip(names, images(DT), strict=True))
    if key:
        found = [{**one, key: each} for each, one in found.items()]
    assert detmap.evaluate(GT, found).metrics == pytest.approx(known.metrics, abs=1e-3)
    if not key:
        return
    lost = [*found, {**found[0], key: "elsewhere.jpg"}]
    with pytest.raises(detmap.DataError, match=r"no image 'elsewhere.jpg'"):
        detmap.evaluate(GT, lost)
    assert detmap.evaluate(GT, lost, unknown="drop")["AP"] == pytest.approx(known["AP"], abs=1e-3)


def test_images_of_two_lists_and_batches_are_named_by_their_file() -> None:
    truth = [{**one, "file_name": f"a/{i}.jpg"} for i, one in enumerate(images(GT["annotations"]))]
    found = [{**one, "path": f"{i}"} for i, one in enumerate(images(DT))]
    plain = detmap.evaluate(truth, images(DT))  # in the order of the ground truth
    assert detmap.evaluate(truth, found[::-1]).metrics == plain.metrics
    stream = detmap.Evaluator(truth=truth)
    for one in found:
        stream.update([one])
    assert stream.compute().metrics == plain.metrics
    with pytest.raises(detmap.DataError, match="already added"):
        stream.update([{**found[0], "image_id": 0}])


@pytest.mark.parametrize(
    ("by", "word"), [(-1, "add 1"), (1, "subtract 1"), (0, ""), (2, "")], ids=str
)
def test_labels_that_are_off_by_one_get_a_note(by: int, word: str) -> None:
    """Without names they are other classes, and AP is 0."""
    boxes = [[0, 0, 9, 9], [20, 20, 29, 29]]
    labels = np.array([1, 2]) - (by > 0)
    truth = [{"boxes": boxes, "labels": labels}]
    found = [{"boxes": boxes, "labels": labels + by, "scores": [0.9, 0.8]}]
    stream = detmap.Evaluator()
    stream.update(found, truth)
    for result in (detmap.evaluate(truth, found), stream.compute()):
        notes = [str(each) for each in result.notes if each.code == "class-zero"]
        assert len(notes) == bool(word)
        assert word in "".join(notes)


def test_predictions_without_ids_are_in_the_order_of_targets_with_ids() -> None:
    box = {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    truth = [{**box, "image_id": i} for i in (3, 7)] + [{**box, "image_id": 9, "labels": [2]}]
    found = [{**box, "scores": [0.9]}, {**box, "scores": [0.8]}, {**truth[2], "scores": [0.7]}]
    del found[2]["image_id"]
    assert detmap.evaluate(truth, found)["AP50"] == pytest.approx(1)
    with pytest.raises(detmap.DataError, match="image_id: missing"):
        detmap.evaluate(truth[::-1], found[::-1])
