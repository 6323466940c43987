"""The JSON output is what docs/schemas publishes."""

import json
from pathlib import Path
from typing import Any

import pytest

import detmap
from tests.benchmarks.small_cases import CASES, written
from tests.support.builders import ROOT, SHAPES
from tests.support.running import run

jsonschema = pytest.importorskip("jsonschema", reason="needs detmap-eval[test]")

OPERATING = "--integrators --confidence .5 --min-precision .6 --min-recall .5"
TRUTH = SHAPES / "instances_test.json"
FOUND = [SHAPES / "detections" / f"{name}.json" for name in ("contours", "template")]


def check(content: dict[str, Any]) -> None:
    name = content["schema"].removeprefix("detmap-")
    schema = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    assert schema["$id"] == content["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(content)
    known = schema["properties"]
    assert set(content) <= set(known), "a key that the schema does not describe"


@pytest.mark.parametrize(
    "options", ["", "-p voc2007", "--ci --best-f1", "--iou 0.75 --ties --slices FILE", OPERATING]
)
def test_a_result(options: str, tmp_path: Path) -> None:
    slices = tmp_path / "slices.json"
    slices.write_text(json.dumps({"few": [1, 2, 3]}))
    words = options.replace("FILE", str(slices)).split()
    done = run("eval", TRUTH, FOUND[0], *words, "--format", "json")
    check(json.loads(done.out))


@pytest.mark.parametrize("kind", CASES)
def test_a_result_of_a_benchmark(kind: str, tmp_path: Path) -> None:
    check(detmap.evaluate(*written(tmp_path, kind)[:2], kind).to_dict())


def test_a_result_without_numbers() -> None:
    truth = {"images": [{"id": 1, "width": 9, "height": 9}], "annotations": []}
    check(detmap.evaluate(truth | {"categories": [{"id": 1, "name": "x"}]}, []).to_dict())


@pytest.mark.parametrize("options", ["", "--fail-if-drop AP=.5", "-p voc2007"])
def test_a_comparison(options: str) -> None:
    done = run("compare", TRUTH, *FOUND, *options.split(), "--format", "json")
    check(json.loads(done.out))


def test_a_file_that_lacks_a_key_is_refused() -> None:
    content = detmap.compare(TRUTH, *FOUND).to_dict()
    check(content)
    del content["pairs"][0]["why_not"]
    with pytest.raises(jsonschema.ValidationError, match="why_not"):
        check(content)
