"""What people type first on the command line: it works, or the error says what does."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import detmap
from detmap.cli import dispatch
from detmap.core import protocol
from detmap.core.base.suggestions import suggestions, words
from tests.support import builders as make
from tests.support.running import run

TRUTH = make.SHAPES / "instances_test.json"
A, B = (make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template"))


def advice(text: str) -> str:
    """The first name that a message proposes."""
    return text.partition("did you mean '")[2].partition("'")[0]


@pytest.mark.parametrize(
    ("word", "right"),
    [
        ("evaluate", "eval"),
        ("val", "eval"),
        ("check", "doctor"),
        ("diff", "compare"),
        ("info", "inspect"),
        ("protocols", "show"),
        ("tide", "diagnose"),
        ("significance", "compare"),
        ("comapre", "compare"),
        ("reprot", "report"),
    ],
)
def test_a_wrong_command_names_the_right_one(word: str, right: str) -> None:
    outcome = run(word, TRUTH, A)
    assert outcome.code == 2
    assert advice(outcome.err) == right
    assert run(right, "--help").code == 0


@pytest.mark.parametrize(
    ("option", "right"),
    [
        ("--best-threshold", "--best-f1"),
        ("--classwise", "--per-class"),
        ("--per-clss", "--per-class"),
        ("--conf-thres", "--confidence"),
        ("--score-thr", "--confidence"),
        ("--bootstrap", "--ci"),
        ("--workers", "--threads"),
        ("--save-dir", "--output"),
        ("--iou-thr", "--iou"),
        ("--preset", "--protocol"),
        ("--average", "--best-f1"),
        ("--min-map", "--fail-under"),
    ],
)
def test_a_wrong_option_names_the_right_one(option: str, right: str) -> None:
    outcome = run("eval", TRUTH, A, option)
    assert (outcome.code, outcome.out) == (2, "")
    assert advice(outcome.err) == right
    assert len(outcome.err.splitlines()) == 2
    assert right in run("eval", "--help").out


@pytest.mark.parametrize(
    ("option", "right", "shown"),
    [
        ("--json", "--format json", '"AP50": 0.605'),
        ("--metrics", "--table metrics", "AP50 0.50 all"),
        ("--latex", "--format latex", "AP50 & 0.50"),
        ("--max-dets", "--set limits.max_dets=[1,10,300]", "AP50       0.50       all"),
        ("--iou-thresholds", "--set iou.thresholds=[0.5]", "AP50       0.50       all"),
        ("--csv", "--output FILE.csv", ""),
        ("--voc2007", "--protocol voc2007", "mAP 0.50 all"),
    ],
)
def test_a_proposed_option_is_followed(tmp_path: Path, option: str, right: str, shown: str) -> None:
    assert advice(run("eval", TRUTH, A, option, "1").err) == right
    words = right.replace("FILE.csv", str(tmp_path / "t.csv")).split(" ")
    outcome = run("eval", TRUTH, A, *words)
    assert outcome.code == 0
    assert " ".join(shown.split()) in " ".join(outcome.out.split())
    assert (tmp_path / "t.csv").exists() == (option == "--csv")


@pytest.mark.parametrize(
    ("words", "right", "meant"),
    [
        ((TRUTH, A), "`detmap eval TRUTH DETECTIONS`", ("eval", TRUTH, A)),
        (("compare", A, B), "write `detmap compare TRUTH A B`", ("compare", TRUTH, A, B)),
        (
            ("explain", TRUTH, A, "voc2012"),
            "write --to voc2012",
            ("explain", TRUTH, A, "--to", "voc2012"),
        ),
        (("view", TRUTH, A), "'report TRUTH DETECTIONS -o report/'", ("report", "--help")),
    ],
    ids=["files", "no truth", "rules", "view"],
)
def test_words_that_mean_another_command_line(
    words: tuple[object, ...], right: str, meant: tuple[object, ...]
) -> None:
    outcome = run(*words)
    assert outcome.code == 2
    assert right in outcome.err
    assert run(*meant).code == 0


@pytest.mark.slow
def test_a_proposed_command_line_is_followed(tmp_path: Path) -> None:
    words = {"pr": "--plot", "f1": "--best-f1", "classwise": "--per-class"}
    words |= {"cm": "confusion", "latex": "latex", "gate": "--fail-if-drop"}
    for word, right in words.items():
        proposed = advice(run(word, TRUTH, A).err).split()
        places = {"TRUTH": TRUTH, "DETECTIONS": A, "FILE": tmp_path / "pr.svg", "A": B, "B": A}
        assert right in proposed
        assert run(*(places.get(each, each) for each in proposed)).code == 0
    assert advice(run("help", "eval").err) == "COMMAND --help"
    assert advice(run("version").err) == "--version"
    assert run("--version").code == 0


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("report --conf", "detmap eval TRUTH DETECTIONS --confidence"),
        ("compare --per-class", "detmap eval TRUTH DETECTIONS --per-class"),
        ("eval --size", "detmap diagnose TRUTH DETECTIONS"),
        ("eval --confusion-matrix", "detmap diagnose TRUTH DETECTIONS --table confusion"),
        ("ci", "eval TRUTH DETECTIONS --ci"),
    ],
)
def test_what_another_command_does_is_proposed(words: str, right: str) -> None:
    outcome = run(*words.split(), TRUTH, A)
    assert (outcome.code, outcome.out, advice(outcome.err)) == (2, "", right)
    _, command, *options = f"detmap {right.removeprefix('detmap ')}".split()
    assert all(each in run(command, "--help").out for each in options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("eval --ap50", "detmap eval` prints all, --fail-under AP50=V tests one"),
        ("eval --verbose", "`detmap eval --help` lists the options"),
        ("diagnose --confusion-matrix", "DETECTIONS --table confusion` prints it"),
        ("diagnose --confusion", "DETECTIONS --table confusion` prints it"),
        ("diagnose --calibration", "write one of --calibration-bins, --calibration-box-bins"),
        ("eval --truth", "paths have no option: write `detmap eval TRUTH DETECTIONS`"),
        ("eval --ci 1000", "--ci has one method: write it alone"),
        ("eval --percent 1", "--percent has no value"),
        ("eval --classes star circle", "write values with commas: --classes star,circle"),
        ("reproduce --value", "write `detmap reproduce NUMBER TRUTH DETECTIONS`"),
        ("reproduce", "write `detmap reproduce NUMBER TRUTH DETECTIONS`"),
        ("eval --fail-under mAP=60", "write the fraction: mAP=0.6"),
        ("eval --seed -1", "'-1' is not a whole number of at least 0"),
    ],
)
def test_what_is_printed_or_lacking_is_said(words: str, said: str) -> None:
    command, *options = words.split()
    outcome = run(command, TRUTH, A, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_the_number_of_reproduce_is_first() -> None:
    outcome = run("reproduce", TRUTH, A, "60.5")
    assert (outcome.code, outcome.out) == (2, "")
    assert "`detmap reproduce 72.1 TRUTH DETECTIONS`" in outcome.err


def test_a_wrong_path_names_one_beside_it(tmp_path: Path) -> None:
    for wrong, near in ((TRUTH.with_suffix(".jsn"), TRUTH), (TRUTH.parent / "instances", TRUTH)):
        outcome = run("eval", wrong, A)
        assert (outcome.code, outcome.out) == (2, "")
        assert f"did you mean {near}?" in outcome.err
    outcome = run("eval", tmp_path / "nothing here", A)
    assert outcome.err.splitlines()[1] == "  fix: check the path"


def test_detections_are_converted_with_their_ground_truth(tmp_path: Path) -> None:
    outcome = run("convert", A, tmp_path / "a.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert "detections need their ground truth: --truth TRUTH" in outcome.err
    assert run("convert", A, tmp_path / "a.csv", "--truth", TRUTH).code == 0
    assert run("eval", TRUTH, tmp_path / "a.csv").out


def test_a_conversion_to_yolo_is_read_as_it_is(tmp_path: Path) -> None:
    truth, found = tmp_path / "truth", tmp_path / "found"
    assert run("convert", TRUTH, truth, "--to", "yolo").code == 0
    assert run("convert", A, found, "--to", "yolo", "--truth", TRUTH).code == 0
    outcome = run("eval", truth, found)
    sizes = truth / "sizes.csv"
    assert outcome.code == 0
    assert outcome.out == run("eval", truth, found, "--image-sizes", sizes).out
    (truth / "images").mkdir()  # then the sizes are those of the images
    assert run("eval", truth, found).code == 2


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_the_output_of_a_conversion_is_a_path(option: str, tmp_path: Path) -> None:
    outcome = run("convert", TRUTH, option, tmp_path / "gt.csv")
    assert outcome.code == 2
    assert "detmap convert SRC DST" in outcome.err
    assert run("convert", TRUTH, tmp_path / "gt.csv").code == 0


def test_a_path_too_many_names_the_comparison() -> None:
    outcome = run("eval", TRUTH, A, B)
    assert (outcome.code, outcome.out) == (2, "")
    assert "`detmap compare TRUTH A B`" in outcome.err
    assert run("compare", TRUTH, A, B).code == 0


def test_a_folder_of_parts_says_how_to_join_them(tmp_path: Path) -> None:
    rows = json.loads(Path(A).read_text())
    for i in range(3):
        make.write(tmp_path / "p" / f"{i}.json", rows[i::3])
    error = run("eval", TRUTH, tmp_path / "p").err
    assert f"give one of {tmp_path}/p/0.json, " in error
    command = error.partition("if each holds a part, join them: ")[2].strip()
    assert command == f"jq -s add {tmp_path}/p/*.json > all.json"
    if shutil.which("jq"):
        subprocess.run(command, shell=True, check=True, cwd=tmp_path)
        wanted = detmap.evaluate(TRUTH, A)["AP"]
        assert detmap.evaluate(TRUTH, tmp_path / "all.json")["AP"] == wanted
    make.write(tmp_path / "p" / "gt.json", make.instances())
    assert "jq" not in run("eval", TRUTH, tmp_path / "p").err


def test_one_class_file_of_voc_leads_to_its_folder() -> None:
    source = make.SHAPES / "detections" / "contours"
    file = next(source.glob("comp4_det_*.txt"))
    error = run("eval", make.SHAPES, file).err
    assert "; for VOC, give the folder that holds the class files" in error
    assert run("eval", make.SHAPES, file.parent).code == 0


def test_a_score_threshold_says_that_the_metrics_use_all_detections() -> None:
    lines = run("eval", TRUTH, A, "--confidence", ".5").out.splitlines()
    assert "score threshold 0.5 (the metrics use all detections)" in lines
    assert {*run("eval", TRUTH, A).out.splitlines()} <= {*lines}


@pytest.mark.parametrize(
    "option", ["--gt", "--ann", "--preds", "--ground-truth", "--annFile", "--resFile"]
)
def test_paths_have_no_option(option: str) -> None:
    outcome = run("eval", option, TRUTH)
    assert outcome.code == 2
    assert "detmap eval TRUTH DETECTIONS" in outcome.err


def test_words_of_the_table_lead_to_commands_options_and_protocols() -> None:
    commands = {right.partition(" ")[0] for right in words("command")}
    assert commands <= {*dispatch.COMMANDS, "COMMAND", "--version"}
    assert {*words("protocol")} <= {*protocol.names(), *protocol.tools()}
    every = "".join(
        run(name, "--help").out for name in ("eval", "compare", "report", "convert", "reproduce")
    )
    every += "detmap"
    assert all(right.partition(" ")[0] in every for right in words("option"))
    for kind in ("command", "option", "protocol", "choice", "python", "result"):
        for right, text in words(kind).items():
            for word in text.split():
                assert right in suggestions(kind, word, words(kind)), (kind, word)


@pytest.mark.parametrize(("name", "newest"), protocol.NEWEST.items())
def test_a_family_is_its_newest_version_and_says_so(name: str, newest: str) -> None:
    outcome = run("eval", TRUTH, A, "-p", name)
    assert outcome.code == 0
    assert outcome.out == run("eval", TRUTH, A, "-p", newest).out
    assert f"{name} is evaluated as {newest}" in outcome.err
    assert detmap.load_protocol(name).name == newest
    shipped = [*protocol.names(), *protocol.tools()]
    versions = [each for each in shipped if re.fullmatch(rf"{name}-?[\d.]+", each)]
    assert newest == max(versions, default=newest)


def test_a_family_among_tools_is_its_newest_version() -> None:
    for only in ("ultralytics", ["ultralytics"]):
        assert detmap.tools(TRUTH, A, only=only).rows[1][0] == "ultralytics-8.4"
    outcome = run("tools", TRUTH, A, "--only", "ultralitics")
    assert (outcome.code, advice(outcome.err)) == (2, "ultralytics")


@pytest.mark.parametrize("name", ["detectron2", "mmdet", "yolov8", "detr", "coc", "voc-2007"])
def test_a_wrong_protocol_names_one_that_works(name: str) -> None:
    outcome = run("eval", TRUTH, A, "-p", name)
    assert outcome.code == 2
    assert run("eval", TRUTH, A, "-p", advice(outcome.err)).code == 0
    assert "obb" not in outcome.err


@pytest.mark.parametrize("name", ["ultralytics-8.0", "Ultralytics-8.1", "ultralytics-8.2.103"])
def test_versions_of_ultralytics_lead_to_those_with_their_rules(name: str) -> None:
    error = run("eval", TRUTH, A, "-p", name).err
    assert (advice(error), "8.0 to 8.2 have the AP of 8.3" in error) == ("ultralytics-8.3", True)
    assert "'ultralytics-8.4' or 'ultralytics-8.3'" in run("eval", TRUTH, A, "-p", "yolov8").err
    for version in ("8.1", "8.3"):
        outcome = run("diagnose", TRUTH, A, "--confusion-rule", f"ultralytics-{version}")
        assert (outcome.code, advice(outcome.err)) == (2, "ultralytics-8.0")


def test_wrong_metrics_and_classes_in_options() -> None:
    for given, right in (
        ("mAP50=.1", "AP50=.1"),
        ("AP/cirle=.1", "AP/circle=.1"),
        ("AP/Star=.1", "AP/star=.1"),
        ("AR=.1", "AR100=.1"),
    ):
        outcome = run("eval", TRUTH, A, "--fail-under", given)
        assert outcome.code == 2
        assert advice(outcome.err) in right
        assert run("eval", TRUTH, A, "--fail-under", right).code == 0
    outcome = run("eval", TRUTH, A, "--classes", "cirle")
    assert advice(outcome.err) == "circle"
    assert run("eval", TRUTH, A, "--classes", "circle").code == 0


@pytest.mark.parametrize("name", words("imports"))
def test_a_name_of_another_module_is_named(name: str) -> None:
    if name in ("evaluate_suite",):
        exec(f"from {words('imports')[name]} import {name}")
    with pytest.raises(AttributeError, match=f"from {words('imports')[name]} import {name}"):
        getattr(detmap, name)


@pytest.mark.parametrize("suffix", [".xlsx", ".html", ".log"])
def test_suffixes_that_are_not_written_are_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"old{suffix}").write_text("kept")
    assert run("eval", TRUTH, A, "-o", tmp_path / f"old{suffix}").code == 2
    assert (tmp_path / f"old{suffix}").read_text() == "kept"
    outcome = run("eval", TRUTH, A, "-o", tmp_path / f"t{suffix}")
    assert outcome.code == 2
    assert ".json, .csv, .md" in outcome.err
    assert [path.stem for path in tmp_path.iterdir()] == ["old"]
    assert run("eval", TRUTH, A, "-o", tmp_path / f"t{suffix}", "--format", "table").code == 0


def test_best_f1_ends_with_the_threshold() -> None:
    outcome = run("eval", TRUTH, A, "--best-f1")
    line = outcome.out.splitlines()[-1]
    assert line.startswith("use a confidence threshold of ")
    point = detmap.evaluate(TRUTH, A).at(float(line.split()[-1])).micro
    assert point["f1"] == detmap.evaluate(TRUTH, A).best_f1().micro["f1"]


@pytest.mark.slow
def test_compare_begins_with_the_verdict(tmp_path: Path) -> None:
    outcome = run("compare", TRUTH, A, B)
    first, header, row = outcome.out.splitlines()[:3]
    comparison = detmap.compare(TRUTH, A, B)
    pair = comparison.pairs[0]
    assert f"{100 * pair.difference:+.1f} AP" in first or f"{-100 * pair.difference:+.1f}" in first
    assert header.split()[:3] == ["metric", "contours", "template"]
    assert row.split()[:3] == ["AP", *(f"{each:.4f}" for each in comparison.values["AP"])]
    assert outcome.out.count("p-value") + outcome.err.count("p-value") == 1  # 60 images
    same = run("compare", TRUTH, A, A).out.splitlines()[0]
    assert same.startswith("No difference: AP is")
    three = run("compare", TRUTH, A, B, A, "--names", "a,b,c").out
    assert "metric" in three.splitlines()[1]
    assert "leaderboard" in three
    latex = run("compare", TRUTH, A, B, "--format", "latex").out
    assert "\\textbf{" in latex
    assert "AP50" in latex
    markdown = run("compare", TRUTH, A, B, "--format", "markdown").out
    assert "| detector | AP | AP50 |" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    wanted = [*("| contours", "| template", "| template - contours")]
    assert [row.split(" | ")[0] for row in rows[1:]] == wanted
    own = comparison.intervals["AP"][0]
    assert f"{own.value:.3f} ({own.low:.3f} to {own.high:.3f})" in rows[1]
    assert f"({pair.low:+.3f} to {pair.high:+.3f})" in rows[3]
    assert "**" in markdown
    pairs = run("compare", TRUTH, A, B, "--table", "pairs").out
    assert "adjusted p" in pairs
    content = json.loads(run("compare", TRUTH, A, B, "--format", "json").out)
    assert content["verdict"] == first
    pytest.importorskip("matplotlib")
    plotted = run("compare", TRUTH, A, B, "--plot", tmp_path / "pr.png")
    assert plotted.out == outcome.out
    assert (tmp_path / "pr.png").stat().st_size > 5000


@pytest.mark.slow
def test_gates_are_fractions() -> None:
    better, worse = (
        (A, B) if detmap.evaluate(TRUTH, A)["AP"] > detmap.evaluate(TRUTH, B)["AP"] else (B, A)
    )
    files = (TRUTH, better, worse)
    assert run("compare", *files, "--fail-if-drop", ".9").code == 0
    assert run("compare", *files, "--fail-if-drop", "AP50=.9").code == 0
    assert run("compare", *files, "--fail-if-drop", "0").code in (0, 1)
    outcome = run("compare", *files, "--fail-if-drop", "AP50=2.5")
    assert outcome.code == 2
    assert "2.5 points are AP50=0.025" in outcome.err
    for kind in ("--fail-if-drop", "--require-within"):  # 1 would allow every drop
        outcome = run("compare", TRUTH, A, B, kind, "1")
        assert outcome.code == 2
        assert "1 point is 0.01" in outcome.err
    assert run("compare", TRUTH, A, B, "--fail-if-drop", "0.01").code == 1
    for wrong in ("nan", "-1", "x", "", "AP="):
        assert run("compare", *files, f"--fail-if-drop={wrong}").code == 2


def test_a_gate_that_fails_shows_digits_that_differ() -> None:
    outcome = run("eval", TRUTH, A, "--fail-under", "AP=.4478")
    assert outcome.code == 1
    assert "FAIL: AP 0.4477780444842106 is below 0.4478" in outcome.err


def test_detectors_are_named_by_what_tells_them_apart(tmp_path: Path) -> None:
    for name, source in (("run1", A), ("run2", B)):
        make.write(tmp_path / name / "predictions.json", source.read_text())
    paths = [tmp_path / name / "predictions.json" for name in ("run1", "run2")]
    assert "run1" in run("compare", TRUTH, *paths).out.splitlines()[1]


@pytest.mark.slow
def test_piped_output_has_at_most_120_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    words = ("explain", TRUTH, A, "--to", "ultralytics-8.4")
    lines = run(*words).out.splitlines()
    assert max(map(len, lines)) <= 120
    monkeypatch.setenv("COLUMNS", "200")
    assert max(map(len, run(*words).out.splitlines())) > 120


@pytest.mark.slow
def test_explain_compares_one_metric() -> None:
    outcome = run("explain", TRUTH, A, "--to", "ultralytics-8.4", "--metric", "mAP50")
    assert outcome.code == 0
    assert not [line for line in outcome.out.splitlines() if line.split()[:1] == ["metric"]]
    found = detmap.explain(TRUTH, A, "coco-bbox", "ultralytics-8.4", metric="AP50")
    assert found.before == detmap.evaluate(TRUTH, A)["AP50"]
    assert found.after == detmap.evaluate(TRUTH, A, "ultralytics-8.4")["mAP50"]
    assert found.total == sum(step.change for step in found.steps)
    with pytest.raises(detmap.DataError, match="is not an AP"):
        detmap.explain(TRUTH, A, "coco-bbox", "voc2012", metric="AR100")


@pytest.mark.slow
def test_verify_and_cite(tmp_path: Path) -> None:
    receipt = tmp_path / "run.json"
    assert run("eval", TRUTH, A, "--receipt", receipt).code == 0
    ap = f"AP {100 * detmap.evaluate(TRUTH, A)['AP']:.2f} on 60 images"
    sentence = f"verified: {ap}, recomputed from the files, identical"
    assert sentence in run("verify", receipt, "--truth", TRUTH, "--detections", A).out
    assert sentence in run("verify", receipt, TRUTH, A).out
    assert detmap.verify(receipt, TRUTH, A).sentence == sentence
    other = run("verify", receipt, TRUTH, B)
    assert other.code == 1
    assert f"AP {100 * detmap.evaluate(TRUTH, A)['AP']:.2f} is now" in other.out
    assert not detmap.verify(receipt, TRUTH, B)
    assert "is given twice" in run("verify", receipt, TRUTH, A, "--truth", TRUTH).err
    cited = run("cite", receipt, TRUTH, A).out
    assert "year    = {2026}" in cited
    assert "url     = {https://" in cited


@pytest.mark.parametrize(("given", "level"), [("0.95", "0.95"), ("95", "0.95"), ("90%", "0.9")])
def test_a_level_is_no_method_of_intervals(given: str, level: str) -> None:
    outcome = run("eval", TRUTH, A, "--ci", given)
    assert outcome.code == 2
    assert f"write --ci --level {level}" in outcome.err
    assert run("eval", TRUTH, A, "--ci", "--level", level).code == 0


@pytest.mark.parametrize("name", ["coco2017", "coco-2017"])
def test_a_year_of_coco_is_its_protocol(name: str) -> None:
    assert advice(run("eval", TRUTH, A, "-p", name).err) == "coco-bbox"


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [("--format", "tex", "latex"), ("--format", "md", "markdown"), ("--table", "class", "classes")],
)
def test_a_wrong_value_names_the_right_one(option: str, value: str, right: str) -> None:
    outcome = run("eval", TRUTH, A, option, value)
    assert (outcome.code, outcome.out) == (2, "")
    assert advice(outcome.err) == right
    assert len(outcome.err.splitlines()) == 2
    assert run("eval", TRUTH, A, option, right).code == 0


def test_the_confusion_matrix_is_a_table() -> None:
    outcome = run("diagnose", TRUTH, A, "--table", "confusion", "--format", "csv")
    matrix = detmap.evaluate(TRUTH, A).confusion_matrix()
    header, *rows = outcome.out.splitlines()
    assert header == ",".join(("true class", *matrix.classes, "background"))
    assert [row.split(",")[1:] for row in rows] == [list(map(str, row)) for row in matrix.array]


def test_parts_of_evaluators_without_image_ids_are_merged(tmp_path: Path) -> None:
    truth = [{"boxes": [[5 * k, 0, 5 * k + 9, 9]], "labels": [0]} for k in range(6)]
    found = [{**each, "scores": [0.9 - 0.1 * k]} for k, each in enumerate(truth)]
    found[3] = {**found[3], "boxes": [[300, 0, 309, 9]]}
    whole = detmap.Evaluator(classes=["a"])
    whole.update(found, truth)
    parts = [detmap.Evaluator(classes=["a"]) for _ in range(2)]
    for part, rows in zip(parts, (slice(0, 2), slice(2, 6)), strict=True):
        part.update(found[rows], truth[rows])
        part.save(tmp_path / f"{rows.start}.npz")
    outcome = run("merge", tmp_path / "0.npz", tmp_path / "2.npz", "--format", "json")
    assert json.loads(outcome.out)["metrics"]["AP"] == whole.compute()["AP"]
    again = detmap.Evaluator.load(tmp_path / "0.npz")
    again.merge(detmap.Evaluator.load(tmp_path / "2.npz"))
    assert again.compute()["AP"] == whole.compute()["AP"]


def test_class_numbers_have_no_meaning_beside_names(tmp_path: Path) -> None:
    """The ids of COCO results were places in the alphabet of an export's names."""
    shapes = [
        {"label": name, "points": [[k, 0], [k + 9, 9]], "shape_type": "rectangle"}
        for k, name in ((0, "dog"), (50, "cat"))
    ]
    page = {"shapes": shapes, "imagePath": "1.jpg", "imageHeight": 90, "imageWidth": 90}
    make.write(tmp_path / "gt" / "1.json", page)
    rows = [
        {"image_id": 1, "category_id": k, "bbox": [x, 0, 9, 9], "score": 0.5}
        for k, x in ((1, 0), (2, 50))
    ]
    found = make.write(tmp_path / "found.json", rows)
    outcome = run("eval", tmp_path / "gt", found, "-p", "coco-bbox")
    assert outcome.code == 2
    assert "names alone" in outcome.err
    names = make.write(tmp_path / "names.json", {"1": "dog", "2": "cat"})
    outcome = run("eval", tmp_path / "gt", found, "-p", "coco-bbox", "--class-names", names)
    assert "AP      0.50:0.95  all          100  1.0000" in outcome.out
