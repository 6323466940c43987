"""Suites: the goldens of COCO-C, figures by hand, missing files, bad files, the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.suites import evaluate_suite, read_suite, suite_result
from detmap.cli.dispatch import dispatch
from tests.benchmarks import goldens

FLOAT32 = 3.1e-8
"""The original adds up metrics in float32; a ratio of two such sums is within three times that."""
KINDS = ("gaussian_noise", "fog", "jpeg_compression")


def written(path: Path, rows: list[dict[str, str]], figures: list[dict[str, Any]]) -> Path:
    """Writes a suite's file."""
    text = 'protocol = "coco-bbox"\n'
    for table, entries in (("data", rows), ("figures", figures)):
        for entry in entries:
            text += f"[[{table}]]\n"
            text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
    path.write_text(text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("case", goldens.CASES)
def test_goldens_of_coco_c(case: str, tmp_path: Path) -> None:
    place = goldens.folder("coco-c") / case
    truth = str(place / "truth.json")
    rows = [
        {"name": stem, "group": group, "truth": truth, "detections": str(place / f"{stem}.json")}
        for group, stem in [
            ("clean", "clean"),
            *((kind, f"{kind}_{i}") for kind in KINDS for i in range(1, 6)),
        ]
    ]
    corrupted = {"groups": list(KINDS)}
    figures = [
        {"name": "P", "groups": ["clean"]},
        {"name": "mPC", **corrupted},
        {"name": "rPC", "take": "ratio of means", "to": "clean", **corrupted},
    ]
    found = evaluate_suite(written(tmp_path / "suite.toml", rows, figures)).figures()
    n = 0
    for metric, golden in goldens.of_case("coco-c", case).items():
        for figure, value in golden.items() if metric in found["P"] else ():
            allowed = 3 * FLOAT32 if figure == "rPC" else FLOAT32
            assert abs(found[figure][metric] - value) <= allowed, (metric, figure)
            n += 1
    assert n == 36


BOXES = [[10.0 * i, 0.0, 8.0, 8.0] for i in range(6)]


def coco(folder: Path, name: str, found: int, n_images: int = 6) -> tuple[str, str]:
    """Files of images with an object each, of which some are found."""
    truth = {
        "images": [{"id": i, "width": 99, "height": 99} for i in range(1, n_images + 1)],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": BOXES[i - 1],
             "area": 64, "iscrowd": 0}
            for i in range(1, n_images + 1)
        ],
    }  # fmt: skip
    records = [
        {"image_id": i, "category_id": 1 + i % 2, "bbox": BOXES[i - 1], "score": 1 - i / 10}
        for i in range(1, found + 1)
    ]
    (folder / f"{name}.truth.json").write_text(json.dumps(truth))
    (folder / f"{name}.json").write_text(json.dumps(records))
    return f"{name}.truth.json", f"{name}.json"


ROWS = (("clean", "x", 6), ("one", "y", 4), ("two", "y", 2), ("three", "z", 5))
FIGURES: list[dict[str, Any]] = [
    {"name": "all", "take": "mean"},
    {"name": "some", "groups": ["y"]},
    {"name": "by group", "take": "mean of groups"},
    {"name": "ratio", "take": "ratio of means", "groups": ["y", "z"], "to": "clean"},
    {"name": "by class", "take": "mean of ratios", "groups": ["y", "z"], "to": "clean"},
]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    rows = []
    for name, group, found in ROWS:
        truth, detections = coco(tmp_path, name, found)
        rows.append({"name": name, "group": group, "truth": truth, "detections": detections})
    return written(tmp_path / "suite.toml", rows, FIGURES)


def test_figures_by_hand(suite: Path) -> None:
    result = evaluate_suite(suite)
    ap = {row.name: row.metrics["AP"] for row in result.rows}
    found = {name: row["AP"] for name, row in result.figures().items()}
    corrupted = [ap["one"], ap["two"], ap["three"]]
    assert found["all"] == pytest.approx(np.mean(list(ap.values())))
    assert found["some"] == pytest.approx((ap["one"] + ap["two"]) / 2)
    groups = (ap["clean"] + (ap["one"] + ap["two"]) / 2 + ap["three"]) / 3
    assert found["by group"] == pytest.approx(groups)
    assert found["ratio"] == pytest.approx(np.mean(corrupted) / ap["clean"])
    classes = {
        label: np.mean([row.classes[label]["AP"] for row in result.rows[1:]])
        / result.rows[0].classes[label]["AP"]
        for label in ("a", "b")
    }
    assert found["by class"] == pytest.approx(np.mean(list(classes.values())))


def test_a_data_set_is_evaluated_as_alone(suite: Path) -> None:
    rows = evaluate_suite(suite).rows
    alone = detmap.evaluate(suite.parent / "one.truth.json", suite.parent / "one.json", "coco-bbox")
    assert dict(rows[1].metrics) == pytest.approx(alone.metrics, nan_ok=True)
    assert rows[1].signature == alone.signature


def test_intervals_share_the_images_of_one_truth(tmp_path: Path) -> None:
    """Twice the same data set says no more than once; two of other images do."""
    truth, detections = coco(tmp_path, "a", 4)
    other = coco(tmp_path, "b", 4)

    def width(*files: tuple[str, str]) -> float:
        rows = [{"name": str(i), "truth": t, "detections": d} for i, (t, d) in enumerate(files)]
        path = written(tmp_path / "suite.toml", rows, [])
        return evaluate_suite(path, intervals=True).figure_intervals()["mean"]["AP50"][0]

    once, same = width((truth, detections)), width((truth, detections), (truth, detections))
    assert same == pytest.approx(once)
    assert width((truth, detections), other) == pytest.approx(once / np.sqrt(2))


