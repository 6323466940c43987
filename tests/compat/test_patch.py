"""`patch_pycocotools`: what it reaches, and that it goes away without a trace."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pycocotools.coco
import pycocotools.cocoeval
import pytest
from pycocotools.cocoeval import COCOeval as imported_before  # noqa: N813

import detmap.compat
from detmap.compat import COCO, COCOeval, patch_pycocotools
from detmap.errors import DetmapError
from detmap.reproducibility import parity
from tests.compat.both import Classes, assert_same, evaluation, load
from tests.compat.test_cocoeval import finish, records
from tests.support.running import python

OFFICIAL = pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval
SHAPES = Path(__file__).resolve().parents[2] / "datasets" / "shapes"


@pytest.fixture(autouse=True)
def unpatched() -> Any:
    """No test leaves a patch behind."""
    yield
    assert (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval) == OFFICIAL


def is_patched() -> bool:
    found = pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval
    assert found in (OFFICIAL, (COCO, COCOeval))
    return found == (COCO, COCOeval)


def test_a_context_patches_and_restores() -> None:
    with patch_pycocotools():
        assert is_patched()
        assert imported_before is COCOeval, "global names of loaded modules are reached"
        from pycocotools.coco import COCO as imported_now  # noqa: N811

        assert imported_now is COCO
    assert not is_patched()
    assert imported_before is OFFICIAL[1]
    assert detmap.compat.COCOeval is COCOeval


def test_a_patch_stays_until_it_is_restored() -> None:
    patch = patch_pycocotools()
    assert is_patched()
    patch.restore()
    assert not is_patched()
    patch.restore()
    assert not is_patched()


def test_nested_patches_are_restored_by_the_outermost() -> None:
    with patch_pycocotools():
        with patch_pycocotools():
            assert is_patched()
        assert is_patched()
    assert not is_patched()


def test_an_error_restores_the_originals() -> None:
    with pytest.raises(ZeroDivisionError), patch_pycocotools():
        raise ZeroDivisionError
    assert not is_patched()


def test_a_name_that_somebody_else_replaced_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("other")
    other.COCO = OFFICIAL[0]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "other", other)
    with patch_pycocotools():
        assert other.COCO is COCO
        other.COCO = int  # type: ignore[attr-defined]
    assert other.COCO is int


def test_what_is_not_reached() -> None:
    kept = {"evaluation": OFFICIAL[1]}
    with patch_pycocotools():
        assert kept["evaluation"] is OFFICIAL[1]


@pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")
def test_code_of_others_evaluates_with_detmap(capsys: pytest.CaptureFixture[str]) -> None:
    def theirs() -> Any:
        from pycocotools import coco, cocoeval

        classes = Classes(coco.COCO, cocoeval.COCOeval)
        return finish(evaluation(classes, load(classes, *records()), {}))

    expected, text = theirs(), capsys.readouterr().out
    with patch_pycocotools():
        found = theirs()
    assert found._evaluated is not None
    assert_same(expected, found)
    assert capsys.readouterr().out.splitlines()[-12:] == text.splitlines()[-12:]


def test_parity_does_not_compare_detmap_with_itself() -> None:
    with patch_pycocotools(), pytest.raises(DetmapError, match="patch_pycocotools"):
        parity.compare(SHAPES / "instances_test.json", SHAPES / "detections" / "template.json")


def test_without_pycocotools_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['pycocotools'] = None\nimport detmap.compat"
    assert "pip install 'detmap-eval[parity]'" in python("-c", code).err.splitlines()[-1]
