"""Hugging Face: the `evaluate` module, the Trainer's metrics, the model card."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from detmap.cli import main
from tests.integrations import host_samples as sample

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    evaluate = pytest.importorskip("evaluate", reason="needs detmap-eval[huggingface]")
    from detmap.integrations.evaluate import PATH

    monkeypatch.setattr("evaluate.config.HF_MODULES_CACHE", tmp_path)
    return evaluate.load(PATH, cache_dir=str(tmp_path))


def plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value.tolist() if hasattr(value, "tolist") else value for key, value in fields.items()
    }


def test_the_metric_in_batches_equals_the_files(metric: Any) -> None:
    found = [plain(each) for each in sample.predictions().values()]
    known = [plain(each) for each in sample.targets().values()]
    for part in (slice(0, 25), slice(25, None)):
        metric.add_batch(predictions=found[part], references=known[part])
    computed = metric.compute(
        classes={str(k): v for k, v in sample.names().items()}, per_class=True
    )
    expected = sample.expected()
    assert computed.pop("signature").split("|data")[0] == expected.signature.split("|data")[0]
    assert computed == expected.flat(classes=True)


def evaluated(torch: Any) -> Any:
    """What the Trainer passes, of a model that is certain of three boxes in two images."""
    logits = np.full((2, 3, 4), -9.0, np.float32)  # the last class is "no object"
    boxes = np.full((2, 3, 4), 0.5, np.float32)
    for image, query, label, box in (
        (0, 0, 1, (0.25, 0.25, 0.5, 0.5)),
        (0, 1, 2, (0.75, 0.75, 0.25, 0.5)),
        (1, 0, 0, (0.5, 0.5, 1.0, 1.0)),
    ):
        logits[image, query, label] = 9
        boxes[image, query] = box
    labels = [
        {
            "boxes": boxes[image, :n],
            "class_labels": np.array(classes),
            "orig_size": np.array(size),
            "image_id": np.array([image]),
        }
        for image, n, classes, size in ((0, 2, [1, 2], (40, 60)), (1, 1, [0], (200, 100)))
    ]
    one = ({}, torch.tensor(logits).numpy(), boxes)
    return SimpleNamespace(predictions=[one], label_ids=[labels])


def test_metrics_of_the_trainer() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers", reason="needs detmap-eval[transformers]")
    from detmap.integrations.transformers import compute_metrics

    processor = transformers.YolosImageProcessor()
    compute = compute_metrics(processor, {0: "cat", 1: "dog", 2: "owl"}, classes=True)
    given = evaluated(torch)
    assert compute(given)["per_class/AP/owl"] == pytest.approx(1)
    assert compute.result.metrics["AR100"] == pytest.approx(1)
    given.predictions = given.predictions[0]
    with pytest.raises(ValueError, match="eval_do_concat_batches=False"):
        compute(given)


def test_batches_of_the_trainer_that_are_refused() -> None:
    torch = pytest.importorskip("torch")
    from detmap.integrations.transformers import compute_metrics

    processor = SimpleNamespace(post_process_object_detection=lambda *_, **__: [])
    compute = compute_metrics(processor, {0: "cat"})
    (output,), (labels,) = evaluated(torch).predictions, evaluated(torch).label_ids
    loss, logits, boxes = output
    diverged = np.where(np.arange(2)[:, None, None] == 1, np.nan, logits)
    for predictions, label_ids, message in (
        ([output, output], [labels], "label_ids: 1 batches of labels for 2 of predictions"),
        ([(loss, logits)], [labels], r"predictions\[0\]: shapes \[\(2, 3, 4\)\] for 2 images"),
        ([output], [labels[:1]], r"predictions\[0\]: shapes .* for 1 images"),
        ([(loss, diverged, boxes)], [labels], r"predictions\[0\]: logits\[1\]: not a number"),
        ([output], [[labels[0], {}]], r"label_ids\[0\]\[1\]: no 'boxes'"),
    ):
        with pytest.raises(ValueError, match=message):
            compute(SimpleNamespace(predictions=predictions, label_ids=label_ids))


def test_tensors_of_half_precision() -> None:
    torch = pytest.importorskip("torch")
    from detmap.integrations.transformers import compute_metrics

    nothing = {"boxes": torch.zeros(0, 4), "scores": torch.zeros(0), "labels": torch.zeros(0)}
    processor = SimpleNamespace(post_process_object_detection=lambda *_, **__: [nothing, nothing])
    compute = compute_metrics(processor, {0: "cat", 1: "dog", 2: "owl"})
    (output,), labels = evaluated(torch).predictions, evaluated(torch).label_ids
    half = ({}, *(torch.tensor(each).bfloat16() for each in output[1:]))
    assert compute(SimpleNamespace(predictions=[half], label_ids=labels))["AP"] == 0


def test_the_model_card_has_the_receipt(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="needs detmap-eval[huggingface]")
    from detmap.integrations.huggingface_hub import eval_results

    receipt = tmp_path / "run.json"
    main(["eval", str(sample.TRUTH), str(sample.FOUND), "--receipt", str(receipt)])
    made = eval_results(receipt, "shapes", "Shapes", "test")
    card = hub.ModelCardData(model_name="contours", eval_results=made).to_yaml()
    assert str(sample.expected().metrics["AP"]) in card
    assert sample.expected().signature in card.replace("\n", "").replace(" ", "")
    with pytest.raises(ValueError, match="'AP9'"):
        eval_results(receipt, "shapes", "Shapes", metrics=["AP9"])
    receipt.write_text(receipt.read_text().replace(str(sample.expected().metrics["AP"]), "0.9"))
    with pytest.raises(ValueError, match="was edited"):
        eval_results(receipt, "shapes", "Shapes")
