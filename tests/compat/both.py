"""One script, run with pycocotools' classes and with the drop-in: everything that it leaves
behind must be the same."""

import contextlib
import copy
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pycocotools import coco, cocoeval

from detmap.compat import COCO, COCOeval, summary
from detmap.compat import annotation_sources as sources
from tests.reference import official

ARRAYS = ("precision", "recall", "scores")


class Classes(NamedTuple):
    """An implementation."""

    coco: Any
    evaluation: Any


OFFICIAL = Classes(coco.COCO, cocoeval.COCOeval)
OURS = Classes(COCO, COCOeval)
Script = Callable[[Classes], Any]


class Outcome(NamedTuple):
    """What a script returned or raised, and what it printed, without times."""

    value: Any
    error: str
    text: str


def run(script: Script, classes: Classes) -> Outcome:
    printed = io.StringIO()
    value, error = None, ""
    with contextlib.redirect_stdout(printed):
        try:
            value = script(classes)
        except (
            Exception
        ) as raised:  # of pycocotools any error may come: the drop-in's must be the same
            error = f"{type(raised).__name__}: {raised}"
    return Outcome(value, error, re.sub(r"t=\d+\.\d\ds", "t=?", printed.getvalue()))


def summarize(made: Any) -> None:
    """Summarizes by pycocotools' code where the drop-in has other rows (test_additions.py)."""
    if summary.follows_parameters(made):
        official.COCOeval.summarize(made)
    else:
        made.summarize()


def run_both(script: Script) -> tuple[Any, Any]:
    """The values of a script under both, printed text and errors being equal."""
    expected, found = run(script, OFFICIAL), run(script, OURS)
    assert found.error == expected.error, (found.error, expected.error)
    assert found.text == expected.text
    return expected.value, found.value


def load(
    classes: Classes, instances: Mapping[str, Any], results: Sequence[Mapping[str, Any]]
) -> tuple[Any, Any]:
    """Truth and detections of dicts; by way of files where the compiled lane takes small ones."""
    if sources.LEAST_SIZE == 1:
        with tempfile.TemporaryDirectory() as folder:
            truth = classes.coco(written(folder, official.complete(instances)))
            if results:
                return truth, truth.loadRes(written(folder, list(results)))
            empty = {**official.complete(instances), "annotations": []}
            return truth, classes.coco(written(folder, empty))
    truth = classes.coco()
    truth.dataset = official.complete(instances)
    truth.createIndex()
    if results:
        return truth, truth.loadRes(copy.deepcopy(list(results)))
    empty = classes.coco()
    empty.dataset = {**truth.dataset, "annotations": []}
    empty.createIndex()
    return truth, empty


def from_files(classes: Classes, folder: Path, instances: Any, results: Any) -> tuple[Any, Any]:
    """Truth and detections of files in this folder."""
    truth = classes.coco(written(str(folder), instances))
    return truth, truth.loadRes(written(str(folder), results))


def written(folder: str, content: Any) -> str:
    """The path of a file with this content."""
    path = Path(folder, f"{len(os.listdir(folder))}.json")
    path.write_text(json.dumps(content, default=float))
    return str(path)


def evaluation(
    classes: Classes, pair: tuple[Any, Any], params: Mapping[str, Any], iou_type: str = "bbox"
) -> Any:
    """Evaluated under some parameters."""
    made = classes.evaluation(*pair, iou_type)
    for name, value in params.items():
        setattr(made.params, name, copy.deepcopy(value))
    made.evaluate()
    return made


def assert_same_arrays(expected: Any, found: Any) -> None:
    assert list(found.eval) == ["params", "counts", "date", *ARRAYS]
    assert found.eval["counts"] == expected.eval["counts"]
    assert vars(found.eval["params"]).keys() == vars(expected.eval["params"]).keys()
    for name, value in vars(expected.eval["params"]).items():
        assert same(value, getattr(found.eval["params"], name)), name
    for name in ARRAYS:
        assert same(expected.eval[name], found.eval[name]), name


def assert_same(expected: Any, found: Any) -> None:
    """Arrays, stats, results by image, overlaps: of equal kinds and in every bit."""
    if expected.eval:
        assert_same_arrays(expected, found)
    assert same(expected.stats, found.stats)
    assert same(expected.ious, found.ious)
    assert same(expected.evalImgs, found.evalImgs)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        nan = a.dtype.kind == "f"
        return (
            isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and bool(np.array_equal(a, b, equal_nan=nan))
        )
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and a.keys() == b.keys()
            and all(same(value, b[key]) for key, value in a.items())
        )
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or bool(a != a and b != b)
