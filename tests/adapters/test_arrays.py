"""Tables from arrays in memory: the same as from a file, and as strict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Truth, detections_from_arrays, truth_from_arrays
from tests.support import builders as make

BOXES = [[10, 10, 20, 20], [1.5, 2, 3, 4]]


def truth(**changed: Any) -> Truth:
    return truth_from_arrays(
        **{"image_id": [1, 2], "category_id": [1, 1], "boxes": BOXES, **changed}
    )


def detections(**changed: Any) -> detmap.Detections:
    whole = {"image_id": [1, 2], "category_id": [1, 1], "boxes": BOXES, "score": [0.5, 0.25]}
    return detections_from_arrays(truth(), **whole | changed)


def test_arrays_are_evaluated_as_the_same_records_of_a_file_are(tmp_path: Path) -> None:
    instances = make.instances(
        images=[make.image(id=i) for i in (1, 2, 5)],
        annotations=[
            make.annotation(bbox=BOXES[0], area=3),
            make.annotation(image_id=2, bbox=BOXES[1], area=9, iscrowd=1),
        ],
        categories=[make.category(id=1, name="cat"), make.category(id=4, name="dog")],
    )
    results = [make.detection(bbox=BOXES[0]), make.detection(image_id=5, category_id=4, score=1)]
    from_files = detmap.evaluate(
        make.write(tmp_path / "gt.json", instances), make.write(tmp_path / "dt.json", results)
    )
    table = truth(area=[3, 9], crowd=[0, 1], images=[5, 1, 2], categories={4: "dog", 1: "cat"})
    found = detections_from_arrays(table, [1, 5], [1, 4], [BOXES[0], [10, 10, 20, 20]], [0.5, 1])
    from_arrays = detmap.evaluate(table, found)
    assert from_arrays.signature == from_files.signature
    assert from_arrays.to_dict()["metrics"] == from_files.to_dict()["metrics"]


def test_what_is_left_out_follows_from_the_rest() -> None:
    table = truth(image_id=[7, 3], category_id=[2, 9])
    assert table.images.ids.tolist() == [3, 7]
    assert table.categories.names == ("2", "9")
    assert table.area.tolist() == [400, 12]
    assert not table.crowd.any()


@pytest.mark.parametrize(
    "ids", [[2.0, 1.0], np.array([2, 1], dtype=np.uint8), ("b", "a"), np.array(["b", "a"])]
)
def test_ids_are_whole_numbers_or_strings(ids: Any) -> None:
    assert truth(image_id=ids).image.tolist() == [1, 0]


def test_no_rows_at_all_are_legal() -> None:
    table = truth_from_arrays([], [], [], images=[1, 2], categories={1: "cat"})
    result = detmap.evaluate(table, detections_from_arrays(table, [], [], np.zeros((0, 4)), []))
    assert np.isnan(result.metrics["AP"])
    assert result.counts()["images"] == 2


def test_classes_may_be_given_by_name() -> None:
    table = truth(categories={1: "cat", 2: "dog"})
    given = ([1, 1], ["dog", "cow"], BOXES, [1, 2])
    assert detections_from_arrays(table, *given, unknown="drop").label.tolist() == [1]
    with pytest.raises(DataError, match=r"category_id\[1\]: no class 'cow' in truth arrays"):
        detections_from_arrays(table, *given)


@pytest.mark.parametrize(
    "make_table, changed, place, what",
    [
        (truth, {"image_id": [1, 2.5]}, "image_id[1]", "2.5 is not a whole number"),
        (truth, {"image_id": [1, np.nan]}, "image_id[1]", "nan is not a whole number"),
        (
            truth,
            {"image_id": np.array([1, 2**63], dtype=np.uint64)},
            "image_id[1]",
            "9223372036854775808 is not",
        ),
        (truth, {"image_id": [1.0, 2.0**53]}, "image_id[1]", "9007199254740992.0 of float64 may"),
        (
            truth,
            {"image_id": np.array([2**24, 1], np.float32)},
            "image_id[0]",
            "16777216.0 of float32 may stand for several",
        ),
        (truth, {"image_id": [[1, 2]]}, "image_id", "shape (1, 2)"),
        (truth, {"image_id": [[1], [2, 3]]}, "image_id", "inhomogeneous"),
        (truth, {"image_id": [1, None]}, "image_id", "dtype object"),
        (truth, {"image_id": [True, False]}, "image_id", "dtype bool"),
        (truth, {"images": [1, 3]}, "image_id[1]", "2 is unknown"),
        (truth, {"images": ["1", "2"]}, "image_id[0]", "1, but known ids are such as '1'"),
        (truth, {"categories": {2: "cat"}}, "category_id[0]", "1 is unknown"),
        (truth, {"categories": {"1": "cat"}}, "categories", "keys are strings"),
        (
            truth,
            {"category_id": ["1", "1"], "categories": {1: "cat"}},
            "category_id[0]",
            "'1', but known ids",
        ),
        (truth, {"category_id": [1]}, "category_id", "shape (1,) where (2,)"),
        (truth, {"boxes": [[1, 2, 3]] * 2}, "boxes", "shape (2, 3)"),
        (truth, {"boxes": BOXES[:1]}, "boxes", "shape (1, 4) where (2, 4)"),
        (truth, {"boxes": [BOXES[0], "abcd"]}, "boxes", ""),
        (truth, {"boxes": [BOXES[0], [0, 0, -1, 5]]}, "boxes[1]", "[0.0, 0.0, -1.0, 5.0]"),
        (truth, {"boxes": [[0, 0, 1, np.inf], BOXES[0]]}, "boxes[0]", "non-finite"),
        (
            truth,
            {"boxes": [BOXES[0], [0, 0, 1e154, 1e154]]},
            "boxes[1]",
            "has a number beyond 1e+100: areas of such boxes are too large",
        ),
        (truth, {"area": [1, -1]}, "area[1]", "-1.0 is negative"),
        (truth, {"area": [np.nan, 1]}, "area[0]", "nan is"),
        (truth, {"area": [1]}, "area", "shape (1,)"),
        (truth, {"crowd": [True]}, "crowd", "shape (1,)"),
        (detections, {"score": [0.5, np.nan]}, "score[1]", "nan is not a finite number"),
        (detections, {"score": ["high", "low"]}, "score", "could not convert"),
        (detections, {"score": [0.5]}, "score", "shape (1,)"),
        (detections, {"score": [True, False]}, "score", "dtype bool"),
        (detections, {"score": [True, 0.5]}, "score", "dtype bool"),
        (detections, {"score": np.array([0.5, True], object)}, "score", "dtype bool"),
        (detections, {"boxes": [BOXES[0], (True, 1, 2, 3)]}, "boxes", "dtype bool"),
        (truth, {"area": np.array([True, False])}, "area", "dtype bool"),
        (detections, {"boxes": np.ones((2, 4), bool)}, "boxes", "dtype bool"),
        (detections, {"image_id": ["1", "b"]}, "image_id[1]", "no image 'b' in truth arrays"),
        (detections, {"image_id": [1, 9]}, "image_id[1]", "no image 9 in truth arrays"),
        (detections, {"boxes": [[0, 0, 1, 1], [0, 0, 1, -2]]}, "boxes[1]", "negative size"),
    ],
)
def test_bad_arrays_are_refused_by_row_and_field(
    make_table: Callable[..., Any], changed: dict[str, Any], place: str, what: str
) -> None:
    with pytest.raises(DataError) as caught:
        make_table(**changed)
    kind = "truth" if make_table is truth else "detection"
    assert caught.value.where == f"{kind} arrays: {place}"
    assert what in caught.value.what
    assert caught.value.fix


def test_arrays_take_the_name_of_their_own_box_format() -> None:
    given = ([1], [1], [[0, 0, 9, 9]])
    truth = detmap.truth_from_arrays(*given, box_format="xywh")
    assert (truth.boxes == detmap.truth_from_arrays(*given).boxes).all()
    assert (truth.boxes == detmap.truth_from_arrays(*given, box_format="xyxy").boxes).all()
    with pytest.raises(detmap.DataError, match="choose one of: xyxy"):
        detmap.truth_from_arrays(*given, box_format="yxyx")
