"""Rotated boxes: the numbers of DOTA_devkit, mmrotate and Ultralytics, and files of their kinds."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import detmap
from tests.benchmarks.goldens import CASES, folder, of_case

TEN = [round(0.5 + 0.05 * i, 2) for i in range(10)]


def classes(result: Any) -> dict[str, float]:
    """AP by class; 0 for one without objects, as these tools print it."""
    return {row["name"]: 0.0 if math.isnan(row["AP"]) else row["AP"] for row in result.per_class}


def close(value: float, wanted: float) -> bool:
    return math.isclose(value, wanted, rel_tol=0, abs_tol=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("integrator", "name"), [("eleven_point", "11"), ("all_points", "all")])
def test_dota(case: str, integrator: str, name: str) -> None:
    wanted = of_case("dota", case)[f"{name}-point"]
    files = folder("dota") / case / "labelTxt", folder("dota") / case / "results"
    settings = {"ap.integrator": integrator}
    if integrator == "all_points":
        settings["mean.undefined"] = "skip"
    result = detmap.evaluate(*files, "dota", settings=settings)
    assert close(result.metrics["mAP"], wanted["mAP_of_defined"])
    of = {key: 0.0 if value == "nan" else value for key, value in wanted["per_class"].items()}
    assert classes(result) == pytest.approx(of, abs=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("merged", ["patches", "merged"])
def test_dota_15_from_patches_and_merged_by_the_devkit(case: str, merged: str) -> None:
    wanted = of_case("dota15", case)
    place = folder("dota15") / case
    truth = detmap.read_truth(place / "labelTxt")
    found = detmap.read_detections(place / merged, truth, protocol_unknown="classes")
    lines = {found.categories.names[k]: int((found.label == k).sum()) for k in set(found.label)}
    assert lines == wanted["merged lines"]
    for threshold in (0.5, 0.75):
        golden = dict(wanted[f"IoU {threshold} 11-point"])
        result = detmap.evaluate(
            place / "labelTxt", place / merged, "dota-1.5", settings={"iou.thresholds": [threshold]}
        )
        assert close(result.metrics["mAP"], golden.pop("mean"))
        assert classes(result) == pytest.approx(golden, abs=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("protocol", "settings", "name"),
    [
        ("dior-r", {}, "difficult ignored; AP07"),
        ("dior-r", {"ap.integrator": "all_points"}, "difficult ignored; AP12"),
        ("hrsc2016", {}, "difficult as any other (HRSC2016); AP07"),
        ("hrsc2016-12", {}, "difficult as any other (HRSC2016); AP12"),
    ],
)
def test_mmrotate(case: str, protocol: str, settings: dict[str, Any], name: str) -> None:
    golden = of_case("mmrotate", case)[name]
    files = folder("mmrotate") / case / "truth.csv", folder("mmrotate") / case / "dets.csv"
    values = []
    for threshold in TEN:
        result = detmap.evaluate(
            *files, protocol, settings={**settings, "iou.thresholds": [threshold]}
        )
        wanted = dict(golden[f"{threshold:g}"])
        values.append(result.metrics["mAP"])
        assert close(values[-1], wanted.pop("mAP"))
        assert classes(result) == pytest.approx(wanted, abs=1e-9)
    assert close(sum(values) / 10, golden["mean of the ten mAP"])


@pytest.mark.parametrize("case", CASES)
def test_ultralytics(case: str) -> None:
    golden = of_case("ultralytics-obb", case)
    place = folder("ultralytics-obb") / case
    result = detmap.evaluate(place / "truth.csv", place / "dets.csv", "ultralytics-obb")
    for name in ("mAP50-95", "mAP50", "P", "R"):
        assert close(result.metrics[name], golden[name])
    for name, wanted in golden["classes"].items():
        of = {row["name"]: row for row in result.per_class}
        assert close(of[name]["AP50-95"], wanted["AP50-95"])
        assert close(of[name]["AP50"], wanted["AP50"])
    counts = result.counts()
    assert counts["tp"] == golden["true positives at .5"]
    assert counts["tp"] + counts["missed"] == golden["objects"]
    assert counts["tp"] + counts["fp"] == golden["detections"]


@pytest.mark.slow
def test_the_example_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "rotated.md").read_text()
    (block,) = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-e", "-c", block],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert run.stdout.count("1.0000\n") >= 2
    assert "2 TP, 0 FP, 1 ignored" in run.stdout
    assert "3 TP, 0 FP, 0 ignored" in run.stdout
    assert "4 detections on patches were merged to 3" in run.stderr
