"""SAHI's evaluation under the drop-in."""

from pathlib import Path

import pytest

from detmap.compat import patch_pycocotools
from tests.integrations import host_samples as sample

coco_evaluation = pytest.importorskip(
    "sahi.scripts.coco_evaluation", reason="needs detmap-eval[sahi]"
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("classwise", [False, True])
def test_sahi_gives_the_same_dict(tmp_path: Path, classwise: bool) -> None:
    options = {"classwise": classwise, "return_dict": True, "out_dir": str(tmp_path)}
    theirs = coco_evaluation.evaluate(str(sample.TRUTH), str(sample.FOUND), **options)
    with patch_pycocotools():
        ours = coco_evaluation.evaluate(str(sample.TRUTH), str(sample.FOUND), **options)
    assert {k: v for k, v in ours.items() if "path" not in k} == {
        k: v for k, v in theirs.items() if "path" not in k
    }
    assert round(sample.expected().metrics["AP"], 3) == ours["eval_results"]["bbox_mAP"]
