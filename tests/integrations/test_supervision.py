"""`detmap.integrations.supervision` beside supervision itself."""

from typing import Any

import numpy as np
import pytest

from tests.integrations import host_samples as sample

sv = pytest.importorskip("supervision", reason="needs detmap-eval[supervision]")


def detections(fields: dict[str, Any]) -> Any:
    if not len(fields["labels"]):
        return sv.Detections.empty()
    options = {"data": {name: fields[name] for name in ("iscrowd", "area") if name in fields}}
    if "scores" in fields:
        options["confidence"] = fields["scores"]
    return sv.Detections(
        xyxy=fields["boxes"].astype(np.float32), class_id=fields["labels"], **options
    )


def filled(metric: Any) -> Any:
    found = [detections(each) for each in sample.predictions().values()]
    known = [detections(each) for each in sample.targets().values()]
    metric.update(found[:30], known[:30])
    for pair in zip(found[30:], known[30:], strict=True):
        metric.update(*pair)
    return metric


@pytest.mark.slow
def test_numbers_equal_those_of_the_files_and_of_supervision() -> None:
    from supervision.metrics import MeanAveragePrecision

    from detmap.integrations.supervision import DetmapMetric

    ours = filled(DetmapMetric()).compute()
    assert ours.map50_95 == sample.expected().metrics["AP"]
    assert ours.to_pandas()["AP50"][0] == ours.map50
    assert len(ours._get_plot_details(include_object_sizes=False).labels) == 6
    same = filled(DetmapMetric("supervision")).compute()
    theirs = filled(MeanAveragePrecision()).compute()
    for name in ("map50_95", "map50", "map75"):
        assert getattr(same, name) == getattr(theirs, name), name
    for size in ("small_objects", "medium_objects", "large_objects"):
        own, other = getattr(same, size), getattr(theirs, size)
        for name in ("map50_95", "map50", "map75"):
            assert getattr(own, name) == pytest.approx(getattr(other, name), abs=1e-12), name
    for name in ("mAP_scores", "ap_per_class", "iou_thresholds", "matched_classes"):
        assert np.allclose(getattr(same, name), getattr(theirs, name), rtol=0, atol=1e-12), name


def test_nothing_and_empty_images_and_bad_input() -> None:
    from detmap.integrations.supervision import DetmapMetric

    assert DetmapMetric().compute().map50_95 == -1  # as supervision's own
    empty = sv.Detections.empty()
    assert DetmapMetric().update(empty, empty).compute().map50 == -1
    assert np.isnan(DetmapMetric("voc2007").compute().map75)
    with pytest.raises(ValueError, match="DetmapMetric: protocol: no protocol 'foo'"):
        DetmapMetric("foo")
    with pytest.raises(ValueError, match="2 predictions for 1 targets"):
        DetmapMetric().update([empty, empty], [empty])
    with pytest.raises(ValueError, match=r"predictions\[0\]: a NoneType .give supervision.Detec"):
        DetmapMetric().update(None, empty)


def test_ignore_is_read_from_the_data() -> None:
    from detmap.integrations.supervision import DetmapMetric

    boxes, classes = np.array([[10, 10, 50, 50], [100, 100, 150, 150.0]]), np.array([0, 0])
    found = sv.Detections(boxes[:1], class_id=classes[:1], confidence=np.array([0.9]))
    values = []
    for data in ({}, {"ignore": np.array([0, 1])}):
        known = sv.Detections(boxes, class_id=classes, data=data)
        values.append(DetmapMetric("lvis").update(found, known).compute().map50)
    assert values == pytest.approx([51 / 101, 1])
