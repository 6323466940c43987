"""`detmap diagnose --tide-rule` and `detmap eval -p` give one AP50 for one file, which has
flags that only some protocols read.
"""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis.merged_tables import merge
from detmap.analysis.diagnosis.sections import Choices
from detmap.analysis.diagnosis.summary import summary
from detmap.analysis.diagnosis.tide import RULES, tidecv
from detmap.core import protocol
from detmap.core.adapters import read_truth_for
from detmap.core.tables import selection
from tests.reproducibility.test_truth_by_protocol import FLAGGED, draw
from tests.support.running import run

HALF = {"iou.thresholds": [0.5], "metrics": ["AP"]}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return draw(tmp_path_factory.mktemp("flagged"), FLAGGED)


def ap50(files: tuple[Path, Path], name: str) -> float | None:
    """AP50 in points of `detmap.evaluate`, None if undefined."""
    ap = detmap.evaluate(*files, name, settings=HALF).metrics["AP"]
    return None if np.isnan(ap) else 100 * ap


def same_as_evaluation(files: tuple[Path, Path], name: str) -> bool:
    """Whether the numbers of a diagnosis are those of evaluations, by each rule of TIDE; False if
    a diagnosis refuses the protocol.
    """
    try:
        found = detmap.diagnose(*files, name)
    except (detmap.ProtocolError, detmap.DataError):
        return False
    for rule, wanted in (("tidecv", "tide"), ("protocol", name)):
        content = summary(found, Choices(tide_rule=rule))
        assert content["tide"]["AP50"] == pytest.approx(ap50(files, wanted), abs=1e-10), rule
        assert content["tide_protocol"]["AP50"] == pytest.approx(ap50(files, name), abs=1e-10)
    return True


@pytest.mark.parametrize("name", ["voc2012", "coco-bbox"])
def test_two_protocols(name: str, files: tuple[Path, Path]) -> None:
    assert set(RULES) == {"tidecv", "protocol"}
    assert same_as_evaluation(files, name)


@pytest.mark.slow
def test_every_protocol(files: tuple[Path, Path]) -> None:
    names = [*protocol.names(), *protocol.tools()]
    same = {name for name in dict.fromkeys(names) if same_as_evaluation(files, name)}
    assert {"coco-bbox", "voc2007", "voc2012", "voc-devkit-12", "tide", "pycocotools"} <= same


@pytest.mark.slow
@pytest.mark.parametrize("rule, wanted", [("tidecv", "tide"), ("protocol", "voc2012")])
def test_the_command(rule: str, wanted: str, files: tuple[Path, Path]) -> None:
    told = run("diagnose", *files, "-p", "voc2012", "--tide-rule", rule, "--format", "json")
    changed = ("--set", "iou.thresholds=[0.5]", "--set", 'metrics=["AP"]')
    evaluated = run("eval", *files, "-p", wanted, *changed, "--format", "json")
    ap = json.loads(evaluated.out)["metrics"]["AP"]
    assert json.loads(told.out)["tide"]["AP50"] == pytest.approx(100 * ap, abs=1e-10)


def test_a_table_is_the_same_for_all_protocols(files: tuple[Path, Path]) -> None:
    found = detmap.diagnose(detmap.read_truth(files[0]), files[1], "voc2012")
    assert found.tide_tables is None


def test_flags_of_the_protocol_are_not_those_of_tide(files: tuple[Path, Path]) -> None:
    truth = read_truth_for(files[0], detmap.load_protocol("voc2012"))
    found = detmap.read_detections(files[1], truth)
    assert tidecv(truth, found).ap != pytest.approx(ap50(files, "tide"), abs=1e-3)


def test_boxes_that_only_the_protocol_clips() -> None:
    """A detection that hangs over the image: clipped, it has an IoU of 1, else of 1/3."""
    boxes: Any = [[0, 0, 10, 10], [-20, 0, 30, 10]]
    plain = detmap.truth_from_arrays([1], [1], boxes[:1])
    sides = {"width": np.array([100.0]), "height": np.array([100.0])}
    truth = replace(plain, images=replace(plain.images, **sides))
    detections = detmap.detections_from_arrays(truth, [1], [1], boxes[1:], [0.9])
    found = detmap.diagnose(truth, detections, "coco-bbox", settings={"boxes.clip": "crowdhuman"})
    content = summary(found)
    assert content["tide"]["AP50"] == 0.0
    assert content["tide_protocol"]["AP50"] == pytest.approx(100.0)


def test_merged_and_pickled_diagnoses_keep_the_tables(files: tuple[Path, Path]) -> None:
    whole = detmap.diagnose(*files, "voc2012")
    assert whole.tide_tables is not None
    wanted = summary(whole)["tide"]
    assert summary(pickle.loads(pickle.dumps(whole)))["tide"] == wanted
    parts = []
    for ids in (range(1, 7), range(7, 13)):
        own, for_tide = (
            selection.select_images(truth, whole.detections, list(ids))
            for truth in (whole.truth, whole.tide_tables[0])
        )
        parts.append(replace(detmap.diagnose(*own, "voc2012"), tide_tables=for_tide))
    assert summary(merge(parts))["tide"] == wanted
