"""One policy for images, class ids, class names and class files that the ground truth lacks."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Evaluator, Truth
from tests.support import builders as make
from tests.support.running import run

NAMES = ("cat", "dog", "person")


def coco(folder: Path, names: Any = NAMES, **image: Any) -> Path:
    """Two images, an object of each class on the first."""
    tree = make.instances(
        images=[make.image(**image), make.image(id=2, file_name="000002.jpg")],
        categories=[make.category(id=i + 1, name=name) for i, name in enumerate(names)],
        annotations=[make.annotation(id=i + 1, category_id=i + 1) for i in range(len(names))],
    )
    return make.write(folder / "gt.json", tree)


def voc(folder: Path, names: Any = NAMES) -> Path:
    objects = [make.voc_object(name) for name in names]
    return make.write_voc(folder / "voc", {"000001": make.page(*objects), "000002": make.page()})


def results(folder: Path, *records: dict[str, Any]) -> Path:
    return make.write(folder / "dt.json", [make.detection(**record) for record in records])


def numbers(result: detmap.Result) -> Any:
    shown = result.to_dict()
    return [shown[part] for part in ("metrics", "per_class", "counts")]


GOOD = ({"score": 0.9}, {"category_id": 2, "bbox": [0, 0, 5, 5]})
STRANGERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "image id": ({"image_id": 9}, "image-unknown", "2 detections are on 1 image that it lacks: 9"),
    "class id": (
        {"category_id": 7},
        "class-unknown",
        "2 detections are of 1 class that it lacks: 7",
    ),
}


@pytest.mark.parametrize("stranger, code, counts", STRANGERS.values(), ids=STRANGERS)
def test_strangers_are_refused_or_dropped_and_counted(
    tmp_path: Path, stranger: dict[str, Any], code: str, counts: str
) -> None:
    truth, file = coco(tmp_path), results(tmp_path, *GOOD, stranger, stranger)
    outcome = run("eval", truth, file)
    assert outcome.code == 2
    assert counts in outcome.err
    assert "--unknown drop" in outcome.err
    found = detmap.evaluate(truth, file, unknown="drop")
    assert [(note.code, note.count) for note in found.notes if note.code == code] == [(code, 2)]
    alone = detmap.evaluate(truth, results(tmp_path, *GOOD))
    assert numbers(found) == numbers(alone)
    assert found.signature != alone.signature
    dropped = run("eval", truth, results(tmp_path, *GOOD, stranger, stranger), "--unknown", "drop")
    assert (dropped.code, found.signature in dropped.out) == (0, True)


def test_the_digest_knows_how_many_were_dropped(tmp_path: Path) -> None:
    truth, strange = coco(tmp_path), {"category_id": 7}
    signatures = {
        detmap.evaluate(truth, results(tmp_path, *GOOD, *[strange] * n), unknown="drop").signature
        for n in range(4)
    }
    assert len(signatures) == 4


def test_a_row_on_no_image_is_counted_once(tmp_path: Path) -> None:
    truth = detmap.read_truth(coco(tmp_path))
    file = results(tmp_path, *GOOD, {"image_id": 9, "category_id": 7}, {"category_id": 8})
    found = detmap.read_detections(file, truth, unknown="drop")
    counts = {note.code: note.count for note in found.notes}
    assert counts == {"image-unknown": 1, "class-unknown": 1}


def test_names_that_are_near_are_asked_for(tmp_path: Path) -> None:
    truth = detmap.read_truth(
        coco(tmp_path, ("cat", "dog", "r\N{LATIN SMALL LETTER E WITH ACUTE}"))
    )
    for given, near in (
        ("Cat", "did you mean 'cat'? only the case differs"),
        ("dogs", "did you mean 'dog'?"),
        (unicodedata.normalize("NFD", truth.categories.names[2]), "only the Unicode normalization"),
        ("zebra", "lacks: 'zebra' (the ground truth has 3 classes such as 'cat'"),
    ):
        with pytest.raises(DataError) as refused:
            detmap.read_detections(results(tmp_path, {"category_id": given}), truth)
        assert near in str(refused.value)


def test_ids_beside_stems_are_not_near_names(tmp_path: Path) -> None:
    images = [make.image(id=12, file_name="000012.jpg"), make.image(id=13, file_name="000013.jpg")]
    tree = make.instances(images=images, annotations=[make.annotation(image_id=12)])
    truth = detmap.read_truth(make.write(tmp_path / "gt.json", tree))
    name = truth.categories.names[0]
    file = tmp_path / f"comp4_det_test_{name}.txt"
    file.write_text("12 .9 10 10 29 29\n000013 .8 10 10 29 29\n")
    with pytest.raises(DataError, match="no image '000013' by id, no image '12' by name"):
        detmap.read_detections(tmp_path, truth, format="voc")


def test_files_of_classes_that_the_truth_lacks(tmp_path: Path) -> None:
    line = "000001 0.5 11 11 30 30\n"
    text = make.write_voc_text(tmp_path / "dt", {"test_cat": line, "test_dgo": line * 2})
    truth = voc(tmp_path)
    outcome = run("eval", truth, text)
    assert outcome.code == 2
    assert "class 'dgo' is not in" in outcome.err
    assert "did you mean 'dog'?" in outcome.err
    assert "--unknown drop" in outcome.err
    found = detmap.evaluate(truth, text, unknown="drop")
    assert {(note.code, note.count) for note in found.notes} >= {("class-unknown", 2)}
    (text / "comp4_det_test_dgo.txt").unlink()
    assert numbers(found) == numbers(detmap.evaluate(truth, text))


# --- own classes against ids


def test_ids_of_own_classes_are_never_guessed(tmp_path: Path) -> None:
    truth, file = voc(tmp_path), results(tmp_path, {"category_id": 1})
    with pytest.raises(DataError, match="class_names") as refused:
        detmap.evaluate(truth, file)
    assert refused.value.where.endswith("dt.json[0].category_id")
    outcome = run("eval", truth, file)
    assert outcome.code == 2
    assert "--class-names FILE" in outcome.err


NAMED: dict[str, tuple[Any, int]] = {
    "lines": ("dog\ncat\nperson\n", 1),
    "lines of another system": (b"dog\r\ncat \r\nperson\r\n\r\n", 1),
    "JSON list": (["dog", "cat"], 1),
    "JSON object": ({"7": "cat", "1": "dog"}, 7),
    "categories": ({"categories": [{"id": 4, "name": "cat"}, {"id": 1, "name": "dog"}]}, 4),
    "names of which one stands for nothing": ("N/A\nN/A\ncat\nN/A\n", 2),
}


@pytest.mark.parametrize("content, cat", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("family", [coco, voc])
@pytest.mark.usefixtures("coco_reader")
def test_names_for_ids(tmp_path: Path, content: Any, cat: int, family: Any) -> None:
    truth, names = family(tmp_path), make.write(tmp_path / "names.txt", content)
    plain = results(tmp_path, {"category_id": "cat"})
    expected = numbers(detmap.evaluate(truth, plain, "coco-bbox"))
    file = results(tmp_path, {"category_id": cat})
    found = detmap.evaluate(truth, file, "coco-bbox", class_names=names)
    assert numbers(found) == expected
    command = ("eval", truth, file, "-p", "coco-bbox", "--class-names", names)
    assert found.signature in run(*command).out


@pytest.mark.parametrize(
    "content, what",
    [
        ("", "lists no class"),
        ("cat\n\ndog\n", "line 2: is empty"),
        ('{"a": "cat"}', "'a' is not a class id"),
        ("[1, 2]", "class 0: 1 is not a name"),
        ('{"1": "cat", "01": "dog"}', "class 1 occurs twice"),
        ("{", "truncated"),
        (b"\xff", "not UTF-8"),
        ("cat\ncat\n", "'cat' is class 0 and class 1"),
    ],
)
def test_bad_class_names_are_refused(tmp_path: Path, content: Any, what: str) -> None:
    names = make.write(tmp_path / "names.txt", content)
    outcome = run("eval", coco(tmp_path), results(tmp_path, *GOOD), "--class-names", names)
    assert (outcome.code, what in outcome.err) == (2, True), outcome.err
    assert "names.txt" in outcome.err


def test_class_names_where_classes_have_names(tmp_path: Path) -> None:
    truth = detmap.read_truth(coco(tmp_path))
    for path in (results(tmp_path, {"category_id": "cat"}), make.write_voc_text(tmp_path / "dt")):
        with pytest.raises(DataError, match="remove --class-names"):
            detmap.read_detections(path, truth, class_names=["cat"])


def test_ids_that_the_names_lack_are_unknown_too(tmp_path: Path) -> None:
    truth, file = voc(tmp_path), results(tmp_path, {"category_id": 1}, {"category_id": 5})
    with pytest.raises(DataError, match="no class 5 in"):
        detmap.evaluate(truth, file, class_names=["dog", "cat"])
    with pytest.raises(DataError, match=r"no class 'cta' in .*did you mean 'cat'"):
        detmap.evaluate(truth, file, class_names=["dog", "cta"])


def test_the_twenty_classes_of_voc_have_numbers(tmp_path: Path) -> None:
    from detmap.core.adapters.joining.unknown_policy import VOC_CLASSES

    names = VOC_CLASSES.split(",")
    truth = detmap.read_truth(voc(tmp_path, names))
    found = detmap.read_detections(results(tmp_path, {"category_id": 15}), truth)
    assert [names[k] for k in found.label] == ["person"]


# --- in memory


def boxes(**fields: Any) -> dict[str, Any]:
    return {
        "boxes": np.array([[10.0, 10, 30, 30], [10, 10, 30, 30]]),
        "scores": np.array([0.9, 0.8]),
        "labels": np.array([1, 2]),
    } | fields


def arrays(truth: Truth, **told: Any) -> detmap.Detections:
    return detmap.detections_from_arrays(
        truth, [1, 1, 5], [1, 9, 1], [[10, 10, 20, 20]] * 3, [0.9, 0.8, 0.7], **told
    )


def test_arrays_follow_the_same_policy(tmp_path: Path) -> None:
    truth = detmap.read_truth(coco(tmp_path))
    with pytest.raises(DataError, match=r"image_id\[2\]: no image 5"):
        arrays(truth)
    found = arrays(truth, unknown="drop")
    assert len(found) == 1
    counts = {note.code: note.count for note in found.notes}
    assert counts == {"image-unknown": 1, "class-unknown": 1}
    named = detmap.read_truth(voc(tmp_path))
    given = (["000001"], [1], [[10, 10, 20, 20]], [0.5])
    with pytest.raises(DataError, match="class_names"):
        detmap.detections_from_arrays(named, *given)
    found = detmap.detections_from_arrays(named, *given, class_names=["cat", "dog"])
    assert [named.categories.names[k] for k in found.label] == ["dog"]
    found = detmap.detections_from_arrays(named, *given, class_names=named.categories)
    assert [named.categories.names[k] for k in found.label] == ["cat"]


@pytest.mark.parametrize("sizes", [[3], [1, 2], [2, 1], [1, 1, 1]])
def test_an_evaluator_drops_and_counts_in_any_batches(tmp_path: Path, sizes: list[int]) -> None:
    truth = detmap.read_truth(coco(tmp_path))
    stranger = boxes(image_id=9)
    images = [boxes(image_id=1, labels=[1, 8]), boxes(image_id=2, labels=[7, 3]), stranger]
    with pytest.raises(DataError, match=r"predictions\[2\].image_id: no image 9 in"):
        Evaluator(truth=truth).update(images)
    with pytest.raises(DataError, match=r"predictions\[0\].labels\[1\]: no class 8 in"):
        Evaluator(truth=truth).update(images[:2])
    stream, other = (Evaluator(truth=truth, unknown="drop") for _ in range(2))
    begin = 0
    for i, size in enumerate(sizes):
        (stream if i % 2 else other).update(images[begin : begin + size])
        begin += size
    other.save(tmp_path / "state.npz")
    merged = stream.merge(Evaluator.load(tmp_path / "state.npz", truth=truth))
    counted = {note.code: note.count for note in merged.compute().notes}
    assert (counted["class-unknown"], counted["image-unknown"]) == (2, 2)
    box = [[10, 10, 20, 20]] * 6
    whole = detmap.detections_from_arrays(
        truth, [1, 1, 2, 2, 9, 9], [1, 8, 7, 3, 1, 2], box, [0.9, 0.8] * 3, unknown="drop"
    )
    result = detmap.evaluate(truth, whole)
    assert merged.compute().metrics == result.metrics
    assert merged.compute().signature == result.signature


def test_an_evaluator_without_ids_keeps_counts_when_it_is_merged() -> None:
    target = {"boxes": [[10, 10, 30, 30]], "labels": [1]}
    streams = [Evaluator(classes=["a", "b", "c"], unknown="drop") for _ in range(3)]
    for stream in streams:
        stream.update([boxes(labels=[1, 9])], [target])
    counted = {n.code: n.count for n in streams[0].merge(*streams[1:]).compute().notes}
    assert counted["class-unknown"] == 3


def test_an_evaluator_of_own_classes_is_told_what_labels_mean(tmp_path: Path) -> None:
    truth = detmap.read_truth(voc(tmp_path))
    with pytest.raises(DataError, match="class_names"):
        Evaluator(truth=truth).update([boxes(image_id="000001")])
    with pytest.raises(DataError, match="classes="):
        Evaluator(classes=["a"], class_names=["a"])
    stream = Evaluator(truth=truth, class_names=["x", "dog", "cat"])
    stream.update([boxes(image_id="000001")])
    assert {r["name"]: r["detections"] for r in stream.compute().per_class} == {
        "cat": 1,
        "dog": 1,
        "person": 0,
    }


def test_parts_of_one_file_count_what_was_dropped_once(tmp_path: Path) -> None:
    truth, file = coco(tmp_path), results(tmp_path, *GOOD, {"image_id": 9})
    parts = []
    for i in (1, 2):
        images = make.write(tmp_path / f"{i}.txt", f"{i}\n")
        parts.append(tmp_path / f"{i}.npz")
        command = ("match", truth, file, "--images", images, "-o", parts[-1], "--unknown", "drop")
        assert run(*command).code == 0
    merged = json.loads(run("merge", *parts, "--format", "json").out)
    assert merged["signature"] == detmap.evaluate(truth, file, unknown="drop").signature


def test_a_policy_that_does_not_exist(tmp_path: Path) -> None:
    truth = detmap.read_truth(coco(tmp_path))
    with pytest.raises(DataError, match="say error or drop"):
        detmap.read_detections(results(tmp_path, *GOOD), truth, unknown="ignore")
    read = detmap.read_detections(results(tmp_path, *GOOD), truth)
    with pytest.raises(DataError, match="read_detections"):
        detmap.evaluate(truth, read, unknown="drop")


def test_a_mapping_from_image_id_to_output(tmp_path: Path) -> None:
    """As torchvision's references hand it to their evaluator."""
    truth = detmap.read_truth(coco(tmp_path))
    listed, mapped, both = Evaluator(truth=truth), Evaluator(truth=truth), Evaluator(classes=[1, 2])
    listed.update([boxes(image_id=2), boxes(image_id=1)])
    mapped.update({2: boxes(), 1: boxes(image_id=np.array([1]))})
    assert mapped.compute().signature == listed.compute().signature
    assert mapped.compute().metrics == listed.compute().metrics
    targets = {k: {"boxes": [[10, 10, 30, 30]], "labels": [1]} for k in (1, 2)}
    both.update({2: boxes(), 1: boxes()}, targets)
    assert len(both) == 2
    for images in ({1: boxes(image_id=2)}, {1.5: boxes()}, {None: boxes()}, boxes()):
        with pytest.raises(DataError):
            Evaluator(truth=truth).update(images)
    with pytest.raises(DataError, match="only in targets: 3"):
        Evaluator(classes=[1, 2]).update({1: boxes(), 2: boxes(), 3: boxes()}, targets)


