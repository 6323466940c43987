"""`detmap.integrations.fiftyone` with samples of FiftyOne in memory, without its database."""

from typing import Any

import pytest

from tests.integrations import host_samples as sample

fiftyone = pytest.importorskip("fiftyone", reason="needs detmap-eval[fiftyone]")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def labels(fields: dict[str, Any], height: int, width: int) -> Any:
    found = []
    for i, (x, y, right, bottom) in enumerate(fields["boxes"].tolist()):
        box = [x / width, y / height, (right - x) / width, (bottom - y) / height]
        options = {"confidence": fields["scores"][i]} if "scores" in fields else {}
        if "iscrowd" in fields:
            options["iscrowd"] = bool(fields["iscrowd"][i])
        name = sample.names()[int(fields["labels"][i])]
        found.append(fiftyone.Detection(label=name, bounding_box=box, **options))
    return fiftyone.Detections(detections=found)


def samples() -> list[Any]:
    made = []
    predictions, targets = sample.predictions(), sample.targets()
    for image, (height, width) in sample.sizes().items():
        one = fiftyone.Sample(filepath=f"/images/{image}.jpg")
        one["ground_truth"] = labels(targets[image], height, width)
        one["predictions"] = labels(predictions[image], height, width)
        one.metadata = fiftyone.ImageMetadata(width=width, height=height)
        made.append(one)
    return made


def backend(**options: Any) -> Any:
    from detmap.integrations.fiftyone import DetmapEvaluationConfig

    config = DetmapEvaluationConfig("predictions", "ground_truth", classwise=True, **options)
    assert config.method == "detmap"
    made = config.build()
    made.gt_field, made.pred_field = "ground_truth", "predictions"
    return made


def test_matches_are_those_of_fiftyone_and_metrics_those_of_the_files() -> None:
    from fiftyone.utils.eval.coco import COCOEvaluation, COCOEvaluationConfig

    own = COCOEvaluation(
        COCOEvaluationConfig("predictions", "ground_truth", iou=0.5, classwise=True)
    )
    own.gt_field, own.pred_field = "ground_truth", "predictions"
    ours, found = backend(iou=0.5), samples()
    matches = []
    for one in found:
        matches += ours.evaluate(one, "eval")
    assert len(matches) == sum(len(own.evaluate(one, "other")) for one in samples())
    results = ours.generate_results(None, matches)
    expected = sample.expected().metrics
    # Fractions of the image change the last bits of boxes.
    assert results.detmap.metrics["AP"] == pytest.approx(expected["AP"], abs=2e-4)
    assert results.metrics()["AP50"] == results.detmap.metrics["AP50"]


def test_a_sample_without_size_is_a_value_error() -> None:
    one = samples()[0]
    one.metadata = None
    with pytest.raises(ValueError, match=r"1.jpg: the size .* \(call compute_metadata\(\)\)"):
        backend(iou=0.5).evaluate(one)


def test_a_field_that_is_missing_is_named() -> None:
    one, ours = samples()[0], backend(iou=0.5)
    ours.pred_field = "yolo"
    with pytest.raises(ValueError, match=r"1.jpg: no detections in a field 'yolo' \(give"):
        ours.evaluate(one)
