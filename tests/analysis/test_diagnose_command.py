"""`detmap diagnose` and `detmap eval --errors`, as a user runs them."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.analysis.diagnosis.test_goldens import MATRICES
from tests.support import builders as make
from tests.support.running import run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"


def test_the_summary_says_what_costs_most() -> None:
    outcome = run("diagnose", COCO, RESULTS)
    assert outcome.code == 0
    assert "The largest loss is Cls (right location, wrong class)" in " ".join(outcome.out.split())
    lines = outcome.out.splitlines()
    begin = lines.index("Most confused classes at confidence 0.4366 and IoU 0.5")
    assert lines[begin + 2].split() == ["pentagon", "circle", "4"]


def test_thresholds_that_it_would_not_read_are_refused() -> None:
    changed = ("--set", "iou.thresholds=[0.6]")
    outcome = run("diagnose", COCO, RESULTS, *changed)
    assert outcome.code == 2
    assert "use --iou" in outcome.err
    assert "AP60 is" in run("diagnose", COCO, RESULTS, *changed, "--iou", 0.6).out


def test_json_has_every_part() -> None:
    content = json.loads(run("diagnose", COCO, RESULTS, "--format", "json").out)
    assert content["tide"]["AP50"] == pytest.approx(60.59881102688345, abs=1e-12)
    assert content["tide"]["counts"]["Cls"] == 675
    assert content["confusion"]["matrix"]
    assert content["operating_points"][0]["name"] == "micro"
    assert len(content["images"]) == 60
    assert detmap.diagnose(COCO, RESULTS).to_dict() == content


@pytest.mark.slow
def test_csv_is_the_errors(tmp_path: Path) -> None:
    file, again = tmp_path / "errors.csv", tmp_path / "again.csv"
    assert run("diagnose", COCO, RESULTS, "-o", file, "--errors", again).code == 0
    assert file.read_bytes() == again.read_bytes()
    with file.open() as text:
        rows = list(csv.DictReader(text))
    wanted = {*("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss", "missed (Cls)", "missed (Loc)")}
    assert {row["kind"] for row in rows} == wanted
    expected = [*("kind", "image", "class", "x", "y", "w", "h", "score", "overlap", "other", "row")]
    assert list(rows[0]) == expected


def test_suspects_are_written(tmp_path: Path) -> None:
    file = tmp_path / "relabel.csv"
    assert run("diagnose", COCO, RESULTS, "--suspects", file).code == 0
    assert "missing label" in file.read_text()


def test_eval_writes_errors(tmp_path: Path) -> None:
    file = tmp_path / "errors.csv"
    outcome = run("eval", COCO, RESULTS, "--errors", file)
    assert outcome.code == 0
    assert outcome.out == run("eval", COCO, RESULTS).out
    assert file.read_text().startswith("kind,image,class,x,y,w,h,score,overlap,other,row\n")


@pytest.mark.parametrize("table", ["costs", "points", "slices", "confused", "images", "errors"])
def test_one_table_alone(table: str) -> None:
    outcome = run("diagnose", COCO, RESULTS, "--table", table, "--format", "csv")
    assert outcome.code == 0
    assert len(list(csv.DictReader(outcome.out.splitlines()))) > 0


def told(*options: str, name: str = "contours") -> dict[str, Any]:
    outcome = run("diagnose", COCO, RESULTS.with_stem(name), "--format", "json", *options)
    assert outcome.code == 0, outcome.err
    return dict(json.loads(outcome.out))


@pytest.fixture(scope="module")
def goldens(data: Path) -> dict[str, Any]:
    return dict(json.loads((data / "diagnosis" / "goldens.json").read_text())["data"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["contours", "template"])
@pytest.mark.parametrize("title", MATRICES)
def test_confusion_by_the_rule_of_each_code(name: str, title: str, goldens: dict[str, Any]) -> None:
    wanted = np.array(goldens[f"shapes-{name}"]["confusion"]["matrices"][title])
    rule, confidence, iou = MATRICES[title]
    options = ("--confusion-score", str(confidence), "--confusion-iou", str(iou))
    found = told("--confusion-rule", rule, *options, name=name)["confusion"]
    assert np.array_equal(found["matrix"], wanted.T if "row predicted" in title else wanted)
    assert found["rule"] == rule


@pytest.mark.slow
@pytest.mark.parametrize("name", ["contours", "template"])
def test_options_give_the_numbers_of_the_original_codes(name: str, goldens: dict[str, Any]) -> None:
    wanted = goldens[f"shapes-{name}"]
    found = told("--lrp-grid", "0:0.01:1", "--calibration-bins", "15", name=name)
    own = wanted["olrp"]
    for key, golden in (("olrp", "oLRP"), ("loc", "oLRP_Loc"), ("fp", "oLRP_FP")):
        assert found["olrp"][key] == pytest.approx(own[golden], abs=1e-12, rel=0)
    netcal = wanted["calibration_netcal"]
    assert found["calibration"]["ece"] == pytest.approx(netcal["ECE_15"], abs=1e-12, rel=0)
    boxes = {
        "8,5": {"all": (), "score>=.3": ("--calibration-score", ".3")},
        "8,7": {"all": ("--calibration-least", "1")},
    }
    for bins, cases in boxes.items():
        for rows, options in cases.items():
            own = told("--calibration-box-bins", bins, *options, name=name)["calibration"]
            least = 1 if "--calibration-least" in options else 8
            for key, features in (("d_ece_position", "cx,cy"), ("d_ece_size", "w,h")):
                golden = netcal[f"D-ECE conf,{features} bins=8 min {least} {rows}"]
                assert own[key] == pytest.approx(golden, abs=1e-12, rel=0)
            if bins == "8,5":
                golden = netcal[f"D-ECE conf,cx,cy,w,h bins=5 min {least} {rows}"]
                assert own["d_ece"] == pytest.approx(golden, abs=1e-12, rel=0)
    tide = told("--pos-threshold", ".5", "--background-threshold", ".1", name=name)["tide"]
    expected = pytest.approx(wanted["tide"]["main"], abs=1e-12, rel=0)
    assert {kind: tide[kind] for kind in wanted["tide"]["main"]} == expected


@pytest.mark.slow
def test_limits_and_means_of_tide() -> None:
    every = told()
    assert told("--tide-max-dets", "100", "--tide-mean", "occurring") == every
    assert told("--tide-max-dets", "3")["tide"]["AP50"] < every["tide"]["AP50"]
    own = told("--tide-rule", "protocol")
    assert own["tide"] == every["tide_protocol"] == own["tide_protocol"]
    assert told("--pos-threshold", ".75")["tide"]["AP75"] < every["tide"]["AP50"]
    assert told("--iou", ".75") == told("--pos-threshold", ".75")


def test_a_class_without_objects_is_in_tidecvs_mean_alone(tmp_path: Path) -> None:
    truth = json.loads(COCO.read_text())
    star = next(each["id"] for each in truth["categories"] if each["name"] == "star")
    truth["annotations"] = [each for each in truth["annotations"] if each["category_id"] != star]
    file = make.write(tmp_path / "truth.json", json.dumps(truth).encode())
    words = ("diagnose", file, RESULTS, "--format", "json")
    done = [run(*words, *options) for options in ((), ("--tide-mean", "objects"))]
    aps = [json.loads(each.out)["tide"]["AP50"] for each in done]
    assert 6 * aps[0] == pytest.approx(5 * aps[1])


@pytest.mark.parametrize(
    "options",
    [
        ("--iou", "0"),
        ("--iou", "nan"),
        ("--background", "0.6"),
        ("-p", "coco-segm"),
        ("--lrp-grid", "0:0:1"),
        ("--lrp-grid", "a,b"),
        ("--calibration-box-bins", "8"),
        ("--calibration-bins", "0"),
        ("--calibration-bins", "10001"),
        ("--calibration-bins", "1000000000000"),
        ("--calibration-box-bins", "8,65"),
        ("--calibration-score", "nan"),
        ("--confusion-score", "nan"),
        ("--confusion-iou", "much"),
        ("--confusion-rule", "yolo"),
        ("--tide-max-dets", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: tuple[str, ...]) -> None:
    outcome = run("diagnose", COCO, RESULTS, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert "fix:" in outcome.err or "usage:" in outcome.err


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    assert "is an input" in run("diagnose", COCO, RESULTS, "--errors", RESULTS).err
    both = tmp_path / "a.csv"
    text = run("diagnose", COCO, RESULTS, "--errors", both, "-o", both).err
    assert "used for two outputs" in text


def test_formulas_in_csv_are_texts(tmp_path: Path) -> None:
    truth, found = json.loads(COCO.read_text()), json.loads(RESULTS.read_text())
    for each, name in zip(truth["categories"], ("=cmd|x", "@SUM(1)", "-1+1", "+1+1"), strict=False):
        each["name"] = name
    files = [tmp_path / name for name in ("truth.json", "found.json", "errors.csv", "relabel.csv")]
    for file, content in zip(files, (truth, found), strict=False):
        file.write_text(json.dumps(content))
    outcome = run("diagnose", *files[:2], "--errors", files[2], "--suspects", files[3])
    assert outcome.code == 0
    for file in files[2:]:
        with file.open() as text:
            cells = [cell for row in csv.reader(text) for cell in row]
        assert {"'=cmd|x", "'@SUM(1)", "'-1+1", "'+1+1"} <= set(cells)
        assert not [cell for cell in cells if cell[:1] in "=@+" and cell]


@pytest.mark.slow
def test_many_classes_fit_a_screen_and_the_rest_is_in_a_file(tmp_path: Path) -> None:
    n = 1203
    classes = [make.category(id=k, name=f"class {k}") for k in range(1, n + 1)]
    objects = [make.annotation(id=k, category_id=k) for k in range(1, n + 1)]
    truth = make.instances(categories=classes, annotations=objects)
    files = make.write(tmp_path / "truth.json", truth), tmp_path / "found.json"
    make.write(files[1], [make.detection(category_id=k) for k in range(1, n + 1, 2)])
    lines = run("diagnose", *files).out.splitlines()
    assert len(lines) < 80
    more = next(line for line in lines if "--table points -o" in line)
    assert more.startswith("1,183 more classes")
    points = tmp_path / "points.csv"
    assert run("diagnose", *files, "--table", "points", "-o", points).code == 0
    assert len(points.read_text().splitlines()) == n + 4
