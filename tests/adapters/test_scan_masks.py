"""The fast reader of masks: what it takes, and what it leaves to the reference reader."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask

import detmap
from detmap.core.adapters.coco import scan_json
from detmap.core.overlaps.ragged_runs import unpacked
from detmap.errors import DataError
from tests.support import builders as make
from tests.support import lanes
from tests.support.lanes import LANES, taken
from tests.support.mutation import FILES

RUNS = {"size": [4, 5], "counts": [3, 4, 13]}


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_json, "LEAST_SIZE", 0)


def written(file: Path, *segmentations: Any, **more: Any) -> Path:
    """A results file of masks on image 1, of 4 by 5 pixels."""
    record = {"image_id": 1, "category_id": 3, "score": 0.5, **more}
    file.write_text(json.dumps([{**record, "segmentation": each} for each in segmentations]))
    return file


@pytest.mark.slow
def test_most_whole_files_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for kind in ("mask results", "mask instances", "keypoint results", "keypoint instances"):
        count = 0
        for seed in range(30):
            file.write_bytes(FILES[kind](random.Random(seed)))
            count += taken(kind, file)
        assert count > 12


def test_run_lengths_in_both_spellings_and_polygons(tmp_path: Path) -> None:
    polygon = [[0, 0, 3, 0, 3, 3]]
    file = written(tmp_path / "file", RUNS, {"counts": "34=", "size": [4, 5]}, polygon)
    assert taken("mask results", file)
    masks = LANES["mask results"][0](file).shapes
    assert masks.runs.counts[:6].tolist() == [3, 4, 13, 3, 4, 13]
    assert masks.area.tolist()[:2] == [4.0, 4.0]


def test_a_backslash_is_a_character_of_run_lengths(tmp_path: Path) -> None:
    """A count of 12 that goes on with zeros is a backslash, which JSON has twice."""
    file = written(tmp_path / "file", {"size": [4, 5], "counts": "\\0" + "8"})
    assert b"\\\\" in file.read_bytes()
    assert taken("mask results", file)


@pytest.mark.parametrize(("columns", "fast"), [(3, True), (400, False)])
def test_runs_of_three_entries(tmp_path: Path, monkeypatch: Any, columns: int, fast: bool) -> None:
    """Every other column of 70,000 pixels. The text of 400 is shorter than their entries: only the
    reference reader has space for them.
    """
    size, runs = [70_000, columns], [70_000] * columns
    text = mask.frPyObjects({"size": size, "counts": runs}, *size)["counts"].decode()
    images = replace(
        lanes.MASK_TRUTH.images, height=np.full(3, 7e4), width=np.full(3, 1.0 * columns)
    )
    monkeypatch.setattr(lanes, "MASK_TRUTH", replace(lanes.MASK_TRUTH, images=images))
    file = written(tmp_path / "file", {"size": size, "counts": text})
    assert taken("mask results", file)
    first = [lambda ids: np.zeros(len(ids), dtype=np.int32)] * 2
    found = scan_json.scan_detections(file, *first, shape="segmentation")
    assert bool(found.masks.others) != fast
    for given in (text, runs):
        assert taken("mask results", written(file, {"size": size, "counts": given}))
        made = LANES["mask results"][0](file).shapes
        assert unpacked(made.runs.off, made.runs.counts)[1].tolist() == runs
        assert made.area.tolist() == [70_000 * (columns // 2)]


@pytest.mark.parametrize(
    "segmentation",
    [
        None,
        [],
        "ab",
        {},
        {**RUNS, "size": [5, 4]},
        {**RUNS, "counts": [3, 4]},
        {**RUNS, "counts": []},
        {**RUNS, "counts": [3, -4, 21]},
        {**RUNS, "counts": "34"},
        {**RUNS, "counts": "3\u00e94="},
        {**RUNS, "counts": "o"},
        {**RUNS, "counts": ""},
        {"size": [4, 5]},
        [[1, 2, 3]],
    ],
)
def test_errors_are_the_reference_readers(segmentation: Any, tmp_path: Path) -> None:
    assert not taken("mask results", written(tmp_path / "file", RUNS, segmentation))


def test_a_further_key_is_read_as_the_reference_reads_it(tmp_path: Path) -> None:
    assert taken("mask results", written(tmp_path / "file", RUNS, {**RUNS, "note": 1}))


def test_some_records_without_boxes(tmp_path: Path) -> None:
    file = written(tmp_path / "file", RUNS, RUNS, bbox=[1, 1, 2, 2])
    assert taken("mask results", file)
    file.write_text(file.read_text().replace('"bbox": [1, 1, 2, 2], ', "", 1))
    assert not taken("mask results", file)


def test_attributes_may_hold_an_area(tmp_path: Path) -> None:
    file = tmp_path / "file"
    annotation = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2], "segmentation": RUNS}
    images = [{"id": 1, "height": 4, "width": 5}]
    groups: dict[str, Any] = {"images": images, "categories": [{"id": 1}]}
    file.write_text(json.dumps(groups | {"annotations": [annotation]}))
    assert taken("mask instances", file)
    annotation["attributes"] = {"area": 3}
    file.write_text(json.dumps(groups | {"annotations": [annotation]}))
    assert not taken("mask instances", file)


def masks_in(folder: Path, segmentation: str, kind: str) -> str:
    """The error of a ground truth or of results with this text as the segmentation of record 1."""
    plain = '{"size": [4, 5], "counts": [3, 4, 13]}'
    given = {"truth": plain, "results": plain, kind: segmentation}
    truth, found = (
        ", ".join(
            f'{{"id": {i + 1}, "image_id": 1, "category_id": 3, "bbox": [0, 0, 2, 2], "area": 4, '
            f'"iscrowd": 0, "score": 0.5, "segmentation": {text}}}'
            for i, text in enumerate((plain, given[name]))
        )
        for name in ("truth", "results")
    )
    images = '[{"id": 1, "width": 5, "height": 4}]'
    classes = '[{"id": 3, "name": "a"}]'
    objects = f'{{"images": {images}, "categories": {classes}, "annotations": [{truth}]}}'
    paths = (
        make.write(folder / "truth.json", objects),
        make.write(folder / "results.json", f"[{found}]"),
    )
    try:
        detmap.evaluate(*paths, "coco-segm")
    except DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("least", [0, 1 << 20])
@pytest.mark.parametrize("kind", ["truth", "results"])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"size": [4, 5], "counts": [3, 4, 13]}', ""),
        ('{"counts": [3, 4, 13], "counts": [2, 5, 13], "size": [4, 5]}', "counts: occurs twice"),
        ('{"size": [4, 5], "counts": [3, 4, 13], "counts": "34="}', "counts: occurs twice"),
        ('{"size": [5, 4], "size": [4, 5], "counts": [3, 4, 13]}', "size: occurs twice"),
        ('{"size": [4, 5], "counts": [1], "c\\u006funts": [3, 4, 13]}', "counts: occurs twice"),
        ('{"counts": [3, 4, 13]}', "run lengths without 'size'"),
        ('{"size": [4, 5]}', "run lengths without 'counts'"),
        ('{"size": [4, 5], "counts": [3.0, 2.0, 15.0]}', r"counts\[0\] is 3.0; counts are whole"),
        ('{"size": [4, 5], "counts": [3, true, 16]}', r"counts\[1\] is True; counts are whole"),
        ('{"size": [4, 5], "counts": [3, -1, 18]}', r"counts\[1\] is -1; counts are whole"),
        ('{"size": [4, 5], "counts": []}', "the counts are empty"),
        ('{"size": [4, 5], "counts": [3, 4, 5]}', "do not add up to 20 pixels"),
    ],
)
def test_segmentations_that_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, kind: str, text: str, error: str
) -> None:
    """Both readers refuse them, with file, record and key."""
    monkeypatch.setattr(scan_json, "LEAST_SIZE", least)
    group = ": annotations" if kind == "truth" else ""
    found = masks_in(tmp_path, text, kind)
    if not error:
        assert found == ""
        return
    assert f"{kind}.json{group}[1].segmentation" in found
    assert re.search(error, found)
