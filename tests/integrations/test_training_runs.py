"""Errors of detmap inside a training run of a host: one warning, and the run continues.

The hosts are stand-ins, so that this runs without them.
"""

import logging
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.integrations import host_samples as sample
from tests.support import stand_ins

LABELS = {identifier: label for label, identifier in enumerate(sorted(sample.names()))}
NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl")


@pytest.fixture(autouse=True)
def modules_are_made_anew() -> Iterator[None]:
    yield
    for host in ("mmengine", "detectron2"):
        sys.modules.pop(f"detmap.integrations.{host}", None)


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("broken on purpose")


def label_of(found: dict[str, Any]) -> list[int]:
    return [LABELS[each] for each in found["labels"].tolist()]


class MMEngine:
    """`Runner.train` with a `DetmapMetric`."""

    name, process, evaluate = "mmengine", "rows", "evaluate"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, logged: list[str]) -> None:
        modules = stand_ins.mmengine(logged)
        module = stand_ins.packages(monkeypatch, "detmap.integrations.mmengine", modules)
        self.metric = module.DetmapMetric(sample.TRUTH)
        self.metric.dataset_meta = {"classes": tuple(sample.names().values())}

    def epoch(self) -> Any:
        samples = []
        for image, found in sample.predictions().items():
            fields = {"bboxes": found["boxes"], "scores": found["scores"]}
            fields["labels"] = np.array(label_of(found))
            samples.append({"img_id": image, "pred_instances": fields})
        self.metric.process(None, samples[:7])
        self.metric.process(None, samples[7:] + samples[-2:])  # a padded tail
        assert len(self.metric.results) == len(samples) + 2
        return self.metric.evaluate(len(samples))

    def is_right(self, metrics: Any) -> bool:
        return bool(metrics["coco/bbox_mAP"] == sample.expected().metrics["AP"])

    def is_missing(self, metrics: Any) -> bool:
        return len(metrics) == 6 and all(np.isnan(each) for each in metrics.values())


class Detectron2:
    """`TrainerBase.train` with a `DetmapEvaluator`."""

    name, process, evaluate = "detectron2", "rows", "evaluate"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, logged: list[str]) -> None:
        modules = stand_ins.detectron2()
        module = stand_ins.packages(monkeypatch, "detmap.integrations.detectron2", modules)
        self.evaluator = module.DetmapEvaluator(sample.TRUTH)

    def epoch(self) -> Any:
        self.evaluator.reset()
        for image, fields in sample.predictions().items():
            found = SimpleNamespace(
                pred_boxes=SimpleNamespace(tensor=fields["boxes"]),
                scores=fields["scores"],
                pred_classes=np.array(label_of(fields), dtype=int),
            )
            found.to = lambda _, found=found: found
            self.evaluator.process([{"image_id": image}], [{"instances": found}])
        return self.evaluator.evaluate()

    def is_right(self, metrics: Any) -> bool:
        return bool(metrics["bbox"]["AP"] == 100 * sample.expected().metrics["AP"])

    def is_missing(self, metrics: Any) -> bool:
        return dict(metrics) == {}


HOSTS: dict[str, Any] = {"mmengine": MMEngine, "detectron2": Detectron2}


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings, of a host's logger too."""
    texts: list[str] = []
    for host in ("detectron2", "transformers"):
        logger = logging.getLogger(f"{host}.detmap")
        monkeypatch.setattr(logger, "warning", lambda text, *_: texts.append(str(text)))
    return texts


@pytest.mark.parametrize("hook", ["process", "evaluate"])
@pytest.mark.parametrize("name", HOSTS)
def test_a_failure_is_one_warning_and_the_run_continues(
    name: str, hook: str, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    run = HOSTS[name](monkeypatch, logged)
    train = stand_ins.training_run(name)
    assert run.is_right(train(run.epoch))
    with monkeypatch.context() as broken:
        broken.setattr(f"detmap.integrations.inputs.coco_rows.{getattr(run, hook)}", fail)
        assert run.is_missing(train(run.epoch))
        assert run.is_missing(train(run.epoch))
        assert len(logged) == 1
        assert "no numbers in this training run" in logged[0]
        assert "broken on purpose" in logged[0]
    assert run.is_missing(train(run.epoch))  # as the warning says
    assert len(logged) == 1
    if name == "mmengine":
        run.metric.results.clear()
    assert run.is_right(run.epoch())  # a validation after the training run


@pytest.mark.parametrize("name", HOSTS)
def test_a_failure_outside_of_a_training_run_is_raised(
    name: str, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    run = HOSTS[name](monkeypatch, logged)
    monkeypatch.setattr("detmap.integrations.inputs.coco_rows.evaluate", fail)
    for around in (lambda epoch: epoch(), stand_ins.training_run("another_package")):
        with pytest.raises(RuntimeError, match="broken on purpose"):
            around(run.epoch)
        if name == "mmengine":
            run.metric.results.clear()
    assert not logged


def test_a_failure_of_another_rank_is_a_warning(monkeypatch: Any, logged: list[str]) -> None:
    first, second = MMEngine(monkeypatch, logged), Detectron2(monkeypatch, logged)
    run = stand_ins.training_run("mmengine")
    metrics = run(lambda: first.metric.compute_metrics([None]))
    assert set(map(str, metrics.values())) == {"nan"}
    comm = sys.modules["detectron2.utils"].comm
    monkeypatch.setattr(comm, "gather", lambda rows, dst: [rows, None])
    assert second.is_missing(stand_ins.training_run("detectron2")(second.epoch))
    assert len(logged) == 2
    assert all("a rank failed (see its warning)" in each for each in logged)


def test_the_trainer_of_transformers_continues(monkeypatch: Any, logged: list[str]) -> None:
    torch = ModuleType("torch")
    torch.tensor = np.asarray  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    from detmap.integrations.transformers import compute_metrics

    found = {"boxes": np.array([[0, 0, 5, 5.0]]), "scores": np.array([0.5]), "labels": [0]}
    processor = SimpleNamespace(post_process_object_detection=lambda *_, **__: [found])
    label = {"boxes": np.array([[0.25, 0.25, 0.5, 0.5]]), "class_labels": np.array([0])}
    label |= {"image_id": np.array([1]), "orig_size": np.array([10, 10])}
    arrays = (np.zeros((1, 1, 2)), np.zeros((1, 1, 4)))
    good = SimpleNamespace(predictions=[arrays], label_ids=[[label]])
    bad = SimpleNamespace(predictions=arrays, label_ids=[[label]])
    compute, train = compute_metrics(processor, {0: "cat"}), stand_ins.training_run("transformers")
    assert train(lambda: compute(good))["AP"] == pytest.approx(1)
    with pytest.raises(ValueError, match=r"compute_metrics: predictions: batches were concat"):
        compute(bad)
    for given in (bad, bad, good):
        metrics = train(lambda given=given: compute(given))
        assert set(NAMES) <= set(metrics)  # `metric_for_best_model` finds its name
        assert all(np.isnan(each) for each in metrics.values())
    assert len(logged) == 1
    assert "batches were concatenated" in logged[0]
    assert compute(good)["AP"] == pytest.approx(1)