def test_missing_files_are_all_named_or_left_out(suite: Path) -> None:
    (suite.parent / "one.json").unlink()
    (suite.parent / "three.truth.json").unlink()
    with pytest.raises(detmap.DataError, match=r"2 of 4 data sets.*one, three"):
        evaluate_suite(suite)
    result = evaluate_suite(suite, allow_missing=True)
    assert [row.name for row in result.rows] == ["clean", "two"]
    assert [n.source for n in result.notes if n.code == "data-set-missing"] == ["one", "three"]
    (suite.parent / "clean.json").unlink()  # what ratios are taken to
    with pytest.raises(detmap.DataError, match="clean") as error:
        evaluate_suite(suite, allow_missing=True)
    assert "allow-missing" not in error.value.fix
    assert "divides by" in error.value.fix


@pytest.mark.parametrize(
    "text, message",
    [
        ("x = ", "not TOML"),
        ("nme = 'x'", "nme: unknown key"),
        ("name = 'x'", "no data set"),
        ("data = 3", "not a list of tables"),
        ("[[data]]\nname = 'a'", "truth: missing"),
        ("[[data]]\nname = 'a'\ntruth = 3", "truth: 3"),
        ("GOOD[[data]]\nname = 'a'\ntruth = 't'\ndetections = 'd'", "'a' occurs twice"),
        ("GOOD[[figures]]\nname = 'm'\ntake = 'sum'", "choose one of mean"),
        ("GOOD[[figures]]\nname = 'm'\ngroups = ['q']", "no 'q'"),
        ("GOOD[[figures]]\nname = 'm'\ntake = 'ratio of means'", "a ratio without"),
        ("GOOD[[figures]]\nname = 'm'\nto = 'a'", "mean has no ratio"),
        ("GOOD[[figures]]\nname = 'm'\ntake = 'ratio of means'\nto = 'b'", "no 'b'"),
        ("metrics = 'AP'\nGOOD", "list of texts"),
    ],
)
def test_bad_files_are_named(text: str, message: str, tmp_path: Path) -> None:
    good = "[[data]]\nname = 'a'\ntruth = 't'\ndetections = 'd'\n"
    path = tmp_path / "suite.toml"
    path.write_text(text.replace("GOOD", good))
    with pytest.raises(detmap.DataError, match=message) as error:
        read_suite(path)
    assert "suite.toml" in error.value.where


def test_the_data_set_of_an_error_is_named(suite: Path) -> None:
    (suite.parent / "two.json").write_text("[{]")
    with pytest.raises(detmap.DataError, match="data set two"):
        evaluate_suite(suite)
    text = 'metrics = ["R99"]\n' + suite.read_text()
    suite.write_text(text)
    with pytest.raises(detmap.DataError, match="no metric R99"):
        evaluate_suite(suite)


@pytest.mark.slow
def test_the_command(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["suite", str(suite), "--format", "json", "--ci"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["figures"].keys() == content["intervals"].keys()
    assert [row["name"] for row in content["data"]] == [name for name, *_ in ROWS]
    assert content["signature"] == evaluate_suite(suite).signature
    assert dispatch(["suite", str(suite), "--fail-under", "ratio=.01"]) == 0
    assert "detmap: PASS: ratio of AP " in capsys.readouterr().err
    assert dispatch(["suite", str(suite), "--fail-under", "ratio=.99", "--percent"]) == 1
    out = capsys.readouterr()
    assert "detmap: FAIL: ratio of AP " in out.err
    assert "is below 0.99\n" in out.err
    assert "by group" in out.out
    for bad in ("x", "ratio=", "nothing=.3", "ratio=-1", "nan"):
        assert dispatch(["suite", str(suite), "--fail-under", bad]) == 2
    capsys.readouterr()
    assert dispatch(["suite", str(suite), "--fail-under", "ratio=16"]) == 2  # points
    assert "write ratio=0.16" in capsys.readouterr().err


def test_the_signature_depends_on_data_and_figures(suite: Path) -> None:
    before = evaluate_suite(suite).signature
    text = suite.read_text()
    suite.write_text(text.replace('"mean of groups"', '"mean"'))
    assert evaluate_suite(suite).signature != before
    suite.write_text(text)
    coco(suite.parent, "two", 3)
    assert evaluate_suite(suite).signature != before


def test_files_that_several_data_sets_name_are_evaluated_once(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = suite.read_text()
    rows = content.split("[[data]]\n")[1:]
    first = rows[0].split("[[figures]]")[0]
    again = "[[data]]\n" + first.replace('name = "clean"', 'name = "again"')
    suite.write_text(content.replace("[[data]]\n", again + "[[data]]\n", 1))
    evaluated: list[Any] = []
    whole = suite_result.evaluate

    def counted(*given: Any, **options: Any) -> Any:
        evaluated.append(given)
        return whole(*given, **options)

    monkeypatch.setattr(suite_result, "evaluate", counted)
    result = evaluate_suite(suite)
    named = {row.name: row for row in result.rows}
    assert len(evaluated) == len(rows) == len(named) - 1
    assert named["again"].metrics == named["clean"].metrics
    told = {name: [n for n in result.notes if n.source == name] for name in ("again", "clean")}
    assert len(told["again"]) == len(told["clean"])
    assert all(note.text.endswith("(again)") for note in told["again"])
