"""Frames of pandas and polars, Arrow tables and dicts, whole and column by column."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, detections_from_arrays, truth_from_arrays
from tests.support import writers
from tests.support.varied_writers import columns

KINDS = ("pandas", "polars", "pyarrow", "dict")
Tables = tuple[detmap.Truth, detmap.Detections]


@pytest.fixture(params=KINDS)
def frame(request: pytest.FixtureRequest) -> Callable[[dict[str, list[Any]]], Any]:
    """What makes a table of columns."""
    if request.param == "dict":
        return dict
    library = pytest.importorskip(request.param)
    return library.table if request.param == "pyarrow" else library.DataFrame


@pytest.mark.slow
def test_tables_give_the_numbers_of_the_files_they_were_made_of(
    sample: Tables, frame: Callable[[dict[str, list[Any]]], Any]
) -> None:
    names = "file_name class xmin ymin xmax ymax"
    case = writers.case(*sample)
    truth = truth_from_arrays(frame(columns(case, names, "voc")), box_format="voc")
    rows = frame(columns(case, names, "voc", scored=True))
    found = detections_from_arrays(truth, rows, box_format="voc")
    for protocol in ("coco-bbox", "voc2012"):
        wanted = detmap.evaluate(*sample, protocol).metrics
        assert detmap.evaluate(truth, found, protocol).metrics == wanted


def test_tables_with_ids_are_joined_by_them(frame: Callable[[dict[str, list[Any]]], Any]) -> None:
    columns: dict[str, list[Any]] = {
        "image_id": [7, 3, 7],
        "category_id": [2, 1, 2],
        "x": [0.0, 1, 2],
        "y": [0.0, 1, 2],
        "width": [4.0, 5, 6],
        "height": [4.0, 5, 6],
        "iscrowd": [0, 0, 1],
    }
    names = {1: "cat", 2: "dog", 5: "cow"}
    truth = truth_from_arrays(frame(columns), images=[3, 7, 10], categories=names)
    boxes = np.column_stack([columns[side] for side in ("x", "y", "width", "height")])
    plain = truth_from_arrays(
        [7, 3, 7], [2, 1, 2], boxes, crowd=[0, 0, 1], images=[3, 7, 10], categories=names
    )
    assert truth.images.ids.tolist() == plain.images.ids.tolist() == [3, 7, 10]
    assert truth.categories == plain.categories
    for name in ("image", "label", "boxes", "crowd", "area"):
        assert (getattr(truth, name) == getattr(plain, name)).all(), name
    found = frame({**columns, "score": [0.5, 0.25, 0.75]})
    detections = detections_from_arrays(truth, found)
    assert detections.image.tolist() == [1, 0, 1]
    assert detections.score.tolist() == [0.5, 0.25, 0.75]


def test_columns_of_tables_are_arrays(frame: Callable[[dict[str, list[Any]]], Any]) -> None:
    if frame is dict:
        return
    table = frame({"i": ["a", "b"], "c": [1, 2], "s": [0.5, 0.25]})
    sides = frame({"x": [0.0, 1], "y": [2.0, 3], "w": [4.0, 5], "h": [6.0, 7]})
    truth = truth_from_arrays(table["i"], table["c"], sides)
    assert truth.boxes.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert truth.images.ids.tolist() == ["a", "b"]
    found = detections_from_arrays(truth, table["i"], table["c"], sides, table["s"])
    assert found.score.tolist() == [0.5, 0.25]


def test_a_column_of_whole_boxes(frame: Callable[[dict[str, list[Any]]], Any]) -> None:
    table = frame({"image": ["a", "b"], "label": ["x", "y"], "bbox": [[1, 2, 3, 5], [0, 0, 1, 1]]})
    with pytest.raises(DataError, match="boxes of unknown format"):
        truth_from_arrays(table)
    truth = truth_from_arrays(table, box_format="xyxy")
    assert truth.boxes.tolist() == [[1, 2, 2, 3], [0, 0, 1, 1]]
    ragged = frame({"image": ["a", "b"], "label": ["x", "y"], "bbox": [[1, 2, 3], [0, 0, 1, 1]]})
    with pytest.raises(DataError, match=r"a box has four numbers|not a table"):
        truth_from_arrays(ragged, box_format="xyxy")


def test_cells_that_are_missing(frame: Callable[[dict[str, list[Any]]], Any]) -> None:
    sides = {side: [1.0, None] for side in "xywh"}
    truth = truth_from_arrays(frame({"image": ["a", "b"], "class": ["cat", None], **sides}))
    assert (len(truth), len(truth.images)) == (1, 2)
    with pytest.raises(DataError, match=r"truth table: row 1, column x: nan is not a finite"):
        truth_from_arrays(frame({"image": ["a", "b"], "class": ["cat", "dog"], **sides}))
    with pytest.raises(DataError, match="truth table"):
        truth_from_arrays(frame({"image": ["a", None], "class": ["cat", "dog"], **sides}))


def test_categorical_and_nullable_columns_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"image": [1, 2], "class": ["cat", "dog"], **dict.fromkeys("xywh", 1)})
    wanted = truth_from_arrays(table)
    for column, kind in (
        ("class", "category"),
        ("class", "object"),
        ("image", "Int64"),
        ("x", "Float64"),
    ):
        found = truth_from_arrays(table.astype({column: kind}))
        assert found.categories == wanted.categories
        assert (found.boxes == wanted.boxes).all()
        assert found.images.ids.tolist() == [1, 2]


ONE = {"image": ["a"], "x": [1], "y": [1], "w": [1], "h": [1]}
BAD: dict[str, Any] = {
    "no column class": ONE,
    "columns of different lengths": {"image": ["a"], "class": ["c"], "x": [1, 2]},
    "column names are missing or repeated": {5: ["a"]},
    "no class 'c' in categories": {"class": ["c"], **ONE},
}


@pytest.mark.parametrize("message", BAD)
def test_a_table_that_is_none(message: str) -> None:
    with pytest.raises(DataError, match=message):
        truth_from_arrays(BAD[message], categories={1: "cat"})


def test_a_table_and_arrays(sample: Tables) -> None:
    table = columns(writers.case(*sample), "image class x y w h", "xywh")
    with pytest.raises(DataError, match="a table and separate columns"):
        truth_from_arrays(table, crowd=[0])
    with pytest.raises(DataError, match="category_id: missing"):
        truth_from_arrays([1])
    with pytest.raises(DataError, match="unknown box format 'yxyx'"):
        truth_from_arrays([1], [1], [[1, 2, 3, 4]], box_format="yxyx")
    with pytest.raises(DataError, match="boxes: missing"):
        detections_from_arrays(sample[0], ["000001"], [1])


def texts(boxes: list[list[float]]) -> list[str]:
    """Boxes as pandas writes lists, arrays and tuples of NumPy numbers."""
    forms = (str, "({}, {}, {}, {})", "[{} {}  {}\n {}]", "[np.float64({}), {}, {}, {}]")
    return [
        form(box) if form is str else form.format(*box)  # type: ignore[operator, union-attr]
        for form, box in zip(forms, boxes, strict=True)
    ]


@pytest.mark.parametrize("written", [list, texts])
def test_coco_results_in_a_frame(
    frame: Callable[[dict[str, list[Any]]], Any],
    written: Callable[[list[list[float]]], list[Any]],
    tmp_path: Path,
) -> None:
    sides = (1, 2, 30, 5.5), (0, 0, 10, 10), (3, 4, 50, 6), (7, -8, 9, 10)
    boxes = [[float(each) for each in box] for box in sides]  # an older polars refuses a mixture
    rows = {"image_id": [1, 1, 2, 2], "category_id": [1, 2, 1, 1], "bbox": written(boxes)}
    truth = truth_from_arrays(frame(rows))
    assert truth.boxes.tolist() == boxes
    found = detmap.read_detections(frame(rows | {"score": [0.5, 0.4, 0.3, 0.2]}), truth)
    assert found.boxes.tolist() == boxes
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(rows | {"score": 0.5}).to_csv(tmp_path / "dt.csv", index=False)
    assert detmap.read_detections(tmp_path / "dt.csv", truth).boxes.tolist() == boxes
