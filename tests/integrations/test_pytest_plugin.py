"""The fixture `detection_gate`, in a run of pytest of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import detmap
from tests.support import builders as make
from tests.support.running import python

GATES = """
import sys

TRUTH, GOOD, POOR = (TRUTH_FILES)

def test_quick_start():
    assert "numpy" not in sys.modules and "detmap.evaluate" not in sys.modules

def test_passes(detection_gate):
    result = detection_gate(TRUTH, GOOD, POOR, at_least={"AP": 0.4, "AP50/star": 0.1})
    assert result.metrics["AP"] > 0.4

def test_below(detection_gate):
    detection_gate(TRUTH, GOOD, at_least={"AP": 0.9})

def test_dropped(detection_gate):
    detection_gate(TRUTH, POOR, baseline=GOOD, max_drop={"AP50": 0.005})

def rules():
    import detmap
    return detmap.load_protocol("coco-bbox").override({"metrics": ["MR", "AP50"]})

def test_lower_is_better(detection_gate):
    detection_gate(TRUTH, GOOD, at_most={"MR": 0.99}, at_least={"AP50": 0.5}, protocol=rules())

def test_above(detection_gate):
    detection_gate(TRUTH, GOOD, at_most={"MR": 0.1}, protocol=rules())

def test_other_direction(detection_gate):
    detection_gate(TRUTH, GOOD, at_least={"MR": 0.1}, protocol=rules())

def test_no_such_metric(detection_gate):
    detection_gate(TRUTH, GOOD, at_least={"AP9": 0.9})

def test_no_such_file(detection_gate):
    detection_gate(TRUTH, "missing.json", at_least={"AP": 0.4})

def test_drop_without_baseline(detection_gate):
    detection_gate(TRUTH, GOOD, max_drop={"AP50": 0.005})

def test_drop_of_no_metric(detection_gate):
    detection_gate(TRUTH, GOOD, GOOD, max_drop={"AP50/dog": 0.005})

def test_percent(detection_gate):
    detection_gate(TRUTH, GOOD, at_least={"AP": 45})
