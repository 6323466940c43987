"""Evaluator.sync between real processes, and real torch tensors as input."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Evaluator
from tests.streaming.test_evaluator import by_image, plain
from tests.support.builders import ROOT
from tests.support.drawing import draw_coco
from tests.support.drawn_tables import read_coco

torch = pytest.importorskip("torch")
TIMEOUT = 10  # seconds, as in tests.streaming.sync_ranks


def run_ranks(world: int, folder: Path, case: str, lost: int = 0) -> list[dict[str, Any]]:
    """What each rank wrote; the `lost` last of them are killed on their way."""
    command = [sys.executable, "-m", "tests.streaming.sync_ranks"]
    ranks = [
        subprocess.Popen([*command, str(rank), str(world), str(folder), case], cwd=ROOT)
        for rank in range(world)
    ]
    try:
        left = [0] * (world - lost) + [-signal.SIGKILL] * lost
        assert [rank.wait(timeout=120) for rank in ranks] == left
    finally:
        for rank in ranks:
            rank.kill()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world - lost)]


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    truth, detections = read_coco(*draw_coco(np.random.default_rng(7), n_images=4, n_classes=3))
    return detmap.evaluate(truth, by_image(detections)).to_dict()


def without_notes(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "notes"}


@pytest.mark.parametrize("world", [2, 3])
def test_every_rank_has_the_whole(tmp_path: Path, whole: dict[str, Any], world: int) -> None:
    """Three images on one rank, one on the other, none on the third: the numbers and the
    signature of one process."""
    ranks = run_ranks(world, tmp_path, "uneven")
    assert [each["own"] for each in ranks] == [3, 1, 0][:world]
    for each in ranks:
        assert each["images"] == 4
        assert without_notes(each["result"]) == without_notes(whole)
        assert "holds the images of every rank" in each["error"]
        assert each["after"] == each["own"]


def test_images_without_ids_are_numbered_by_rank(tmp_path: Path, whole: dict[str, Any]) -> None:
    ranks = run_ranks(2, tmp_path, "numbered")
    assert ranks[0]["result"] == ranks[1]["result"]
    assert ranks[0]["result"]["metrics"] == whole["metrics"]
    assert ranks[0]["result"]["per_class"] == whole["per_class"]


def test_an_image_on_two_ranks_is_an_error_on_both(tmp_path: Path) -> None:
    for each in run_ranks(2, tmp_path, "padded"):
        assert "in more than one part" in each["error"]
        assert "sampler" in each["error"]


@pytest.mark.parametrize("case", ["absent", "dying"])
def test_a_rank_that_dies_is_an_error_on_the_others_in_time(tmp_path: Path, case: str) -> None:
    """Killed before, and in the middle of the exchange; what the others have stays theirs."""
    for each in run_ranks(2, tmp_path, case, lost=1):
        assert "the ranks did not synchronize" in each["error"]
        assert each["seconds"] < TIMEOUT + 20
        assert each["own"] == each["after"]


def test_without_a_process_group_there_is_nothing_to_do() -> None:
    predicted, annotated = plain()
    stream = Evaluator(classes=["a", "b"])
    stream.update([predicted], [annotated])
    assert stream.sync() is stream
    assert len(stream) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("gradients", [False, True])
def test_tensors_of_any_float(dtype: str, gradients: bool) -> None:
    predicted, annotated = plain()
    tensors = {key: torch.from_numpy(value) for key, value in predicted.items()}
    for key in ("boxes", "scores"):
        tensors[key] = tensors[key].to(getattr(torch, dtype)).requires_grad_(gradients)
    target = {
        "boxes": torch.from_numpy(annotated["boxes"]),
        "labels": torch.tensor([0, 1]),
        "image_id": torch.tensor([3]),
    }
    stream = Evaluator(classes=["a", "b"])
    other = {**target, "image_id": torch.tensor(5)}
    stream.update([tensors, {**tensors, "image_id": 5}], [target, other])
    assert stream.compute().metrics["AP"] == pytest.approx(1)
    assert stream.matches.image_ids.tolist() == [3, 5]
    numpy = Evaluator(classes=["a", "b"])
    numpy.update([{**predicted, "image_id": each} for each in (3, 5)], [annotated] * 2)
    assert stream.compute().signature == numpy.compute().signature


def test_a_tensor_on_another_device() -> None:
    predicted, annotated = plain()
    with pytest.raises(DataError, match=r"on the CPU .*\.cpu\(\) moves"):
        Evaluator(classes=["a", "b"]).update(
            [{**predicted, "boxes": torch.zeros((2, 4), device="meta")}], [annotated]
        )
