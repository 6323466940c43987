"""Every format's sample gives the same number, is recognized, and its conversion too."""

import json
from pathlib import Path

import pytest

import detmap
from detmap.annotation_tools.conversion import writers
from detmap.core.adapters import recognition, registry
from tests.support.format_samples import SAMPLES, all_samples
from tests.support.running import run

KINDS = all_samples()


@pytest.fixture
def plain(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "plain").mkdir()
    truth, found = SAMPLES["coco"](tmp_path / "plain")
    assert truth is not None
    assert found is not None
    return truth, found


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_has_the_number_of_coco(
    tmp_path: Path, plain: tuple[Path, Path], kind: str
) -> None:
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    (tmp_path / "sample").mkdir()
    truth, found = KINDS[kind](tmp_path / "sample")
    table = detmap.read_truth(truth or plain[0])
    rows = detmap.read_detections(found or plain[1], table)
    wanted = detmap.evaluate(*plain, "coco-bbox").metrics["AP"]
    assert detmap.evaluate(table, rows, "coco-bbox").metrics["AP"] == pytest.approx(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_of_a_readable_format_needs_no_conversion(
    tmp_path: Path, plain: tuple[Path, Path], kind: str
) -> None:
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    (tmp_path / "sample").mkdir()
    for root in filter(None, KINDS[kind](tmp_path / "sample")):
        files = [each for each in [root, *root.rglob("*")] if each.is_file()]
        for file in [each for each in files if each.suffix != ".png"][:3]:
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
    assert kind in KINDS or kind in ("parquet", "rafaelpadilla") or kind in BENCHMARKS


@pytest.mark.parametrize("kind", SAMPLES)
def test_inspect_names_a_sample(tmp_path: Path, plain: tuple[Path, Path], kind: str) -> None:
    (tmp_path / "sample").mkdir()
    truth, found = SAMPLES[kind](tmp_path / "sample")
    outcome = run("inspect", truth or plain[0], "--format", "json")
    assert outcome.code == 0
    content = json.loads(outcome.out)
    assert (content["images"], content["boxes"]) == (3, 3)
    assert kind in content["looks_like"]["truth"]
    assert content["classes"] == {"cat": 2, "dog": 1}
    outcome = run("inspect", found or plain[1], "--truth", truth or plain[0])
    assert outcome.code == 0
    assert "detections" in outcome.out
    assert recognition.recognized(truth or plain[0]) is None


@pytest.mark.parametrize("target", writers.TARGETS)
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_is_converted(
    tmp_path: Path, plain: tuple[Path, Path], kind: str, target: str
) -> None:
    (tmp_path / "sample").mkdir()
    truth, found = SAMPLES[kind](tmp_path / "sample")
    suffix = {"coco": ".json", "csv": ".csv"}.get(target, "")
    places = [tmp_path / f"{name}{suffix}" for name in ("truth", "found")]
    given = ("--image-sizes", plain[0]) if kind in ("csv", "cartucho") else ()
    assert run("convert", truth, places[0], "--to", target, *given).code == 0
    assert run("convert", found, places[1], "--to", target, "--truth", truth, *given).code == 0
    sizes = ("--image-sizes", places[0] / "sizes.csv") if target == "yolo" else ()
    outcome = run("eval", *places, "-p", "coco-bbox", "--format", "json", *sizes)
    assert outcome.code == 0, outcome.err
    wanted = detmap.evaluate(*plain, "coco-bbox").metrics["AP"]
    assert json.loads(outcome.out)["metrics"]["AP"] == pytest.approx(wanted)
