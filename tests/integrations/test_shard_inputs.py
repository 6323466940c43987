"""What `match_shard`, `reduce` and `evaluate` of shards refuse, and what they say to write."""

import importlib
from typing import Any

import pytest

import detmap
from detmap import DataError, Matches
from detmap.integrations import distributed

BOX: dict[str, Any] = {"bbox": [1, 1, 20, 20], "category_id": 1}
FOUND = {**BOX, "score": 0.5}
TRUTH = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("side", ["truth", "detections"])
def test_ids_inside_and_beside_records_agree(n: int, side: str) -> None:
    pytest.importorskip("pyarrow")
    row = {"image_id": 7, "truth": [BOX] * n, "detections": [FOUND] * n}
    plain = distributed.match_shard([row], {1: "a"})
    row[side] = [{**each, "image_id": 7} for each in row[side]]
    assert distributed.match_shard([row], {1: "a"}) == plain
    row[side][-1] = {**row[side][-1], "image_id": 8}
    with pytest.raises(DataError, match=rf"{side}\[0\]\[{n - 1}\].image_id: 8, where .* 7"):
        distributed.match_shard([row], {1: "a"})


def test_an_id_of_a_struct_of_lists_agrees_too() -> None:
    pytest.importorskip("pyarrow")
    boxes = {"image_id": 7, "bbox": [[1, 1, 2, 2]], "category_id": [1]}
    row = {"image_id": 7, "truth": boxes, "detections": [FOUND]}
    assert Matches.from_bytes(distributed.match_shard([row], {1: "a"})).image_ids.tolist() == [7]
    with pytest.raises(DataError, match=r"truth\[0\]\[0\].image_id: 7, where the row has .* 6"):
        distributed.match_shard([{**row, "image_id": 6}], {1: "a"})


def test_one_part_outside_a_list_is_refused() -> None:
    part = Matches.empty(detmap.load_protocol("coco-bbox"), TRUTH.categories)
    for given in (part, part.to_bytes(), bytearray(part.to_bytes()), 3):
        with pytest.raises(DataError, match=r"reduce: .*not a list of parts \(give .*reduce\(\["):
            distributed.reduce(given)  # type: ignore[arg-type]


FOUND_TABLE = detmap.detections_from_arrays(TRUTH, [1], [1], [[0, 0, 9, 9]], [0.5])
UNFIT: dict[str, tuple[Any, str]] = {
    "one pair": (("t.json", "d.json"), r"one pair .*\[\(truth, detections\)\]"),
    "one pair of tables": ((TRUTH, FOUND_TABLE), r"one pair .*\[lambda: \(truth, detections\)\]"),
    "pairs of tables": ([(TRUTH, FOUND_TABLE)], r"shards\[0\]: a Truth, not a path .*function"),
    "a path": ("t.json", "'t.json', not a list of shards"),
    "a table": (TRUTH, "a Truth, not a list of shards"),
    "paths": (["t.json"], r"shards\[0\]: 't.json', not a pair"),
    "a triple": ([("a", "b", "c")], r"shards\[0\]: a tuple, not a pair"),
    "a number": ([("a", 3)], r"shards\[0\]: a int, not a path"),
    "nothing": ([], "no shards"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_is_no_list_of_shards_is_refused_before_a_cluster_starts(name: str) -> None:
    shards, message = UNFIT[name]
    with pytest.raises(DataError, match=message):
        distributed.evaluate(shards)


def test_the_documented_name_can_be_imported() -> None:
    module = importlib.import_module("detmap.distributed")
    assert module is distributed is detmap.distributed
