"""Exports that no reader takes are named, as files, folders and Python objects."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.adapters import recognition
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


@pytest.mark.parametrize(("marks", "seen"), recognition.KEYS, ids=lambda each: str(each)[:40])
def test_keys_name_an_object(marks: tuple[str, ...], seen: recognition.Seen) -> None:
    assert recognition.recognized(record(marks)) == seen
    assert recognition.recognized([record(marks)] * 2) == seen
    with pytest.raises(DataError, match="where a path is needed") as refused:
        detmap.read_truth([record(marks)])  # type: ignore[arg-type]
    assert refused.value.what.startswith(seen.name)


@pytest.mark.parametrize(
    ("marks", "seen"),
    [row for row in recognition.KEYS if "panlabel" in row[1].fix or row[1].fix.startswith("write")],
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


FILES: dict[str, tuple[str, bytes, str, str]] = {
    "image": ("a.csv", b"\x89PNG\r\n\x1a\n", "an image (PNG)", "annotations"),
    "torch": ("instances_predictions.pth", torch_dump(), "torch", "coco_instances_results.json"),
    "tfrecord": ("a.tfrecord", b"\x10" + bytes(11) + b"\n\nimage/width", "TFRecord", "COCO"),
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
    "keras": ("a.txt", b"a b.jpg 1,2,3.5,4,0 5,6,7,8,1\n", "keras-yolo3", "panlabel"),
}


@pytest.mark.parametrize(("name", "data", "what", "fix"), FILES.values(), ids=FILES)
def test_first_bytes_name_a_file(
    tmp_path: Path, name: str, data: bytes, what: str, fix: str
) -> None:
    with pytest.raises(DataError, match="which detmap does not read") as refused:
        detmap.read_truth(make.write(tmp_path / name, data))
    assert what in refused.value.what
    assert fix in refused.value.fix


def test_folders_are_described(tmp_path: Path) -> None:
    make.write(tmp_path / "tf" / "train.tfrecord", b"x")
    with pytest.raises(DataError, match="a TFRecord file, which detmap does not read"):
        detmap.read_truth(tmp_path / "tf")
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
