"""``detmap rank``: CSV and VOC classification in, tables, JSON and pictures out; what is
refused, with exit code 2."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from detmap import ranking
from detmap.core.base.resources import folder
from detmap.core.protocol import integrators
from tests.reference import ranking as naive
from tests.support.running import run

TRUTH = "image,cat,dog,bird\na,0,1,0\nb,1,1,0\nc,0,1,1\nd,1,1,0\n"
SCORES = "image,cat,dog,bird\na,.1,.8,.3\nb,.9,.7,.5\nc,.2,.1,.9\nd,.1,.8,.6\n"
SHAPES = folder("datasets") / "shapes"
CLASSES = ["circle", "ellipse", "pentagon", "square", "star", "triangle"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    truth, scores = tmp_path / "truth.csv", tmp_path / "scores.csv"
    truth.write_text(TRUTH)
    scores.write_text(SCORES)
    return truth, scores


def flags_of(name: str) -> dict[str, int]:
    lines = (SHAPES / "ImageSets" / "Main" / f"{name}_test.txt").read_text().splitlines()
    return {image: int(flag) for image, flag in map(str.split, lines)}


@pytest.fixture
def voc(tmp_path: Path) -> tuple[Path, Path]:
    """The bundled sample as a classification task: an image scores as its best detection of the
    class, to two digits."""
    root, results = tmp_path / "VOC2007", tmp_path / "results"
    shutil.copytree(SHAPES, root, ignore=shutil.ignore_patterns("JPEGImages", "detections"))
    results.mkdir()
    for name in CLASSES:
        best: dict[str, float] = {}
        for line in (
            (SHAPES / "detections" / "contours" / f"comp4_det_test_{name}.txt")
            .read_text()
            .splitlines()
        ):
            image, score = line.split()[:2]
            best[image] = max(best.get(image, 0.0), round(float(score), 2))
        (results / f"comp1_cls_test_{name}.txt").write_text(
            "".join(f"{image} {best[image]}\n" for image in best)
        )
    return root, results


def scores_of(results: Path, name: str, images: list[str]) -> list[float]:
    lines = (results / f"comp1_cls_test_{name}.txt").read_text().splitlines()
    given = {image: float(score) for image, score in map(str.split, lines)}
    return [given.get(image, -np.inf) for image in images]


# ---- CSV


def test_table_of_a_csv_pair(files: tuple[Path, Path]) -> None:
    done = run("rank", *files)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "plain: step AP, equal scores together"
    assert lines[2].split() == ["mAP", "macro", "0.9167"]
    header = "class positives samples AP AUC best F1 threshold"
    assert " ".join(lines[6].split()) == header
    assert lines[7].split() == ["cat", "2", "4", "0.7500", "0.6250", "0.6667", "0.9"]
    assert lines[8].split() == ["dog", "4", "4", "1.0000", "-", "1.0000", "0.1"]
    assert lines[10] == "4 samples, 3 classes, 7 positive labels"
    assert lines[11].startswith("rank:plain.1|default|proto:")
    assert done.err.splitlines() == [
        "note: 1 class has no negative sample: its AUC is left out of the mean: dog",
        "note: 4 scores are shared with another sample of their class: ranked together",
    ]


def test_json_of_a_csv_pair(files: tuple[Path, Path]) -> None:
    found = json.loads(
        run("rank", *files, "--format", "json", "--k", "3,1", "--threshold", "0.5").out
    )
    truth = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 0]])
    score = np.array([[0.1, 0.8, 0.3], [0.9, 0.7, 0.5], [0.2, 0.1, 0.9], [0.1, 0.8, 0.6]])
    wanted = pytest.approx(average_precision_score(truth, score), abs=1e-12)
    assert found["metrics"]["mAP"] == wanted
    expected = pytest.approx(roc_auc_score(truth[:, [0, 2]], score[:, [0, 2]]), abs=1e-12)
    assert found["metrics"]["AUC"] == expected
    names = "mAP AUC accuracy@0.5 precision@0.5 recall@0.5 F1@0.5 P@1 R@1 mAP@1 P@3 R@3 mAP@3"
    assert " ".join(found["metrics"]) == names
    assert found["metrics"]["P@1"] == 1
    assert found["metrics"]["mAP@3"] == ranking.mean_average_precision_at_k(truth, score, 3)
    assert found["per_class"][1] == {
        "name": "dog",
        "positives": 4,
        "samples": 4,
        "AP": 1.0,
        "AUC": None,
        "best_f1": 1.0,
        "best_f1_threshold": 0.1,
        "tp": 3,
        "fp": 0,
        "tn": 0,
        "fn": 1,
        "accuracy": 0.75,
        "precision": 1.0,
        "recall": 0.75,
        "f1": 6 / 7,
    }
    assert found["counts"] == {"samples": 4, "classes": 3, "positives": 7, "left_out": 0}
    assert found["protocol"]["changes"] == {}
    assert found["protocol"]["k"] == [1, 3]
    assert [note["code"] for note in found["notes"]] == ["class-without-negative", "score-tied"]
    assert {"detmap", "python", "numpy", "numba", "platform"} == set(found["environment"])


@pytest.mark.parametrize(
    "average, value",
    [("macro", 11 / 12), ("weighted", 13 / 14), ("micro", 37 / 42), ("samples", 11 / 12)],
)
def test_the_average_changes_the_number_and_the_signature(
    files: tuple[Path, Path], average: str, value: float
) -> None:
    found = json.loads(run("rank", *files, "--average", average, "--format", "json").out)
    wanted = pytest.approx(value, abs=1e-12)
    assert found["metrics"]["mAP" if average == "macro" else "AP"] == wanted
    assert found["protocol"]["changes"] == ({} if average == "macro" else {"average": average})


def test_no_average_leaves_the_classes(files: tuple[Path, Path]) -> None:
    found = json.loads(run("rank", *files, "--average", "none", "--format", "json").out)
    assert found["metrics"] == {}
    assert run("rank", *files, "--average", "none").out.startswith("classes\n")


def test_settings_are_in_the_signature(files: tuple[Path, Path]) -> None:
    done = run(
        "rank", *files, "--integrator", "all_points", "--ties", "input", "--undefined", "zero"
    )
    first = "plain: all-point AP, equal scores in the order of the ground truth\n"
    assert done.out.startswith(first)
    assert "rank:plain.1|ties=input;undefined=zero;integrator=all_points|proto:" in done.out
    assert "its AUC is counted as 0: dog" in done.err
    stock = run("rank", *files).out.splitlines()[-1].split("|")
    changed = done.out.splitlines()[-1].split("|")
    assert stock[2] != changed[2]
    assert stock[3:] == changed[3:]


def test_the_signature_knows_the_data(files: tuple[Path, Path]) -> None:
    def signature(truth: str, scores: str) -> list[str]:
        files[0].write_text(truth)
        files[1].write_text(scores)
        return run("rank", *files).out.splitlines()[-1].split("|")

    first = signature(TRUTH, SCORES)
    others = [
        signature(TRUTH, SCORES.replace(".3", ".31")),
        signature(TRUTH.replace("a,0", "a,1"), SCORES),
        signature(TRUTH.replace("cat", "cow"), SCORES.replace("cat", "cow")),
        signature(TRUTH.replace("\na", "\nz"), SCORES.replace("\na", "\nz")),
    ]
    assert all(other[:3] == first[:3] for other in others)
    assert len({first[3], *(other[3] for other in others)}) == 5
    assert signature(TRUTH, SCORES) == first


def test_classes_and_samples_join_by_name(files: tuple[Path, Path]) -> None:
    before = run("rank", *files, "--format", "json").out
    text = '\ufeffimage, bird ,"cat",dog\nd,.6,.1,.8\n\n"b",.5,.9,.7\nc,.9,.2,1e-1\na,.3,.1,.8\n'
    files[1].write_text(text, encoding="utf-8")
    assert run("rank", *files, "--format", "json").out == before


def test_the_fourth_worked_example(tmp_path: Path) -> None:
    labels, rows = (
        [2, 1, 0, 3, 0, 1],
        ["1,2,6,1", "8,.5,1,.5", "3,4,1,2", "6,2.5,1,.5", "1,2,6,1", "9,0,.3,.7"],
    )
    truth, scores = tmp_path / "truth.csv", tmp_path / "scores.csv"
    truth.write_text(
        "id,p,q,r,s\n"
        + "".join(
            f"{i}," + ",".join(str(int(c == k)) for c in range(4)) + "\n"
            for i, k in enumerate(labels)
        )
    )
    scores.write_text("id,p,q,r,s\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)))
    done = run("rank", truth, scores, "--integrator", "all_points", "--ties", "input", "--k", "3")
    assert "mAP     macro    0.4583" in done.out
    assert "mAP@3   queries  0.3611" in done.out


def test_counts_at_a_threshold(files: tuple[Path, Path]) -> None:
    lines = run("rank", *files, "--threshold", "0.5").out.splitlines()
    begin = lines.index("predicted positive from score 0.5")
    header, bird = (" ".join(lines[begin + k].split()) for k in (1, 4))
    assert header == "class TP FP TN FN accuracy precision recall F1"
    assert bird == "bird 1 2 1 0 0.5000 0.3333 1.0000 0.5000"
    assert ["precision@0.5", "macro", "0.7778"] in [line.split() for line in lines[:begin]]
    assert lines[-1].startswith("rank:")


def test_every_output_format_holds_the_numbers(files: tuple[Path, Path], tmp_path: Path) -> None:
    text = run("rank", *files, "--format", "markdown").out
    assert "| cat | 2 | 4 | 0.7500 | 0.6250 | 0.6667 | 0.9 |" in text
    assert "cat,2,4,0.75,0.625,0.6666666666666666,0.9" in run("rank", *files, "--format", "csv").out
    assert "mAP     macro    91.67" in run("rank", *files, "--percent").out
    assert run("rank", *files, "-o", tmp_path / "out.txt").out == ""
    assert (tmp_path / "out.txt").read_text() == run("rank", *files).out
    assert run("rank", *files, "--threads", "1").out == run("rank", *files, "--threads", "3").out
    table = ranking.read(*files)
    assert str(ranking.evaluate(table)).startswith(run("rank", *files).out)
    same = ranking.from_arrays(table.positive, table.score, classes=table.classes, ids=table.ids)
    assert str(ranking.evaluate(same)) == str(ranking.evaluate(table))


def test_undefined_classes_are_named(files: tuple[Path, Path]) -> None:
    files[0].write_text(TRUTH.replace("c,0,1,1", "c,0,1,0"))
    files[1].write_text(
        "image,cat,dog,bird\na,.1,-inf,.3\nb,.9,-inf,.5\nc,.2,-inf,.9\nd,.1,-inf,.6\n"
    )
    done = run("rank", *files, "--average", "samples")
    assert "1 class has no positive sample and is left out of the mean: bird" in done.err
    assert "1 class has no prediction and is left out of the mean: dog" in done.err
    assert done.out.splitlines()[8].split() == ["dog", "4", "4", "-", "-", "-", "-"]
    files[0].write_text(TRUTH.replace("b,1,1,0", "b,0,0,0"))
    text = run("rank", *files, "--k", "1").err
    assert "1 sample shows no class: its recall and AP are left out" in text


# ---- VOC


@pytest.mark.parametrize("protocol", ["voc2007", "voc2012"])
def test_voc_is_the_devkit(voc: tuple[Path, Path], protocol: str) -> None:
    found = json.loads(run("rank", *voc, "-p", protocol, "--format", "json").out)
    integrate: Callable[..., float] = (
        integrators.eleven_point if protocol == "voc2007" else integrators.all_points
    )
    expected = []
    for name in CLASSES:
        flags = flags_of(name)
        recall, precision = naive.voc_curve(
            list(flags.values()), scores_of(voc[1], name, list(flags))
        )
        expected.append(integrate(recall, np.nan_to_num(precision)))
    assert [row["AP"] for row in found["per_class"]] == pytest.approx(expected, abs=1e-12)
    assert found["metrics"]["mAP"] == pytest.approx(np.mean(expected), abs=1e-12)
    wanted = [list(flags_of(name).values()).count(1) for name in CLASSES]
    assert [row["positives"] for row in found["per_class"]] == wanted
    notes = {note["code"]: note["count"] for note in found["notes"]}
    assert notes["difficult"] == found["counts"]["left_out"] == 13
    assert notes["without-score"] > 0
    assert notes["score-tied"] > 0


def test_voc_protocol_by_the_year(voc: tuple[Path, Path]) -> None:
    assert run("rank", *voc).out.startswith(
        "voc2007: 11-point AP, equal scores in the order of the ground truth\n"
    )
    # the folder above holds one year
    assert run("rank", voc[0].parent, voc[1]).out == run("rank", *voc).out
    later = voc[0].rename(voc[0].parent / "mine")
    assert run("rank", later, voc[1]).out.startswith("voc2012: all-point AP")


def test_voc_truth_from_xml_is_that_of_the_lists(voc: tuple[Path, Path]) -> None:
    def outcome() -> str:
        return run(
            "rank", *voc, "--format", "json", "--average", "micro", "--k", "2", "--threshold", ".4"
        ).out

    before = outcome()
    main = voc[0] / "ImageSets" / "Main"
    (main / "circle_test.txt").unlink()
    assert outcome() == before
    for name in CLASSES[1:]:
        (main / f"{name}_test.txt").unlink()
    assert outcome() == before


def test_voc_lists_need_no_xml(voc: tuple[Path, Path]) -> None:
    before = run("rank", *voc, "--average", "samples").out
    shutil.rmtree(voc[0] / "Annotations")
    lines = (voc[0] / "ImageSets" / "Main" / "star_test.txt").read_text().splitlines(keepends=True)
    (voc[0] / "ImageSets" / "Main" / "star_test.txt").write_text("".join(reversed(lines)))
    (voc[0] / "ImageSets" / "Main" / "test.txt").unlink()
    assert run("rank", *voc, "--average", "samples").out == before


def test_a_voc_split_can_be_chosen(voc: tuple[Path, Path]) -> None:
    for file in [*(voc[0] / "ImageSets" / "Main").iterdir(), *voc[1].iterdir()]:
        file.rename(file.parent / file.name.replace("test", "val"))
    assert run("rank", *voc).out == run("rank", *voc, "--split", "val").out
    refused = run("rank", *voc, "--split", "train")
    assert refused.code == 2
    assert "comp1_cls_train" in refused.err


def test_a_dash_is_stdout(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files[0].parent)
    assert run("rank", *files, "-o", "-") == run("rank", *files)
    assert not Path("-").exists()
    done = run("rank", *files, "--plot", "-")
    assert done.code == 2
    assert "name a file" in done.err


def test_two_outputs_have_two_places(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "x.png").touch()  # a new file of this suffix is refused before
    done = run("rank", *files, "--plot", tmp_path / "x.png", "-o", f"{tmp_path}/./x.png")
    assert done.code == 2
    assert "x.png: is used for two outputs" in done.err
    assert not (tmp_path / "x.png").read_bytes()


# ---- pictures


@pytest.mark.slow
def test_a_plot_is_written(files: tuple[Path, Path], tmp_path: Path) -> None:
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        picture = tmp_path / f"curves{suffix}"
        done = run("rank", *files, "--plot", picture)
        assert done.code == 0
        assert done.out == run("rank", *files).out
        assert picture.read_bytes().startswith(magic)
    # a comment beside the outlines of the letters
    assert "cat  AP 0.750" in (tmp_path / "curves.svg").read_text()


@pytest.mark.slow
def test_plot_of_many_classes() -> None:
    rng = np.random.default_rng(0)
    table = ranking.from_arrays(rng.random((3000, 30)) < 0.3, rng.random((3000, 30)))
    from detmap.ranking import curve_plots

    table.positive[:, 0] = False  # no curve
    lines = ranking.evaluate(table).lines()
    assert len(lines) == 29
    many, none = (curve_plots.draw(Path("x.png"), some, "caption") for some in (lines, []))
    assert len(many) > len(none)


@pytest.mark.slow
def test_plot_that_cannot_be(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, words in (
        ("x", "no suffix says what to draw"),
        ("x.docx", "fix: name a .png, .svg or .pdf file"),
        ("no/where.png", "there is no folder of that name"),
    ):
        done = run("rank", *files, "--plot", tmp_path / name)
        assert done.code == 2
        assert words in done.err
        assert list(tmp_path.glob("x*")) == []
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("rank", *files, "--plot", tmp_path / "x.png")
    assert done.code == 2
    assert "pip install 'detmap-eval[plot]'" in done.err


# ---- what is refused


MORE = "".join(f"x{i},0,0,0\n" for i in range(9))
COW = "image,cat,dog,bird,cow\na,1,1,1,1\nb,1,1,1,1\nc,1,1,1,1\nd,1,1,1,1\n"
BROKEN = [  # the file, what is replaced in it, place, message
    ("truth", "c,0,1,1", "c,0,1,2", ": line 4, column bird", "2 is neither 0 nor 1"),
    ("truth", "c,0,1,1", "c,0,yes,1", ": line 4, column dog", "'yes' is not a number"),
    ("scores", ".9,.7", "nan,.7", ": line 3, column cat", "nan is not a score"),
    ("scores", ".9,.7", "inf,.7", ": line 3, column cat", "inf is not a score"),
    ("scores", ".9,.7", ",.7", ": line 3, column cat", "'' is not a number"),
    ("scores", ".9,.7", ".9", ": line 3", "3 columns, the header has 4"),
    ("scores", "bird", "fish", "", "lacks class bird of"),
    ("scores", "bird", "fish", "", "has class fish that"),
    ("scores", SCORES, COW, "", "has class cow"),
    ("scores", "d,.1,.8,.6\n", "", "", "lacks sample d of"),
    ("scores", SCORES, SCORES + MORE, "", "9 samples (x0, x1, x2, x3, x4 and 4 more)"),
    ("truth", "d,1,1,0\n", "b,0,0,0\n", ": line 5", "sample b for the second time"),
    ("truth", "dog", "cat", ": line 1, column 3", "class cat for the second time"),
    ("truth", "dog", " ", ": line 1, column 3", "without a name"),
    ("truth", ",", ";", ": line 1", "'image;cat;dog;bird' names no class"),
    ("truth", TRUTH, "", ": line 1", "the file is empty"),
    ("truth", TRUTH, '{"images": []}', "", "is JSON"),
    ("truth", TRUTH, "image,cat,dog,bird\n", "", "holds no sample"),
    ("scores", SCORES, '"' + "x" * 200_000, "", "field larger"),
]


@pytest.mark.parametrize("name, old, new, place, message", BROKEN)
def test_a_broken_csv_is_refused_with_its_place(
    files: tuple[Path, Path], name: str, old: str, new: str, place: str, message: str
) -> None:
    file = files[name == "scores"]
    file.write_text(file.read_text().replace(old, new))
    done = run("rank", *files)
    assert (done.code, done.out) == (2, "")
    assert "\n  fix: " in done.err
    assert f"{name}.csv{place}" in done.err
    assert message in done.err


def test_broken_paths_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(TRUTH.replace("cat", "k\xe4fer").encode("latin-1"))
    for argv, words in (
        ((tmp_path / "no.csv", files[1]), "no such file"),
        ((tmp_path, files[1]), "not a folder, while"),
        ((files[0], tmp_path), "not a file, while"),
        ((*files, "--split", "test"), "remove split"),
        ((tmp_path / "latin.csv", files[1]), "not UTF-8"),
        ((tmp_path, tmp_path), "no folder ImageSets/Main"),
        ((*files, "--percent", "--format", "json"), "JSON holds fractions"),
        ((*files, "--threshold", "nan"), "a finite score"),
        ((*files, "--k", "0"), "--k"),
        ((*files, "--k", "1,x"), "--k"),
        ((*files, "--average", "mean"), "--average"),
        ((*files, "--integrator", "area"), "--integrator"),
        ((*files, "-p", "coco-bbox"), "--protocol"),
    ):
        done = run("rank", *argv)
        assert done.code == 2, argv
        assert words in done.err, done.err


def write(path: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / path).write_text(text) and None


CIRCLE, RESULT = "VOC2007/ImageSets/Main/circle_test.txt", "results/comp1_cls_test_circle.txt"


def remove(pattern: str) -> Callable[[Path], None]:
    return lambda folder: [file.unlink() for file in folder.glob(pattern)] and None


def twice(folder: Path) -> None:
    shutil.copytree(folder / "VOC2007", folder / "VOC2008")


@pytest.mark.parametrize(
    "spoil, place, message",
    [
        (write(CIRCLE, "000001 2\n"), "circle_test.txt: line 1", "flag '2'"),
        (write(CIRCLE, "000001 1\n\n000001 1\n"), "circle_test.txt: line 3", "second time"),
        (write(CIRCLE, "000001\n"), "circle_test.txt: line 1", "1 columns"),
        (write(CIRCLE, "000001 1\n"), "ellipse_test.txt", "60 images, not the 1 of circle_test"),
        (write(RESULT, "000001 .5 3\n"), "cls_test_circle.txt: line 1", "3 columns"),
        (write(RESULT, "000001 high\n"), "cls_test_circle.txt: line 1", "'high' is not a score"),
        (write(RESULT, "000001 nan\n"), "cls_test_circle.txt: line 1", "'nan' is not a score"),
        (write(RESULT, "000099 .5\n"), "cls_test_circle.txt: line 1", "no image '000099'"),
        (write(RESULT, "000001 .5\n000001 .6\n"), "cls_test_circle.txt: line 2", "second time"),
        (write("results/comp2_cls_test_circle.txt", ""), "comp2", "a second file for class circle"),
        (write("results/comp1_cls_test_hexagon.txt", ""), "results of hexagon", "circle, ellipse"),
        (remove(RESULT), "no results of circle", "one file for each of circle, ellipse"),
        (remove("results/*"), "results", "no files such as comp1_cls_test"),
        (remove("VOC2007/ImageSets/Main/*"), "Main", "no list of test or val"),
        (twice, "", "holds 2 data sets: VOC2007, VOC2008"),
    ],
)
def test_broken_voc_files_are_refused_with_their_place(
    voc: tuple[Path, Path], spoil: Callable[[Path], None], place: str, message: str
) -> None:
    spoil(voc[0].parent)
    done = run("rank", voc[0].parent if spoil is twice else voc[0], voc[1])
    assert done.code == 2
    assert "\n  fix: " in done.err
    assert place in done.err
    assert message in done.err


def test_a_list_that_differs_from_the_split(voc: tuple[Path, Path]) -> None:
    main = voc[0] / "ImageSets" / "Main"
    (main / "circle_test.txt").unlink()
    (main / "test.txt").write_text("000001\n")
    done = run("rank", *voc)
    assert done.code == 2
    assert "lists 60 images, not the 1 of test.txt" in done.err
