"""Boxes of the torchmetrics metric as columns, beside the dicts that torchmetrics creates."""

from typing import Any

import numpy as np
import pytest

from tests.support import stand_ins

torch = pytest.importorskip("torch", reason="needs detmap-eval[test-torch]")
pytest.importorskip("torchmetrics", reason="needs detmap-eval[test-torch]")

from tests.compat.test_torchmetrics import batches, equal  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Encountered more than:UserWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
SUMMARY = {"extended_summary": True, "class_metrics": True}
EMPTY = {"boxes": torch.tensor([]), "labels": torch.zeros(0, dtype=torch.int64)}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The path of each data set that a metric evaluates: columns or dicts."""
    stand_ins.torchvision(monkeypatch)
    from detmap.integrations.torchmetrics_backend import Backend, CocoBackend

    paths: list[str] = []
    for owner, name, path in (
        (Backend, "_datasets_of_boxes", "columns"),
        (CocoBackend, "_get_coco_datasets", "dicts"),
    ):
        monkeypatch.setattr(owner, name, noted(getattr(owner, name), paths, path))
    return paths


def noted(method: Any, paths: list[str], path: str) -> Any:
    def call(*arguments: Any, **options: Any) -> Any:
        found = method(*arguments, **options)
        paths.append(path)
        return found

    return call


def computed(rows: list[tuple[Any, Any]], dicts: bool = False, **options: Any) -> Any:
    """The values of all batches; by torchmetrics' dicts if `dicts`."""
    from detmap.compat.annotation_rows import Unusual
    from detmap.integrations.torchmetrics import MeanAveragePrecision
    from detmap.integrations.torchmetrics_backend import Backend

    def refuse(*arguments: Any) -> Any:
        raise Unusual

    metric = MeanAveragePrecision(**options)
    for predictions, targets in rows:
        metric.update(predictions, targets)
    with pytest.MonkeyPatch.context() as patch:
        if dicts:
            patch.setattr(Backend, "_datasets_of_boxes", refuse)
        return metric.compute()


def require_both(rows: list[tuple[Any, Any]], paths: list[str], **options: Any) -> Any:
    """Both paths give the same keys, bits, dtypes and shapes; returns the values."""
    found = computed(rows, **options)
    assert set(paths) == {"columns"}
    paths.clear()
    expected = computed(rows, dicts=True, **options)
    assert set(paths) == {"dicts"}
    assert list(found) == list(expected)
    assert equal(found, expected)
    return found


@pytest.mark.parametrize(
    "options",
    [
        SUMMARY,
        {**SUMMARY, "average": "micro"},
        {**SUMMARY, "backend": "faster_coco_eval", "max_detection_thresholds": [1, 2, 5]},
        {**SUMMARY, "iou_thresholds": [0.75, 0.3], "rec_thresholds": [0.5, 0.0, 1.0]},
        {"box_format": "cxcywh", "max_detection_thresholds": [1, 10, 300]},
    ],
    ids=str,
)
def test_both_paths_give_equal_bits(options: dict[str, Any], counted: list[str]) -> None:
    rows = list(batches(options.get("box_format", "xyxy")))
    assert float(require_both(rows, counted, **options)["map_50"]) != 0


@pytest.mark.parametrize("boxes", ["float16", "bfloat16", "float64", "int16", "int64", "mixed"])
@pytest.mark.parametrize("others", ["uint8", "int32"])
def test_both_paths_read_all_dtypes(boxes: str, others: str, counted: list[str]) -> None:
    rows = []
    for i, (predictions, targets) in enumerate(batches("xywh")):
        kind = getattr(torch, ("int64", "float64", "float32")[i % 3] if boxes == "mixed" else boxes)
        crowd = getattr(torch, ("bool", others)[i % 2])
        for side in (*predictions, *targets):
            side["boxes"], side["labels"] = (
                side["boxes"].to(kind),
                side["labels"].to(kind_of(others)),
            )
            if kind.is_floating_point and "scores" in side:
                side["scores"] = side["scores"].to(kind)
            if "area" in side:
                side["area"], side["iscrowd"] = side["area"].int(), side["iscrowd"].to(crowd)
        rows.append((predictions, targets))
    require_both(rows, counted, box_format="xywh", **SUMMARY)


def kind_of(name: str) -> Any:
    return getattr(torch, name)


