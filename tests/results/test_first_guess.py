"""The first guess works: a result is a mapping, a table, a plot and a file."""

import contextlib
import copy
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, DetmapError
from detmap.core.base.suggestions import FUNCTIONS, metric_key, suggestions, words
from detmap.core.output import SUFFIXES
from detmap.core.output.formats import text
from detmap.core.output.table import Table
from tests.support import builders as make

TRUTH = make.SHAPES / "instances_test.json"
A, B = (make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template"))


@pytest.fixture(scope="module")
def result() -> detmap.Result:
    return detmap.evaluate(TRUTH, A)


def test_a_result_is_a_mapping(result: detmap.Result) -> None:
    assert dict(result) == dict(result.items()) == result.metrics
    assert result["AP"] == result.AP == result.get("AP") == result.metrics["AP"]
    assert "AP50" in result
    assert "mAP50" not in result
    assert [*result] == [*result.keys()] == list(result.metrics)
    assert result.get("nothing") is None
    assert [*result.values()] == [*result.metrics.values()]


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("mAP50", "AP50"),
        ("map_50", "AP50"),
        ("mAP@0.5", "AP50"),
        ("mAP50-95", "AP"),
        ("mAP@0.5:0.95", "AP"),
        ("mAP", "AP"),
        ("AP_small", "APs"),
        ("mar_100", "AR100"),
        ("AP0.75", "AP75"),
        ("AP5", "AP50"),
    ],
)
def test_a_wrong_metric_names_the_right_one(result: detmap.Result, name: str, right: str) -> None:
    for values in (result, result.metrics, result.per_class[0]):
        if right in values:
            with pytest.raises(KeyError, match=rf"did you mean '{right}'\?"):
                values[name]
            assert right in values  # the advice works
    assert suggestions("metric", name, result) == [right]


def test_spellings_of_a_metric_are_one() -> None:
    assert len({metric_key(name) for name in ("AP50", "mAP50", "map_50", "AP@.5", "mAP@0.5")}) == 1
    assert metric_key("AP75") != metric_key("AP50") != metric_key("AR50")


@pytest.mark.parametrize("name", ["summarize", "stats", "to_pandas", "map50", "best_threshold"])
def test_a_wrong_attribute_names_the_right_one(result: detmap.Result, name: str) -> None:
    with pytest.raises(AttributeError, match="did you mean") as refused:
        getattr(result, name)
    advice = str(refused.value).rpartition("did you mean ")[2].rstrip("?")
    assert eval(advice if "[" in advice else f"result.{advice}", {"result": result}) is not None
    assert not hasattr(result, "_nothing")


def test_every_word_of_the_table_leads_to_a_name(result: detmap.Result) -> None:
    for right in words("result"):
        assert hasattr(detmap.Result, right)
    for right in words("python"):
        assert hasattr(detmap, right)


def test_results_are_pickled_and_copied(result: detmap.Result) -> None:
    assert pickle.loads(pickle.dumps(result))["AP"] == copy.deepcopy(result)["AP"] == result["AP"]


def test_classes_by_name_and_place(result: detmap.Result) -> None:
    assert result.per_class["circle"] is result.per_class[0]
    assert [row["name"] for row in result.per_class[1:3]] == ["ellipse", "pentagon"]
    assert "circle" in result.per_class
    assert "cirle" not in result.per_class
    assert result.per_class[0] in result.per_class
    with pytest.raises(KeyError, match="did you mean 'circle'"):
        result.per_class["cirle"]
    with pytest.raises(IndexError):
        result.per_class[99]
    assert json.dumps(result.per_class)
    pytest.importorskip("pandas")
    assert result.per_class.to_frame().loc["circle", "AP"] == result.per_class["circle"]["AP"]


def test_two_classes_of_one_name() -> None:
    truth = detmap.truth_from_arrays(
        [1, 1], [1, 2], [[0, 0, 9, 9]] * 2, categories={1: "a", 2: "a"}
    )
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(KeyError, match="ids 1, 2"):
        detmap.evaluate(truth, found).per_class["a"]


