"""Numbers that the original codes printed: tidecv, netcal, LRP-Error, four confusion matrices."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import Diagnosis, diagnose
from detmap.analysis.diagnosis.calibration import calibration, deviation_in_bins, feature
from detmap.analysis.diagnosis.confusion import confusion
from detmap.analysis.diagnosis.olrp import LRP_GRID, olrp
from detmap.analysis.diagnosis.tide import tidecv
from detmap.core.tables import Detections, Truth
from tests.support import builders as make

pytestmark = pytest.mark.slow

SETS = ("shapes-contours", "shapes-template", "detector-8603", "tiny-yolov2-voc", "yolov2-voc")
MATRICES = {
    "supervision-0.31.2 conf>=.3 iou>.5 (row true, col predicted, last = background)": (
        *("supervision", 0.3, 0.5),
    ),
    "supervision-0.31.2 conf>=.25 iou>.45": ("supervision", 0.25, 0.45),
    **{
        f"ultralytics-{version} conf>.25 iou>.45 (row predicted, col true)": (rule, 0.25, 0.45)
        for version, rule in (("8.0.200", "ultralytics-8.0"), ("8.4.190", "ultralytics-8.4"))
    },
    "mmdet-3.3.0 score>=.3 iou>=.5 many-to-many (row true, col predicted)": ("mmdet", 0.3, 0.5),
}


@pytest.fixture(scope="module")
def goldens(data: Path) -> dict[str, Any]:
    return dict(json.loads((data / "diagnosis" / "goldens.json").read_text())["data"])


@pytest.fixture(scope="module")
def tables(data: Path, voc2007: Path) -> dict[str, tuple[Truth, Detections]]:
    shapes = detmap.read_truth(make.SHAPES / "instances_test.json")
    voc = detmap.read_truth(voc2007 / "VOCdevkit" / "VOC2007")
    found = {}
    for name in SETS:
        if name.startswith("shapes"):
            file = make.SHAPES / "detections" / f"{name.removeprefix('shapes-')}.json"
            found[name] = shapes, detmap.read_detections(file, shapes)
        else:
            found[name] = voc, detmap.read_detections(voc2007 / name, voc)
    return found


@pytest.fixture(scope="module")
def diagnoses(tables: dict[str, tuple[Truth, Detections]]) -> dict[str, Diagnosis]:
    return {name: diagnose(*both, "coco-bbox") for name, both in tables.items()}


@pytest.mark.parametrize("name", SETS)
def test_tide_is_that_of_tidecv(
    name: str, goldens: dict[str, Any], tables: dict[str, tuple[Truth, Detections]]
) -> None:
    wanted, found = goldens[name]["tide"], tidecv(*tables[name])
    assert found.counts == wanted["counts"]
    assert found.ap == pytest.approx(wanted["ap50"], abs=1e-12, rel=0)
    expected = pytest.approx({**wanted["raw_unclipped"], **wanted["special"]}, abs=1e-12, rel=0)
    assert found.gain == expected
    assert found.per_class == pytest.approx(wanted["per_class_ap"], abs=1e-12, rel=0)
    printed = found.to_dict()
    assert {kind: printed[kind] for kind in wanted["main"]} == pytest.approx(
        wanted["main"], abs=1e-12, rel=0
    )


@pytest.mark.parametrize("name", [name for name in SETS if name != "tiny-yolov2-voc"])
def test_confusion_matrices_are_those_of_four_codes(
    name: str, goldens: dict[str, Any], diagnoses: dict[str, Diagnosis]
) -> None:
    rows = diagnoses[name].detections
    by_score = rows.take(np.argsort(-rows.score, kind="stable"))  # as supervision was given them
    ordered = diagnose(diagnoses[name].truth, by_score, "coco-bbox")
    for title, (rule, confidence, iou) in MATRICES.items():
        wanted = np.array(goldens[name]["confusion"]["matrices"][title])
        if "row predicted" in title:
            wanted = wanted.T
        diagnosis = ordered if rule == "supervision" else diagnoses[name]
        found = confusion(diagnosis, rule=rule, confidence=confidence, iou=iou)
        assert np.array_equal(found.matrix, wanted), title


@pytest.mark.parametrize("name", [name for name in SETS if name != "tiny-yolov2-voc"])
def test_calibration_is_that_of_netcal(
    name: str, goldens: dict[str, Any], diagnoses: dict[str, Diagnosis]
) -> None:
    wanted, diagnosis = goldens[name]["calibration_netcal"], diagnoses[name]
    for bins in (10, 15, 20):
        found = calibration(diagnosis, n_bins=bins)
        assert found.n == wanted["n"]
        for key, value in (("ECE", found.ece), ("MCE", found.mce), ("ACE", found.ace)):
            assert value == pytest.approx(wanted[f"{key}_{bins}"], abs=1e-12, rel=0)
    listed = ~diagnosis.ignored & (diagnosis.kind != 6)
    sure = listed & (diagnosis.detections.score >= 0.3)

    def of(rows: Any, names: list[str], bins: int, least: int) -> float:
        boxes = {each: feature(diagnosis, rows, each) for each in names}
        score, right = diagnosis.detections.score[rows], diagnosis.kind[rows] == 0
        return deviation_in_bins(score, right, [boxes[each] for each in names], bins, least)

    assert of(sure, [], 20, 8) == pytest.approx(wanted["score>=.3"]["ECE_20"], abs=1e-12, rel=0)
    for key in [key for key in wanted if key.startswith("D-ECE")]:
        _, names, bins, _, least, rows = key.split()
        found = of(
            listed if rows == "all" else sure,
            names.split(",")[1:],
            int(bins.removeprefix("bins=")),
            int(least),
        )
        assert found == pytest.approx(wanted[key], abs=1e-12, rel=0), key
    both = calibration(diagnosis)
    expected = pytest.approx(wanted["D-ECE conf,cx,cy,w,h bins=5 min 8 all"], abs=1e-12, rel=0)
    assert both.d_ece == expected


@pytest.mark.parametrize("name", [name for name in SETS if name != "tiny-yolov2-voc"])
def test_olrp_is_that_of_lrp_error(
    name: str, goldens: dict[str, Any], diagnoses: dict[str, Diagnosis]
) -> None:
    wanted = goldens[name]["olrp"]
    found = olrp(diagnoses[name], grid=LRP_GRID)
    assert found[""].olrp == pytest.approx(wanted["oLRP"], abs=1e-12, rel=0)
    assert found[""].loc == pytest.approx(wanted["oLRP_Loc"], abs=1e-12, rel=0)
    assert found[""].fp == pytest.approx(wanted["oLRP_FP"], abs=1e-12, rel=0)
    assert found[""].fn == pytest.approx(wanted["oLRP_FN"], abs=1e-12, rel=0)
    for category, each in wanted["per_class"].items():
        assert found[category].olrp == pytest.approx(each["oLRP"], abs=1e-12, rel=0)
        assert found[category].score == pytest.approx(each["threshold"], abs=1e-12, rel=0)
    exact = olrp(diagnoses[name])  # every score that occurs: never more than on the grid
    assert all(exact[key].olrp <= each.olrp + 1e-12 for key, each in found.items() if key)
