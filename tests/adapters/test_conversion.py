"""Converted tables give the same number; what a format cannot hold is a note or an error."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap.adapters import conversion
from detmap.errors import DataError
from detmap.tables import Categories, Detections, Images, Truth
from tests.support import builders as make
from tests.support.running import run
from tests.support.tier import drawn

CLASSES = ("cat", "traffic light", "a & <b>", 'say "x"')
STEMS = ("img 1", "b-2", "000003", "x.y", "ärger")
METRICS = {"coco": "coco-bbox", "csv": "coco-bbox", "yolo": "coco-bbox", "voc": "voc2012"}


def tables(seed: int, step: float, spaces: bool) -> tuple[Truth, Detections]:
    """Objects, some of them flagged, an image without objects, and moved boxes with scores."""
    rng = np.random.default_rng(seed)
    stems = sorted(STEMS if spaces else STEMS[1:])
    n = len(stems)
    images = Images(np.array(stems), tuple(stems), np.full(n, 128.0), np.full(n, 64.0))
    categories = Categories(np.arange(1, len(CLASSES) + 1), CLASSES)
    g = int(rng.integers(4, 15))
    low = np.round(rng.uniform(2, 30, (g, 2)) / step) * step
    boxes = np.hstack([low, np.round(rng.uniform(4, 30, (g, 2)) / step) * step])
    image = rng.integers(0, n - 1, g).astype(np.int32)
    label = np.append(np.arange(len(CLASSES)), rng.integers(0, len(CLASSES), g))[:g]
    roles = {name: rng.random(g) < 0.2 for name in ("crowd", "difficult")}
    area = {"area": boxes[:, 2] * boxes[:, 3]}
    truth = Truth(
        images, categories, image, label.astype(np.int32), boxes, roles, area, "xywh", "coco"
    )
    moved = boxes + np.round(rng.uniform(-2, 2, boxes.shape) / step) * step
    score = rng.permutation(g) / 64 + 0.125
    found = Detections(images, categories, image, truth.label, moved, score, box_format="xywh")
    return truth, found


@settings(max_examples=drawn(40), deadline=None)
@given(seed=st.integers(0, 2**31), step=st.sampled_from([1.0, 0.125]), spaces=st.booleans())
@pytest.mark.parametrize("target", conversion.TARGETS)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, target: str, seed: int, step: float, spaces: bool
) -> None:
    folder = tmp_path_factory.mktemp("converted")
    truth, found = tables(seed, step, spaces and target != "voc")
    if target == "yolo":
        truth = Truth(
            *(truth.images, truth.categories, truth.image, truth.label, truth.boxes, {}),
            *(dict(truth.attributes), truth.box_format, truth.family),
        )
    suffix = {"coco": ".json", "csv": ".csv"}.get(target, "")
    places = folder / f"truth{suffix}", folder / f"found{suffix}"
    for table, place in zip((truth, found), places, strict=True):
        conversion.write(table, place, target)
    sizes = places[0] / "sizes.csv" if target == "yolo" else None
    again = detmap.read_truth(places[0], image_sizes=sizes)
    rows = detmap.read_detections(places[1], again)
    rules = METRICS[target]
    metrics = detmap.evaluate(again, rows, rules).metrics
    wanted = detmap.evaluate(truth, found, rules).metrics
    assert metrics == pytest.approx(wanted, abs=1e-9, nan_ok=True)
    assert len(again.images) == len(truth.images)
    assert again.categories.names == truth.categories.names or target in ("csv", "voc")


def test_losses_are_counted_and_files_are_kept(tmp_path: Path) -> None:
    truth, _ = tables(7, 0.125, False)
    codes = {
        target: {
            note.code: note.count for note in conversion.write(truth, tmp_path / target, target)
        }
        for target in conversion.TARGETS
    }
    flags = truth.crowd | truth.difficult
    assert codes["yolo"]["lost-flags"] == flags.sum()
    assert codes["voc"]["boxes-continuous"] == len(truth)
    assert codes["voc"]["lost-crowd"] == truth.crowd.sum()
    assert codes["coco"]["lost-difficult"] == (truth.difficult & ~truth.crowd).sum()
    assert codes["csv"] == {}
    with pytest.raises(DataError, match=r"exists .*name a new folder"):
        conversion.write(truth, tmp_path / "voc", "voc")
    assert not list(tmp_path.glob(".detmap-*"))


@pytest.mark.parametrize("target", ["voc", "yolo"])
def test_names_that_no_file_can_have_are_refused(tmp_path: Path, target: str) -> None:
    sides = np.array([64.0])
    truth = Truth(
        *(Images(np.array(["a/b"]), ("a/b",), sides, sides), Categories(np.array([1]), ("cat",))),
        *(np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([[1.0, 1, 9, 9]]), {}),
        *({"area": np.array([81.0])}, "xywh", "coco"),
    )
    with pytest.raises(DataError, match=r"1 image with names .*a/b.*write coco or csv"):
        conversion.write(truth, tmp_path / "new", target)
    assert not (tmp_path / "new").exists()


def test_a_bad_source_is_exit_code_2(tmp_path: Path) -> None:
    outcome = run("convert", tmp_path / "none", tmp_path / "x.json", "--to", "coco")
    assert outcome.code == 2
    assert "no such file or folder" in outcome.err


@pytest.mark.parametrize("target", ["Annotations/000001.xml", "README.md"])
def test_a_file_of_the_folder_that_is_read_is_not_overwritten(tmp_path: Path, target: str) -> None:
    folder = shutil.copytree(make.SHAPES, tmp_path / "shapes")
    before = (folder / target).read_bytes()
    outcome = run("convert", folder, folder / target, "--to", "coco")
    assert outcome.code == 2
    assert "which is read" in outcome.err or "would be overwritten" in outcome.err
    assert (folder / target).read_bytes() == before