def test_a_result_as_text_and_file(result: detmap.Result, tmp_path: Path) -> None:
    assert result.summary() == str(result)
    assert json.loads(result.to_json()) == result.to_dict()
    for suffix in filter(None, SUFFIXES):
        file = tmp_path / f"r{suffix}"
        result.save(file, per_class=True)
        assert "circle" in file.read_text()
    assert (tmp_path / "r.md").read_text() == result.to_markdown(per_class=True)
    assert (tmp_path / "r.tex").read_text() == result.to_latex(per_class=True)
    assert "60.60" in result.to_latex(percent=True)
    for wrong in ("r.xlsx", "r.html", "r.docx"):
        with pytest.raises(detmap.DetmapError, match=r"\.json, \.csv, \.md"):
            result.save(tmp_path / wrong)
        assert not (tmp_path / wrong).exists()
    with pytest.raises(detmap.DetmapError, match="give a string or a Path"):
        result.save(5)  # type: ignore[arg-type]


def test_operating_points_by_short_names(result: detmap.Result) -> None:
    assert result.best_f1().micro == result.best_f_beta().micro
    assert result.at(confidence=0.5).micro == result.operating_point(0.5).micro


@pytest.mark.slow
def test_plots_are_figures(result: detmap.Result, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = result.plot()
    assert [axes.get_xlabel() for axes in figure.axes] == ["recall"] * 3 + ["confidence"]
    ap = result.per_class["circle"]["AP50"]
    names = [each.get_text() for each in figure.axes[0].get_legend().get_texts()]
    assert f"circle (AP {ap:.3f})" in names
    assert f"mean (AP {result['AP50']:.3f})" in names
    assert len(result.plot(panels=["f1", "iou"]).axes) == 2
    own = Figure()
    axes = own.subplots()
    assert result.plot(ax=axes, panels="f1") is own
    assert axes.get_ylabel() == "F1"
    with pytest.raises(detmap.DataError, match="did you mean 'classes'"):
        result.plot(panels="clases")
    with pytest.raises(detmap.DataError, match="one for ax="):
        result.plot(ax=axes, panels=["f1", "iou"])
    other = detmap.evaluate(TRUTH, B)
    both = detmap.plot({"base": result, "new": other}, tmp_path / "both.png")
    names = [each.get_text() for each in both.axes[0].get_legend().get_texts()]
    assert names == [f"base (AP {result['AP50']:.3f})", f"new (AP {other['AP50']:.3f})"]
    assert (tmp_path / "both.png").stat().st_size > 5000
    with pytest.raises(detmap.DataError, match="not a Result"):
        detmap.plot({"base": 5})
    pyplot = pytest.importorskip("matplotlib.pyplot")
    shown = result.plot(panels="f1")
    assert pyplot.fignum_exists(shown.number)
    pyplot.close(shown)
    sys.modules.pop("matplotlib.pyplot")


@pytest.mark.slow
def test_the_confusion_matrix(result: detmap.Result, tmp_path: Path) -> None:
    matrix = result.confusion_matrix()
    names = [*matrix.classes, "background"]
    assert matrix.array.shape == (len(names),) * 2
    assert matrix.array.sum() > 0
    assert matrix.confidence == result.best_f1().micro["threshold"]
    assert result.confusion_matrix(confidence=0.99).array[:-1].sum() == matrix.array[:-1].sum()
    assert "background" in str(matrix)
    pytest.importorskip("pandas")
    frame = matrix.to_frame()
    assert [*frame.columns] == [*frame.index] == names
    assert np.array_equal(frame.to_numpy(), matrix.array)
    pytest.importorskip("matplotlib")
    assert matrix.plot(tmp_path / "m.png", normalize=True).axes
    assert (tmp_path / "m.png").stat().st_size > 5000
    merged = detmap.summarize(result.matches)
    with pytest.raises(detmap.DetmapError, match=r"detmap\.evaluate"):
        merged.confusion_matrix()


def test_a_benchmark_result_is_a_mapping_too() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]])
    own = detmap.evaluate(truth, found, "scoreless")
    name = next(iter(own))
    assert own[name] == own.metrics[name]
    assert own.per_class[0]["name"] in own.per_class
    assert json.loads(own.to_json())["metrics"]
    with pytest.raises(KeyError, match="there is no"):
        own["mAP50"]


