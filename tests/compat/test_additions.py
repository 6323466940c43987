"""What the drop-in does where pycocotools fails or prints -1; everything else stays the same."""

import copy
import json
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detmap.compat import COCO, COCOeval, PycocotoolsQuirk, quirks
from tests.compat import both
from tests.support.tier import drawn

DATASET: dict[str, Any] = {
    "info": {},
    "images": [{"id": i, "width": 400, "height": 400} for i in (1, 2)],
    "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100},
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [50, 50, 60, 60], "area": 3600},
        {"id": 3, "image_id": 2, "category_id": 2, "bbox": [5, 5, 200, 200], "area": 40000},
    ],
}
for _each in DATASET["annotations"]:
    _each["iscrowd"] = 0
ROWS = [
    {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 11], "score": 0.9},
    {"image_id": 1, "category_id": 2, "bbox": [50, 52, 60, 60], "score": 0.8},
    {"image_id": 2, "category_id": 2, "bbox": [5, 5, 190, 200], "score": 0.7},
    {"image_id": 2, "category_id": 1, "bbox": [5, 5, 190, 200], "score": 0.6},
]


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quirks, "_warned", set())


def evaluated(
    classes: both.Classes = both.OURS, rows: Any = ROWS, params: dict[str, Any] | None = None
) -> Any:
    truth = classes.coco()
    truth.dataset = copy.deepcopy(DATASET)
    truth.createIndex()
    made = classes.evaluation(truth, truth.loadRes(copy.deepcopy(rows)), "bbox")
    for name, value in (params or {}).items():
        setattr(made.params, name, value)
    made.evaluate()
    made.accumulate()
    return made


def summarized(classes: both.Classes = both.OURS, **params: Any) -> Any:
    made = evaluated(classes, params=params)
    made.summarize()
    return made.stats


def test_a_dict_a_path_and_an_array(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(DATASET))
    truth = COCO(DATASET)
    assert truth.dataset is DATASET
    assert COCO(path).getAnnIds() == truth.getAnnIds() == [1, 2, 3]
    results = tmp_path / "results.json"
    results.write_text(json.dumps(ROWS))
    table = np.array([[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in ROWS])
    loaded = [truth.loadRes(each) for each in (results, str(results), copy.deepcopy(ROWS), table)]
    for one in loaded:
        boxes = [each["bbox"] for each in one.dataset["annotations"]]
        assert np.array_equal(boxes, [row["bbox"] for row in ROWS])
    with pytest.raises(AssertionError):
        COCO(results)
    with pytest.raises(FileNotFoundError):
        truth.loadRes(tmp_path / "none.json")


@pytest.mark.parametrize("given_as", ["list", "path", "text path", "array"])
def test_no_detections_are_an_ap_of_0(tmp_path: Path, given_as: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(" [ ]\n")
    nothing: Any = {"list": [], "path": path, "text path": str(path), "array": np.zeros((0, 7))}
    truth = COCO(copy.deepcopy(DATASET))
    results = truth.loadRes(nothing[given_as])
    assert results.getImgIds() == [1, 2]
    assert results.getCatIds() == [1, 2]
    assert results.dataset["annotations"] == []
    made = COCOeval(truth, results, "bbox")
    made.evaluate()
    made.accumulate()
    made.summarize()
    pair = both.load(both.OFFICIAL, copy.deepcopy(DATASET), [])
    theirs = both.evaluation(both.OFFICIAL, pair, {})
    theirs.accumulate()
    theirs.summarize()
    assert made.stats.tolist() == theirs.stats.tolist()
    assert made.stats[0] == 0


def test_a_summary_follows_the_limits(capsys: Any) -> None:
    with pytest.warns(PycocotoolsQuirk, match=r"here its rows follow.*\[summary-of-defaults\]"):
        stats = summarized(maxDets=[1, 10, 300])
    assert stats[0] == summarized()[0] > 0
    assert "area=   all | maxDets=300 ]" in capsys.readouterr().out.splitlines()[-24 - 3]
    assert summarized(maxDets=[5])[0] == stats[0]
    assert summarized(maxDets=[1, 100])[8] == stats[8]


def test_a_summary_follows_the_area_labels() -> None:
    ranges = [[0, 1e10], [0, 1000], [1000, 1e10]]
    with pytest.warns(PycocotoolsQuirk):
        stats = summarized(areaRng=ranges, areaRngLbl=["everything", "tiny", "big"])
    alike = summarized(areaRng=ranges, areaRngLbl=["all", "small", "medium"])
    assert stats.tolist() == alike.tolist()
    assert stats[3] > 0
    assert stats[5] == stats[11] == -1  # a third label does not exist


@settings(max_examples=drawn(40))
@given(
    limits=st.lists(st.sampled_from([1, 2, 10, 100, 300]), min_size=1, max_size=5, unique=True),
    labels=st.permutations(["all", "small", "medium", "large", "tiny"]).map(lambda a: a[:4]),
)
def test_a_value_of_pycocotools_stays_the_same(limits: list[int], labels: list[str]) -> None:
    params = {"maxDets": sorted(limits), "areaRngLbl": labels}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PycocotoolsQuirk)
        ours = summarized(**params)
    outcome = both.run(lambda classes: summarized(classes, **params), both.OFFICIAL)
    if outcome.error:
        assert outcome.error.startswith("IndexError")
        return
    for own, theirs in zip(ours.tolist(), outcome.value.tolist(), strict=True):
        assert own == theirs or theirs == -1


def test_a_dropped_category_is_told_with_and_without_categories() -> None:
    rows = [*ROWS, {**ROWS[0], "category_id": 77}]
    for use in (0, 1):
        quirks._warned.clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", PycocotoolsQuirk)
            evaluated(rows=rows, params={"useCats": use})
        assert sum("[category-unlisted]" in str(each.message) for each in told) == 1, use


def test_a_traceback_has_no_internal_exception() -> None:
    made = evaluated()
    del made.params.iouThrs
    for step in (made.evaluate, made.accumulate):
        with pytest.raises(AttributeError) as raised:
            step()
        assert "Unusual" not in "".join(traceback.format_exception(raised.value))