def test_both_paths_read_images_without_boxes(counted: list[str]) -> None:
    one = {"boxes": torch.tensor([[1.0, 2, 30, 40]]), "labels": torch.tensor([3])}
    shown, nothing = {**one, "scores": torch.tensor([0.5])}, {**EMPTY, "scores": torch.zeros(0)}
    for rows in ([([nothing, shown], [EMPTY, one])], [([shown], [EMPTY])], [([nothing], [one])]):
        counted.clear()
        require_both(rows, counted, **SUMMARY)
        counted.clear()
        require_both(rows, counted, **SUMMARY, average="micro")


def test_dicts_are_created_if_the_boxes_have_no_area(counted: list[str]) -> None:
    """Their IoU is 0/0, which pycocotools' own code evaluates; it reads the columns as dicts."""
    point = {"boxes": torch.zeros(1, 4), "labels": torch.tensor([3]), "area": torch.tensor([9.0])}
    rows = [*batches("xyxy"), ([{**point, "scores": torch.tensor([0.5])}], [point])]
    require_both(rows, counted, class_metrics=True)


def no_class() -> Any:
    return [([{**EMPTY, "scores": torch.zeros(0)}], [EMPTY])]


def one_box(**values: Any) -> Any:
    target = {"boxes": torch.tensor([[1.0, 2, 30, 40]]), "labels": torch.tensor([3])} | values
    return [([{**target, "scores": torch.tensor([0.5])}], [target])]


@pytest.mark.parametrize(
    "rows",
    [
        no_class(),
        one_box(labels=torch.tensor([True])),
        one_box(iscrowd=torch.tensor([2])),
        one_box(iscrowd=torch.tensor([0.0])),
        one_box(area=torch.tensor([1e17], dtype=torch.float64)),
        one_box(boxes=torch.tensor([[0.0, 0, 1e9, 1e9]])),
        [*one_box(), ([{**EMPTY, "scores": torch.zeros(0), "labels": torch.tensor([])}], [EMPTY])],
    ],
    ids=["no class", "bool labels", "crowd 2", "float crowds", "area", "size", "float labels"],
)
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_unusual_values_take_the_dicts(rows: Any, average: str, counted: list[str]) -> None:
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    found = computed(rows, average=average)
    assert counted == ["dicts"]
    metric = MeanAveragePrecision(average=average)
    for each in rows:
        metric.update(*each)
    assert equal(found, metric.compute())


@pytest.mark.parametrize(
    "values",
    [
        {"labels": torch.tensor([1.0])},
        {"labels": torch.tensor([[1]])},
        {"scores": torch.tensor([1])},
        {"scores": torch.tensor([[0.5]])},
    ],
    ids=str,
)
def test_errors_are_those_of_torchmetrics(values: Any, counted: list[str]) -> None:
    target = one_box(**values)[0][1][0]
    shown = {"scores": torch.tensor([0.5])} | target
    with pytest.raises(ValueError, match=r"Invalid input (class|score) of sample 0, element 0"):
        computed([([shown], [target])])
    assert counted == []


def test_rows_are_those_of_the_dicts(counted: list[str]) -> None:
    from detmap.compat import COCO
    from detmap.compat.annotation_rows import from_records
    from detmap.integrations.torchmetrics import MeanAveragePrecision

    metric = MeanAveragePrecision()
    for predictions, targets in batches("xyxy"):
        metric.update(predictions, targets)
    names = ("labels", "box", "mask", "crowds", "area")
    states = [getattr(metric, f"groundtruth_{name}") for name in names]
    states += [getattr(metric, f"detection_{name}") for name in ("labels", "box", "mask", "scores")]
    for coco, scored in zip(
        metric._coco_backend._get_coco_datasets(*states, average="macro"),
        (True, False),
        strict=True,
    ):
        rows = coco.columns(scored=scored)
        assert type(coco) is COCO
        assert len(coco.imgs) == 20
        assert rows is coco.columns(scored=scored)
        records = from_records(coco.dataset["annotations"], scored=scored)
        assert coco.columns(scored=scored) is None
        for name in ("boxes", "area", "score", "crowd", "ids"):
            np.testing.assert_array_equal(getattr(rows, name), getattr(records, name), name)
        for ids, codes in (("image_ids", "image"), ("category_ids", "category")):
            pairs = [np.array(getattr(r, ids))[getattr(r, codes)] for r in (rows, records)]
            np.testing.assert_array_equal(*pairs)