"""


FILES = (
    make.SHAPES / "instances_test.json",
    *(make.SHAPES / "detections" / name for name in ("contours.json", "template.json")),
)


@pytest.mark.slow
def test_the_gate_in_a_run_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_gates.py").write_text(GATES.replace("TRUTH_FILES", repr([*map(str, FILES)])))
    options = ["-p", "detmap.integrations.pytest", "-p", "no:cacheprovider", "--junitxml=junit.xml"]
    environment = {"PYTHONPATH": make.ROOT, "PYTEST_ADDOPTS": ""}
    done = python("-m", "pytest", "-q", "-rf", *options, cwd=tmp_path, **environment)
    assert done.code == 1, done.err
    assert "9 failed, 3 passed" in done.out
    for line in (
        "FAIL: AP 0.4478 is below 0.9",
        "FAIL: AP50 dropped ",
        " is above 0.1",
        "at_least: lower MR is better (use at_most=)",
        "at_least: there is no 'AP9'",
        "missing.json",
        "at_least['AP']: 45 is not from 0 to 1 (give a fraction: 0.45)",
        "max_drop['AP50/dog']: there is no AP50/dog",
        "max_drop without baseline (give baseline=, or use at_least=)",
    ):
        assert line in done.out
    assert "Traceback" not in done.out
    properties = ElementTree.parse(tmp_path / "junit.xml").iter("property")
    assert {each.get("name") for each in properties} == {"detmap_signature"}


@pytest.mark.parametrize(
    "limits, message",
    [
        ({}, "no limit, so the test would always pass"),
        ({"at_least": {}}, "no limit, so the test would always pass"),
        ({"at_least": ["AP=0.4"]}, r"at_least: .* .give a dict"),
        ({"at_least": {"AP": "0.4"}}, r"at_least\['AP'\]: '0.4' .give a number"),
        ({"at_most": {"MR": True}}, r"at_most\['MR'\]: True .give a number"),
        ({"at_least": {"AP": float("nan")}}, r"at_least\['AP'\]: nan .give a number"),
        ({"max_drop": 0.5, "baseline": "baseline.json"}, r"max_drop: 0.5 .give a dict"),
        ({"max_drop": {"AP": float("nan")}, "baseline": ""}, r"max_drop\['AP'\]: nan"),
        ({"max_drop": {"AP": -1}, "baseline": ""}, r"max_drop\['AP'\]: 'AP=-1' is not a fraction"),
        ({"max_drop": {}, "at_least": {"AP": 0.4}}, "max_drop without baseline"),
    ],
)
def test_bad_limits_of_a_gate(
    detection_gate: Callable[..., Any], limits: dict[str, Any], message: str
) -> None:
    """Before the files are read: these do not exist."""
    with pytest.raises(pytest.fail.Exception, match=message) as raised:
        detection_gate("truth.json", "found.json", **limits)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_limit_of_two_classes_of_one_name(detection_gate: Callable[..., Any]) -> None:
    names = {1: "a", 2: "a"}
    truth = detmap.truth_from_arrays([1, 1], [1, 2], [[0, 0, 9, 9]] * 2, categories=names)
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(pytest.fail.Exception, match="at_least: 2 classes are named 'a'"):
        detection_gate(truth, found, at_least={"AP50/a": 0.5})


@pytest.mark.parametrize("max_drop", [None, {}, {"AP": 0}])
def test_a_baseline_alone_allows_no_drop_of_the_first_metric(
    detection_gate: Callable[..., Any], max_drop: dict[str, float] | None
) -> None:
    truth, good, poor = FILES
    with pytest.raises(pytest.fail.Exception, match=r"FAIL: AP dropped by 0\.26"):
        detection_gate(truth, poor, good, max_drop=max_drop)


@pytest.mark.parametrize(
    ("better", "max_drop"), [(True, None), (False, {"AP50": 0.25, "AP": 0.99})]
)
def test_a_rise_and_an_allowed_drop_pass(
    detection_gate: Callable[..., Any], better: bool, max_drop: dict[str, float] | None
) -> None:
    truth, good, poor = FILES
    now, before = (good, poor) if better else (poor, good)
    assert (detection_gate(truth, now, before, max_drop=max_drop).metrics["AP"] > 0.4) == better


def test_a_value_at_its_limit_passes(detection_gate: Callable[..., Any]) -> None:
    rules = detmap.load_protocol("coco-bbox").override({"metrics": ["MR", "AP50"]})
    known = detmap.evaluate(*FILES[:2], rules).metrics
    limits = {"at_least": {"AP50": known["AP50"]}, "at_most": {"MR": known["MR"]}}
    assert detection_gate(*FILES[:2], **limits, protocol=rules).metrics == known
    with pytest.raises(pytest.fail.Exception, match=r"FAIL: AP 0\.4478 is below 1"):
        detection_gate(*FILES[:2], at_least={"AP": 1})
    everything = detmap.read_truth(FILES[0])
    own = detmap.detections_from_arrays(
        everything,
        everything.images.ids[everything.image],
        everything.categories.ids[everything.label],
        everything.boxes,
        np.ones(len(everything)),
    )
    assert detection_gate(everything, own, at_least={"AP50": 0.99, "AP": 0.99}).metrics["AP"] > 0.99


def test_a_gate_takes_results(detection_gate: Callable[..., Any]) -> None:
    truth, good, poor = FILES
    better, worse = detmap.evaluate(truth, good), detmap.evaluate(truth, poor)
    assert detection_gate(better, at_least={"AP": 0.4}) is better
    with pytest.raises(pytest.fail.Exception, match=r"FAIL: AP .* is below 0.4"):
        detection_gate(worse, at_least={"AP": 0.4})
    assert detection_gate(better, baseline=worse) is better
    for baseline in (better, good):
        with pytest.raises(pytest.fail.Exception, match=r"FAIL: AP dropped by 0\.26"):
            detection_gate(worse, baseline=baseline)


def test_a_gate_takes_results_of_batches(detection_gate: Callable[..., Any]) -> None:
    truth, good, poor = FILES
    results = []
    for found in (good, poor):
        table = detmap.read_truth(truth)
        results.append(detmap.summarize(detmap.match(table, detmap.read_detections(found, table))))
    assert detection_gate(results[0], baseline=results[1]) is results[0]
    with pytest.raises(pytest.fail.Exception, match=r"FAIL: AP dropped by 0\.26"):
        detection_gate(results[1], baseline=results[0])