def test_tables_align_wide_characters() -> None:
    rows = (("猫", 0.5, "x"), ("dog", 0.25, "y"), ("😀", 0.1, "z"), ("e\u0301", 0.1, "z"))
    lines = text([Table("", ("class", "AP", "what"), rows)]).splitlines()
    before = {"猫": 14, "dog": 15, "😀": 14, "e": 16}  # characters before the last column
    for line in lines[1:]:
        assert line.rindex(" ") + 1 == next(n for each, n in before.items() if line[0] == each[0])


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("gt", "truth=..."),
        ("predictions", "detections=..."),
        ("iou_type", 'protocol="coco-bbox"'),
        ("iou_threshold", 'settings={"iou.thresholds": [0.5]}'),
        ("max_det", 'settings={"limits.max_dets": [1, 10, 100]}'),
        ("conf", "evaluate(...).at(confidence=0.5)"),
        ("per_class", "evaluate(...).per_class"),
        ("ci", "evaluate(...).intervals()"),
        ("metric", "evaluate(...).metrics"),
        ("setting", "settings=..."),
    ],
)
def test_a_wrong_keyword_names_the_right_one(name: str, advice: str) -> None:
    with pytest.raises(TypeError) as refused:
        detmap.evaluate(TRUTH, A, **{name: 0.5})  # type: ignore[call-arg]
    assert str(refused.value) == f"evaluate() has no argument {name!r}: write {advice}"
    begin, _, end = advice.partition("(...)")
    if end:
        assert eval(f"detmap.{begin}(TRUTH, A){end}")
    elif "..." not in advice:
        made = eval(f"detmap.evaluate(TRUTH, A, {advice})")
        base = detmap.evaluate(TRUTH, A)
        assert made["AP"] == base["AP50" if "iou.t" in advice else "AP"]


def test_other_functions_name_keywords_too(result: detmap.Result) -> None:
    calls = {
        "write confidence=...": lambda: result.at(conf=0.5),  # type: ignore[call-arg]
        "write confidence=... ": lambda: result.confusion_matrix(conf=0.5),
        "matrix(...).plot(normalize=True)": lambda: result.confusion_matrix(normalize=True),
        'write protocol="voc2007"': lambda: detmap.evaluate(TRUTH, A, use_07_metric=True),
        "write protocol=": lambda: detmap.Evaluator(iou_type="bbox"),  # type: ignore[call-arg]
        "the arguments are truth, ": lambda: detmap.compare(TRUTH, a=A, b=B),  # type: ignore
        "write threads=...": lambda: detmap.match(TRUTH, A, workers=2),  # type: ignore[call-arg]
        "write output=...": lambda: detmap.report(TRUTH, A, out="r.html"),
        "write start=...": lambda: detmap.explain(TRUTH, A, from_="coco-bbox"),  # type: ignore
        "write end=...": lambda: detmap.explain(TRUTH, A, to="voc2012"),  # type: ignore
        "write iou=...": lambda: detmap.diagnose(TRUTH, A, iou_thr=0.5),  # type: ignore
        "write source=...": lambda: detmap.inspect(path=TRUTH),
        "write names=...": lambda: detmap.compare(TRUTH, A, B, labels="ab"),  # type: ignore
        "write panels=...": lambda: result.plot(kind="pr"),  # type: ignore[call-arg]
        "write level=...": lambda: result.intervals(alpha=0.1),  # type: ignore[call-arg]
        "unknown, class_names": lambda: detmap.tools(TRUTH, A, metric="AP"),
    }
    for advice, call in calls.items():
        with pytest.raises(TypeError, match="has no argument") as refused:
            call()
        assert advice.strip() in str(refused.value)


