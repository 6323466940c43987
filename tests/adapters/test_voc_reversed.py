"""Corners of VOC text the wrong way round, as real darknet files have some: false positives."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.core.adapters.voc import scan_voc as voc_scan
from detmap.core.protocol.load_toml import tools
from tests.support import builders as make
from tests.support.running import run

RIGHT = make.SHAPES / "detections" / "contours"
FAR = [900.0, 900.0, 910.0, 910.0]
TURNED = {
    "x": lambda b: [b[2], b[1], b[0], b[3]],
    "y": lambda b: [b[0], b[3], b[2], b[1]],
    "both": lambda b: [b[2], b[3], b[0], b[1]],
}


def written(folder: Path, change: Any) -> Path:
    """The sample's detections, the box of the first row of each file changed."""
    for file in sorted(RIGHT.iterdir()):
        first, *others = file.read_text().splitlines()
        image, score, *box = first.split()
        line = " ".join([image, score, *map(str, change(list(map(float, box))))])
        make.write(folder / file.name, "\n".join([line, *others, ""]))
    return folder


@cache
def truth() -> detmap.Truth:
    return detmap.read_truth(make.SHAPES)


@cache
def numbers_of_far_boxes(folder: Path, protocol: str) -> tuple[Any, ...]:
    """Metrics, counts and codes of notes with a box where no object is; of either reader."""
    found = detmap.evaluate(truth(), folder, protocol)
    return found.metrics, found.counts(), {note.code for note in found.notes}


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("far"), lambda box: FAR)


@pytest.fixture(params=[1, 1 << 40], ids=["fast reader", "reference reader"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voc_scan, "LEAST_SIZE", request.param)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("way", TURNED)
@pytest.mark.parametrize("protocol", ["voc2007", "voc2012", "py-faster-rcnn-12", "darknet-25"])
def test_they_overlap_nothing_as_in_the_devkit(
    tmp_path: Path, far: Path, way: str, protocol: str
) -> None:
    """VOCevaldet.m: iw > 0 and ih > 0. The number is that of a box where no object is."""
    turned = written(tmp_path / "turned", TURNED[way])
    found = detmap.evaluate(truth(), turned, protocol)
    metrics, counts, codes = numbers_of_far_boxes(far, protocol)
    assert found.metrics == metrics
    assert found.counts() == counts
    counted = {note.code: note.count for note in found.notes}
    assert counted["box-reversed"] == len(list(RIGHT.iterdir()))
    assert "box-reversed" not in codes


@pytest.mark.slow
def test_who_refuses_them_says_so(tmp_path: Path) -> None:
    turned = written(tmp_path / "turned", TURNED["x"])
    refusing = [n for n in tools() if detmap.load_protocol(n).boxes.reversed == "refuse"]
    assert {"podm-area", "globox", "rafaelpadilla-odm-11"} <= set(refusing)
    for name in refusing:
        with pytest.raises(detmap.DataError, match=f"have reversed corners.*{name} refuses"):
            detmap.evaluate(make.SHAPES, turned, name)
    done = run("eval", make.SHAPES, turned, "-p", "podm-area")
    assert done.code == 2
    assert "boxes.reversed=no_overlap" in done.err
    set_back = ("--set", "boxes.reversed=no_overlap")
    assert run("eval", make.SHAPES, turned, "-p", "podm-area", *set_back).code == 0


def test_objects_the_wrong_way_round_are_refused(tmp_path: Path) -> None:
    """A ground truth is corrected, not counted."""
    root = make.write_voc(tmp_path, {"a": make.page(make.voc_object("cat", (9, 1, 2, 5)))})
    with pytest.raises(detmap.DataError, match="negative width or height"):
        detmap.read_truth(root)


@pytest.mark.slow
@pytest.mark.parametrize("way", TURNED)
def test_the_doctor_counts_and_repairs_them(tmp_path: Path, way: str) -> None:
    turned = written(tmp_path / "turned", TURNED[way])
    findings = [each for each in detmap.doctor(make.SHAPES, turned) if "boxes" in each.name]
    assert [each.name for each in findings] == ["boxes-reversed"]
    assert f"{len(list(RIGHT.iterdir()))} of" in findings[0].sentence
    done = run("eval", make.SHAPES, turned, "--fix", "boxes-reversed", "--format", "csv")
    right = run("eval", make.SHAPES, RIGHT, "--format", "csv")
    assert done.code == right.code == 0
    assert done.out.splitlines()[1].split(",")[-1] == right.out.splitlines()[1].split(",")[-1]
