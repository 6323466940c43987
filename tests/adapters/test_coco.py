"""COCO files: everything that is legal is read as what it says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detmap
from detmap import DataError, Detections, Truth
from detmap.core.tables.notes import summed
from tests.support import builders as make


def read(folder: Path, instances: Any = None, results: Any = None) -> tuple[Truth, Detections]:
    """Both tables of two files with this content."""
    truth = detmap.read_truth(
        make.write(folder / "gt.json", make.instances() if instances is None else instances)
    )
    return truth, detmap.read_detections(
        make.write(folder / "dt.json", [make.detection()] if results is None else results), truth
    )


def codes(table: Truth | Detections) -> dict[str, int]:
    """Code of each note, with its count."""
    return {note.code: note.count for note in table.notes}


# ---- records


def test_the_columns_hold_what_the_records_say(tmp_path: Path) -> None:
    truth, detections = read(
        tmp_path,
        make.instances(
            images=[
                make.image(id=9, file_name="b/nine.png"),
                make.image(id=4, width=640, height=480.0),
            ],
            categories=[make.category(id=3, name="dog"), make.category(id=1)],
            annotations=[
                make.annotation(image_id=9, category_id=3, bbox=[1, 2, 3, 4], area=11.5, iscrowd=1),
                make.annotation(image_id=4, bbox=[0.5, 0, 0, 7], area=0, id=2),
            ],
        ),
        [
            make.detection(image_id=9, category_id=1, bbox=[5, 6, 7, 8], score=-2),
            make.detection(image_id=4, score=1e-300),
        ],
    )
    assert truth.images.ids.tolist() == [4, 9]
    assert truth.images.stems == ("000001", "nine")
    assert truth.images.width.tolist() == [640, 100]
    assert truth.images.height.tolist() == [480, 80]
    assert truth.categories.ids.tolist() == [1, 3]
    assert truth.categories.names == ("cat", "dog")
    assert truth.image.tolist() == [1, 0]
    assert truth.label.tolist() == [1, 0]
    assert truth.boxes.tolist() == [[1, 2, 3, 4], [0.5, 0, 0, 7]]
    assert truth.area.tolist() == [11.5, 0]
    assert truth.crowd.tolist() == [True, False]
    assert (truth.box_format, truth.family, truth.year, truth.split) == ("xywh", "coco", 0, "")
    assert detections.image.tolist() == [1, 0]
    assert detections.label.tolist() == [0, 0]
    assert detections.boxes.tolist() == [[5, 6, 7, 8], [10, 10, 20, 20]]
    assert detections.score.tolist() == [-2, 1e-300]
    assert truth.notes == detections.notes == ()


@pytest.mark.parametrize("results", ["[]", '{"annotations": []}', " [ \n] "])
def test_no_detections_find_nothing(tmp_path: Path, results: str) -> None:
    result = detmap.evaluate(*read(tmp_path, None, results))
    assert result.metrics["AP"] == result.metrics["AR100"] == 0
    assert result.counts()["missed"] == 1


def test_without_objects_nothing_is_defined(tmp_path: Path) -> None:
    result = detmap.evaluate(*read(tmp_path, make.instances(annotations=[])))
    assert all(np.isnan(value) for value in result.metrics.values())
    assert (result.counts()["objects"], result.counts()["fp"]) == (0, 1)


def test_a_file_without_any_record_is_legal(tmp_path: Path) -> None:
    result = detmap.evaluate(
        *read(tmp_path, make.instances(images=[], annotations=[], categories=[]), [])
    )
    assert np.isnan(result.metrics["AP"])
    assert result.per_class == []


@pytest.mark.parametrize("number", [0, -5, 7, 2**40, -(2**63), 2**63 - 1, 1.0, -2.0, 0.0, 2.0**40])
def test_any_whole_number_is_an_id(tmp_path: Path, number: float) -> None:
    truth, detections = read(
        tmp_path,
        make.instances(
            images=[make.image(id=number), make.image(id=12)],
            categories=[make.category(id=number), make.category(id=12, name="dog")],
            annotations=[make.annotation(image_id=number, category_id=number)],
        ),
        [make.detection(image_id=number, category_id=number)],
    )
    assert (
        sorted(truth.images.ids.tolist())
        == sorted(truth.categories.ids.tolist())
        == sorted([int(number), 12])
    )
    assert truth.images.ids.dtype == truth.categories.ids.dtype == np.int64
    for table in (truth, detections):
        assert (
            truth.images.ids[table.image].tolist()
            == truth.categories.ids[table.label].tolist()
            == [number]
        )


def test_strings_are_image_ids_too(tmp_path: Path) -> None:
    images = [make.image(id="street/b"), make.image(id="street/a")]
    instances = make.instances(images=images, annotations=[make.annotation(image_id="street/b")])
    truth, detections = read(tmp_path, instances, [make.detection(image_id="street/a")])
    assert truth.images.ids.tolist() == ["street/a", "street/b"]
    assert (truth.image.tolist(), detections.image.tolist()) == ([1], [0])


@pytest.mark.parametrize(
    "absent",
    [lambda r, *names: make.without(r, *names), lambda r, *names: r | dict.fromkeys(names)],
    ids=["left out", "null"],
)
def test_optional_fields_may_be_left_out_or_null(tmp_path: Path, absent: Any) -> None:
    image = absent(make.image(), "file_name", "width", "height")
    record = absent(make.annotation(bbox=[0, 0, 3, 5]), "area", "iscrowd", "id")
    truth, _ = read(
        tmp_path,
        make.instances(
            images=[image], annotations=[record], categories=[absent(make.category(), "name")]
        ),
    )
    assert truth.area.tolist() == [15]
    assert truth.crowd.tolist() == [False]
    assert truth.images.stems == ("",)
    assert np.isnan([truth.images.width, truth.images.height]).all()
    assert truth.categories.names == ("1",)
    assert codes(truth) == {"area-missing": 1, "iscrowd-missing": 1}


def test_only_the_missing_areas_are_filled_in(tmp_path: Path) -> None:
    records = [make.annotation(area=area) for area in (7, None, 0)]
    truth, _ = read(tmp_path, make.instances(annotations=records))
    assert truth.area.tolist() == [7, 400, 0]
    assert codes(truth)["area-missing"] == 1


def test_odd_annotation_ids_are_objects_all_the_same(tmp_path: Path) -> None:
    records = [make.annotation(id=i, bbox=[i, i, 5, 5]) for i in (0, 5, 5)]
    truth, _ = read(tmp_path, make.instances(annotations=records))
    assert len(truth) == 3
    assert codes(truth) == {"id-zero": 1, "id-twice": 1}


@pytest.mark.parametrize(
    "stray, code",
    [({"image_id": 77}, "image-unlisted"), ({"category_id": 77}, "category-unlisted")],
)
def test_annotations_of_unlisted_ids_are_left_out(
    tmp_path: Path, stray: dict[str, int], code: str
) -> None:
    records = [make.annotation(id=2, **stray), make.annotation(bbox=[1, 1, 1, 1])]
    truth, _ = read(tmp_path, make.instances(annotations=records))
    assert truth.boxes.tolist() == [[1, 1, 1, 1]]
    assert codes(truth) == {code: 1}


def test_boxes_wholly_outside_their_image_are_noted(tmp_path: Path) -> None:
    boxes = [[100, 0, 5, 5], [-5, 0, 5, 5], [99, 79, 5, 5], [0, 80, 1, 1]]
    _, detections = read(tmp_path, None, [make.detection(bbox=box) for box in boxes])
    assert len(detections) == 4
    assert codes(detections) == {"box-outside": 3}


# ---- spelling


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}"
    truth, detections = read(
        tmp_path, mark + json.dumps(make.instances()), mark + json.dumps([make.detection()])
    )
    assert len(truth) == len(detections) == 1


@pytest.mark.parametrize(
    "text",
    [
        "0.1",
        "1e-3",
        "0.30000000000000004",
        "1E5",
        "123456789.123456789",
        "2.5e-324",
        "17",
        "0.12345678901234567890123456789",
    ],
)
def test_numbers_are_read_to_the_nearest_double(tmp_path: Path, text: str) -> None:
    record = (
        f'[{{"image_id": 1, "category_id": 1, "bbox": [{text}, 0, 0, {text}], "score": {text}}}]'
    )
    _, detections = read(tmp_path, None, record)
    assert [*detections.boxes[0].tolist(), *detections.score.tolist()] == [
        float(text),
        0,
        0,
        float(text),
        float(text),
    ]


extra = st.dictionaries(
    st.sampled_from(["note", "segmentation", "x", "ident", "ID", "Id", "Score"]),
    st.sampled_from([None, True, 3, -0.5, 'ü \\ " {[', [[1.5, 2]], {"id": 4, "deep": [{}]}]),
)


@st.composite
def respelled(draw: st.DrawFn, tree: Any) -> str:
    """The same JSON content in another spelling: keys in another order, more keys, white space,
    3.0 for 3."""

    def spelled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [
                *value.items(),
                *(item for item in draw(extra).items() if item[0] not in value),
            ]
            return {key: spelled(inner) for key, inner in draw(st.permutations(items))}
        if isinstance(value, list):
            return [spelled(inner) for inner in value]
        return float(value) if isinstance(value, int) and draw(st.booleans()) else value

    indent, separators = draw(
        st.sampled_from([(None, (",", ":")), (3, (" , ", " :\t")), ("\r\n", (",", ": "))])
    )
    return json.dumps(
        spelled(tree), indent=indent, separators=separators, ensure_ascii=draw(st.booleans())
    )


INSTANCES = make.instances(
    annotations=[
        make.annotation(),
        make.annotation(id=2, image_id=2, bbox=[1.5, 2, 30, 4], area=120),
    ]
)
RESULTS = [
    make.detection(),
    make.detection(score=0.5, bbox=[11, 10, 20, 20]),
    make.detection(image_id=2, score=1),
]


@pytest.mark.slow
@given(instances=respelled(INSTANCES), results=respelled(RESULTS))
def test_other_spellings_keep_the_signature(tmp_path: Path, instances: str, results: str) -> None:
    plain = detmap.evaluate(*read(tmp_path, INSTANCES, RESULTS))
    other = detmap.evaluate(*read(tmp_path, instances, results))
    assert other.signature == plain.signature
    assert other.to_dict()["metrics"] == plain.to_dict()["metrics"]


@pytest.mark.slow
@given(
    order=st.permutations(range(3)).filter(lambda order: order != [0, 1, 2]),
    protocol=st.sampled_from(["coco-bbox", "voc2012"]),
)
def test_another_order_of_detections_is_other_data(
    tmp_path: Path, order: list[int], protocol: str
) -> None:
    # of equal score, so ranked by order
    records = [make.detection(bbox=[10 + i, 10, 20, 20]) for i in range(3)]
    plain = detmap.evaluate(*read(tmp_path, None, records), protocol)
    other = detmap.evaluate(*read(tmp_path, None, [records[i] for i in order]), protocol)
    assert other.signature != plain.signature


def again(text: str, key: str, value: str) -> str:
    """The text with a second key in front of the first of that name."""
    assert f'"{key}":' in text
    return text.replace(f'"{key}":', f'"{key}": {value}, "{key}":', 1)


@pytest.mark.usefixtures("coco_reader")
@pytest.mark.parametrize(
    ("file", "key", "value", "place"),
    [
        ("dt", "bbox", "[90, 90, 1, 1]", r"dt\.json\[0\]\.bbox"),
        ("dt", "score", "0.25", r"dt\.json\[0\]\.score"),
        ("dt", "score", '0.25, "sc\\u006fre": 0.5', r"dt\.json\[0\]\.score"),
        ("gt", "annotations", "[]", r"gt\.json: annotations"),
        ("gt", "bbox", "[90, 90, 1, 1]", r"annotations\[0\]\.bbox"),
        ("gt", "width", "5", r"images\[0\]\.width"),
        ("gt", "name", '"x"', r"categories\[0\]\.name"),
    ],
)
def test_a_key_that_is_there_twice(
    file: str, key: str, value: str, place: str, tmp_path: Path
) -> None:
    instances = make.instances()
    instances["images"] = [{"width": 100, "height": 100, **image} for image in instances["images"]]
    texts = {"gt": json.dumps(instances), "dt": json.dumps([make.detection()])}
    texts[file] = again(texts[file], key, value)
    for name, text in texts.items():
        make.write(tmp_path / f"{name}.json", text)
    with pytest.raises(DataError, match=place) as refused:
        detmap.evaluate(tmp_path / "gt.json", tmp_path / "dt.json")
    assert refused.value.what == "occurs twice"


@pytest.mark.parametrize("key", ["license", "tags"])
def test_a_key_that_nothing_reads_may_be_there_twice(key: str, tmp_path: Path) -> None:
    instances = make.instances() | {"licenses": [{"id": 1, "name": "x"}], "info": {"name": "y"}}
    instances["images"] = [{key: 1, **image} for image in instances["images"]]
    make.write(tmp_path / "gt.json", again(json.dumps(instances), key, "2"))
    make.write(tmp_path / "dt.json", [make.detection()])
    assert detmap.evaluate(tmp_path / "gt.json", tmp_path / "dt.json").metrics["AP"] >= 0


@pytest.mark.parametrize(("first", "n"), [(2**53, 1), (2**53 - 1, 0), (0.5, 0)])
def test_scores_that_are_one_in_double_precision(first: float, n: int, tmp_path: Path) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "gt.json", make.instances()))
    scores = [first, first + 1 if first > 1 else first]
    results = [make.detection(score=score) for score in scores]
    found = detmap.read_detections(make.write(tmp_path / "dt.json", results), truth)
    assert [note.count for note in summed(found.notes) if note.code == "score-vast"] == [n] * (
        n > 0
    )