def test_a_row_and_an_operating_point_have_attributes(result: detmap.Result) -> None:
    row = result.per_class["star"]
    assert row["AP"] == row.AP
    assert not hasattr(row, "mAP")
    assert pickle.loads(pickle.dumps(row)) == copy.deepcopy(row) == row
    assert result.per_class.names == [row["name"] for row in result.per_class]
    for point in (result.best_f1(), result.at(confidence=0.5)):
        for name in ("threshold", "precision", "recall", "f1"):
            assert getattr(point, name) == point.micro[name]
        assert str(point).splitlines()[1].split()[:2] == ["class", "threshold"]
        assert json.loads(point.to_json()) == point.to_dict()


@pytest.mark.slow
def test_a_panel_by_its_name_is_drawn_alone(result: detmap.Result) -> None:
    pytest.importorskip("matplotlib")
    assert [axes.get_ylabel() for axes in result.plot("f1").axes] == ["F1"]
    with pytest.raises(detmap.DetmapError, match="no suffix"):
        result.plot("confusion")


def test_functions_and_methods_name_each_other(result: detmap.Result) -> None:
    for name in FUNCTIONS:
        assert callable(getattr(detmap, name))
        with pytest.raises(AttributeError, match=rf"did you mean detmap.{name}\(\.\.\.\)\?"):
            getattr(result, name)
    for name, right in {
        "confusion_matrix": "confusion_matrix",
        "best_threshold": "best_f1",
    }.items():
        with pytest.raises(AttributeError, match=rf"detmap.evaluate\(...\).{right}"):
            getattr(detmap, name)
    with pytest.raises(KeyError, match=r"did you mean to_frame\(\)\['AP50'\]"):
        result.per_class["AP50"]
    assert result.per_class.to_frame()["AP50"]["star"] == result.per_class["star"]["AP50"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make_one", "names"),
    [
        (
            lambda: detmap.compare(TRUTH, A, B),
            {"AP50": 'comparison["AP50"]', "delta": '["AP"].difference', "winner": "better"},
        ),
        (lambda: detmap.compare(TRUTH, A, B)["AP"], {"pvalue": "p", "ci": "low or high"}),
        (lambda: detmap.diagnose(TRUTH, A), {"fp": "counts()", "cm": "confusion_matrix()"}),
        (lambda: detmap.evaluate(TRUTH, A).per_class, {"AP50": "to_frame()['AP50']"}),
        (lambda: detmap.evaluate(TRUTH, A).confusion_matrix(), {"labels": "classes"}),
        (detmap.Evaluator, {"result": "compute()", "add": "update"}),
        (lambda: detmap.read_truth(TRUTH), {"labels": "label", "image_ids": "images.ids"}),
        (lambda: detmap.evaluate(TRUTH, A), {"tide": "detmap.diagnose(...)", "f1_score": "at"}),
    ],
    ids=["comparison", "pair", "diagnosis", "rows", "confusion", "evaluator", "truth", "result"],
)
def test_an_attribute_of_others_names_the_right_one(
    make_one: Callable[[], object], names: dict[str, str]
) -> None:
    thing = make_one()
    for wrong, right in names.items():
        with pytest.raises(AttributeError) as caught:
            getattr(thing, wrong)
        assert "did you mean" in str(caught.value)
        assert right in str(caught.value)
    assert not hasattr(thing, "_private")
    assert copy.copy(thing) is not None


