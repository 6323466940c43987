"""The command line as its users run it."""

import csv
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.core import protocol as protocols
from tests.support import builders as make
from tests.support.running import Outcome, on_a_terminal, python, run, spawn

VOC, COCO = make.SHAPES, make.SHAPES / "instances_test.json"
TEXT, RESULTS = (
    make.SHAPES / "detections" / "contours",
    make.SHAPES / "detections" / "contours.json",
)
TABLE_FORMATS = ("table", "csv", "markdown")


def evaluate(*options: object) -> Outcome:
    """``detmap eval`` on the sample's COCO files."""
    outcome = run("eval", COCO, RESULTS, *options)
    assert outcome.code == 0, outcome.err
    return outcome


def as_json(*options: object) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    content: dict[str, Any] = json.loads(
        evaluate("--format", "json", *options).out, parse_constant=refuse
    )
    return content


def small(folder: Path, instances: Any = None, results: Any = None) -> tuple[Path, Path]:
    """Two files with this content."""
    return (
        make.write(folder / "gt.json", make.instances() if instances is None else instances),
        make.write(folder / "dt.json", [make.detection()] if results is None else results),
    )


# ---- what eval prints

SAMPLE = """\
coco-bbox: COCO detection, boxes: AP over IoU 0.50:0.95, by object area, and AR
metric  IoU        area    max dets   value
AP      0.50:0.95  all          100  0.4478
AP50    0.50       all          100  0.6060
AP75    0.75       all          100  0.5065
APs     0.50:0.95  small        100  0.2976
APm     0.50:0.95  medium       100  0.5647
APl     0.50:0.95  large        100  0.5304
AR1     0.50:0.95  all            1  0.3744
AR10    0.50:0.95  all           10  0.6298
AR100   0.50:0.95  all          100  0.6298
ARs     0.50:0.95  small        100  0.5412
ARm     0.50:0.95  medium       100  0.6935
ARl     0.50:0.95  large        100  0.6621
60 images, 299 objects, 2840 detections, lowest score 0.22
at IoU 0.5: 242 TP, 2573 FP, 25 ignored, 57 missed
coco-bbox.2|default|proto:(digest)|data:(digest)|detmap:(version)
"""

SAMPLE_IN_FULL = """\
voc2012: PASCAL VOC 2010-2012: all-point AP at IoU 0.5 as the devkit computes it
metric  IoU   area  max dets  value
mAP     0.50  all   all       60.43

AP interpolation
AP interpolation     AP   AP50
11-point          60.08  60.08
all-point         60.43  60.43
101-point         60.34  60.34
step              60.31  60.31

classes
class     id     AP     AR  objects  detections  tp    fp  ignored  missed
circle     1  56.29  73.77       61         227  45   181        1      16
ellipse    2  64.86  90.24       41         628  37   589        2       4
pentagon   3  58.14  95.12       41         322  39   282        1       2
square     4  63.86  81.13       53         241  43   198        0      10
star       5  59.95  80.43       46        1267  37  1229        1       9
triangle   6  59.48  71.93       57         155  41   113        1      16
60 images, 299 objects, 2840 detections, lowest score 0.22
at IoU 0.5: 242 TP, 2592 FP, 6 ignored, 57 missed
voc2012.3|default|proto:(digest)|data:(digest)|detmap:(version)
"""


def masked(text: str) -> str:
    """The text without what changes with the version."""
    text = re.sub(r"(proto|data):[0-9a-f]{12}\b", r"\1:(digest)", text)
    return text.replace(f"detmap:{detmap.__version__}", "detmap:(version)")


def test_the_sample_in_text() -> None:
    assert masked(evaluate().out) == SAMPLE


def test_the_sample_in_text_with_all_that_can_be_shown() -> None:
    outcome = run("eval", VOC, TEXT, "--per-class", "--integrators", "--percent")
    assert outcome.code == 0
    assert masked(outcome.out) == SAMPLE_IN_FULL


def test_the_text_is_what_python_prints() -> None:
    result = detmap.evaluate(COCO, RESULTS)
    outcome = evaluate()
    assert str(result) == outcome.out + outcome.err


