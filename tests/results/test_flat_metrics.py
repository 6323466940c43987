"""Results as flat dicts for experiment trackers, and matches as bytes."""

import io
import math
import pickle
import posixpath
import re
from pathlib import Path

import numpy as np
import pytest

import detmap
from tests.support import builders as make
from tests.support.drawing import draw_coco

SHAPES, CONTOURS = make.SHAPES, make.SHAPES / "detections" / "contours"


@pytest.fixture(scope="module")
def result() -> detmap.Result:
    return detmap.evaluate(SHAPES, CONTOURS, "coco-bbox")


def test_flat_has_metrics_classes_and_intervals(result: detmap.Result) -> None:
    intervals = result.intervals()
    found = result.flat("val/", classes=True, intervals=intervals)
    assert found["val/AP50"] == result.metrics["AP50"]
    wanted = next(r["AP"] for r in result.per_class if r["name"] == "star")
    assert found["val/per_class/AP/star"] == wanted
    assert found["val/AP_low"] == intervals.metrics["AP"].low
    assert result.flat() == result.metrics


def test_names_are_those_that_mlflow_accepts_and_nothing_is_undefined() -> None:
    truth = detmap.truth_from_arrays([1], [3], [[0, 0, 9, 9]], categories={3: "person & co%"})
    found = detmap.detections_from_arrays(truth, [1], [3], [[0, 0, 9, 9]], [0.5])
    settings = {"metrics": ["AP", "AR@limit", "AP@subset"]}
    made = detmap.evaluate(truth, found, "coco-bbox", settings=settings).flat("a:b/", classes=True)
    assert all(re.fullmatch(r"[\w./ -]+", name) for name in made)
    assert "a_b/per_class/AP/person _ co_" in made
    assert "a_b/AR_at_100" in made
    assert not any(math.isnan(value) for value in made.values())


def test_names_of_classes_are_one_path_each_beside_the_metrics() -> None:
    """MLflow's file store has a file per name, so no name is the folder of another."""
    names = ["cat", "a/b", "a_b", "a:b", "", "..", ".", "猫" * 300, "x" * 300, "x" * 299, "tab\t"]
    labels = list(range(len(names)))
    box = {"boxes": [[i, 0, i + 5, 9] for i in labels], "labels": labels}
    stream = detmap.Evaluator(classes=names)
    stream.update([{**box, "scores": [0.5] * len(names)}], [box])
    found = stream.compute().flat("val/", classes=True)
    assert len([name for name in found if name.startswith("val/per_class/AP/")]) == len(names)
    folders = {name.rpartition("/")[0] for name in found}
    assert not folders & set(found)
    for name in found:
        assert posixpath.normpath(name) == name
        assert len(name) <= 250
        assert max(len(part.encode()) for part in name.split("/")) <= 255


@pytest.mark.parametrize("seed", range(3))
def test_matches_go_through_bytes(seed: int, tmp_path: Path) -> None:
    instances, detections = draw_coco(np.random.default_rng(seed))
    truth = detmap.read_truth(make.write(tmp_path / "truth.json", instances))
    found = detmap.read_detections(make.write(tmp_path / "found.json", detections), truth)
    matches = detmap.match(truth, found, "coco-bbox", taken=True)
    again = detmap.Matches.from_bytes(matches.to_bytes())
    assert np.array_equal(
        list(detmap.summarize(again).metrics.values()),
        list(detmap.summarize(matches).metrics.values()),
        equal_nan=True,
    )


def test_matches_and_evaluators_go_through_file_objects() -> None:
    image = {"boxes": [[0, 0, 9, 9]], "labels": [0]}
    stream = detmap.Evaluator(classes=["cat"])
    stream.update([{**image, "scores": [0.5]}], [image])
    file = io.BytesIO()
    stream.matches.save(file)
    assert detmap.Matches.load(io.BytesIO(file.getvalue())).to_bytes() == stream.matches.to_bytes()
    stream.save(state := io.BytesIO())
    state.seek(0)
    assert detmap.Evaluator.load(state).compute().to_dict() == stream.compute().to_dict()
    with pytest.raises(detmap.DataError, match=r"opened for text .open it with \"wb\""):
        stream.save(io.StringIO())  # type: ignore[arg-type]
    with pytest.raises(detmap.DataError, match=r"reads a str .open it with \"rb\""):
        detmap.Matches.load(io.StringIO())  # type: ignore[arg-type]
    with pytest.raises(detmap.DataError, match="matches: not a readable file"):
        detmap.Evaluator.load(io.BytesIO(b"text"))
    for call in (detmap.Matches.load, stream.save):
        with pytest.raises(detmap.DetmapError, match="path: a int"):
            call(5)  # type: ignore[operator]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", pickle.dumps({})])
def test_bytes_of_strangers_are_refused(content: bytes) -> None:
    with pytest.raises(detmap.DataError, match="matches: not a readable file of matches"):
        detmap.Matches.from_bytes(content)
    with pytest.raises(detmap.DataError, match="a str"):
        detmap.Matches.from_bytes("text")  # type: ignore[arg-type]


def test_the_package_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(detmap)) is detmap


def test_arguments_of_another_type_are_named(result: detmap.Result) -> None:
    for prefix in (None, 3, b"val/"):
        with pytest.raises(detmap.DataError, match=r"prefix: .* \(give a string such as"):
            result.flat(prefix)  # type: ignore[arg-type]
    with pytest.raises(detmap.DataError, match=r"intervals: True \(give Result.intervals"):
        result.flat(intervals=True)  # type: ignore[arg-type]
