"""Every evaluator of `tools/peers.py` that is installed gives pycocotools' twelve numbers on drawn
data, or differs where its row says so, and there it does differ."""

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.reference import official
from tests.support.drawing import (
    SLIVER,
    CocoData,
    draw_coco,
    draw_many_detections,
    draw_round_recall,
)
from tests.support.real_data import data_path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("peers", ROOT / "tools" / "peers.py")
assert spec is not None
assert spec.loader is not None
peers: Any = importlib.util.module_from_spec(spec)
sys.modules["peers"] = peers
spec.loader.exec_module(peers)

pytestmark = pytest.mark.filterwarnings("ignore")  # each tool has its own
SEEDS = (0, 1, *range(2, 40))
TRUTH = ROOT / "datasets" / "shapes" / "instances_test.json"
FOUND = ROOT / "datasets" / "shapes" / "detections" / "template.json"


@pytest.fixture(params=peers.PEERS, ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest) -> Any:
    here = request.param.installed()
    if here is None:
        pytest.skip(f"{request.param.name} is not installed: pip install 'detmap-eval[bench]'")
    return request.param


@contextmanager
def silence() -> Iterator[None]:
    """Compiled code prints past sys.stdout."""
    sys.stdout.flush()
    kept = [os.dup(fd) for fd in (1, 2)]
    with open(os.devnull, "w") as nowhere:
        for fd in (1, 2):
            os.dup2(nowhere.fileno(), fd)
        try:
            yield
        finally:
            sys.stdout.flush()
            for fd, old in zip((1, 2), kept, strict=True):
                os.dup2(old, fd)
                os.close(old)


def stats(peer: Any, truth: Any, found: Any, folder: Path) -> np.ndarray:
    """The twelve numbers of a peer, by files."""
    files = folder / "truth.json", folder / "found.json"
    for file, content in zip(files, (truth, found), strict=True):
        file.write_text(json.dumps(content))
    with silence():
        return np.array(peer.files(str(files[0]), str(files[1]), 1))


def drawn(seed: int) -> CocoData:
    """A data set that no tool refuses: area and iscrowd everywhere, at least one detection."""
    rng = np.random.default_rng(seed)
    draw = {0: draw_many_detections, 1: draw_round_recall}.get(seed, draw_coco)
    truth, found = draw(rng)
    truth = official.complete(truth)
    if not found:
        box = truth["annotations"][0]["bbox"] if truth["annotations"] else [0, 0, 5, 5]
        place = {"image_id": truth["images"][0]["id"], "category_id": truth["categories"][0]["id"]}
        found = [{**place, "bbox": list(box), "score": 0.5}]
    return truth, found


def has_zero_union(data: CocoData) -> bool:
    boxes = [row["bbox"] for row in (*data[0]["annotations"], *data[1])]
    return any(0 < box[2] < 2 * SLIVER[2] for box in boxes)


@pytest.mark.slow
def test_drawn_data_give_the_numbers_of_pycocotools(peer: Any, tmp_path: Path) -> None:
    judged = 0
    for seed in SEEDS:
        data = drawn(seed)
        if "zero union" in peer.deviations and has_zero_union(data):
            continue
        expected = official.run(*data).stats
        found = stats(peer, *data, tmp_path)
        assert np.abs(found - expected).max() <= peer.tolerance, seed
        judged += 1
    assert judged >= 25


@pytest.mark.slow
def test_the_sample_gives_the_numbers_of_pycocotools(peer: Any) -> None:
    truth, found = (json.loads(file.read_text()) for file in (TRUTH, FOUND))
    with silence():
        own = peer.files(str(TRUTH), str(FOUND), 2)
    assert np.abs(np.array(own) - official.run(truth, found).stats).max() <= peer.tolerance


@pytest.mark.slow
def test_arrays_give_the_numbers_of_files(peer: Any) -> None:
    rows = json.loads(FOUND.read_text())
    table = np.array([[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in rows])
    with silence():
        truth = peer.truth(str(TRUTH))
        own = peers.numbers(peer.results(truth, peer.detections(table), 2, peers.BOXES))
        expected = peer.files(str(TRUTH), str(FOUND), 2)
    assert own == expected


def one_box(box: tuple[float, ...]) -> CocoData:
    """A single object and a detection of exactly its box."""
    image = {"id": 1, "width": 9, "height": 9, "file_name": "a.jpg"}
    row = {"image_id": 1, "category_id": 1, "bbox": list(box)}
    annotation = {**row, "id": 1, "area": box[2] * box[3], "iscrowd": 0}
    truth = {"images": [image], "annotations": [annotation], "categories": [{"id": 1, "name": "a"}]}
    return truth, [{**row, "score": 0.5}]


DEVIATIONS = {"zero union": SLIVER, "no spacing": (0, 0, 5, 5)}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_only_who_states_a_deviation_has_it(peer: Any, name: str, tmp_path: Path) -> None:
    data = one_box(DEVIATIONS[name])
    apart = np.abs(stats(peer, *data, tmp_path) - official.run(*data).stats).max()
    assert apart > 0 if name in peer.deviations else apart <= peer.tolerance


KINDS = {"segm": "segm", "keypoints": "kp"}  # and how the files of the shared data begin


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_masks_and_keypoints_give_the_numbers_of_pycocotools(peer: Any, kind: str) -> None:
    folder = data_path("benchmarks", "coco-segm-keypoints")
    if kind not in peer.kinds:
        pytest.skip(f"{peer.name} does not evaluate {kind} of such files")
    if peer.name == "detmap" and f"coco-{kind}" not in detmap.core.protocol.names():
        pytest.skip(f"detmap has no protocol coco-{kind} yet")
    known = json.loads((folder / "goldens_public.json").read_text())["cases"]
    for case, values in known.items():
        files = (folder / case / f"{KINDS[kind]}_{what}.json" for what in ("truth", "dets"))
        with silence():
            found = peer.files(*map(str, files), 1, kind)
        apart = np.abs(np.array(found) - values[kind]["stats"])
        assert apart.max() <= max(peer.tolerance, 1e-15), case


def test_every_stated_deviation_has_a_case_that_shows_it() -> None:
    assert {name for peer in peers.PEERS for name in peer.deviations} == set(DEVIATIONS)