def test_results_go_to_stdout_and_notes_to_stderr() -> None:
    outcome = evaluate("--format", "json")
    notes = [line for line in outcome.err.splitlines() if line.startswith("note: ")]
    assert notes == outcome.err.splitlines()
    wanted = [f"{note['count']} {note['text']}" for note in json.loads(outcome.out)["notes"]]
    assert [note.split(": ", 1)[1] for note in notes] == wanted


# ---- JSON

TOP = "schema metrics per_class counts lowest_score protocol signature notes environment"
METRICS = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def test_the_keys_of_the_json_are_in_a_fixed_order() -> None:
    content = as_json()
    assert " ".join(content) == TOP
    assert list(content["metrics"]) == METRICS
    counts = "objects detections tp fp ignored missed"
    row = f"name id AP AP50 AP75 AR100 {counts}"
    assert [" ".join(each) for each in content["per_class"]] == [row] * 6
    assert " ".join(content["counts"]) == f"images classes iou {counts}"
    assert " ".join(content["protocol"]) == (
        "name version summary source boxes iou matching detections classes scope limits ranking ap"
        " mean operating miss_rate files evaluation kitti froc cgf1 metrics subsets groups changes"
    )
    assert [list(note) for note in content["notes"]] == [["code", "count", "text", "source"]] * 3
    assert list(content["environment"]) == ["detmap", "python", "numpy", "numba", "platform"]


def test_the_numbers_of_the_json_are_those_of_the_result_to_the_last_bit() -> None:
    result = detmap.evaluate(COCO, RESULTS)
    content = as_json()
    assert content["metrics"] == result.metrics
    assert content["per_class"] == result.per_class
    assert content["counts"] == result.counts()
    assert content["signature"] == result.signature


def test_what_is_undefined_is_null(tmp_path: Path) -> None:
    instances = make.instances(categories=[make.category(), make.category(id=2, name="dog")])
    content = json.loads(run("eval", *small(tmp_path, instances), "--format", "json").out)
    assert (content["metrics"]["AP"], content["metrics"]["APl"]) == (pytest.approx(1), None)
    assert [row["AP"] for row in content["per_class"]] == [pytest.approx(1), None]


@pytest.mark.parametrize(
    "groups",
    [{"annotations": []}, {"annotations": [], "categories": []}],
    ids=["objects", "classes"],
)
@pytest.mark.parametrize("command", ["eval", "diagnose", "compare", "report", "tools", "merge"])
def test_a_ground_truth_without_objects_is_an_error(
    tmp_path: Path, command: str, groups: dict[str, Any]
) -> None:
    instances, results = small(tmp_path, make.instances(**groups))
    more = {"compare": [results], "report": ["-o", tmp_path / "page.html"]}.get(command, [])
    inputs = [instances, results, *more]
    if command == "merge":  # a part may be without
        inputs = [tmp_path / "part.npz"]
        done = run("match", instances, results, "--unknown", "drop", "-o", *inputs)
        assert done.code == 0
    outcome = run(command, *inputs)
    assert (outcome.code, outcome.out) == (2, "")
    assert "no object" in outcome.err
    assert instances.name in outcome.err or command == "merge"


def test_in_python_nothing_is_defined_without_objects(tmp_path: Path) -> None:
    for groups in ({"annotations": []}, {"annotations": [], "categories": []}):
        files = small(tmp_path, make.instances(**groups))
        found = detmap.evaluate(*files, unknown="drop")
        assert all(map(math.isnan, found.metrics.values()))
        assert len(found.per_class) == len(groups.get("categories", [1]))


def test_the_integrators_are_in_the_json_too() -> None:
    table = as_json("--integrators")["integrators"]
    assert list(table) == ["11-point", "all-point", "101-point", "step"]
    assert [list(row) for row in table.values()] == [["AP", "AP50", "AP75"]] * 4
    assert table["101-point"]["AP"] == as_json()["metrics"]["AP"]


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes() -> None:
    options = ("--format", "json", "--integrators")
    here = evaluate(*options).out
    assert evaluate(*options, "--threads", 1).out == here
    for seed in ("1", "2"):
        assert spawn("eval", COCO, RESULTS, *options, PYTHONHASHSEED=seed).out == here


# ---- tables


def test_csv_has_all_digits() -> None:
    result = detmap.evaluate(COCO, RESULTS)
    metrics = evaluate("--format", "csv").out
    classes = evaluate("--format", "csv", "--per-class").out
    assert {
        row["metric"]: float(row["value"]) for row in csv.DictReader(io.StringIO(metrics))
    } == result.metrics
    wanted = [row["AP"] for row in result.per_class]
    assert [float(row["AP"]) for row in csv.DictReader(io.StringIO(classes))] == wanted


