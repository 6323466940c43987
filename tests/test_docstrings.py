"""The examples in docstrings run: of every public function and of the types that users hold."""

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.analysis.diagnosis import Diagnosis
from tests.support import builders as make
from tests.support.running import spawn

FUNCTIONS = [name for name in detmap.__all__ if inspect.isfunction(getattr(detmap, name))]
TYPES = {name: getattr(detmap, name) for name in ("Evaluator", "Matches", "Result")}
TYPES["Diagnosis"] = Diagnosis
NEEDED = {"plot": "matplotlib", "report": "jinja2"}


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of `detmap demo --copy shapes`, and a receipt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shapes").symlink_to(make.SHAPES)


def examples_of(value: Any, name: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(recurse=False).find(value, name, globs={})
    return [each for each in found if each.examples]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detmap", *FUNCTIONS, *TYPES])
def test_an_example_runs(name: str, shapes: None) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    if name == "verify":
        sample = ("shapes", "shapes/detections/contours")
        assert spawn("eval", *sample, "--receipt", "run.json").code == 0
    value = detmap if name == "detmap" else TYPES.get(name) or getattr(detmap, name)
    examples = examples_of(value, name)
    assert examples, f"{name} has no example"
    for example in examples:
        assert doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(example).failed == 0


def test_examples_skip_nothing_and_stand_before_the_parameters() -> None:
    assert {"evaluate", "match", "compare", "read_truth", "report", "tools"} <= set(FUNCTIONS)
    for name in (*FUNCTIONS, *TYPES):
        text = (TYPES.get(name) or getattr(detmap, name)).__doc__ or ""
        assert "+SKIP" not in text, name
        assert ">>>" in text.partition("Parameters\n")[0], name


def test_an_unknown_tool_is_a_key_error() -> None:
    truth = [{"boxes": [[0, 0, 9, 9]], "labels": ["cat"]}]
    found = detmap.tools(truth, [{**truth[0], "scores": [0.9]}], only="tide")
    assert list(found) == ["coco-bbox", "tide"]
    assert round(found["tide"], 4) == 1.0
    with pytest.raises(KeyError, match="no tool 'x' here; known: coco-bbox, tide"):
        found["x"]
