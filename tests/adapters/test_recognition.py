"""Exports that no reader takes are named, as files, folders and Python objects."""

import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.annotation_tools import unread_exports
from detmap.core.adapters import recognition, row_estimates
from detmap.core.adapters.joining import unknown_policy
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.running import run


def record(marks: tuple[str, ...]) -> dict[str, Any]:
    """The smallest record with some keys; a list holds a record."""
    root: dict[str, Any] = {}
    for mark in marks:
        *folders, last = mark.replace("*", "any").split(".")
        place = root
        for name in folders:
            place = place.setdefault(name, {})
        place[last] = []
    return root


KEYS = (*recognition.COCO, *unread_exports.KEYS)


@pytest.mark.parametrize(("marks", "seen"), KEYS, ids=lambda each: str(each)[:40])
def test_keys_name_an_object(marks: tuple[str, ...], seen: recognition.Seen) -> None:
    assert recognition.recognized(record(marks)) == seen
    assert recognition.recognized([record(marks)] * 2) == seen
    if "boxes" in marks[0] or marks[1:] == ("objects",):
        return  # a list of one dict per image is read
    with pytest.raises(DataError) as refused:  # as a file with this content
        detmap.read_truth([record(marks)])
    assert refused.value.where.startswith("truth")
    assert refused.value.fix


@pytest.mark.parametrize(
    ("marks", "seen"),
    [row for row in KEYS if "panlabel" in row[1].fix or row[1].fix.startswith("write")],
    ids=lambda each: str(each)[:40],
)
def test_keys_name_files_of_every_form(
    tmp_path: Path, marks: tuple[str, ...], seen: recognition.Seen
) -> None:
    one = json.dumps(record(marks))
    for name, text in (("a.json", f"[{one}]"), ("b.jsonl", f"{one}\n{one}\n"), ("c.json", one)):
        file = make.write(tmp_path / name, text)
        if recognition.readings(file)["truth"]:
            continue  # a reader of its own
        outcome = run("eval", file, file)
        assert outcome.code == 2
        assert outcome.err.startswith(f"detmap: error: {file}: {seen.name}, which detmap does not")
        assert "\n  fix: " in outcome.err


def torch_dump() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    return buffer.getvalue()


def arrays(name: str) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.zeros(3)})
    return buffer.getvalue()


PIPED = b'{"score": 0.5, "label": "cat", "box": {"xmin": 1, "ymin": 1, "xmax": 2, "ymax": 2}}'
FILES: dict[str, tuple[str, bytes, str, str]] = {
    "image": ("a.csv", b"\x89PNG\r\n\x1a\n", "an image (PNG)", "annotations"),
    "torch": ("instances_predictions.pth", torch_dump(), "torch", "coco_instances_results.json"),
    "tfrecord": ("a.tfrecord", b"\x10" + bytes(11) + b"\n\nimage/width", "TFRecord", "COCO"),
    "matches": ("a.npz", arrays("header"), "a saved match result", "`detmap merge FILE`"),
    "numpy": ("a.npz", arrays("boxes"), "a file of NumPy arrays", "detections_from_arrays"),
    "pipeline": ("a.json", b"[[], [" + PIPED + b"]]", "a Hugging Face pipeline", "COCO JSON"),
    "pipeline by image": ("a.json", b'{"7": [' + PIPED + b"]}", "Hugging Face", "COCO JSON"),
    "per image": (
        "a.json",
        b'{"7": {"boxes": [[1, 1, 2, 2]], "scores": [0.5], "labels": [1]}}',
        "predictions per image",
        "image_id",
    ),
    "video": (
        "a.xml",
        b"<?xml version='1.0'?>\n<annotations><track id='0'>",
        "CVAT for video",
        "1.1",
    ),
    "voc file": ("a.xml", b"<annotation><object/></annotation>", "one annotation file", "folder"),
    "html": ("a.json", b"<!DOCTYPE html><html></html>", "a web page", "download"),
    "vertex": ("a.csv", b"TEST,gs://b/a.jpg,cat,0.1,0.2,,,0.3,0.4,,\n", "Vertex AI", "COCO"),
    "via": ("a.csv", b"filename,region_shape_attributes,x\na,b,c\n", "VIA CSV", "COCO"),
    "label studio": (
        "a.csv",
        b'"annotation_id","image","label","lead_time"\n1,a.jpg,[],2\n',
        "Label Studio CSV",
        "export JSON or COCO",
    ),
    "kaggle": (
        "a.csv",
        b"image_id,PredictionString\n7,cat 0.9 1 2 3 4 cat 0.8 5 6 7 8\n",
        "Kaggle's PredictionString",
        "one row per box",
    ),
    "keras": ("a.txt", b"a b.jpg 1,2,3.5,4,0 5,6,7,8,1\n", "keras-yolo3", "panlabel"),
}


