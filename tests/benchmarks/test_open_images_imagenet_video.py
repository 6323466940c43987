"""Goldens of Open Images, ImageNet DET and VID, BDD100K, VisDrone and UAVDT by their own code."""

from pathlib import Path
from typing import Any

import pytest

import detmap
from tests.benchmarks.goldens import of_case
from tests.benchmarks.small_cases import UAVDT
from tests.support.real_data import data_path


def evaluated(folder: str, case: int, files: str, protocol: str) -> detmap.Result:
    truth, detections = files.split()
    place = data_path("benchmarks", folder, str(case))
    return detmap.evaluate(place / truth, place / detections, protocol)


def near(value: float | str | None) -> Any:
    missing = value is None or value == "nan"
    return pytest.approx(float("nan") if missing else value, abs=1e-12, rel=0, nan_ok=True)


@pytest.mark.parametrize("case", [1, 2])
@pytest.mark.parametrize(
    ("protocol", "key", "metric"),
    [
        ("openimages-challenge", "challenge (expanded truth)", "mAP"),
        ("openimages-challenge", "challenge (truth as given)", "mAP-as-given"),
        ("openimages-v2", "V2 group_of_weight 0 (expanded truth)", "mAP"),
    ],
)
def test_open_images(case: int, protocol: str, key: str, metric: str) -> None:
    want = of_case("openimages", case)[key]
    result = evaluated("openimages", case, "boxes.csv predictions.csv", protocol)
    (mean,) = (value for name, value in want.items() if "mAP" in name)
    assert result.metrics[metric] == near(mean)
    if metric == "mAP":
        ap_of = {name.split("IOU/")[1]: value for name, value in want.items() if "/AP@" in name}
        for row in result.per_class:
            assert row["AP"] == near(ap_of[row["name"]]), row["name"]


@pytest.mark.parametrize("case", [1, 2, 3])
def test_imagenet_det(case: int) -> None:
    want = of_case("imagenet-det", case)
    result = evaluated("imagenet-det", case, "xml predictions.txt", "imagenet-det")
    assert result.metrics["mAP"] == near(want["mAP"])
    assert [row["AP"] for row in result.per_class] == [near(ap) for ap in want["per_class_AP"]]
    assert [row["AR"] for row in result.per_class] == [near(r) for r in want["last_recall"]]


@pytest.mark.parametrize("case", [1, 2])
def test_imagenet_vid(case: int) -> None:
    result = evaluated("imagenet-vid", case, "Annotations dets.txt", "imagenet-vid")
    classes = {row["name"]: row for row in result.per_class}
    for key, want in of_case("imagenet-vid", case).items():
        motion, area = (part.split()[1] for part in key.split(", "))
        name = "" if motion == area == "all" else "-".join([motion] + [area] * (area != "all"))
        suffix = f"-{name}" if name else ""
        assert result.metrics[f"mAP{suffix}"] == near(want.pop("mAP")), key
        for each, ap in want.items():
            assert classes[each][f"AP{suffix}"] == near(ap), key


@pytest.mark.parametrize("case", [1, 2])
def test_bdd100k(case: int) -> None:
    result = evaluated("bdd100k", case, "truth.json predictions.json", "bdd100k")
    want = of_case("bdd100k", case)["stats_percent"]
    assert [100 * value for value in result.metrics.values()] == [
        pytest.approx(value, abs=1e-11, rel=0) for value in want
    ]


@pytest.mark.parametrize("case", [1, 2])
def test_visdrone(case: int) -> None:
    result = evaluated("visdrone", case, "annotations results", "visdrone")
    want = of_case("visdrone", case)
    n_objects, n_detections, _ = map(int, want.pop("n_gt_dets_ignored_after_regions"))
    for name, value in result.metrics.items():
        assert 100 * value == pytest.approx(want[name], abs=1e-11, rel=0), name
    notes = {note.code: note.count for note in result.matched[0].notes}
    assert len(result.matched[0]) + notes["class-others"] == n_objects
    assert len(result.matched[1]) == n_detections


@pytest.mark.parametrize("case", [1, 2])
def test_uavdt(case: int) -> None:
    result = evaluated("uavdt", case, ". .", "uavdt")
    want, counts = of_case("uavdt", case), result.counts()
    assert 100 * result.metrics["mAP"] == pytest.approx(want["AP70"], abs=1e-11, rel=0)
    assert (counts["tp"], counts["fp"]) == (want["n_tp"], want["n_fp"])
    assert counts["objects"] == want["n_objects"]


@pytest.mark.parametrize(("name", "fp"), [("M0203", 2), ("M0209", 3), ("M0801", 3)])
def test_uavdt_reads_regions_of_listed_sequences(name: str, fp: int, tmp_path: Path) -> None:
    """CalculateDetectionPR_overall.m, pass."""
    for file, content in UAVDT.items():
        (tmp_path / file.replace("M1", name)).write_text(str(content))
    result = detmap.evaluate(tmp_path, tmp_path, "uavdt")
    assert result.counts()["fp"] == fp
    unread = [note for note in result.notes if note.code == "regions-unread"]
    assert [f"{name}_gt_ignore.txt" in note.text for note in unread] == [True] * (fp == 3)
