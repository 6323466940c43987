"""Commands that read one file for several protocols give the numbers of `detmap eval -p` with each:
COCO's rules read no `difficult` of COCO JSON, VOC's do.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from detmap.core.adapters.truth_by_protocol import truth_by_protocol
from detmap.errors import DataError
from detmap.reproducibility.parity.restated_tools import headline, numbers
from detmap.reproducibility.reproducing.search import reproduce
from tests.support.builders import write
from tests.support.running import run

FLAGGED = {"difficult": 3, "iscrowd": 5, "ignore": 7, "group_of": 11, "occluded": 13}
"""Keys of annotations, each marking every n-th object."""


def draw(folder: Path, keys: dict[str, int]) -> tuple[Path, Path]:
    """Files of 12 images with 60 objects, which have these keys, and 150 detections."""
    rng = np.random.default_rng(7)
    corners = rng.integers(0, 60, (60, 2))
    boxes = np.concatenate([corners, rng.integers(8, 40, (60, 2))], axis=1)
    objects = [
        {"id": i + 1, "image_id": i % 12 + 1, "category_id": i % 3 + 1, "bbox": box}
        | {"area": box[2] * box[3], "iscrowd": 0}
        | {key: int(i % n == 0) for key, n in keys.items()}
        for i, box in enumerate(boxes.tolist())
    ]
    content = {
        "images": [{"id": i + 1, "width": 100, "height": 100} for i in range(12)],
        "categories": [{"id": k + 1, "name": "abc"[k]} for k in range(3)],
        "annotations": objects,
    }
    found = [
        {"image_id": one["image_id"], "category_id": one["category_id"], "score": round(score, 3)}
        | {"bbox": (np.array(one["bbox"]) + rng.integers(-3, 4, 4)).tolist()}
        for one, score in zip([*objects, *objects, *objects[:30]], rng.random(150), strict=True)
    ]
    return write(folder / "truth.json", content), write(folder / "found.json", found)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return draw(tmp_path_factory.mktemp("flagged"), FLAGGED)


@pytest.fixture(scope="module")
def alone(files: tuple[Path, Path]) -> Any:
    """The headline of each protocol, evaluated alone."""
    return cache(lambda name: headline(detmap.evaluate(*files, name))[1])


def test_the_flag_changes_the_numbers(files: Any, tmp_path: Path, alone: Any) -> None:
    others = {key: n for key, n in FLAGGED.items() if key != "difficult"}
    unmarked = draw(tmp_path, others)
    assert headline(detmap.evaluate(*unmarked, "pycocotools"))[1] == alone("pycocotools")
    assert headline(detmap.evaluate(*unmarked, "voc-devkit-07"))[1] != alone("voc-devkit-07")


@pytest.mark.slow
@pytest.mark.parametrize("stock", ["coco-bbox", "voc2012"])
def test_tools(stock: str, files: Any, alone: Any) -> None:
    names = protocol.tools()
    out = json.loads(run("tools", *files, "-p", stock, "--format", "json").out)
    rows = {row["tool"]: row["value"] for row in out["tools"]}
    wanted = {name: None if math.isnan(alone(name)) else alone(name) for name in (stock, *names)}
    assert rows == wanted
    assert len(names) == 54


def test_three_tools(files: Any, alone: Any) -> None:
    names = ("pycocotools", "tfod-oidv2", "voc-devkit-07")
    outcome = run("tools", *files, "--only", ",".join(names), "--format", "json")
    rows = {row["tool"]: row["value"] for row in json.loads(outcome.out)["tools"]}
    assert rows == {name: alone(name) for name in ("coco-bbox", *names)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "start, end",
    [
        ("coco-bbox", "voc2012"),
        ("voc-devkit-07", "pycocotools"),
        ("tfod-oidv2", "tide"),
        ("voc2007", "cartucho"),
    ],
)
def test_explain(start: str, end: str, files: Any, alone: Any) -> None:
    found = detmap.explain(*files, start, end, metric="first")
    assert (found.before, found.after) == (alone(start), alone(end))
    flags = [step.detail for step in found.steps if step.name == "flags"]
    away, new = "difficult: read -> not read", "difficult: not read -> read"
    wanted = {"coco-bbox": [new], "voc-devkit-07": [away], "tfod-oidv2": [away], "voc2007": []}
    assert flags == wanted[start]
    first = ("--metric", "first", "--format", "json")
    shown = json.loads(run("explain", *files, "--from", start, "--to", end, *first).out)
    assert (shown["before"], shown["after"]) == (alone(start), alone(end))


def test_explain_with_the_record_of_other_rules(files: Any, tmp_path: Path, alone: Any) -> None:
    record = tmp_path / "run.json"
    run("eval", *files, "-p", "voc2012", "--receipt", record)
    outcome = run("explain", *files, "--receipt", record, "--format", "json")
    found = json.loads(outcome.out)
    assert (found["before"], found["after"]) == (alone("voc2012"), alone("coco-bbox"))
    assert "flags" in [step["switch"] for step in found["steps"]]


@pytest.mark.slow
def test_reproduce(files: Any, alone: Any) -> None:
    wanted = f"{100 * alone('voc-devkit-07'):.6f}"
    out = json.loads(run("reproduce", wanted, *files, "--depth", "0", "--format", "json").out)
    assert "voc-devkit-07" in [each["rules"] for each in out["found"]]


@pytest.mark.slow
def test_reproduce_tries_changed_inputs_with_the_flags_of_each_rule(files: Any) -> None:
    truth = detmap.read_truth(files[0])
    found = detmap.read_detections(files[1], truth)
    rules = detmap.load_protocol("voc-devkit-07")
    table = truth_by_protocol(files[0], truth, detmap.load_protocol("coco-bbox"))
    cut = found.take(np.flatnonzero(found.score >= 0.3))
    value = headline(detmap.evaluate(table.table(rules), cut, rules))[1]
    search = reproduce(f"{100 * value:.6f}", table, found, depth=1)
    inputs = {(each.rules, each.input[1]) for each in search.found if each.input}
    assert ("voc-devkit-07", "detections below 0.3 removed") in inputs


def test_the_doctor_reads_the_flags_of_the_protocol(files: Any, tmp_path: Path) -> None:
    rows = [{**row, "score": 100 * row["score"]} for row in json.loads(files[1].read_text())]
    wrong = write(tmp_path / "percent.json", rows)
    rules = detmap.load_protocol("voc-devkit-07")
    read, plain = detmap.core.adapters.read_truth_for(files[0], rules), detmap.read_truth(files[0])
    by_path, by_table, by_plain = (
        [each.ap50_before for each in detmap.doctor(truth, wrong, rules)]
        for truth in (files[0], read, plain)
    )
    assert by_path == by_table != by_plain


def test_the_roles_of_a_table_are_those_of_every_tool(files: Any, alone: Any) -> None:
    rules = detmap.load_protocol("voc2012")
    truth = detmap.core.adapters.read_truth_for(files[0], rules)
    found = detmap.read_detections(files[1], truth)
    (row,) = numbers(truth, found, rules, ["pycocotools"])
    assert row.value != alone("pycocotools")
    (row,) = numbers(truth_by_protocol(files[0], truth, rules), found, rules, ["pycocotools"])
    assert row.value == alone("pycocotools")


def test_files_without_such_keys_have_one_table_for_all(tmp_path: Path) -> None:
    path, _ = draw(tmp_path, {})
    first = detmap.load_protocol("coco-bbox")
    truths = truth_by_protocol(path, detmap.read_truth(path), first)
    wanted = {id(truths.first)}
    assert {id(truths.table(detmap.load_protocol(name))) for name in protocol.tools()} == wanted


def test_a_file_that_changes_during_the_run(tmp_path: Path) -> None:
    path, _ = draw(tmp_path, {"difficult": 2})
    first = detmap.load_protocol("coco-bbox")
    truths = truth_by_protocol(path, detmap.read_truth(path), first)
    content = json.loads(path.read_text())
    del content["annotations"][0]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="now holds other objects"):
        truths.table(detmap.load_protocol("voc2012"))


def test_a_bad_flag_is_an_error_under_the_rules_that_read_it(tmp_path: Path) -> None:
    path, found = draw(tmp_path, {"difficult": 2})
    content = json.loads(path.read_text())
    content["annotations"][4]["difficult"] = "perhaps"
    path.write_text(json.dumps(content))
    assert run("tools", path, found, "--only", "pycocotools").code == 0
    outcome = run("tools", path, found, "--only", "pycocotools,voc-devkit-07")
    assert outcome.code == 2
    assert "annotations[4].difficult" in outcome.err
