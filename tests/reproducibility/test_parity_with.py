"""`detmap parity --with`: each tool of `detmap.reproducibility.peers` that is installed, beside
its protocol.
"""

import importlib.util
import json
import math
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from detmap.core.base.resources import folder
from detmap.errors import DetmapError
from detmap.reproducibility import parity, peers
from tests.cli.test_commands import AWKWARD, small
from tests.reference import official
from tests.support import builders as make
from tests.support import stand_ins
from tests.support.drawing import draw_coco
from tests.support.real_data import data_path
from tests.support.running import run

pytestmark = pytest.mark.slow

SAMPLE = folder("datasets") / "shapes"
COCO = SAMPLE / "instances_test.json", SAMPLE / "detections" / "template.json"
VOC = SAMPLE, SAMPLE / "detections" / "contours"


@pytest.fixture(params=peers.PEERS, ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> peers.Peer:
    found: peers.Peer = request.param
    if importlib.util.find_spec(found.module.partition(".")[0]) is None:
        pytest.skip(f"{found.name} is not installed: pip install 'detmap-eval[bench,peers]'")
    if found.name == "torchmetrics":
        stand_ins.torchvision(monkeypatch)
    return found


# ---- the tools


@pytest.mark.parametrize("files", [COCO, VOC], ids=["coco", "voc"])
def test_a_tool_has_the_numbers_of_its_protocol(peer: peers.Peer, files: tuple[Path, Path]) -> None:
    outcome = run("parity", *files, "--with", peer.name, "--format", "json")
    assert outcome.code == 0, outcome.err
    content = json.loads(outcome.out)
    (found,) = content["tools"]
    assert (found["tool"], found["protocol"]) == (peer.name, peer.protocols["bbox"])
    assert found["verdict"] == "identical" or found["why"]
    assert found["largest_difference"] <= peer.tolerance == found["tolerance"]
    assert len(found["numbers"]) >= 6
    assert all(row["detmap"] is not None for row in found["numbers"])
    assert len({row["class"] for row in found["classes"]}) in (0, 6)
    assert content["failed"] == []


@pytest.mark.slow
def test_the_official_demo_of_coco(peer: peers.Peer) -> None:
    """Crowds, areas of segmentations, boxes that are no whole pixels."""
    place = data_path("coco-val2014-100")
    names = ("instances_val2014_100", "instances_val2014_fakebbox100_results")
    found = parity.compare(*(place / f"{name}.json" for name in names), tool=peer.name)
    assert found.equal, found.verdict
    assert found.remarks == []


def known(data: Any, peer: peers.Peer, place: Path) -> parity.Parity:
    """A set drawn, compared; scores between 0 and 1, as one tool insists on."""
    truth, found = data
    found = [{**row, "score": 1 / (1 + math.exp(-row["score"]))} for row in found]
    files = place / "truth.json", place / "found.json"
    for file, content in zip(files, (official.complete(truth), found), strict=True):
        file.write_text(json.dumps(content))
    return parity.compare(*files, tool=peer.name, unknown="drop")


@pytest.mark.slow
def test_drawn_data_give_the_numbers_of_its_protocol(peer: peers.Peer, tmp_path: Path) -> None:
    """Crowds, areas at the limits, unlisted classes, ties; where a tool differs, its row says on
    what.
    """
    equal = 0
    for seed in range(25):
        found = known(draw_coco(np.random.default_rng(seed)), peer, tmp_path)
        assert found.equal or peer.deviations, (seed, found.verdict)
        equal += found.equal
    assert equal >= 15


FLAT = {"image_id": 1, "category_id": 1, "bbox": [10.0, 10.0, 0.0, 8.0]}
DEVIATIONS = {
    "flat boxes": (
        make.instances(annotations=[{**FLAT, "id": 1, "area": 0, "iscrowd": 0}]),
        [{**FLAT, "score": 0.5}],
    )
}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_only_who_states_a_deviation_has_it(peer: peers.Peer, name: str, tmp_path: Path) -> None:
    """Those of tools that give pycocotools' numbers are in `test_peers.py`."""
    found = parity.compare(*small(tmp_path, *DEVIATIONS[name]), tool=peer.name)
    assert found.equal == (name not in peer.deviations)
    assert any("is known to differ" in text for text in found.remarks) == (not found.equal)


def test_every_stated_deviation_has_a_case_that_shows_it() -> None:
    stated = {name for row in peers.PEERS if not row.is_coco for name in row.deviations}
    assert stated == set(DEVIATIONS)


ODD_NAME = 'a/b \N{SNOWMAN} "x" \\ ,%s{}'
ODD = {
    **AWKWARD,
    "nothing at all": (make.instances(images=[], annotations=[], categories=[]), []),
    "a crowd alone": (make.instances(annotations=[make.annotation(iscrowd=1)]), None),
    "a detection on an unknown image": (None, [make.detection(), make.detection(image_id=99)]),
    "more detections than the limit": (None, [make.detection(score=i / 200) for i in range(150)]),
    "names of any kind": (
        make.instances(
            categories=[{"id": 0, "name": ODD_NAME}, {"id": 7, "name": "all"}],
            annotations=[make.annotation(category_id=0), make.annotation(id=2, category_id=7)],
        ),
        [make.detection(category_id=0), make.detection(category_id=7)],
    ),
    "ids that are large or negative": (
        make.instances(
            images=[make.image(id=0)],
            categories=[{"id": 2**40, "name": "cat"}, {"id": -5, "name": "dog"}],
            annotations=[make.annotation(image_id=0, category_id=-5)],
        ),
        [make.detection(image_id=0, category_id=-5)],
    ),
    "scores beyond 0 and 1": (None, [make.detection(score=7.5), make.detection(score=-1.0)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_compared_or_refused(peer: peers.Peer, name: str, tmp_path: Path) -> None:
    files = small(tmp_path, *ODD[name])
    outcome = run("parity", *files, "--unknown", "drop", "--with", peer.name)
    if outcome.code == 2:
        assert f"detmap: error: {peer.name}: stops on these files" in outcome.err
    else:
        assert outcome.code == 0, outcome.err


def test_classes_of_one_name_are_compared_by_their_place(peer: peers.Peer, tmp_path: Path) -> None:
    """By name hotcoco's number of the second class stood beside detmap's of the first."""
    content = json.loads(COCO[0].read_text())
    content["categories"][1]["name"] = content["categories"][0]["name"]
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps(content))
    found = parity.compare(truth, COCO[1], tool=peer.name)
    assert found.equal
    name = content["categories"][0]["name"]
    rows = [each.name for each in found.numbers if each.of_class == name]
    by_name = any("several classes have the name" in each for each in found.remarks)
    assert by_name is (peer.name == "hotcoco")
    assert not (by_name and rows)
    assert all(rows.count(each) == 2 for each in rows)
    assert rows or not any(each.of_class for each in found.numbers) or by_name


def test_settings_reach_the_tools_that_have_them(peer: peers.Peer) -> None:
    changes = ("iou.thresholds=[0.3,0.6]", "limits.max_dets=[3,300]", "subsets.tiny.area=[0,100]")
    words = [word for change in changes for word in ("--set", change)]
    outcome = run("parity", *COCO, "--with", peer.name, *words)
    if peer.settable:
        assert outcome.code == 0, outcome.err
        assert "AP50" not in outcome.out
    else:
        assert outcome.code == 2
        assert f"{peer.name} has no setting" in outcome.err


# ---- stand-ins for tools


def put(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """A row that is pycocotools' but for some fields, under a name of its own."""
    row = peers.BY_NAME["pycocotools"]._replace(name=name, **changes)
    monkeypatch.setitem(peers.BY_NAME, name, row)


def test_a_tool_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hotcoco", None)
    outcome = run("parity", *COCO, "--with", "hotcoco")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "detmap: error: hotcoco: not installed, and this runs it",
        "  fix: pip install hotcoco",
    ]


def test_a_tool_whose_import_breaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_tool.py").write_text("1 / 0\n")
    (tmp_path / "needy_tool.py").write_text("import what_is_nowhere\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module, word in (("broken_tool", "ZeroDivisionError"), ("needy_tool", "what_is_nowhere")):
        put(monkeypatch, "broken", module=module)
        outcome = run("parity", *COCO, "--with", "broken")
        assert outcome.code == 2
        assert "is installed but cannot be imported" in outcome.err
        assert word in outcome.err


class Panic(BaseException):
    """As Rust's panics are."""


@pytest.mark.parametrize("error", [SystemExit(3), Panic("a\nb"), KeyError("x"), RecursionError()])
def test_a_tool_that_raises(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> Any:
        raise error

    put(monkeypatch, "stopping", run=stop)
    outcome = run("parity", *COCO, "--with", "stopping")
    assert outcome.code == 2
    assert outcome.out == ""
    first, fix = outcome.err.splitlines()
    assert f"stopping: stops on these files ({type(error).__name__}" in first
    assert "detmap eval -p coco-bbox" in fix


def test_a_tool_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(run: Any) -> Any:
        return [run.stats[0] + 1e-9, *run.stats[1:]]

    put(monkeypatch, "moved", stats=moved, version="0.0", distribution="pycocotools")
    outcome = run("parity", *COCO, "--with", "moved")
    assert outcome.code == 1
    assert "the numbers differ: AP\n" in outcome.err
    assert "note: detmap's row of moved was checked with 0.0\n" in outcome.err
    put(monkeypatch, "moved", stats=moved, tolerance=1e-8, why="it is moved")
    outcome = run("parity", *COCO, "--with", "moved")
    assert outcome.code == 0
    assert "equal within 1e-08: it is moved" in outcome.err


def test_other_numbers_than_the_row_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, "more", stats=lambda run: [*run.stats, 0.5])
    outcome = run("parity", *COCO, "--with", "more")
    assert outcome.code == 2
    assert "more: gives 13 numbers where 12 are known" in outcome.err


def test_what_a_tool_prints_is_not_seen(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def loud(*words: Any) -> Any:
        os.write(1, b"past Python\n")
        print("in Python")  # noqa: T201
        return peers.BY_NAME["pycocotools"].run(*words)

    put(monkeypatch, "loud", run=loud)
    assert run("parity", *COCO, "--with", "loud").code == 0
    assert "ython" not in capfd.readouterr().out


def test_several_tools_and_one_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vernier", None)
    words = ("--with", "pycocotools", "--with", "vernier", "--with", "pycocotools")
    outcome = run("parity", *COCO, *words, "--format", "json")
    assert outcome.code == 2  # nothing differs, but not all was seen
    content = json.loads(outcome.out)
    assert [row["tool"] for row in content["tools"]] == ["pycocotools"]
    (lost,) = content["failed"]
    assert (lost["tool"], lost["fix"]) == ("vernier", "pip install vernier")
    put(monkeypatch, "off", stats=lambda run: [0.0, *run.stats[1:]])
    assert run("parity", *COCO, *words, "--with", "off").code == 1


def test_one_table_a_file() -> None:
    outcome = run("parity", *COCO, "--table", "arrays", "--format", "csv")
    assert outcome.out.splitlines()[0] == "tool,array,cells,different,largest difference"
    assert len(outcome.out.splitlines()) == 4


def test_what_detmap_cannot_run_is_refused() -> None:
    outcome = run("parity", *COCO, "--with", "ultralytics")
    assert outcome.code == 2
    assert "it runs ultrafast-pycocotools, hotcoco" in outcome.err
    for protocol in ("voc2012", "coco-boundary", "dota"):
        outcome = run("parity", *COCO, "-p", protocol)
        assert outcome.code == 2
        assert "compare under coco-bbox, coco-segm, coco-keypoints" in outcome.err


def test_a_fake_module_of_no_known_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nameless", ModuleType("nameless"))
    put(monkeypatch, "nameless", module="nameless")
    found = parity.compare(*COCO, tool="nameless")
    assert (found.version, found.identical) == ("of unknown version", True)


def test_masks_that_no_coco_file_holds() -> None:
    with pytest.raises(DetmapError, match="compare under coco-bbox"):
        parity.compare(*COCO, tool="vernier", protocol="coco-segm")
