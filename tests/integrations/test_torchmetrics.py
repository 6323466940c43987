"""`detmap.integrations.torchmetrics` beside torchmetrics itself."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.support import stand_ins
from tests.support.builders import ROOT

torch = pytest.importorskip("torch", reason="needs detmap-eval[test-torch]")
pytest.importorskip("torchmetrics", reason="needs detmap-eval[test-torch]")

from tests.compat.test_torchmetrics import batches, equal  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Encountered more than:UserWarning"),
    pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.torchvision(monkeypatch)


def original(**options: Any) -> Any:
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    return MeanAveragePrecision(**options)


def ours(**options: Any) -> Any:
    from detmap.integrations.torchmetrics import MeanAveragePrecision

    return MeanAveragePrecision(**options)


def filled(metric: Any) -> Any:
    for predictions, targets in batches(metric.box_format):
        metric.update(predictions, targets)
    return metric


@pytest.mark.parametrize(
    "options",
    [
        {"class_metrics": metrics, "average": average, "box_format": form}
        for metrics, average, form in itertools.product(
            (False, True), ("macro", "micro"), ("xyxy", "xywh", "cxcywh")
        )
    ]
    + [
        {"extended_summary": True},
        {"iou_thresholds": [0.3, 0.75], "rec_thresholds": [0.0, 0.5, 1.0]},
        {"max_detection_thresholds": [1, 2, 5], "class_metrics": True},
    ],
    ids=str,
)
def test_every_key_is_equal(options: dict[str, Any]) -> None:
    assert equal(filled(ours(**options)).compute(), filled(original(**options)).compute())


def test_a_metric_without_images_and_with_images_without_boxes() -> None:
    with pytest.warns(UserWarning, match="before the ``update`` method"):
        assert equal(ours().compute(), original().compute())
    empty = {"boxes": torch.zeros((0, 4)), "labels": torch.zeros(0, dtype=torch.int64)}
    pair = ([{**empty, "scores": torch.zeros(0)}], [empty])
    values = []
    for metric in (ours(), original()):
        metric.update(*pair)
        values.append(metric.compute())
    assert equal(*values)


def test_forward_gives_the_batch_and_keeps_the_whole() -> None:
    one, other = ours(), original()
    for predictions, targets in batches("xyxy"):
        assert equal(one(predictions, targets), other(predictions, targets))
    assert equal(one.compute(), other.compute())


def test_bad_input_is_the_hosts_own_error() -> None:
    with pytest.raises(ValueError, match="same length"):
        ours().update([{}], [])
    with pytest.raises(ValueError, match="box_format"):
        ours(box_format="yxyx")


def test_the_result_has_the_same_numbers_and_more() -> None:
    metric = filled(ours())
    computed, result = metric.compute(), metric.result
    for name in ("map", "map_50", "map_75", "mar_1", "mar_100", "map_large"):
        assert result.metrics[name] == pytest.approx(float(computed[name]), abs=1e-7), name
    named = filled(ours(protocol="coco-bbox")).result
    assert named.signature.startswith("coco-bbox.")
    assert named.intervals(replicates=20).metrics["AP"].se > 0
    with pytest.raises(detmap.DetmapError, match="iou_type"):
        _ = ours(iou_type="segm").result


def test_limits_have_their_rows_in_the_result() -> None:
    metric = filled(ours(max_detection_thresholds=[1, 2, 5]))
    computed, result = metric.compute(), metric.result
    for limit in (1, 2, 5):
        name = f"mar_{limit}"
        assert result.metrics[name] == pytest.approx(float(computed[name]), abs=1e-7)


def test_merged_states_are_one_run_with_tied_scores() -> None:
    parts = list(batches("xyxy"))
    whole, one, other = ours(), ours(), ours()
    for k, (predictions, targets) in enumerate(parts):
        for row in predictions:
            row["scores"] = row["scores"].round(decimals=1)
        whole.update(predictions, targets)
        (one if k < 2 else other).update(predictions, targets)
    state = pickle.loads(pickle.dumps(other.metric_state))
    copied = ours()
    copied.merge_state(one)
    one.merge_state(other)
    copied.merge_state(state)
    assert equal(one.compute(), whole.compute())
    assert equal(copied.compute(), whole.compute())
    with pytest.raises(ValueError, match="Expected"):
        one.merge_state(3)


RANK = """
import sys, pytest, torch
from tests.support import stand_ins
patch = pytest.MonkeyPatch(); stand_ins.torchvision(patch)
from detmap.integrations.torchmetrics import MeanAveragePrecision
from tests.compat.test_torchmetrics import batches
rank, place, share = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
start = torch.distributed.init_process_group
start("gloo", init_method=f"file://{place}/store", rank=rank, world_size=2)
metric = MeanAveragePrecision(class_metrics=True)
mine = list(batches("xyxy"))[:share] if rank == 0 else list(batches("xyxy"))[share:]
for predictions, targets in mine:
    metric.update(predictions, targets)
computed = metric.compute()
torch.save((computed, len(metric.groundtruth_labels)), f"{place}/{rank}.pt")
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize("share", [3, 4], ids=["uneven", "empty rank"])
def test_ranks_with_different_numbers_of_images(tmp_path: Path, share: int) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RANK, str(rank), str(tmp_path), str(share)],
            cwd=ROOT,
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    expected = filled(ours(class_metrics=True)).compute()
    for rank, images in enumerate((5 * share, 20 - 5 * share)):
        computed, own = torch.load(tmp_path / f"{rank}.pt")
        assert equal(computed, expected)
        assert own == images


def test_boxes_of_half_precision_are_read() -> None:
    metric = ours()
    box = torch.tensor([[1.0, 2.0, 30.0, 40.0]], dtype=torch.bfloat16)
    label = torch.tensor([3])
    metric.update(
        [{"boxes": box, "labels": label, "scores": torch.tensor([0.5], dtype=torch.bfloat16)}],
        [{"boxes": box, "labels": label}],
    )
    assert metric.result.metrics["map"] == 1.0
    assert np.isclose(float(metric.compute()["map"]), 1.0)
