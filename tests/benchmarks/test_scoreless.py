"""Detections without scores, in every form that has them, and the protocol for them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap

BOX = [0.0, 0.0, 10.0, 10.0]
FAR = [50.0, 50.0, 10.0, 10.0]


def truth() -> detmap.Truth:
    return detmap.truth_from_arrays([1, 1, 2], [1, 2, 1], [BOX, FAR, BOX], images=[1, 2])


def scoreless(**more: Any) -> detmap.Detections:
    boxes = [BOX, FAR, FAR, BOX]
    return detmap.detections_from_arrays(truth(), [1, 1, 2, 2], [1, 1, 1, 1], boxes, **more)


def codes(result: Any) -> set[str]:
    return {note.code for note in result.notes}


def test_three_forms_agree(tmp_path: Path) -> None:
    records = [
        {"image_id": image, "category_id": 1, "bbox": box}
        for image, box in ((1, BOX), (1, FAR), (2, FAR), (2, BOX))
    ]
    (tmp_path / "found.json").write_text(json.dumps(records))
    rows = ((1, BOX), (1, FAR), (2, FAR), (2, BOX))
    lines = [f"{image},1,{','.join(map(str, box))}" for image, box in rows]
    (tmp_path / "found.csv").write_text("\n".join(["image,class_id,x,y,w,h", *lines]))
    tables = [
        scoreless(),
        detmap.read_detections(tmp_path / "found.json", truth()),
        detmap.read_detections(tmp_path / "found.csv", truth()),
        detmap.detections_from_arrays(
            truth(),
            {"image_id": [1, 1, 2, 2], "class_id": [1] * 4, "x": [0, 50, 50, 0],
             "y": [0, 50, 50, 0], "w": [10.0] * 4, "h": [10.0] * 4},
        ),
    ]  # fmt: skip
    assert {tuple(table.score) for table in tables} == {(1.0,) * 4}
    assert all("score-missing" in {note.code for note in table.notes} for table in tables)
    assert len({detmap.evaluate(truth(), table).signature for table in tables}) == 1


@pytest.mark.parametrize(
    "bad",
    [
        [{"image_id": 1, "category_id": 1, "bbox": BOX, "score": 0.5},
         {"image_id": 1, "category_id": 1, "bbox": BOX}],
        [{"image_id": 1, "category_id": 1, "bbox": BOX},
         {"image_id": 1, "category_id": 1, "bbox": BOX, "score": 0.5}],
        {"images": [{"id": 1}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": BOX}],
         "categories": [{"id": 1, "name": "a"}]},
    ],
    ids=["second", "first", "truth"],
)  # fmt: skip
def test_some_scores_or_a_truth_are_an_error(bad: Any, tmp_path: Path) -> None:
    (tmp_path / "found.json").write_text(json.dumps(bad))
    with pytest.raises(detmap.DataError, match=r"score|truth|annotations"):
        detmap.read_detections(tmp_path / "found.json", truth())


def test_precision_recall_and_f1_by_hand() -> None:
    result = detmap.evaluate(truth(), scoreless(), "scoreless")
    metrics = result.metrics
    assert (metrics["precision@0.5"], metrics["recall@0.5"]) == (2 / 4, 2 / 3)
    assert metrics["F1@0.5"] == 4 / 7 == metrics["F1"]
    rows = {row["id"]: row for row in result.per_class}
    assert (rows[1]["tp"], rows[1]["fp"], rows[1]["missed"]) == (2, 2, 0)
    assert (rows[2]["tp"], rows[2]["missed"], rows[2]["recall@0.5"]) == (0, 1, 0.0)


def test_ap_is_that_of_all_orders() -> None:
    metrics = detmap.evaluate(truth(), scoreless(), "scoreless").metrics
    low, mean, high = (metrics[f"AP50-{name}"] for name in ("low", "mean", "high"))
    assert low < mean < high
    assert high == 0.5  # class 1 perfect, class 2 missed


@pytest.mark.slow
def test_no_number_depends_on_the_order_of_the_file() -> None:
    """Every metric to the last bit, also where detections contend for objects."""
    rng = np.random.default_rng(7)
    boxes = rng.uniform((0, 0, 15, 15), (12, 12, 27, 27), (40, 4))
    truth = detmap.truth_from_arrays(np.repeat([1, 2], 6), [1, 2] * 6, boxes[:12], images=[1, 2])
    found = detmap.detections_from_arrays(truth, [1, 2] * 20, [1, 1, 2, 2] * 10, boxes)
    wanted = detmap.evaluate(truth, found, "scoreless").metrics
    assert wanted["AP-sd"] > 0
    for _ in range(5):
        shuffled = found.take(rng.permutation(40))
        assert detmap.evaluate(truth, shuffled, "scoreless").metrics == wanted


def test_scores_are_not_read() -> None:
    scored = scoreless(score=[0.9, 0.8, 0.7, 0.6])
    result = detmap.evaluate(truth(), scored, "scoreless")
    assert result.metrics == detmap.evaluate(truth(), scoreless(), "scoreless").metrics
    assert "scores-unread" in codes(result)
    equal = detmap.evaluate(truth(), scoreless(score=[0.9] * 4), "scoreless")
    assert "scores-unread" not in codes(equal)


def test_an_ordinary_ap_of_equal_scores_has_a_note() -> None:
    assert "score-equal" in codes(detmap.evaluate(truth(), scoreless()))
    scored = scoreless(score=[0.9, 0.9, 0.9, 0.6])
    assert "score-equal" not in codes(detmap.evaluate(truth(), scored))


def test_nothing_is_found() -> None:
    nothing = scoreless().take(np.zeros(0, dtype=np.int64))
    metrics = detmap.evaluate(truth(), nothing, "scoreless").metrics
    assert metrics["recall@0.5"] == 0.0
    assert np.isnan(metrics["precision@0.5"])
