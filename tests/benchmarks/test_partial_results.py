"""Benchmarks' further metrics in partial results and slices: given, or left out by name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.cli.dispatch import dispatch
from detmap.core.protocol.benchmark_rules import EXTRA
from tests.benchmarks.small_cases import written
from tests.benchmarks.test_coco_like import crowd_pose

CASES = ("visdrone", "openimages-challenge", "crowdpose")


def tables(folder: Path, protocol: str) -> tuple[detmap.Truth, detmap.Detections, Any]:
    """A small case of a protocol with ``evaluation.extra``."""
    folder.mkdir(exist_ok=True)
    if protocol == "crowdpose":
        paths: Any = crowd_pose(folder, 0.1, 0.5, 0.9)
    else:
        paths = written(folder, protocol)[:2]
    result = detmap.evaluate(*paths, protocol)
    assert result.matched is not None
    return *result.matched, result


def left_out(result: Any) -> str:
    """What the note on metrics that were left out says; "" without it."""
    return next((note.text for note in result.notes if note.code == "extra-left-out"), "")


def names(protocol: str) -> list[str]:
    return [
        name
        for each in detmap.load_protocol(protocol).evaluation.extra
        for name in EXTRA[each].names
    ]


@pytest.mark.parametrize("protocol", CASES)
def test_slices_have_every_metric(tmp_path: Path, protocol: str) -> None:
    truth, detections, result = tables(tmp_path, protocol)
    assert set(names(protocol)) <= result.metrics.keys()
    assert not left_out(result)
    ids = truth.images.ids[:2]
    part = result.select(ids)
    alone = detmap.evaluate(truth, detections, protocol, images=ids)
    np.testing.assert_equal(part.metrics, alone.metrics)
    np.testing.assert_equal(part.select(ids).metrics, alone.metrics)


@pytest.mark.parametrize("protocol", CASES)
def test_what_matches_alone_do_not_give_is_named(tmp_path: Path, protocol: str) -> None:
    truth, _, result = tables(tmp_path, protocol)
    matches = result.matches
    partial = {
        "summarize": detmap.summarize(matches),
        "weights": detmap.summarize(matches, weights=np.ones(matches.n_images)),
        "select": detmap.summarize(matches).select(truth.images.ids[:1]),
        "Evaluator": detmap.Evaluator(protocol, classes=truth.categories).compute()
        if protocol == "visdrone"
        else detmap.summarize(matches),
    }
    for how, part in partial.items():
        assert not set(names(protocol)) & part.metrics.keys(), how
        assert all(name in left_out(part) for name in names(protocol)), how
        assert {**result.metrics, **part.metrics}.keys() == result.metrics.keys()


def test_match_and_merge_name_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, detections, protocol = written(tmp_path, "visdrone")
    part = str(tmp_path / "part.npz")
    assert dispatch(["match", str(truth), str(detections), "-p", protocol, "-o", part]) == 0
    assert "AR1, AR10, AR100" in capsys.readouterr().err
    assert dispatch(["merge", part]) == 0
    seen = capsys.readouterr()
    assert "need the whole evaluation: AR1, AR10, AR100" in seen.err
    assert "AR10 " not in seen.out


def test_every_extra_is_listed_under_the_names_of_its_metrics(tmp_path: Path) -> None:
    results = {protocol: tables(tmp_path / protocol, protocol)[2] for protocol in CASES}
    box = [[0, 0, 10, 10]]
    truth = detmap.truth_from_arrays([1], [1], box, images=[1])
    size = np.array([50.0])
    truth = replace(truth, images=replace(truth.images, width=size, height=size))
    found = detmap.detections_from_arrays(truth, [1], [1], box, [0.5])
    results |= {name: detmap.evaluate(truth, found, name) for name in ("aitod", "crowdhuman")}
    seen = set()
    for protocol, result in results.items():
        assert set(result.extra) == set(names(protocol))
        seen |= set(result.protocol.evaluation.extra)
    assert seen == set(EXTRA)