def test_the_attributes_that_are_proposed_exist() -> None:
    result, comparison = detmap.evaluate(TRUTH, A), detmap.compare(TRUTH, A, B)
    truth = detmap.read_truth(TRUTH)
    things = {
        "Result": result,
        "ClassRows": result.per_class,
        "Comparison": comparison,
        "Pair": comparison["AP"],
        "Diagnosis": detmap.diagnose(TRUTH, A),
        "Confusion": result.confusion_matrix(),
        "Evaluator": detmap.Evaluator("voc2007", classes=["a"]),
        "Truth": truth,
        "Detections": detmap.read_detections(A, truth),
    }
    known = {"detmap": detmap} | {name.lower(): thing for name, thing in things.items()}
    for name in words("attributes"):
        for right in words("attributes")[name]:
            whole = right.startswith(("detmap.", f"{name.lower()}["))
            code = right if whole else f"{name.lower()}.{right}"
            eval(code.replace("(...)", f"({str(TRUTH)!r}, {str(A)!r})"), known)


def test_detectors_are_compared_from_a_list() -> None:
    assert detmap.compare(TRUTH, [A, B]).names == detmap.compare(TRUTH, A, B).names
    with pytest.raises(detmap.DataError, match="two or more"):
        detmap.compare(TRUTH, [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])


def test_saved_metrics_need_no_detmap(result: detmap.Result) -> None:
    """A checkpoint with them is read with ``torch.load(weights_only=True)``."""
    content = pickle.dumps((result.metrics, list(result.per_class)), protocol=2)
    assert b"detmap" not in content
    assert pickle.loads(content) == (result.metrics, result.per_class)
    assert copy.copy(result.metrics)["AP"] == copy.deepcopy(result.metrics).AP == result["AP"]


def test_tables_are_saved_and_wrong_options_refused(result: detmap.Result, tmp_path: Path) -> None:
    comparison = detmap.compare(TRUTH, A, B)
    comparison.save(tmp_path / "c.csv")
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert lines[0].startswith("metric,contours,template,change,")
    assert [line.split(",")[0] for line in lines[1:]] == list(result)
    assert list(comparison.to_frame()["metric"]) == list(result)
    assert list(detmap.diagnose(TRUTH, A).to_frame()["error"])[:2] == ["Cls", "Loc"]
    for thing in (result, comparison):
        with pytest.raises(TypeError, match=r"save\(\) has no argument 'bogus': there are percent"):
            thing.save(tmp_path / "x.json", bogus=1)
    assert not (tmp_path / "x.json").exists()
    for write, name in ((result.to_json, "r.json"), (result.to_latex, "r.tex")):
        text = write(tmp_path / name)
        assert (tmp_path / name).read_text() == text
    with pytest.raises(DetmapError, match="create the folder first"):
        result.save(tmp_path / "none" / "r.json")


@pytest.mark.parametrize("name", ["images", "classes"])
def test_an_empty_selection_is_refused(name: str) -> None:
    options: dict[str, Any] = {name: []}
    with pytest.raises(DataError, match=f"{name}: is empty"):
        detmap.evaluate(TRUTH, A, **options)


def test_an_iou_threshold_of_the_confusion_matrix_is_a_fraction(result: detmap.Result) -> None:
    for iou in (50, -1, float("nan")):
        with pytest.raises(DataError, match="iou"):
            result.confusion_matrix(iou=iou)


def test_iterators_and_lazy_frames_are_read(result: detmap.Result) -> None:
    images = [{"boxes": [[0, 0, 9, 9]], "labels": [k]} for k in (1, 2, 1)]
    found = [{**image, "scores": [0.5]} for image in images]
    assert detmap.evaluate(iter(images), (each for each in found))["AP50"] > 0.99
    polars = pytest.importorskip("polars")
    columns = {"image": ["a", "b"], "class": ["x", "y"], "xmin": [0, 0], "ymin": [0, 0]}
    frame = polars.DataFrame({**columns, "xmax": [9, 9], "ymax": [9, 9]})
    scored = frame.with_columns(score=polars.lit(0.5))
    wanted = detmap.evaluate(frame, scored).metrics
    assert detmap.evaluate(frame.lazy(), scored.lazy()).metrics == wanted


