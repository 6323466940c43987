"""Every format's sample gives the same number, is recognized, and its conversion too."""

import json
from pathlib import Path

import pytest

from detmap.core.adapters import recognition, registry
from tests.support.format_samples import CORE, SAMPLES
from tests.support.running import run


@pytest.fixture
def plain(tmp_path: Path) -> tuple[Path, Path]:
    return SAMPLES["coco"](tmp_path / "plain")


@pytest.mark.parametrize("kind", SAMPLES)
def test_readable_files_need_no_conversion(
    tmp_path: Path, plain: tuple[Path, Path], kind: str
) -> None:
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    for root in SAMPLES[kind](tmp_path / "sample"):
        files = [each for each in [root, *root.rglob("*")] if each.is_file()]
        for file in [each for each in files if each.suffix not in (".png", ".jpg")][:3]:
            for words in ((file, plain[1]), (plain[0], file)):
                said = run("eval", *words).err
                assert "docs/recipes.md" not in said
                assert "which detmap does not read" not in said


BENCHMARKS = (
    *("dota", "rotated-xml", "coco-wholebody", "open-images", "imagenet-det", "imagenet-vid"),
    *("visdrone", "uavdt", "scalabel", "odgt", "wider", "bbgt", "luna16", "sa-co"),
)
"""Formats of benchmarks, whose files tests/benchmarks/ and the fuzz targets of their own write."""


@pytest.mark.parametrize("kind", [row.name for row in registry.FORMATS])
def test_every_registered_format_has_a_sample(kind: str) -> None:
    assert kind in SAMPLES or kind in ("parquet", "rafaelpadilla") or kind in BENCHMARKS


@pytest.mark.parametrize("kind", CORE)
def test_inspect_names_a_sample(tmp_path: Path, kind: str) -> None:
    truth, found = SAMPLES[kind](tmp_path)
    outcome = run("inspect", truth, "--format", "json")
    assert outcome.code == 0
    content = json.loads(outcome.out)
    assert (content["images"], content["boxes"]) == (3, 3)
    assert kind in content["looks_like"]["truth"]
    assert content["classes"] == {"cat": 2, "dog": 1}
    outcome = run("inspect", found, "--truth", truth)
    assert outcome.code == 0
    assert "detections" in outcome.out
    assert recognition.recognized(truth) is None
