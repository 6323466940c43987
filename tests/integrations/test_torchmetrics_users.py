"""RF-DETR and LightlyTrain with detmap's metric in place of torchmetrics': their numbers."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs detmap-eval[test-torch]")
pytest.importorskip("torchmetrics", reason="needs detmap-eval[test-torch]")

from tests.compat.test_torchmetrics import batches, equal  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@contextmanager
def replaced(*modules: Any) -> Iterator[None]:
    """The modules, loaded with detmap's metric in place of torchmetrics'; the others after it."""
    from detmap.integrations.torchmetrics import MeanAveragePrecision

    with pytest.MonkeyPatch.context() as patch:
        for place in ("torchmetrics.detection", "torchmetrics.detection.mean_ap"):
            patch.setattr(f"{place}.MeanAveragePrecision", MeanAveragePrecision)
        for each in modules:
            importlib.reload(each)
        yield
    for each in modules:
        importlib.reload(each)


def masks(boxes: Any, size: int = 180) -> Any:
    found = torch.zeros((len(boxes), size, size), dtype=torch.bool)
    for i, (left, top, right, bottom) in enumerate(boxes.clamp(0, size).int().tolist()):
        found[i, top:bottom, left:right] = True
    return found


def filled(make: Callable[[], Any], update: str = "update", segments: bool = False) -> Any:
    metric = make()
    for both in batches("xyxy"):
        if segments:
            both = tuple([{**each, "masks": masks(each["boxes"])} for each in s] for s in both)
        getattr(metric, update)(*both)
    return metric


@pytest.mark.parametrize("kinds", ["bbox", ("bbox", "segm")], ids=str)
@pytest.mark.parametrize("limit", [100, 500])
def test_rf_detr_computes_the_same(kinds: Any, limit: int) -> None:
    """By the import, and as a backend of RF-DETR's own metric."""
    coco_map = pytest.importorskip("rfdetr.training.coco_map", reason="pip install rfdetr[train]")
    pytest.importorskip("faster_coco_eval", reason="pip install faster-coco-eval")
    from detmap.integrations.torchmetrics_backend import Backend

    def make() -> Any:
        options = {"iou_type": kinds, "class_metrics": True, "backend": "faster_coco_eval"}
        limits = [1, 10, limit]
        return coco_map.OnePassCocoMeanAveragePrecision(max_detection_thresholds=limits, **options)

    segments = "segm" in kinds
    expected = filled(make, segments=segments).compute()
    with replaced(coco_map):
        assert equal(filled(make, segments=segments).compute(), expected)

    class Detmap(Backend, coco_map._FasterCocoEvalBackend):  # type: ignore[misc,name-defined]
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(coco_map._BACKENDS, "faster_coco_eval", Detmap)
        metric = filled(make, segments=segments)
        assert isinstance(metric._coco_backend, Detmap)
        assert equal(metric.compute(), expected)
    name = "bbox_map" if segments else "map"
    assert 0 < expected[name] < 1


@pytest.mark.parametrize("backend", ["pycocotools", "faster_coco_eval", "auto"])
@pytest.mark.parametrize("task", ["detection", "instance_segmentation"])
def test_lightly_computes_the_same(task: str, backend: str) -> None:
    own = pytest.importorskip(
        "lightly_train._metrics.mean_average_precision", reason="pip install lightly-train"
    )
    pytest.importorskip("faster_coco_eval", reason="pip install faster-coco-eval")
    tasks = importlib.import_module(f"lightly_train._metrics.{task}.task_metric")
    importlib.reload(tasks)  # with the classes of `own`, which another test has loaded again
    segments = task != "detection"

    def make() -> Any:
        kind = "InstanceSegmentation" if segments else "ObjectDetection"
        arguments = getattr(tasks, f"{kind}TaskMetricArgs")(
            map=own.MeanAveragePrecisionArgs(backend=backend), classwise=True
        )
        options: dict[str, Any] = {"class_names": list("abcd"), "loss_names": ["loss"]}
        options |= {} if segments else {"box_format": "xyxy"}
        return getattr(tasks, f"{kind}TaskMetric")(
            task_metric_args=arguments, split="val", **options
        )

    def values() -> dict[str, float]:
        metric = filled(make, "update_with_predictions", segments)
        metric.update_with_losses({"loss": torch.tensor(0.5)}, weight=1)
        found: dict[str, float] = metric.compute_aggregated_values().metric_values
        return found

    expected = values()
    with replaced(own, tasks):
        base = own.MeanAveragePrecision.__mro__[1]
        assert base.__module__ == "detmap.integrations.torchmetrics"
        assert values() == expected
    assert any("classwise" in name for name in expected)
    assert all(0 < expected[name] < 1 for name in expected if name.endswith("/map"))