def test_ids_of_detections_need_ids_of_the_ground_truth(tmp_path: Path) -> None:
    """Images without ids count from 0, and ids of files from 1: off by one."""
    truth = [{"boxes": [[5 * k, 0, 5 * k + 9, 9]], "labels": [1]} for k in range(3)]
    rows = [
        {"image_id": k, "category_id": 1, "bbox": [5 * k, 0, 9, 9], "score": 0.5} for k in range(3)
    ]
    assert detmap.evaluate(truth, rows)["AP50"] > 0.99
    moved = [{**row, "image_id": row["image_id"] + 1} for row in rows[:2]]
    path = make.write(tmp_path / "found.json", moved)
    columns = {key: [row[key] for row in moved] for key in ("image_id", "category_id", "score")}
    boxes = np.array([row["bbox"] for row in moved])
    table = columns | {key: boxes[:, i] for i, key in enumerate(("x", "y", "w", "h"))}
    as_images = [{**truth[0], "scores": [0.5], "image_id": 1}]
    for found in (moved, path, table, as_images):
        with pytest.raises(DataError, match="give each dict of the ground truth its image_id"):
            detmap.evaluate(truth, found)
    named = [{**each, "image_id": k + 1} for k, each in enumerate(truth)]
    assert detmap.evaluate(named, moved)["AR100"] > 0.6


def test_detectors_are_compared_from_lists_of_their_outputs(result: detmap.Result) -> None:
    truth = json.loads(TRUTH.read_text())
    found = [json.loads(each.read_text()) for each in (A, B)]
    plain = detmap.compare(TRUTH, A, B)
    assert detmap.compare(truth, found).values == plain.values
    assert detmap.compare([result, detmap.evaluate(TRUTH, B)]).values == plain.values


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(DataError, match="path: is an empty string"):
        detmap.evaluate(TRUTH, "")


