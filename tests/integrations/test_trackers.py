"""`Result.flat` in MLflow, W&B and TensorBoard, each with a store on disk."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.integrations.worst_images import worst_images
from tests.integrations import host_samples as sample
from tests.support import builders as make

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def numbers() -> dict[str, float]:
    """Metrics, classes with names that trackers refuse, and intervals."""
    box = np.array([[1, 2, 30, 40.0]])
    names = ["person & co", "Straße/100 %", "猫:@x"]
    ev = detmap.Evaluator(classes=names)
    for label in range(3):
        image = {"boxes": box, "labels": [label]}
        ev.update([{**image, "scores": [0.5]}], [image])
    odd = ev.compute()
    result = sample.expected()
    return odd.flat("odd/", classes=True) | result.flat(
        "val/", classes=True, intervals=result.intervals()
    )


def test_mlflow_keeps_every_number(tmp_path: Path, numbers: dict[str, float]) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs detmap-eval[mlflow]")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = mlflow.create_experiment("x", artifact_location=str(tmp_path / "artifacts"))
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_metrics(numbers, step=3)
        mlflow.set_tag("detmap.signature", sample.expected().signature)
        mlflow.log_dict(sample.expected().to_dict(), "detmap/result.json")
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.metrics == numbers
    assert kept.tags["detmap.signature"] == sample.expected().signature


def test_wandb_keeps_every_number(
    tmp_path: Path, numbers: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason="needs detmap-eval[wandb]")
    monkeypatch.setenv("WANDB_MODE", "offline")
    with wandb.init(dir=str(tmp_path), project="x") as run:
        run.define_metric("val/*", step_metric="epoch")
        run.log({"epoch": 3, **numbers})
        run.summary["detmap/signature"] = sample.expected().signature
        kept: Any = dict(run.summary)
    assert {name: kept[name] for name in numbers} == numbers


def test_both_keep_the_worst_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb", reason="needs detmap-eval[wandb]")
    worst = worst_images(detmap.diagnose(sample.TRUTH, sample.FOUND), make.SHAPES / "JPEGImages", 2)
    monkeypatch.setenv("WANDB_MODE", "offline")
    with wandb.init(dir=str(tmp_path), project="x") as run:
        pictures = [wandb.Image(str(each.path), boxes=each.wandb_boxes()) for each in worst]
        run.log({"worst": pictures})
        kept = {name: len(each._val) for name, each in pictures[0]._boxes.items()}
    assert kept == {
        "ground_truth": worst[0].errors.objects,
        "detections": worst[0].errors.tp + worst[0].errors.fp,
    }
    mlflow = pytest.importorskip("mlflow", reason="needs detmap-eval[mlflow]")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = mlflow.create_experiment("y", artifact_location=str(tmp_path / "artifacts"))
    with mlflow.start_run(experiment_id=experiment):
        for each in worst:
            mlflow.log_image(each.drawn(), f"worst/{each.path.name}.png")
    assert len([*tmp_path.rglob("worst/*.png")]) == 2


def with_torch(folder: str) -> Any:
    return pytest.importorskip("torch.utils.tensorboard", exc_type=ImportError).SummaryWriter(
        folder
    )


def without_torch(folder: str) -> Any:
    from tensorboard.summary import Writer

    return closing(Writer(folder))


@pytest.mark.parametrize("writer", [with_torch, without_torch])
def test_tensorboard_keeps_numbers(tmp_path: Path, numbers: dict[str, float], writer: Any) -> None:
    pytest.importorskip("tensorboard", reason="needs detmap-eval[tensorboard]")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    with writer(str(tmp_path)) as opened:
        for name, value in numbers.items():
            opened.add_scalar(name, value, 3)
    events = EventAccumulator(str(tmp_path)).Reload()
    known = events.Tags()
    for name, value in numbers.items():
        if name in known["scalars"]:
            (event,) = events.Scalars(name)
            kept = event.value
        else:
            (event,) = events.Tensors(name)
            kept = make_ndarray(event.tensor_proto).item()
        assert (event.step, kept) == (3, np.float32(value)), name