@pytest.mark.parametrize("unknown", ["error", "drop"])
def test_class_names_of_which_the_truth_has_none(tmp_path: Path, unknown: str) -> None:
    file = results(tmp_path, {"category_id": 1})
    names = make.write(tmp_path / "names.txt", "elsewhere\n")
    outcome = run(
        *("eval", str(coco(tmp_path)), str(file), "--class-names", str(names)),
        *("--unknown", unknown),
    )
    assert outcome.code == (2 if unknown == "error" else 0)
    assert "detmap's fault" not in outcome.err


def with_null(folder: Path) -> Path:
    """The ground truth of `coco`, and a class without objects, number 4."""
    path = coco(folder)
    tree = json.loads(path.read_text())
    tree["categories"].append(make.category(id=4, name="null"))
    return make.write(path, tree)


@pytest.mark.parametrize("rules", ["coco-bbox", "voc2012", "tide"])
def test_a_class_that_csv_lacks_is_added(rules: str, tmp_path: Path) -> None:
    """CSV lists only classes with objects: after `convert`, detections of others are unknown."""
    truth = with_null(tmp_path)
    records = [{"category_id": k, "score": k / 10} for k in (1, 2, 4)]
    found = results(tmp_path, *records, {"image_id": 2, "category_id": 4, "score": 0.9})
    tables = [tmp_path / "truth.csv", tmp_path / "found.csv"]
    assert run("convert", truth, tables[0], "--to", "csv").code == 0
    assert run("convert", found, tables[1], "--to", "csv", "--truth", truth).code == 0
    outcome = run("eval", *tables, "-p", rules)
    assert outcome.code == 2
    assert "no class 'null'" in outcome.err
    assert "--set scope.unknown=classes" in outcome.err
    added = run("eval", *tables, "-p", rules, "--set", "scope.unknown=classes", "--format", "json")
    original = run("eval", truth, found, "-p", rules, "--format", "json")
    assert (added.code, original.code) == (0, 0)
    metrics = json.loads(added.out)["metrics"]
    assert metrics == json.loads(original.out)["metrics"]
    assert 0 < next(iter(metrics.values())) < 1


