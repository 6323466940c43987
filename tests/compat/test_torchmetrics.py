"""torchmetrics' `MeanAveragePrecision`, unmodified: equal results with and without the patch.

It takes one function of torchvision, ``box_convert``, and there is no torchvision for CPU torch
on the package index. Where it is missing, a stand-in of that one function is used; nothing else
of torchmetrics is touched."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from detmap.compat import COCOeval, patch_pycocotools
from tests.support import stand_ins

torch = pytest.importorskip(
    "torch",
    reason="pip install 'detmap-eval[test-torch]' to run third-party metrics under the patch",
)
pytest.importorskip(
    "torchmetrics",
    reason="pip install 'detmap-eval[test-torch]' to run third-party metrics under the patch",
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk"),
    # torchmetrics, of detections beyond the limit
    pytest.mark.filterwarnings("ignore:Encountered more than:UserWarning"),
    # of pycocotools under NumPy 2
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one, or the stand-in."""
    stand_ins.torchvision(monkeypatch)


def batches(box_format: str, n_classes: int = 4) -> Iterator[tuple[list[Any], list[Any]]]:
    """Predictions and targets of several batches, crowds, areas and empty images among them."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        predictions, targets = [], []
        for _ in range(5):
            n = int(rng.integers(0, 6))
            boxes = np.column_stack([rng.uniform(0, 50, (n, 2)), rng.uniform(5, 120, (n, 2))])
            labels = rng.integers(0, n_classes, n)
            found = np.repeat(boxes, 3, axis=0) + rng.normal(0, 3, (3 * n, 4))
            found[:, 2:] = np.abs(found[:, 2:]) + 1
            if box_format == "xyxy":
                boxes[:, 2:] += boxes[:, :2]
                found[:, 2:] += found[:, :2]
            targets.append(
                {
                    "boxes": torch.tensor(boxes, dtype=torch.float32),
                    "labels": torch.tensor(labels),
                    "iscrowd": torch.tensor((rng.random(n) < 0.15).astype(int)),
                    "area": torch.tensor(
                        rng.uniform(0, 2e4, n) * (rng.random(n) < 0.5), dtype=torch.float32
                    ),
                }
            )
            predictions.append(
                {
                    "boxes": torch.tensor(found, dtype=torch.float32),
                    "labels": torch.tensor(np.repeat(labels, 3)),
                    "scores": torch.tensor(rng.random(3 * n).round(2), dtype=torch.float32),
                }
            )
        yield predictions, targets


def compute(**options: Any) -> dict[str, Any]:
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    metric = MeanAveragePrecision(**options)
    for predictions, targets in batches(options.get("box_format", "xyxy")):
        metric.update(predictions, targets)
    computed: dict[str, Any] = metric.compute()
    return computed


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    return bool(a == b)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"class_metrics": True},
        {"extended_summary": True},
        {"class_metrics": True, "extended_summary": True},
        {"average": "micro", "class_metrics": True},
        {"box_format": "cxcywh"},
        {"box_format": "xywh"},
        {"iou_thresholds": [0.75, 0.3], "rec_thresholds": [0.0, 0.5, 1.0], "class_metrics": True},
        {"max_detection_thresholds": [1, 2, 5]},
        {"max_detection_thresholds": [1, 10, 300], "extended_summary": True},
    ],
    ids=str,
)
def test_equal_with_and_without(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = compute(**options)
    native = []
    judge = COCOeval.evaluate

    def watched(self: COCOeval) -> None:
        judge(self)
        native.append(self._evaluated is not None)

    monkeypatch.setattr(COCOeval, "evaluate", watched)
    with patch_pycocotools():
        found = compute(**options)
    assert native, "the patch was reached"
    assert all(native), "detmap's engine did it"
    assert float(expected["map_50"]) > 0 or "iou_thresholds" in options
    if 100 not in options.get("max_detection_thresholds", [100]):  # pycocotools prints -1
        precision = compute(**options | {"extended_summary": True})["precision"][..., 0, -1]
        assert float(expected["map"]) == -1
        expected["map"] = precision[precision > -1].mean()
        assert float(found["map"]) == pytest.approx(float(expected["map"]), abs=1e-6)
        expected["map"] = found["map"]
    assert equal(expected, found)


def test_masks_are_equal_with_and_without() -> None:
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    rng = np.random.default_rng(1)
    masks = torch.tensor(rng.random((3, 20, 20)) < 0.5)
    prediction = {"masks": masks, "scores": torch.tensor([0.9, 0.5, 0.7])}
    prediction["labels"] = torch.tensor([0, 1, 1])

    def compute_masks() -> Any:
        metric = MeanAveragePrecision(iou_type="segm")
        metric.update(
            [prediction], [{"masks": masks.roll(1, 0), "labels": torch.tensor([1, 1, 0])}]
        )
        return metric.compute()

    expected = compute_masks()
    with patch_pycocotools():
        found = compute_masks()
    assert equal(expected, found)