def test_folders_are_described(tmp_path: Path) -> None:
    make.write(tmp_path / "tf" / "train.tfrecord", b"x")
    with pytest.raises(DataError, match="a TFRecord file, which detmap does not read"):
        detmap.read_truth(tmp_path / "tf")
    make.write(tmp_path / "blanks" / "a.txt", "stop sign 0.5 1 2 3 4\n")
    with pytest.raises(DataError, match=r"blanks in class names, .*\(write names without"):
        detmap.read_truth(tmp_path / "blanks")
    make.write(tmp_path / "odd" / "a.foo", b"x")
    with pytest.raises(DataError, match=r"no folder Annotations; the folder has 1 .foo file"):
        detmap.read_truth(tmp_path / "odd")
    make.write(tmp_path / "near" / "sub" / "instances.json", make.instances())
    with pytest.raises(DataError, match=r"\(give .*instances.json\)"):
        detmap.read_truth(tmp_path / "near")


def test_the_format_that_was_chosen_keeps_its_error(tmp_path: Path) -> None:
    file = make.write(tmp_path / "a.json", json.dumps([record(("data_row",))]))
    with pytest.raises(DataError, match="the top level is a list"):
        detmap.read_truth(file, format="coco")


def test_a_damaged_file_of_coco_keeps_its_error(tmp_path: Path) -> None:
    broken = make.instances(annotations=[make.without(make.annotation(), "bbox")])
    with pytest.raises(DataError, match="bbox: missing"):
        detmap.read_truth(make.write(tmp_path / "a.json", broken))


@pytest.mark.parametrize(
    ("thing", "what"),
    [
        (np.zeros((2, 4)), r"array or tensor of shape \(2, 4\)"),
        (SimpleNamespace(columns=["a"]), "a table"),
        (SimpleNamespace(xyxy=[], confidence=[]), "supervision"),
    ],
)
def test_objects_of_libraries_are_named(thing: Any, what: str) -> None:
    with pytest.raises(DataError, match=f"{what}.*where a path is needed"):
        detmap.read_truth(thing)


LABELS = "cat 0 0 0 1 2 3 4 0 0 0 0 0 0 0\n"
BOX = {"label": "cat", "coordinates": {"x": 10, "y": 10, "width": 5, "height": 5}}


def same_errors(path: Path) -> str:
    """The error of a path and its fix, which eval, inspect, convert and Python have alike."""
    with pytest.raises(DataError) as refused:
        detmap.read_truth(path)
    error = f"detmap: error: {refused.value.where}: {refused.value.what}"
    target = path.parent / "new.json"
    for words in (
        ("eval", path, path),
        ("inspect", path),
        ("convert", path, target, "--to", "coco"),
    ):
        outcome = run(*words)
        assert outcome.code == 2
        assert outcome.err.startswith(error)
        assert f"  fix: {refused.value.fix}\n" in outcome.err
    return f"{error} {refused.value.fix}"


@pytest.mark.parametrize(("name", "data", "what", "fix"), FILES.values(), ids=FILES)
def test_every_command_names_a_file_alike(
    tmp_path: Path, name: str, data: bytes, what: str, fix: str
) -> None:
    error = same_errors(make.write(tmp_path / name, data))
    assert "which detmap does not read" in error or "which detmap reads with" in error
    assert what in error
    assert fix in error


