"""Any value in any argument of the library gives a result or an error of ours, never another."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import Categories, DetmapError, Evaluator, Images, Matches, ranking
from detmap.core.adapters.in_memory import batch_rows
from detmap.core.overlaps.keypoints import Keypoints
from tests.support import builders as make

BOX = [[0.0, 0.0, 10.0, 10.0]]


class Fails:
    """An object whose numbers cannot be had."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __float__(self) -> float:
        raise RuntimeError("no float")


def itself() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


VALUES: dict[str, Any] = {
    "None": None,
    "half": 0.5,
    "NaN": float("nan"),
    "-1": -1,
    "2**70": 2**70,
    "1e308": 1e308,
    "a word": "x",
    "bytes": b"x",
    "complex": 1j,
    "a list in a list": [[1]],
    "an empty list": [],
    "a set": {1},
    "a dict": {"x": 1},
    "masked": np.ma.array([1.0], mask=[True]),
    "uint64": np.array([2**63], dtype=np.uint64),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"),
    "records": np.zeros(1, dtype=[("a", "i4")]),
    "a scalar array": np.array(3.0),
    "a class": int,
    "a list of itself": itself(),
    "no array": Fails(),
}
SAMPLE = make.SHAPES / "instances_test.json"
truth = detmap.truth_from_arrays([1, 2], [1, 2], BOX * 2)
found = detmap.detections_from_arrays(truth, [1, 2], [1, 2], BOX * 2, [0.5, 0.6])
rules = detmap.load_protocol("coco-bbox")
matches = detmap.match(truth, found, rules)
result = detmap.summarize(matches)


def streamed(prediction: dict[str, Any], target: dict[str, Any]) -> None:
    evaluator = Evaluator(classes=[1])
    evaluator.update(
        [{"boxes": BOX, "scores": [0.5], "labels": [1], **prediction}],
        [{"boxes": BOX, "labels": [1], **target}],
    )
    evaluator.compute()


def test_the_first_bad_flag_is_that_of_the_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("iscrowd", "difficult", "ignore", *(f"flag {i}" for i in range(20)))
    keys = {key: key for key in names}
    monkeypatch.setattr(batch_rows, "FLAG_KEYS", keys)
    for first in range(len(keys) - 1):
        bad = list(keys)[first:]
        with pytest.raises(detmap.DataError) as caught:
            streamed({}, {key: [2] for key in reversed(bad)})
        assert caught.value.where == f"targets[0].{bad[0]}[0]"


