"""`Result.flat` in MLflow, W&B and TensorBoard, each with a store on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.integrations import host_samples as sample

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


def test_tensorboard_keeps_every_number(tmp_path: Path, numbers: dict[str, float]) -> None:
    pytest.importorskip("tensorboard", reason="needs detmap-eval[tensorboard]")
    torch_writer = pytest.importorskip("torch.utils.tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with torch_writer.SummaryWriter(str(tmp_path)) as writer:
        for name, value in numbers.items():
            writer.add_scalar(name, value, 3)
        writer.add_text("detmap/signature", sample.expected().signature)
    events = EventAccumulator(str(tmp_path)).Reload()
    for name, value in numbers.items():
        assert events.Scalars(name)[0].value == np.float32(value)