def test_every_command_names_a_folder_alike(tmp_path: Path) -> None:
    for folder in ("training/label_2", "results/data"):
        make.write(tmp_path / "kitti" / folder / "a.txt", LABELS)
    assert "no folder Annotations; the folder has 2 .txt files" in same_errors(tmp_path / "kitti")
    make.write(tmp_path / "one" / "x.json", json.dumps([{"image": "a.jpg", "annotations": [BOX]}]))
    same_errors(tmp_path / "one")
    with pytest.raises(DataError, match=r"give .*x\.json"):
        detmap.read_truth(tmp_path / "one")


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.xml", "labels/a.txt"])
@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, name: str, coding: str) -> None:
    text = {"a.csv": "image,class\n", "a.json": '{"a": 1}', "a.xml": "<annotation/>"}
    file = make.write(tmp_path / name, text.get(name, LABELS).encode(coding))
    path = file if file.parent == tmp_path else file.parent
    assert "text in UTF-16" in same_errors(path)


def test_a_link_without_a_target_is_named(tmp_path: Path) -> None:
    make.write(tmp_path / "label_2" / "a.txt", LABELS)
    (tmp_path / "label_2" / "b.txt").symlink_to(tmp_path / "none")
    assert "b.txt: a link to a missing file" in same_errors(tmp_path)


def test_a_folder_with_files_of_two_formats_has_a_note(tmp_path: Path) -> None:
    shapes = {"imagePath": "a.jpg", "shapes": [], "imageWidth": 64, "imageHeight": 32}
    make.write(tmp_path / "a.json", json.dumps(shapes))
    assert "format-chosen" not in {note.code for note in detmap.read_truth(tmp_path).notes}
    make.write(tmp_path / "a.xml", make.page(make.voc_object()))
    note = next(note for note in detmap.read_truth(tmp_path).notes if note.code == "format-chosen")
    assert "read as labelme: voc" in note.text
    chosen = detmap.read_truth(tmp_path, format="voc")
    assert len(chosen) == 1
    assert "format-chosen" not in {note.code for note in chosen.notes}


def test_createml_of_apples_examples_is_read(tmp_path: Path) -> None:
    record = {"imagefilename": "a.jpg", "annotation": [BOX]}
    truth = detmap.read_truth(make.write(tmp_path / "a.json", json.dumps([record])))
    assert truth.boxes.tolist() == [[7.5, 7.5, 5, 5]]
    for wrong, what in ((record | {"annotations": []}, "both are given"), ({**record}, "missing")):
        if what == "missing":
            del wrong["imagefilename"]
        file = make.write(tmp_path / "b.json", json.dumps([record, wrong]))
        with pytest.raises(DataError, match=what):
            detmap.read_truth(file)


def test_inspect_names_detections_without_a_header(tmp_path: Path) -> None:
    file = make.write(tmp_path / "a.csv", "a.jpg,1,2,3,4,cat,.5\nb.jpg,1,2,3,4,dog,.5\n")
    outcome = run("inspect", file)
    assert outcome.code == 0
    assert "detections in the format retinanet" in outcome.out
    with pytest.raises(DataError, match="truth expected, and this is detections"):
        detmap.read_truth(file)


def test_inspect_counts_two_classes_of_one_name(tmp_path: Path) -> None:
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "cat"}]
    tree = make.instances(categories=categories)
    outcome = run("inspect", make.write(tmp_path / "a.json", tree), "--format", "json")
    assert set(json.loads(outcome.out)["classes"]) == {"cat (id 1)", "cat (id 2)"}


def test_a_name_with_other_separators_is_suggested() -> None:
    assert unknown_policy.nearest("stop sign", ["go", "Stop_sign"]).startswith(
        "did you mean 'Stop_"
    )


ROW = {"image": "a.jpg", "objects": {"bbox": [[1, 2, 3, 4]], "category": [0]}}
MMDET = {"bboxes": [[1, 2, 3, 4]], "labels": [0], "scores": [0.5]}


