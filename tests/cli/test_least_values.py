"""`eval --fail-under` and `doctor --environment`."""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.commands import environment_report
from detmap.core.matching import engine
from detmap.version import __version__
from tests.support import builders as make
from tests.support.running import run
from tools import hosts

INPUTS = (make.SHAPES, make.SHAPES / "detections" / "contours", "-p", "coco-bbox")


@pytest.mark.parametrize(
    "least, code, line",
    [
        ("AP=.4", 0, "PASS: AP 0.4478 is at least 0.4"),
        ("AP=.45", 1, "FAIL: AP 0.4478 is below 0.45"),
        ("AP=.4,AP50=.7", 1, "FAIL: AP50 0.6060 is below 0.7"),
        ("AP50=.7,AP=.4", 1, "FAIL: AP50 0.6060 is below 0.7"),
        ("AP=0", 0, "PASS: AP 0.4478 is at least 0"),
        ("AP/star=.2", 0, "PASS: AP/star 0.3864 is at least 0.2"),
        ("AP/star=1", 1, "FAIL: AP/star 0.3864 is below 1"),
    ],
)
def test_a_metric_below_its_value_is_exit_1(least: str, code: int, line: str) -> None:
    outcome = run("eval", *INPUTS, "--fail-under", least)
    assert outcome.code == code
    assert f"detmap: {line}\n" in outcome.err


@pytest.mark.parametrize(("protocol", "name"), [("coco-bbox", "AP"), ("aitod", "oLRP")])
def test_a_metric_at_its_value_passes(protocol: str, name: str) -> None:
    """Whether higher or lower is better; one step beyond fails."""
    value = detmap.evaluate(*INPUTS[:2], protocol).metrics[name]
    beyond = np.nextafter(value, 0 if protocol == "aitod" else 1)
    for limit, code in ((value, 0), (float(beyond), 1)):
        outcome = run("eval", *INPUTS[:2], "-p", protocol, "--fail-under", f"{name}={limit!r}")
        assert outcome.code == code


def test_an_undefined_metric_fails() -> None:
    outcome = run("eval", *INPUTS, "--set", "subsets.huge.area=[1e9,1e10]", "--fail-under", "APs=0")
    assert outcome.code == 0
    settings = ('metrics=["AP","AP-huge"]', "subsets.huge.area=[1e9,1e10]")
    sets = [word for each in settings for word in ("--set", each)]
    outcome = run("eval", *INPUTS, *sets, "--fail-under", "AP-huge=0")
    assert outcome.code == 1
    assert "FAIL: AP-huge undefined is below 0" in outcome.err


@pytest.mark.parametrize("name", ["FOO", "AP/nothing", "FOO/star", "AR1000"])
def test_a_gate_of_an_unknown_metric_fails_before_the_evaluation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "judge", lambda *_, **__: pytest.fail("was evaluated"))
    found = make.SHAPES / "detections" / "contours.json"
    files = (make.SHAPES / "instances_test.json", found)
    suite = f'truth = "{files[0]}"\ndetections = "{found}"\ngroup = "a"\nname = "b"\n'
    rows = make.write(tmp_path / "s.toml", f'protocol = "coco-bbox"\n[[data]]\n{suite}')
    for words in (
        ("eval", *files, "--fail-under", f"{name}=.3"),
        ("eval", *files, "--memory", "1GB", "--fail-under", f"{name}=.3"),
        ("compare", *files, found, "--fail-if-drop", f"{name}=.3"),
        ("compare", *files, found, "--require-within", f"{name}=.3"),
        ("suite", rows, "--fail-under", f"{name}=.3"),
    ):
        outcome = run(*words)
        assert (outcome.code, outcome.out) == (2, "")
        assert name in outcome.err


@pytest.mark.parametrize("least", ["", "AP", "AP=", "AP=x", "AP=40", "=.4", "AP=nan", "AP=.4,,"])
def test_bad_values_are_refused(least: str) -> None:
    outcome = run("eval", *INPUTS, "--fail-under", least)
    assert outcome.code == 2
    assert re.search("write (METRIC=FRACTION|the fraction: AP=0.4)", outcome.err)
    assert outcome.err.startswith("detmap: error: --fail-under: ")
    assert "usage" not in outcome.err


def test_the_environment_is_printed_without_inputs() -> None:
    outcome = run("doctor", "--environment")
    assert outcome.code == 0
    lines = dict(line.split("  ", 1) for line in outcome.out.splitlines())
    assert lines["detmap"].strip() == __version__
    assert "library" in lines["kernels"] or "numba" in lines["kernels"]
    assert "matplotlib" in lines["extra plot"]
    assert f"pytest {pytest.__version__}" in lines["hosts found"]


def test_the_environment_names_the_packages_of_extras_and_of_every_host() -> None:
    project = tomllib.loads((make.ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for extra, package in environment_report.OPTIONAL.items():
        assert any(re.split(r"[\[<>=]", each)[0] == package for each in extras[extra]), extra
    known = {*environment_report.HOSTS, *environment_report.OPTIONAL.values()}
    # Trainers that call the metric of torchmetrics.
    trainers = {name for name in hosts.HOSTS if name.startswith(("rf-detr", "lightly"))}
    for name, host in hosts.HOSTS.items():
        if name in trainers:
            continue
        package = re.split(r"[\[=]", host.packages[0])[0] if host.packages else "pytest"
        assert {name, package} & known, name
    # mmdet has no extra, detectron2 is not on the package index; pytest and pre-commit are there
    # where they are used.
    without = {"mmdet", "detectron2", "torchvision", "pytest", "pre-commit", "challenges"}
    named = {"evaluate": "huggingface", "huggingface_hub": "huggingface"}
    assert {named.get(host, host) for host in {*hosts.HOSTS} - without - trainers} <= set(extras)


@pytest.mark.parametrize(
    ("protocol", "changes", "name"),
    [
        ("coco-bbox", {"metrics": ["AP", "MR50"]}, "MR50"),
        ("coco-bbox", {"metrics": ["AP", "MR50"]}, "MR50/star"),
        ("aitod", {}, "oLRP"),
    ],
)
def test_a_metric_has_its_direction(protocol: str, changes: dict[str, Any], name: str) -> None:
    result = detmap.evaluate(*INPUTS[:2], protocol, settings=changes)
    metric, _, of = name.partition("/")
    rows = {row["name"]: row for row in result.per_class}
    value = rows[of][metric] if of else result.metrics[metric]
    sets = [word for key, each in changes.items() for word in ("--set", f"{key}={each}")]
    for edge, code, verdict in ((1, 0, "PASS"), (value - 0.01, 1, "FAIL")):
        outcome = run("eval", *INPUTS[:2], "-p", protocol, *sets, "--fail-under", f"{name}={edge}")
        assert outcome.code == code
        side = "at most" if verdict == "PASS" else "above"
        line = f"{verdict}: {name} {value:.4f} is {side} {edge:g} (lower is better)"
        assert f"detmap: {line}\n" in outcome.err