CALLS: dict[str, Callable[[Any], Any]] = {
    "boxes": lambda x: streamed({"boxes": x}, {}),
    "a side": lambda x: streamed({"boxes": [[0, 0, 1, x]]}, {}),
    "scores": lambda x: streamed({"scores": x}, {}),
    "a score": lambda x: streamed({"scores": [x]}, {}),
    "labels": lambda x: streamed({}, {"labels": x}),
    "a label": lambda x: streamed({"labels": [x]}, {}),
    "iscrowd": lambda x: streamed({}, {"iscrowd": x}),
    "a flag": lambda x: streamed({}, {"iscrowd": [x]}),
    "area": lambda x: streamed({}, {"area": [x]}),
    "image_id": lambda x: streamed({"image_id": x}, {"image_id": x}),
    "orig_size": lambda x: streamed({"orig_size": x}, {"orig_size": [5, 5]}),
    "a size": lambda x: streamed({"orig_size": [x, x]}, {}),
    "batches": lambda x: Evaluator(classes=[1]).update(x, x),
    "images": lambda x: Evaluator(classes=[1]).update([x], [x]),
    "classes": lambda x: Evaluator(classes=x),
    "a class": lambda x: Evaluator(classes=[x]),
    "Evaluator.truth": lambda x: Evaluator(truth=x),
    "Evaluator.merge": lambda x: Evaluator(classes=[1]).merge(x),
    "Evaluator.load": lambda x: Evaluator.load(x),
    "curve": lambda x: result.curve(x),
    "curve.iou": lambda x: result.curve("1", iou=x),
    "Result.slices": lambda x: result.slices(x),
    "Result.plot": lambda x: result.plot(x),
    "intervals.groups": lambda x: result.intervals(groups=x),
    "read_truth.roles": lambda x: detmap.read_truth(SAMPLE, roles=x),
    "read_truth.attributes": lambda x: detmap.read_truth(SAMPLE, attributes=x),
    "Result.classes": lambda x: result.classes(x),
    "select": lambda x: matches.select(x),
    "select_classes": lambda x: matches.select_classes(x),
    "merge": lambda x: matches.merge(x),
    "Matches.save": lambda x: matches.save(x),
    "Matches.load": lambda x: Matches.load(x),
    "read_truth": lambda x: detmap.read_truth(x),
    "read_detections": lambda x: detmap.read_detections(x, truth),
    "read_detections.truth": lambda x: detmap.read_detections("x.json", x),
    "match": lambda x: detmap.match(truth, found, x),
    "match.truth": lambda x: detmap.match(x, found, rules),
    "threads": lambda x: detmap.evaluate(truth, found, threads=x),
    "protocol": lambda x: detmap.evaluate(truth, found, x),
    "settings": lambda x: detmap.evaluate(truth, found, settings=x),
    "a setting": lambda x: detmap.evaluate(truth, found, settings={"limits.max_dets": x}),
    "thresholds": lambda x: detmap.evaluate(truth, found, settings={"iou.thresholds": x}),
    "summarize": lambda x: detmap.summarize(x),
    "load_protocol": lambda x: detmap.load_protocol(x),
    "override": lambda x: rules.override(x),
    "subset": lambda x: rules.subset(x),
    "threshold": lambda x: rules.threshold(x),
    "ids": lambda x: detmap.truth_from_arrays(x, [1], BOX),
    "category ids": lambda x: detmap.truth_from_arrays([1], [x], BOX),
    "crowd": lambda x: detmap.truth_from_arrays([1], [1], BOX, crowd=x),
    "areas": lambda x: detmap.truth_from_arrays([1], [1], BOX, area=x),
    "known images": lambda x: detmap.truth_from_arrays([1], [1], BOX, images=x),
    "categories": lambda x: detmap.truth_from_arrays([1], [1], BOX, categories=x),
    "a name": lambda x: detmap.truth_from_arrays([1], [1], BOX, categories={1: x}),
    "truth of arrays": lambda x: detmap.detections_from_arrays(x, [1], [1], BOX, [1]),
    "scores of arrays": lambda x: detmap.detections_from_arrays(truth, [1], [1], BOX, x),
    "boxes of arrays": lambda x: detmap.detections_from_arrays(truth, [1], [1], x, [1]),
    "a column": lambda x: replace(truth, boxes=x),
    "roles": lambda x: replace(truth, roles=x),
    "scope": lambda x: replace(truth, scope=x),
    "shapes": lambda x: replace(truth, shapes=x),
    "a column of matches": lambda x: replace(matches, score=x),
    "Categories": lambda x: Categories(x, x, x),
    "Images": lambda x: Images(x, x, x, x),
    "Keypoints": lambda x: Keypoints(x, x),
    "index": lambda x: truth.categories.index(x),
    "classes of a call": lambda x: detmap.evaluate(truth, found, classes=x),
    "operating_point": lambda x: result.operating_point(x),
    "best_f_beta": lambda x: result.best_f_beta(x),
    "threshold_for_precision": lambda x: result.threshold_for_precision(x),
    "threshold_for_recall": lambda x: result.threshold_for_recall(x),
    "ranking labels": lambda x: ranking.average_precision(x, [0.1, 0.2]),
    "ranking scores": lambda x: ranking.auc([0, 1], x),
    "ranking weights": lambda x: ranking.auc([0, 1], [0.1, 0.2], sample_weight=x),
    "ranking label": lambda x: ranking.auc([0, 1], [0.1, 0.2], pos_label=x),
    "ranking average": lambda x: ranking.auc([0, 1], [0.1, 0.2], average=x),
    "ranking ties": lambda x: ranking.average_precision([0, 1], [0.1, 0.2], ties=x),
    "ranking threshold": lambda x: ranking.confusion([0, 1], [0.1, 0.2], x),
    "ranking beta": lambda x: ranking.best_f_beta([0, 1], [0.1, 0.2], beta=x),
    "ranking precision": lambda x: ranking.threshold_for_precision([0, 1], [0.1, 0.2], x),
    "ranking k": lambda x: ranking.precision_at_k([[0, 1]], [[0.1, 0.2]], x),
    "ranking settings": lambda x: ranking.evaluate(
        ranking.from_arrays([[0, 1]], [[0.1, 0.2]]), settings=x
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_any_value_gives_a_result_or_an_error_of_ours(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in VALUES.items():
        try:
            with suppress(DetmapError):
                CALLS[call](value)
        except Exception as error:
            raise AssertionError(f"{call} of {name}") from error


@pytest.mark.parametrize(
    "records",
    [
        [{"image_id": 99, "category_id": 1, "bbox": [1, 1, 5, -5], "score": 0.5}] * 4000,
        {"images": [{"id": i} for i in range(4000)]},
        object(),
        np.zeros(99_999),
    ],
)
def test_records_in_memory_are_refused_in_a_short_message(records: object) -> None:
    truth = make.SHAPES / "instances_test.json"
    for call in (
        lambda: detmap.evaluate(truth, records),  # type: ignore[arg-type]
        lambda: detmap.evaluate(records, truth),  # type: ignore[arg-type]
        lambda: detmap.compare(truth, records, records),  # type: ignore[arg-type]
        lambda: detmap.compare(records, truth, truth),  # type: ignore[arg-type]
    ):
        with pytest.raises(detmap.DetmapError) as caught:
            call()
        assert len(str(caught.value)) < 300
