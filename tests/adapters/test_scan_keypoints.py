"""The fast reader of keypoints, which looks for the end of a list before it reads the numbers."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.core.adapters.coco import number_lists
from detmap.kernels.scanning.mask_scan import skip_to_bracket
from tests.support.lanes import shaped_results, taken

RECORD = '{"image_id": 1, "category_id": 1, "keypoints": %s, "score": 0.5}'
LISTS = ["[1, 2.5, 2]", "[ 1,2,\n0 ]", "[-0.0, 1e2, 1, 4, 5, 6]", "[640.123456789012, 0, 1]"]
OTHERS = [
    "[]",
    "null",
    "[1, 2]",
    "[[1, 2, 3]]",
    "[1, 2, [3]]",
    "[1, 2, 3]]",
    '["]", 2, 3]',
    '[1, 2, "]"]',
    '[1, 2, {"a": [3]}]',
    "[1, 2, 3,]",
    "[1 2 3]",
    "[1, 2, 3",
    "[1, 2, true]",
    "[1, -0, 3]",
    "[1, 2, 1e101]",
    '[1, 2, 3], "keypoints": [1, 2, 3]',
]
"""What only the reference reader reads, or reports."""


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detmap.core.adapters.coco.scan_json.LEAST_SIZE", 0)


@pytest.mark.parametrize("value", LISTS)
def test_both_readers_give_the_same_keypoints(value: str, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(f"[{', '.join([RECORD % value] * 3)}]")
    assert taken("keypoint results", file)


@pytest.mark.parametrize("value", OTHERS)
@pytest.mark.parametrize("place", range(3))
def test_other_values_go_to_the_reference_reader(value: str, place: int, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    values = ["[1, 2, 3]"] * 3
    values[place] = value
    file.write_text(f"[{', '.join(RECORD % each for each in values)}]")
    assert shaped_results("keypoints", file, True) is None


NUMBERS = st.one_of(
    st.sampled_from(["0.0", "1.0", "2", "10.0", "0.5", "00.5", "01.0", "1.", ".5", "-1.5", "1e3"]),
    st.sampled_from(["12345.6", "123456.7", "0.00001", "-0.0", "1.0e1", "1.0x", ":.0", "999999."]),
    st.tuples(st.floats(-1000, 1000), st.integers(0, 17)).map(lambda x: f"{x[0]:.{x[1]}f}"),
)


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from([", ", ",", " ,", ",\n"]))
def test_numbers_are_those_of_json(numbers: list[str], separator: str) -> None:
    value = f"[{separator.join(numbers)}]"
    for text in (value, value + " " * 8):
        end = np.array([[0, len(value)]])
        into = number_lists.buffer(len(text), 1)
        found = number_lists.read(np.frombuffer(text.encode(), np.uint8), end, 1, into)
        if found is not None:
            wanted = np.array(json.loads(value), dtype=np.float64)
            assert found.numbers.tobytes() == wanted.tobytes()
        else:
            assert not all(re.fullmatch(r"(0|[1-9]\d{0,3})\.\d\d?", each) for each in numbers)


SAME = {
    "mask": {"segmentation": {"size": [4, 5], "counts": [10, 10]}},
    "polygon mask": {"segmentation": [[1, 1, 3, 1, 3, 3]]},
    "keypoint": {"keypoints": [1, 2.5, 2, 0, 0, 0], "num_keypoints": 1},
}
"""Shapes that consecutive records share."""


@pytest.mark.parametrize("kind", SAME)
def test_consecutive_records_may_have_the_same_shape(kind: str, tmp_path: Path) -> None:
    shape, kind = SAME[kind], kind.rpartition(" ")[2]
    file = tmp_path / "file.json"
    records = [
        {"image_id": 1, "category_id": 1, "score": 0.5 + i / 100, **shape} for i in range(40)
    ]
    file.write_text(json.dumps(records))
    assert taken(f"{kind} results", file)
    annotations = [
        {"id": i + 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "area": i} | shape
        for i in range(40)
    ]
    groups = {"images": [{"id": 1, "height": 4, "width": 5}], "annotations": annotations}
    file.write_text(json.dumps(groups | {"categories": [{"id": 1, "name": "person"}]}))
    assert taken(f"{kind} instances", file)


def test_boxes_around_keypoints_are_those_of_each_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-50, 700, (1100, 5, 3)).round(2)
    records = [
        {"image_id": 1, "category_id": 1, "score": 0.5, "keypoints": row.ravel().tolist()}
        for row in points
    ]
    file = tmp_path / "results.json"
    file.write_text(json.dumps(records))
    found = shaped_results("keypoints", file, True)
    low, high = points[:, :, :2].min(axis=1), points[:, :, :2].max(axis=1)
    assert (found.boxes == np.concatenate([low, high - low], axis=1)).all()
    assert (found.shapes.points == points).all()
    assert (found.shapes.area == found.boxes[:, 2] * found.boxes[:, 3]).all()


@pytest.mark.slow
def test_the_next_bracket_is_found_at_every_distance() -> None:
    for size in range(20):
        for place in range(size + 1):
            text = bytearray(b"\xdd\x5c\x5e\x00[,9\xff" * 3)[:size]
            text[place : place + 1] = b"]"
            for begin in range(place + 1):
                assert skip_to_bracket(np.frombuffer(text, np.uint8), begin) == place
    assert skip_to_bracket(np.frombuffer(b"[1, 2, 3, 4", np.uint8), 0) == 11