def test_classes_are_not_added_to_a_truth_that_lists_those_without_objects(tmp_path: Path) -> None:
    named = results(tmp_path, {"category_id": "elsewhere"})
    outcome = run("eval", with_null(tmp_path), named)
    assert (outcome.code, "scope.unknown" in outcome.err) == (2, False)


BOX = [1.0, 1, 20, 20]


@pytest.mark.parametrize("kind", ["lists", "csv", "frame"])
def test_class_ids_have_no_meaning_beside_names_alone(kind: str, tmp_path: Path) -> None:
    """The order of the model's classes is not that of the alphabet."""
    truth: Any = [{"boxes": [BOX, BOX], "labels": ["dog", "cat"]}]
    found: Any = [{"boxes": [BOX], "labels": [1], "scores": [0.9]}]
    if kind != "lists":
        truth = make.write(
            tmp_path / "t.csv", "image_id,x1,y1,x2,y2,class\n1,1,1,20,20,dog\n1,1,1,20,20,cat\n"
        )
        found = make.write(
            tmp_path / "d.csv", "image_id,x1,y1,x2,y2,class_id,score\n1,1,1,20,20,1,.9\n"
        )
    if kind == "frame":
        pandas = pytest.importorskip("pandas")
        truth, found = pandas.read_csv(truth), pandas.read_csv(found)
    with pytest.raises(DataError, match=r"have names alone: cat, dog"):
        detmap.evaluate(truth, found, "coco-bbox")
    result = detmap.evaluate(truth, found, "coco-bbox", class_names={1: "dog", 2: "cat"})
    assert [row["tp"] for row in result.per_class] == [0, 1]


