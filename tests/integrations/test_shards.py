"""Tables with one row an image, and the two functions that an engine needs."""

from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, MergeError
from detmap.integrations.shards import images_from_table, match_shard, reduce

arrow = pytest.importorskip("pyarrow")
cloudpickle = pytest.importorskip("cloudpickle")

CLASSES = {1: "cat", 2: "dog"}


def rows(n: int = 6) -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    table = []
    for image in range(n):
        boxes = np.column_stack([rng.uniform(0, 50, (image % 4, 2)), np.full((image % 4, 2), 20)])
        labels = rng.integers(1, 3, len(boxes)).tolist()
        truth = [
            {"bbox": box, "category_id": label, "iscrowd": 0}
            for box, label in zip(boxes.tolist(), labels, strict=True)
        ]
        found = [
            {"bbox": box, "category_id": label, "score": float(rng.integers(1, 4)) / 4}
            for box, label in zip((boxes + 1).tolist(), labels, strict=True)
        ]
        table.append({"image_id": image, "truth": truth, "detections": found})
    return table


def whole(table: list[dict[str, Any]]) -> detmap.Result:
    flat = {
        name: [{"image_id": row["image_id"], **each} for row in table for each in row[name]]
        for name in ("truth", "detections")
    }
    columns = {
        name: [np.array([each[key] for each in side]) for key in ("image_id", "category_id")]
        + [np.array([each["bbox"] for each in side]).reshape(-1, 4)]
        for name, side in flat.items()
    }
    ids = [row["image_id"] for row in table]
    truth = detmap.truth_from_arrays(*columns["truth"], images=ids, categories=CLASSES)
    scores = [each["score"] for each in flat["detections"]]
    return detmap.evaluate(
        truth, detmap.detections_from_arrays(truth, *columns["detections"], scores), "coco-bbox"
    )


def forms(table: list[dict[str, Any]]) -> dict[str, Any]:
    listed = arrow.Table.from_pylist(table)
    by_column = [
        {
            "image_id": row["image_id"],
            **{
                side: {key: [each[key] for each in row[side]] for key in keys}
                for side, keys in (
                    ("truth", ("bbox", "category_id", "iscrowd")),
                    ("detections", ("bbox", "category_id", "score")),
                )
            },
        }
        for row in table
    ]
    return {
        "list of structs": listed,
        "chunks": arrow.concat_tables([listed[:2], listed[2:]]),
        "record batch": listed.combine_chunks().to_batches()[0],
        "struct of lists": arrow.Table.from_pylist(by_column),
        "dicts": table,
    }


@pytest.mark.parametrize("form", forms(rows()))
def test_nested_tables_give_the_bits_of_flat_arrays(form: str) -> None:
    result = reduce([match_shard(forms(rows())[form], CLASSES)])
    assert result.signature == whole(rows()).signature
    assert result.to_dict()["metrics"] == whole(rows()).to_dict()["metrics"]


def test_any_shards_in_any_order_through_cloudpickle() -> None:
    """Notebook functions that name ``detmap`` are pickled by value."""
    table = arrow.Table.from_pylist(rows())
    work = cloudpickle.loads(
        cloudpickle.dumps(lambda part: detmap.distributed.match_shard(part, CLASSES))
    )
    parts = [work(table[i:j]) for i, j in ((3, 6), (1, 3), (0, 1))]
    assert reduce(parts).to_dict() == reduce([work(table)]).to_dict()
    assert reduce(parts).signature == whole(rows()).signature


def test_a_shard_without_rows() -> None:
    table = arrow.Table.from_pylist(rows())
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows())[:0]
    untyped = arrow.Table.from_pandas(frame)
    assert arrow.types.is_null(untyped.column("truth").type)
    for nothing in ([], table[:0], frame, untyped):
        parts = [match_shard(nothing, CLASSES), match_shard(table, CLASSES)]
        assert reduce(parts).signature == whole(rows()).signature


def test_a_shard_whose_lists_are_all_empty() -> None:
    """Arrow has no type for them, so the struct of lists holds lists of nulls."""
    nothing = {"bbox": [], "category_id": []}
    table = [
        {"image_id": 90 + i, "truth": nothing, "detections": {**nothing, "score": []}}
        for i in range(2)
    ]
    result = reduce([match_shard(table, CLASSES), match_shard(rows(), CLASSES)])
    plain = [{"image_id": 90 + i, "truth": [], "detections": []} for i in range(2)]
    assert result.signature == whole([*rows(), *plain]).signature


def test_bad_tables_and_parts_are_named() -> None:
    part = match_shard(rows(), CLASSES)
    for table, message in (
        ([{"image_id": 1, "truth": []}], "no column 'detections'"),
        ([{**rows()[1], "image_id": 2**70}], "table: .*a whole number has 64 bits"),
        ([{**rows()[1], "truth": 1}, rows()[1]], "table: .*one type per column"),
        (None, "table: .*give one row an image"),
        ([{"image_id": 1, "truth": [1], "detections": [1]}], "detections: type list"),
        (
            [{**rows()[1], "detections": [{"bbox": [1.0, 2], "category_id": 1, "score": 1.0}]}],
            r"detections.bbox\[0\]: 2 numbers",
        ),
    ):
        with pytest.raises(DataError, match=message):
            images_from_table(table)
    listed = arrow.Table.from_pylist([*rows(), {"image_id": 9, "truth": None, "detections": []}])
    for table in (listed, listed[6:], listed[6:].to_pylist()):
        with pytest.raises(DataError, match=r"truth\[[06]\]: None .give an empty list"):
            images_from_table(table)
    sides = [{"bbox": boxes, "category_id": []} for boxes in ([], None)]
    with pytest.raises(DataError, match=r"truth.bbox\[1\]: None"):
        images_from_table([{"image_id": i, "truth": sides[i], "detections": []} for i in (0, 1)])
    with pytest.raises(DataError, match="no parts"):
        reduce([])
    with pytest.raises(MergeError, match="more than one part"):
        reduce([part, part])
    with pytest.raises(DataError):
        reduce([b"x"])


def test_rows_without_columns_or_ids_are_errors() -> None:
    for table in ([{}], [{}, {}]):
        with pytest.raises(DataError, match=r"table: no column 'image_id'.*the columns are none"):
            match_shard(table, CLASSES)
    assert match_shard([], CLASSES)
    table = [row | {"image_id": None if i == 2 else i} for i, row in enumerate(rows())]
    with pytest.raises(DataError, match=r"table: image_id\[2\]: None \(give every row the id"):
        match_shard(table, CLASSES)


def test_parts_whose_images_have_no_ids_are_reported_as_such() -> None:
    box = {"boxes": [[0, 0, 5, 5]], "labels": [1]}
    parts = []
    for _ in range(2):
        evaluator = detmap.Evaluator("coco-bbox", classes=CLASSES)
        evaluator.update([{**box, "scores": [0.5]}], [box])
        parts.append(evaluator.matches)
    with pytest.raises(MergeError, match=r"numbered from 0, as without image_id \(give image_id"):
        reduce(parts)
    part = match_shard(rows()[3:], CLASSES)
    with pytest.raises(MergeError, match=r"\[3, 4, 5\] \(put every image into one part only"):
        reduce([part, part])
