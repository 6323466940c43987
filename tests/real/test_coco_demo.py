"""The official COCO demo: 100 images of val2014 and made-up results, with the official output."""

import json
import lzma
import re
from pathlib import Path

import pytest

import detmap
from detmap.cli import main
from detmap.reproducibility.parity import compare

pytestmark = pytest.mark.slow

TRUTH = "instances_val2014_100.json"
MASKS = "instances_val2014_fakesegm100_results.json"
RESULTS = "instances_val2014_fakebbox100_results.json"


@pytest.fixture(scope="module")
def demo(data: Path) -> Path:
    return data / "coco-val2014-100"


@pytest.mark.parametrize(("kind", "results"), [("bbox", RESULTS), ("segm", MASKS)])
def test_the_official_output_to_its_three_decimals(demo: Path, kind: str, results: str) -> None:
    printed = (demo / "val2014_fake_eval_res.txt").read_text()
    block = printed.split(f"type={kind}")[1].split("type=")[0]
    official = [float(number) for number in re.findall(r"= (\d\.\d{3})", block)]
    result = detmap.evaluate(demo / TRUTH, demo / results, f"coco-{kind}")
    assert len(official) == 12
    assert [round(value, 3) for value in result.metrics.values()] == official


def test_the_demo_is_that_of_pycocotools(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parity = compare(demo / TRUTH, demo / RESULTS)
    assert parity.equal
    assert main(["parity", str(demo / TRUTH), str(demo / RESULTS)]) == 0
    assert "identical in every bit" in capsys.readouterr().err


@pytest.mark.slow
def test_val2017_boxes_against_themselves(data: Path, tmp_path: Path) -> None:
    """36,781 real boxes as their own detections: everything is found, and pycocotools agrees in
    every bit."""
    packed = data / "coco-val2017-boxes" / "instances_val2017_integer_boxes.json.xz"
    instances = json.loads(lzma.decompress(packed.read_bytes()))
    results = [
        {key: a[key] for key in ("image_id", "category_id", "bbox")} | {"score": (i % 97) / 97}
        for i, a in enumerate(instances["annotations"])
    ]
    files = tmp_path / "truth.json", tmp_path / "results.json"
    for file, content in zip(files, (instances, results), strict=True):
        file.write_text(json.dumps(content))
    parity = compare(*files)
    assert parity.equal
    result = detmap.evaluate(*files)
    assert result.counts()["objects"] == 36_781
    assert result.metrics["AP50"] > 0.99