def test_classes_that_may_count_from_one_get_both_meanings(tmp_path: Path) -> None:
    """Ids 1 and 2 beside classes 0 and 1; each advice is followed."""
    boxes = [[0, 0, 9, 9], [20, 0, 9, 9]]
    tree = make.instances()
    tree["categories"] = [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}]
    tree["annotations"] = [
        {"id": k + 1, "image_id": 1, "category_id": k, "bbox": box, "area": 81, "iscrowd": 0}
        for k, box in enumerate(boxes)
    ]
    tree["images"] = [{"id": 1, "width": 99, "height": 99}]
    truth = make.write(tmp_path / "gt.json", tree)
    rows = [
        {"image_id": 1, "category_id": k + 1, "bbox": box, "score": 0.9}
        for k, box in enumerate(boxes)
    ]
    found = make.write(tmp_path / "dt.json", rows)
    refused = run("eval", truth, found)
    assert refused.code == 2
    assert "if classes count from 1 here, --fix classes-one-based" in refused.err
    assert "if 2 is another class, --unknown drop" in refused.err
    fixed = run("eval", truth, found, "--fix", "classes-one-based", "--format", "json")
    assert json.loads(fixed.out)["metrics"]["AP50"] == pytest.approx(1)
    assert run("eval", truth, found, "--unknown", "drop").code == 0