@pytest.mark.parametrize(
    ("thing", "what"),
    [
        (ROW["objects"], "row|column|truth"),
        (MMDET, "row|column|truth"),
        ((MMDET,), "unknown key 'bboxes'|image_id: missing"),
        (np.zeros((3, 6), np.float32), r"array or tensor of shape \(3, 6\)"),
    ],
)
def test_python_objects_are_named_by_both_readers(tmp_path: Path, thing: Any, what: str) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "a.json", make.instances()))
    for read in (detmap.read_truth, lambda given: detmap.read_detections(given, truth)):
        with pytest.raises(DataError, match=what) as refused:
            read(thing)
        assert refused.value.fix


def test_a_folder_above_that_of_a_reader_names_it(tmp_path: Path) -> None:
    page = {"size": {"width": 9, "height": 9}, "objects": [{"classTitle": "cat"}]}
    folder = tmp_path / "new" / "project"
    make.write(folder / "ds0" / "ann" / "a.jpg.json", page)
    make.write(tmp_path / "new" / "meta.json", {"classes": []})
    with pytest.raises(DataError, match="reads from another folder") as refused:
        detmap.read_truth(tmp_path / "new")
    assert str(folder) in refused.value.fix


def test_escaped_keys_are_recognized(tmp_path: Path) -> None:
    """A JSON writer may escape any letter; COCO was taken for Scalabel or COCO."""
    truth, rows = make.instances(), [make.detection(image_id=1)]

    def escaped(thing: Any) -> str:
        text = json.dumps(thing)
        keys = ("images", "annotations", "categories", "image_id", "category_id", "id", "bbox")
        for key in keys:
            text = text.replace(f'"{key}"', f'"\\u{ord(key[0]):04X}{key[1:]}"')
        return text

    places = [tmp_path / "truth.json", tmp_path / "results.json", tmp_path / "results.jsonl"]
    for place, thing in zip(places, (truth, rows, rows[0]), strict=True):
        place.write_text(escaped(thing))
        assert '"id"' not in place.read_text()
    found = detmap.read_truth(places[0])
    plain = detmap.read_truth(make.write(tmp_path / "plain.json", truth))
    assert found.boxes.tolist() == plain.boxes.tolist()
    assert found.images.ids.tolist() == plain.images.ids.tolist()
    for place in places[1:]:
        assert detmap.read_detections(place, found).score.tolist() == [rows[0]["score"]]
        assert row_estimates.estimated_rows(place) == 1


def test_a_dash_after_comp4_and_the_old_folder_of_cartucho(tmp_path: Path) -> None:
    make.write(tmp_path / "r" / "comp4-44503_det_test_cat.txt", "a .9 1 1 9 9\n")
    assert detmap.inspect(tmp_path / "r")["looks_like"]["detections"] == ["voc"]
    make.write(tmp_path / "ground-truth" / "a.txt", "cat 1 1 9 9\n")
    make.write(tmp_path / "predicted" / "a.txt", "cat .9 1 1 9 9\n")
    result = detmap.evaluate(tmp_path / "ground-truth", tmp_path / "predicted", "coco-bbox")
    assert result["AP50"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("protocol", "noun"), [("ultralytics-obb", "rotated boxes"), ("coco-keypoints", "keypoints")]
)
def test_formats_that_have_the_shapes_are_named(tmp_path: Path, protocol: str, noun: str) -> None:
    make.write(tmp_path / "labels" / "a.txt", "0 .1 .1 .3 .1 .3 .3 .1 .3\n")
    sizes = make.write(tmp_path / "sizes.csv", "file_name,width,height\na.png,100,100\n")
    outcome = run("eval", tmp_path, tmp_path, "-p", protocol, "--image-sizes", sizes)
    assert outcome.code == 2
    assert f"no {noun} are read from YOLO files" in outcome.err
    assert "give one of the formats coco, " in outcome.err


def test_objects_that_are_all_crowds_are_noted(tmp_path: Path) -> None:
    tree = make.instances()
    for each in tree["annotations"]:
        each["iscrowd"] = 1
    truth = make.write(tmp_path / "gt.json", tree)
    found = make.write(tmp_path / "dt.json", [make.detection()])
    outcome = run("eval", truth, found)
    assert outcome.code == 0
    assert "only ignored objects (by iscrowd, difficult or ignore)" in outcome.err
    plain = run("eval", make.write(tmp_path / "gt.json", make.instances()), found)
    assert "ignored objects" not in plain.err
