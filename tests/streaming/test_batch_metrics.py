"""Precision, recall and F1 of the last batch: those of an evaluator with this batch alone."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from detmap import DataError, Evaluator, ProtocolError
from detmap.core.protocol.load_toml import load, names, tools
from detmap.core.protocol.named_columns import named_columns
from tests.streaming import test_shapes_and_classes as shapes
from tests.streaming.test_evaluator import per_image, plain
from tests.support.drawing import CocoData, coco_data
from tests.support.drawn_tables import read_coco
from tests.support.tier import drawn

# Rules under which lower scores matter, or that take the general way.
CHANGED: list[tuple[str, dict[str, Any]]] = [
    ("coco-bbox", {"limits.max_dets": [1, 2]}),
    ("coco-bbox", {"limits.max_dets": [2], "limits.order": "input", "metrics": ["AP"]}),
    ("coco-bbox", {"boxes.precision": "float32"}),
    ("coco-bbox", {"detections.score_scale": "min_max"}),
    ("coco-bbox", {"detections.score_order": "input"}),
    ("coco-bbox", {"limits.scope": "image", "boxes.empty": "drop"}),
]


@cache
def rules() -> list[tuple[str, dict[str, Any]]]:
    """Protocols of boxes that need no key of their own, and changed ones."""
    every = [load(name) for name in (*names(), *tools())]
    plain = [
        each.name
        for each in every
        if each.supports("Evaluator")
        and each.evaluation.rule == "matching"
        and each.boxes.clip == "no"
        and each.iou.of == "boxes"
        and not any(named_columns(each))
    ]
    return CHANGED * 3 + [(name, {}) for name in plain]


def require_same(stream: Evaluator, alone: Evaluator, score: float, **how: Any) -> None:
    """The row of the last batch is that of an evaluator with this batch alone."""
    expected = alone.compute().at(score, **how).micro
    assert repr(stream.batch_metrics(score, **how)) == repr(expected)


@pytest.mark.slow
@settings(max_examples=drawn(300))
@given(
    coco_data(zero_id=True),
    st.deferred(lambda: st.sampled_from(rules())),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    st.sampled_from(["given", "as they come", "of the truth"]),
)
def test_boxes_of_any_batch(
    data: CocoData, rule: tuple[str, Any], size: int, score: float, classes: str
) -> None:
    truth, detections = read_coco(*data)
    pairs = per_image(truth, detections)

    def new() -> Evaluator:
        known = {"given": {"classes": truth.categories}, "of the truth": {"truth": truth}}
        how: Any = known.get(classes, {})
        return Evaluator(rule[0], box_format="xywh", settings=rule[1], **how)

    stream = new()
    for batch in (pairs[:size], pairs[size:]):
        alone = new()
        for each in (stream, alone):
            targets = None if each.truth else [t for _, t in batch]
            try:
                each.update([p for p, _ in batch], targets)
            except DataError:  # scores that cannot be scaled
                reject()
        if batch:
            require_same(stream, alone, score)


@pytest.mark.parametrize("iou", [None, 0.5, 0.75])
@pytest.mark.parametrize("kind", shapes.FIELD)
def test_masks_keypoints_and_rotated_boxes(tmp_path: Path, kind: str, iou: float | None) -> None:
    predictions, targets, _ = shapes.drawn(kind, tmp_path)
    stream = Evaluator(shapes.PROTOCOL[kind], settings=shapes.SETTINGS.get(kind))
    if stream.protocol.axes().threshold(iou or 0.5) is None:
        with pytest.raises(ProtocolError, match=r"is not among iou\.thresholds"):
            shapes.fed(stream, predictions, targets, 6).batch_metrics(iou=iou)
        return
    for i in (0, 3):
        batch = predictions[i : i + 3], targets[i : i + 3]
        alone = Evaluator(shapes.PROTOCOL[kind], settings=shapes.SETTINGS.get(kind))
        stream.update(*batch), alone.update(*batch)
        require_same(stream, alone, 0.5, iou=iou)
    assert stream.batch_metrics(0.5)["tp"] > 0


def test_what_has_no_numbers() -> None:
    stream = Evaluator(classes=["a", "b"])
    with pytest.raises(DataError, match=r"batch_metrics: there is no batch.*call update first"):
        stream.batch_metrics()
    predicted, annotated = plain()
    stream.update([predicted], [annotated])
    assert stream.batch_metrics(score=0.0)["recall"] == 1
    for score, message in ((50, "50, but all scores are from 0 to 1"), (np.nan, "nan")):
        with pytest.raises(DataError, match=message):
            stream.batch_metrics(score)
    with pytest.raises(DataError):
        stream.update([predicted], [{}])
    with pytest.raises(DataError, match="or the last batch was refused"):
        stream.batch_metrics()
    stream.reset()
    with pytest.raises(DataError, match="no image was updated"):
        stream.batch_metrics()


def test_a_score_that_nothing_reaches_and_images_without_objects() -> None:
    stream = Evaluator(classes=["a", "b"])
    predicted, annotated = plain()
    stream.update([predicted], [annotated])
    row = stream.batch_metrics(1.0)
    assert (row["recall"], row["f1"], row["missed"]) == (0.0, 0.0, 2)
    assert np.isnan(row["precision"])
    none: dict[str, Any] = {"boxes": [], "labels": []}
    stream.update([predicted], [none])
    row = stream.batch_metrics(0.0)
    assert (row["precision"], row["fp"]) == (0.0, 2)
    assert np.isnan(row["recall"])