def test_csv_leaves_the_undefined_empty(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("eval", *small(tmp_path), "--format", "csv").out)))
    assert {row["metric"] for row in rows if row["value"] == ""} == {"APm", "APl", "ARm", "ARl"}


def test_markdown_is_a_pipe_table() -> None:
    lines = evaluate("--format", "markdown").out.splitlines()
    assert lines[2:5] == [
        "| metric | IoU | area | max dets | value |",
        "|---|---|---|---:|---:|",
        "| AP | 0.50:0.95 | all | 100 | 0.4478 |",
    ]
    assert lines[-1].startswith("- coco-bbox.2|default|")


@pytest.mark.parametrize(
    "format, shown",
    [
        ("table", "0.50:0.95  all          100  44.78\n"),
        ("markdown", "| 44.78 |\n"),
        ("csv", "AP,0.50:0.95,all,100,44.77"),
    ],
)
def test_tables_may_be_in_percent(format: str, shown: str) -> None:
    assert shown in evaluate("--format", format, "--percent").out


@pytest.mark.parametrize("format", [*TABLE_FORMATS, "json"])
def test_what_is_written_to_a_file_is_what_would_be_printed(tmp_path: Path, format: str) -> None:
    file = tmp_path / "out"
    outcome = evaluate("--format", format, "-o", file)
    assert outcome.out == ""
    assert "note: " in outcome.err
    assert file.read_text(encoding="utf-8") == evaluate("--format", format).out