def test_class_names_name_numbers_on_both_sides(tmp_path: Path) -> None:
    box = {"boxes": [[0, 0, 9, 9], [20, 20, 29, 29]], "labels": [1, 2]}
    found = [box | {"labels": [1, 3], "scores": [0.9, 0.8]}]
    names = {1: "cat", 2: "dog", 3: "cow"}
    plain = detmap.evaluate([box], found)
    named = detmap.evaluate([box], found, class_names=names)
    assert [row["name"] for row in named.per_class] == ["cat", "dog", "cow"]
    assert named.metrics == plain.metrics
    assert [row["name"] for row in plain.per_class] == ["1", "2", "3"]
    with pytest.raises(DataError, match=r"class 2 of list of images.* has no name"):
        detmap.evaluate([box], found, class_names=["cat", "dog"])
    stream = Evaluator(truth=[{**box, "image_id": 7}], class_names=names)
    stream.update([{**found[0], "image_id": 7}])
    assert stream.compute().metrics == plain.metrics
    assert stream.categories.names == ("cat", "dog", "cow")
    lines = "image,class,xmin,ymin,xmax,ymax", "a,1,0,0,9,9"
    truth = make.write(tmp_path / "gt.csv", "\n".join([*lines, "b,1,0,0,9,9"]))
    files = [
        make.write(tmp_path / f"{n}.csv", f"{lines[0]},score\n{lines[1]},.{n}") for n in (1, 2)
    ]
    listed = make.write(tmp_path / "names.json", {str(k): name for k, name in names.items()})
    for outcome in (
        run("eval", truth, files[0], "--class-names", listed, "--per-class"),
        run("eval", truth, files[0], "--class-names", listed, "--classes", "cat", "--per-class"),
    ):
        assert (outcome.code, "cat" in outcome.out) == (0, True)
    table = detmap.read_truth(truth)
    tables = [detmap.read_detections(file, table, class_names=names) for file in files]
    assert {row.name for row in detmap.compare(table, *tables).classes} >= {"cat"}
