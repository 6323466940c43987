"""Who does what a message says ends at the right number; an advice without such a test fails."""

import ast
import contextlib
import io
from pathlib import Path

import pytest

from tests.advice import in_python, on_commands, on_files, on_rules
from tests.advice.collected import advices
from tests.advice.elsewhere import EXEMPT, TESTED
from tests.advice.situations import Row, drawn, follow, right_ap
from tests.support import builders as make

ROWS = (*on_files.ROWS, *on_rules.ROWS, *on_commands.ROWS, *in_python.ROWS)


SLOW = (
    *("core/matching/engine", "core/protocol/tree", "core/statistics", "core/results/result_notes"),
    "core/adapters/joining/image_lookup",
)
"""How rows on files and rules begin that take more than 0.1 seconds."""


def is_slow(row: Row) -> bool:
    """Files and rules are quick; commands and functions, of which other tests are many, are not."""
    quick = row in on_files.ROWS or row in on_rules.ROWS
    return not quick or row.advice.startswith(SLOW)


def named(row: Row) -> str:
    return row.advice.replace(" ", "-")[:60]


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=named(row), marks=[pytest.mark.slow] * is_slow(row)) for row in ROWS],
)
def test_who_follows_an_advice_ends_at_the_right_number(row: Row, tmp_path: Path) -> None:
    number, right = follow(row, tmp_path)
    assert number == pytest.approx(right, abs=1e-9)


def test_every_advice_is_followed() -> None:
    known = (
        {row.advice for row in ROWS} | {*TESTED} | {key for keys in EXEMPT.values() for key in keys}
    )
    lacking, gone = {*advices()} - known, known - {*advices()}
    assert not lacking, "no situation in tests/advice, no test, and no reason"
    assert not gone, "no such text in the package"


def test_the_tests_that_follow_an_advice_exist() -> None:
    for place in {*TESTED.values()}:
        file, _, name = place.partition("::")
        tree = ast.parse((make.ROOT / file).read_text())
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, place


def test_the_right_number_is_that_of_pycocotools() -> None:
    coco = pytest.importorskip("pycocotools.coco")
    from pycocotools import mask
    from pycocotools.cocoeval import COCOeval

    for shape, kind in (("boxes", "bbox"), ("masks", "segm"), ("keypoints", "keypoints")):
        given = drawn(shape).copy()
        sizes = {each["id"]: (each["height"], each["width"]) for each in given.truth["images"]}
        for row in given.rows if shape == "masks" else ():
            runs = mask.frPyObjects(row["segmentation"], *sizes[row["image_id"]])
            row["segmentation"] = mask.merge(runs)
        with contextlib.redirect_stdout(io.StringIO()):
            truth = coco.COCO()
            truth.dataset = given.truth
            truth.createIndex()
            run = COCOeval(truth, truth.loadRes(given.rows), kind)
            run.evaluate()
            run.accumulate()
            run.summarize()
        assert right_ap(shape) == run.stats[0]
        assert 0.3 < right_ap(shape) < 0.8