def test_a_terminal_gets_a_table_and_progress() -> None:
    code, out, err = on_a_terminal("eval", COCO, RESULTS)
    assert code == 0
    assert "0.4478" in out
    assert re.search(r"^coco-bbox\.2\|default\|", out, re.MULTILINE)
    assert err.startswith("reading ")


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_a_narrow_terminal_hides_nothing(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = on_a_terminal("eval", COCO, RESULTS, "--per-class", "--integrators").out
    assert "…" not in out
    for row in detmap.evaluate(COCO, RESULTS).per_class:
        assert str(row["name"]) in out
        assert f"{row['AP']:.4f}" in out


@pytest.mark.parametrize("name", ["[bold]", "[/x]", ":smile:"])
def test_a_terminal_shows_names_as_they_are(tmp_path: Path, name: str) -> None:
    files = small(tmp_path, make.instances(categories=[make.category(name=name)]))
    assert name in on_a_terminal("eval", *files, "--per-class").out


# ---- protocols


KNOWN = {name: protocols.load(name) for name in protocols.names()}
BOXES = [
    name
    for name, it in KNOWN.items()
    if it.iou.of == "boxes" and not it.files.truth and it.evaluation.rule == "matching"
    if not any(group.classes for group in it.groups)  # of a benchmark's own classes
]


@pytest.mark.slow
def test_every_protocol_of_boxes_runs_on_the_sample() -> None:
    for name in BOXES:
        content, loaded = as_json("-p", name), protocols.load(name)
        assert content["protocol"]["name"] == name
        assert content["signature"].startswith(f"{name}.{loaded.version}|default|")
        rows = [row.name for row in loaded.rows()[0]]
        assert list(content["metrics"])[: len(rows)] == rows
        assert len(content["metrics"]) == len(rows) or loaded.evaluation.extra


@pytest.mark.parametrize(
    "folder, protocol",
    [
        ("VOC2007", "voc2007"),
        ("VOC2008", "voc2007"),
        ("VOC2009", "voc2007"),
        ("VOC2010", "voc2012"),
        ("VOC2012", "voc2012"),
        ("shapes", "voc2012"),
        ("VOC2006", "voc2012"),
    ],
)
def test_the_year_of_voc_decides_the_protocol(tmp_path: Path, folder: str, protocol: str) -> None:
    outcome = run("eval", make.write_voc(tmp_path / folder), make.write_voc_text(tmp_path / "text"))
    assert outcome.out.startswith(f"{protocol}: ")


def test_coco_truth_is_judged_as_coco_does(tmp_path: Path) -> None:
    truth, _ = small(tmp_path)
    assert run("eval", truth, make.write_voc_text(tmp_path / "text")).out.startswith("coco-bbox: ")


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    text = (make.ROOT / "configs" / "coco-bbox.toml").read_text(encoding="utf-8")
    own = make.write(
        tmp_path / "mine.toml",
        text.replace('"coco-bbox"', '"mine"').replace("0.5:0.05:0.95", "0.5:0.25:0.75"),
    )
    content = as_json("-p", own)
    assert content["signature"].startswith("mine.2|custom|")
    stock = as_json()["metrics"]
    assert content["metrics"]["AP"] == pytest.approx((stock["AP50"] + stock["AP75"]) / 2)
    assert as_json("-p", own, "--set", "mean.undefined=zero")["signature"].startswith(
        'mine.2|mean.undefined="zero"|'
    )
    assert run("show", own).out == own.read_text(encoding="utf-8")


SETTINGS = {
    "limits": (["limits.max_dets=[1,10,300]"], [*METRICS[:8], "AR300", *METRICS[9:]], ""),
    "one limit": (["limits.max_dets=[5]"], [*METRICS[:6], "AR5", *METRICS[9:]], ""),
    "no limit": (["limits.max_dets=[]"], [*METRICS[:6], "AR", *METRICS[9:]], ""),
    "one more area": (
        ["subsets.tiny.area=[0,100]"],
        [*METRICS[:6], "AP-tiny", *METRICS[6:], "AR-tiny"],
        "",
    ),
    "other areas": (
        ["subsets={all={area=[0,1e10]}, big={area=[5000,1e10]}}"],
        ["AP", "AP50", "AP75", "AP-big", "AR1", "AR10", "AR100", "AR-big"],
        "subsets.big.area=[5000,10000000000]",
    ),
    "thresholds": (["iou.thresholds=[0.5,0.75]"], METRICS, ""),
    "one threshold": (["iou.thresholds=[0.5]"], [m for m in METRICS if m != "AP75"], ""),
    "thresholds without 0.5": (
        ["iou.thresholds=0.75:0.05:0.95"],
        [m for m in METRICS if m != "AP50"],
        'iou.thresholds="0.75:0.05:0.95"',
    ),
    "metrics": (['metrics=["AP60","AR"]'], ["AP60", "AR"], ""),
    "two keys": (
        ["ap.integrator=all_points", "mean.undefined=one"],
        METRICS,
        'ap.integrator="all_points";mean.undefined="one"',
    ),
    "a single value": (["limits.max_dets=5"], [*METRICS[:6], "AR5", *METRICS[9:]], "dets=[5]"),
    "the default value": (["limits.max_dets=[100,10,1]"], METRICS, "default"),
}


@pytest.mark.parametrize("settings, metrics, state", SETTINGS.values(), ids=SETTINGS)
def test_settings_change_the_labels_and_the_signature(
    settings: list[str], metrics: list[str], state: str
) -> None:
    content = as_json(*(word for setting in settings for word in ("--set", setting)))
    assert list(content["metrics"]) == metrics
    for change in (state or settings[0]).split(";"):
        assert change in content["signature"].split("|")[1]


def test_settings_change_the_numbers_that_they_name() -> None:
    stock = as_json()["metrics"]
    options = ("--set", "limits.max_dets=[1,2,300]", "--set", "iou.thresholds=[0.5]")
    changed = as_json(*options)["metrics"]  # no class has 100 in an image
    assert changed["AP"] == changed["AP50"] == pytest.approx(stock["AP50"], abs=1e-12)
    assert as_json("--set", "limits.max_dets=[1,2,300]")["metrics"]["AR300"] == stock["AR100"]
    assert stock["AR1"] < as_json("--set", "limits.max_dets=[2]")["metrics"]["AR2"] < stock["AR10"]
    tiny = as_json("--set", "subsets.tiny.area=[0,1024]")["metrics"]
    assert (tiny["AP-tiny"], tiny["AR-tiny"]) == (stock["APs"], stock["ARs"])


def test_a_metric_at_a_threshold_that_is_not_evaluated_is_left_out_with_a_note() -> None:
    outcome = evaluate("--set", "iou.thresholds=[0.6]")
    assert "AP50" not in outcome.out
    assert "note: 2 metrics are not reported: " in outcome.err
    assert "(AP50, AP75)\n" in outcome.err
    assert "at IoU 0.6: " in outcome.out


def test_voc_over_many_thresholds_has_the_names_of_coco() -> None:
    content = as_json("-p", "voc2012", "--set", "iou.thresholds=0.5:0.05:0.95")
    assert list(content["metrics"]) == ["AP", "AP50", "AP75"]


def test_counts_at_another_iou() -> None:
    result = detmap.evaluate(COCO, RESULTS)
    content = as_json("--iou", "0.75")
    assert content["counts"] == result.counts(iou=0.75) != result.counts()
    assert content["per_class"] == result.classes(iou=0.75)
    assert "at IoU 0.75: " in evaluate("--iou", "0.75").out


def test_a_split_by_name(tmp_path: Path) -> None:
    pages = {stem: make.page(make.voc_object()) for stem in ("000001", "000002")}
    truth = make.write_voc(tmp_path / "truth", pages, {"test": "000001\n000002", "val": "000001"})
    text = make.write_voc_text(tmp_path / "text")
    assert "1 image, 1 object, " in run("eval", truth, text, "--split", "val").out
    assert "2 images, 2 objects" in run("eval", truth, text).out


# ---- show, demo


def test_show_prints_every_key_of_a_protocol() -> None:
    lines = run("show", "--keys").out.splitlines()
    assert [line.split("`")[1] for line in lines[2:]] == protocols.keys()


def test_show_lists_the_protocols() -> None:
    lines = run("show").out.splitlines()
    assert lines[0].split() == ["protocol", "version", "summary"]
    named = [line.split()[0] for line in lines[1:] if line[:1] not in ("", " ")]
    assert named == [*protocols.names(), "tool", *protocols.tools()]


@pytest.mark.parametrize("name", ["coco-bbox", "voc2007"])
def test_show_prints_a_protocol_with_its_source(tmp_path: Path, name: str) -> None:
    file = make.ROOT / "configs" / f"{name}.toml"
    assert run("show", name) == Outcome(0, file.read_text(encoding="utf-8"), "")
    assert run("show", name, "-o", tmp_path / "copy.toml").out == ""
    assert (tmp_path / "copy.toml").read_bytes() == file.read_bytes()
    assert "source = " in run("show", name).out


def test_demo_evaluates_both_detectors_under_three_protocols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("demo", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert outcome.code == 0
    assert [(row["detector"], row["protocol"]) for row in rows] == [
        (detector, protocol)
        for detector in ("contours", "template")
        for protocol in ("voc2007", "voc2012", "coco-bbox")
    ]
    for row in rows:
        metrics = detmap.evaluate(
            VOC, make.SHAPES / "detections" / row["detector"], row["protocol"]
        ).metrics
        shown = {
            name: float(row[name])
            for name in row
            if name not in ("detector", "protocol") and row[name]
        }
        assert shown == {name: metrics[name] for name in shown}
        assert shown


def test_demo_copies_the_sample(tmp_path: Path) -> None:
    place = tmp_path / "new" / "shapes"
    outcome = run("demo", "--copy", place)
    assert outcome.code == 0
    assert str(place) in outcome.out
    assert run("eval", place, place / "detections" / "contours").code == 0
    again = run("demo", "--copy", place)
    assert again.code == 2
    assert again.err == f"detmap: error: {place}: exists\n  fix: name a new folder\n"


def test_demo_shows_the_signatures() -> None:
    out = run("demo").out
    assert out.startswith("the bundled sample: 60 images, 326 objects, 6 classes\n")
    assert out.count("|default|") == 6


# ---- parity


def test_parity_on_the_sample() -> None:
    outcome = run("parity", COCO, RESULTS)
    assert outcome.code == 0
    wanted = [("precision", "72720", "0"), ("recall", "720", "0"), ("scores", "72720", "0")]
    assert re.findall(r"(precision|recall|scores) +(\d+) +(\d+) ", outcome.out) == wanted
    assert re.search(r"^pycocotools +AP +0\.4478 +0\.4478 +0$", outcome.out, re.MULTILINE)
    assert re.fullmatch(r"detmap: pycocotools [\d.]+: identical in every bit\n", outcome.err)


@pytest.mark.slow
@pytest.mark.parametrize("truth, detections", [(VOC, TEXT), (VOC, RESULTS), (COCO, TEXT)])
def test_parity_on_other_families(truth: Path, detections: Path) -> None:
    names = ["--class-names", COCO] if (truth, detections) == (VOC, RESULTS) else []
    assert run("parity", truth, detections, *names).code == 0


def test_parity_under_other_settings() -> None:
    settings = ("--set", "limits.max_dets=[3,300]", "--set", "subsets.tiny.area=[0,100]")
    outcome = run("parity", COCO, RESULTS, *settings, "--format", "csv")
    assert outcome.code == 0
    assert "AP50" not in outcome.out  # pycocotools has no stats under other settings


def test_parity_explains_an_annotation_id_of_0(tmp_path: Path) -> None:
    files = small(tmp_path, make.instances(annotations=[make.annotation(id=0)]))
    outcome = run("parity", *files, "-o", tmp_path / "tables")
    assert outcome.code == 1
    assert outcome.out == ""
    table = (tmp_path / "tables").read_text(encoding="utf-8")
    assert re.search(r"^pycocotools +AP +1\.0000 +0\.0000 +1$", table, re.MULTILINE)
    *notes, verdict = outcome.err.splitlines()
    assert notes == [
        "note: 1 annotation has the id 0, which pycocotools reads as unmatched; detmap does not",
        "note: explained: with annotation ids counted from 1 pycocotools gives the same bits as"
        " detmap",
    ]
    assert "the numbers differ: AP, AP50" in verdict


AWKWARD = {
    "no iscrowd and area": (
        make.instances(annotations=[make.without(make.annotation(), "iscrowd", "area")]),
        None,
    ),
    "no annotation id": (make.instances(annotations=[make.without(make.annotation(), "id")]), None),
    "area null": (make.instances(annotations=[make.annotation(area=None)]), None),
    "no detections": (None, []),
    "no detections, wrapped": (None, {"annotations": []}),
    "wrapped results": (None, {"annotations": [make.detection()]}),
    "no objects": (make.instances(annotations=[]), None),
    "no images": (make.instances(images=[], annotations=[]), []),
    "no classes": (make.instances(categories=[], annotations=[]), []),
    "detections of an unlisted class": (None, [make.detection(), make.detection(category_id=9)]),
    "classes by name": (None, [make.detection(category_id="cat")]),
    "numbers for images that have strings": (
        make.instances(images=[make.image(id="1")], annotations=[make.annotation(image_id="1")]),
        None,
    ),
    "integral floats": (None, [make.detection(image_id=1.0, category_id=1.0)]),
    "results with captions": (None, [make.detection(caption="a cat")]),
    "byte order marks": ("\N{ZERO WIDTH NO-BREAK SPACE}" + json.dumps(make.instances()), None),
}


@pytest.mark.parametrize("instances, results", AWKWARD.values(), ids=AWKWARD)
def test_parity_on_awkward_files(tmp_path: Path, instances: Any, results: Any) -> None:
    outcome = run("parity", *small(tmp_path, instances, results), "--unknown", "drop")
    assert outcome.err.splitlines()[-1].endswith(": identical in every bit")
    assert outcome.code == 0


# ---- processes


@pytest.mark.slow
def test_help_and_import_are_light() -> None:
    code = (
        "import sys, contextlib\n"
        "import detmap, detmap.cli\n"
        "with contextlib.suppress(SystemExit): detmap.cli.main(sys.argv[1:])\n"
        "heavy = ('numba', 'cv2', 'matplotlib', 'pycocotools')\n"
        "print(*[m for m in heavy if m in sys.modules], file=sys.stderr)\n"
    )
    for arguments in (["--help"], ["eval", "--help"], ["--version"]):
        outcome = python("-c", code, *arguments)
        assert (outcome.code, outcome.err.strip()) == (0, "")
        assert "detmap" in outcome.out


@pytest.mark.slow
def test_it_runs_from_any_folder_and_as_a_module(tmp_path: Path) -> None:
    small(tmp_path)
    make.write(tmp_path / "configs" / "coco-bbox.toml", "not the shipped one")
    outcome = spawn("eval", "gt.json", "dt.json", cwd=tmp_path)
    assert outcome.code == 0
    assert outcome.out == run("eval", tmp_path / "gt.json", tmp_path / "dt.json").out


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "detmap", "show"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()  # long before anything is written
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