def test_keywords_of_arrays(result: detmap.Result) -> None:
    with pytest.raises(TypeError, match="write category_id="):
        detmap.truth_from_arrays([1], labels=[1], boxes=[[0, 0, 9, 9]])
    truth = detmap.truth_from_arrays([1], category_id=[1], boxes=[[0, 0, 9, 9]])
    with pytest.raises(TypeError, match="write score="):
        detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], scores=[0.5])
    assert len(detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], score=[0.5])) == 1


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: detmap.evaluate(TRUTH, A, image_sizes="s.csv"), r"read_truth\(..., image_sizes"),
        (lambda: detmap.evaluate(TRUTH, A, split="val"), r"read_truth\(..., split"),
        (lambda: detmap.convert(TRUTH, "o.csv", detections=A), r"detections, output, truth="),
    ],
)
def test_arguments_of_reading_name_its_functions(call: Callable[[], object], advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        call()


def test_the_score_of_f_beta_has_its_own_name(result: detmap.Result) -> None:
    point = result.best_f_beta(2)
    precision, recall = point["precision"], point["recall"]
    assert point["f2"] == pytest.approx(5 * precision * recall / (4 * precision + recall))
    assert "F2" in str(point)
    assert "F1" not in str(point)
    with pytest.raises(KeyError, match="f1"):
        point.micro["f1"]
    point = result.at(0.5)
    assert point["f1"] == point.f1 == point.micro["f1"]
    assert point.per_class["circle"] is point.per_class[0]


def test_a_curve_has_names(result: detmap.Result) -> None:
    curve = result.curve("circle")
    assert curve.recall is curve[0]
    assert curve.precision is curve[1]
    assert curve.score is curve[2]


def test_a_text_without_suffix_is_no_file(
    result: detmap.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (result.to_latex, result.to_markdown, result.to_json, result.save):
        with pytest.raises(DetmapError, match="per_class=True adds the table of classes"):
            write("classes")
    with pytest.raises(TypeError, match=r"to_latex\(\) has no argument 'table'"):
        result.to_latex(table="classes")
    assert not any(tmp_path.iterdir())
    assert "circle" in result.to_latex(per_class=True)


def test_what_is_compared_is_named_by_its_protocol() -> None:
    for kind in ("bbox", "segm", "keypoints"):
        with pytest.raises(TypeError, match=f'write protocol="coco-{kind}"'):
            detmap.evaluate(TRUTH, A, iou_type=kind)
        assert detmap.load_protocol(f"coco-{kind}")


def test_exchanged_inputs_in_memory_are_noticed(result: detmap.Result) -> None:
    truth, found = json.loads(TRUTH.read_text()), json.loads(A.read_text())
    names = {each["id"]: each["name"] for each in truth["categories"]}

    def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
        boxes = np.array([row["bbox"] for row in rows])
        table = {"image": [f"{row['image_id']:06d}" for row in rows]}
        table["class"] = [names[row["category_id"]] for row in rows]
        table |= {key: boxes[:, i] for i, key in enumerate(("x", "y", "w", "h"))}
        scores = {"score": [row["score"] for row in rows]} if "score" in rows[0] else {}
        return table | scores

    tables = columns(truth["annotations"]), columns(found)
    assert detmap.evaluate(*tables, settings={"scope.unknown": "add"})["AP"] > 0.4
    with pytest.raises(DataError, match="the two may be exchanged"):
        detmap.evaluate(*tables[::-1])
    coco = pytest.importorskip("pycocotools.coco")
    with contextlib.redirect_stdout(None):
        annotated = coco.COCO(str(TRUTH))
        detected = annotated.loadRes(str(A))
    assert detmap.evaluate(annotated, detected).metrics == result.metrics
    with pytest.raises(DataError, match="the two may be exchanged"):
        detmap.evaluate(detected, annotated)


def test_numbers_of_classes_get_names(result: detmap.Result) -> None:
    truth = [{"boxes": [[0, 0, 9, 9]], "labels": [1]}]
    found = [{**truth[0], "scores": [0.5]}]
    with pytest.raises(DataError, match="class_names=") as caught:
        detmap.evaluate(truth, found, classes=["cat"])
    assert "--class-names FILE" in str(caught.value)
    named = detmap.evaluate(truth, found, classes=["cat"], class_names={1: "cat"})
    assert named.per_class["cat"]["AP50"] > 0.99
    with pytest.raises(DataError, match="read_slices"):
        result.slices("slices.csv")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("boxes-xyxy", lambda row: row | {"bbox": _corners(row["bbox"])}),
        ("classes-one-based", lambda row: row | {"category_id": row["category_id"] + 1}),
        ("images-shifted", lambda row: row | {"image_id": row["image_id"] + 1}),
    ],
)
def test_a_fix_of_the_doctor_is_an_argument(
    result: detmap.Result, tmp_path: Path, name: str, broken: Callable[[Any], Any]
) -> None:
    rows = [broken(row) for row in json.loads(A.read_text())]
    path = make.write(tmp_path / "found.json", rows)
    if name == "boxes-xyxy":
        assert f"--fix {name}" in str(detmap.evaluate(TRUTH, path).findings)
    else:  # the reader refuses the file, and the error says what to write
        with pytest.raises(DataError, match=f'fix="{name}"'):
            detmap.evaluate(TRUTH, path)
        with pytest.raises(DataError) as caught:  # the doctor would read all of it at once
            detmap.evaluate(TRUTH, path, memory="1GB")
        assert "fix=" not in str(caught.value)
    for given in (path, rows):
        for fix in (name, [name], f"--fix {name}"):
            fixed = detmap.evaluate(TRUTH, given, fix=fix)
            assert fixed["AP"] == result["AP"]
            assert fixed.fixes == (name,)
    with pytest.raises(DataError, match="no such fix"):
        detmap.evaluate(TRUTH, path, fix="nothing")


def _corners(box: list[float]) -> list[float]:
    x, y, w, h = box
    return [x, y, x + w, y + h]
