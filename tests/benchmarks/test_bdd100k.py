"""BDD100K: its command renames classes and makes some of them ignored before COCO's rules."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from tests.reference import bdd100k, official
from tests.support.numpy_sums import equal
from tests.support.running import run

NAMES = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]
OFFICIAL = """
20.653748843964216 36.38147045304023 19.078447309739648 7.169966996699668 23.709958938506787
38.2016501650165 28.260745614035095 34.752631578947366 34.752631578947366 9.479166666666668
33.66129549462883 46.58333333333333
25.766920720789354 46.497271155686995 25.259883275776968 9.48982398239824 33.56792485971286
42.77484415108177 25.90518207282913 41.918907563025215 41.918907563025215 16.388888888888886
45.47474747474748 57.6984126984127
21.81015311309534 42.49204838066225 23.03171434654986 15.690711928335691 26.18851319289204
42.96558227251296 23.10650623885918 38.63674560733384 38.63674560733384 17.857142857142858
38.2439393939394 50.28571428571428
"""
"""All numbers of the original code, in percent, on `bdd100k.drawn_frames` of the seeds 1 to 3:
bdd100k@9ac17c6 label/to_scalabel.py with configs/det.toml, scalabel@071d073 eval/detect.py."""


def written(folder: Path, **files: Any) -> list[Path]:
    """JSON files by stem."""
    paths = [folder / f"{name}.json" for name in files]
    for path, content in zip(paths, files.values(), strict=True):
        path.write_text(json.dumps(content))
    return paths


def label(category: str, x: float, score: float | None = None, **attributes: bool) -> Any:
    """A box of 100 x 100 pixels at x, in Scalabel's form."""
    box = {"x1": x, "y1": 100, "x2": x + 99, "y2": 199}
    made: dict[str, Any] = {"id": "1", "category": category, "box2d": box}
    return made | ({"attributes": attributes} if score is None else {"score": score})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_drawn_frames_give_the_numbers_of_the_original_code(seed: int, tmp_path: Path) -> None:
    truth, results = bdd100k.drawn_frames(seed)
    found = detmap.evaluate(*written(tmp_path, truth=truth, results=results), "bdd100k")
    ours = [found.metrics[name] * 100 for name in NAMES]
    wanted = np.array(OFFICIAL.split(), dtype=float).reshape(3, -1)
    assert equal(ours, wanted[seed - 1].tolist())


@pytest.mark.parametrize("seed", range(10, 13))
def test_drawn_frames_are_pycocotools_on_the_converted_records(seed: int, tmp_path: Path) -> None:
    """To the last bit; the same rule serves COCO JSON with the classes of BDD100K."""
    truth, results = bdd100k.drawn_frames(seed)
    want = official.run(*bdd100k.converted(truth, results)).stats.tolist()
    found = detmap.evaluate(*written(tmp_path, truth=truth, results=results), "bdd100k")
    assert [found.metrics[name] for name in NAMES] == [-1 if math.isnan(x) else x for x in want]
    as_coco = detmap.evaluate(*written(tmp_path, **coco_records(truth, results)), "bdd100k")
    assert [as_coco.metrics[name] for name in NAMES] == pytest.approx(want, rel=0, abs=1e-15)


def coco_records(truth: list[Any], results: list[Any]) -> dict[str, Any]:
    """COCO JSON with the classes as they are."""
    names = [*bdd100k.NAMES, *bdd100k.NAME_MAPPING, *bdd100k.IGNORED_MAPPING]
    place = {frame["name"]: i for i, frame in enumerate(sorted(truth, key=lambda f: f["name"]))}

    def rows(frames: list[Any]) -> list[Any]:
        found = []
        for frame in frames:
            for each in frame["labels"]:
                if "box2d" in each:
                    box, flags = each["box2d"], each.get("attributes", {})
                    size = [box["x2"] - box["x1"] + 1, box["y2"] - box["y1"] + 1]
                    row = {"image_id": place[frame["name"]], "bbox": [box["x1"], box["y1"], *size]}
                    row["category_id"] = names.index(each["category"]) + 1
                    row |= {"area": size[0] * size[1], "score": each.get("score", 0)}
                    crowd = bool(flags.get("crowd") or flags.get("ignored"))
                    found.append(row | {"id": len(found) + 1, "iscrowd": int(crowd)})
        return found

    images = [{"id": i, "file_name": n, "width": 1280, "height": 720} for n, i in place.items()]
    classes = [{"id": i, "name": name} for i, name in enumerate(names, start=1)]
    keys = ("image_id", "category_id", "bbox", "score")
    found = [{key: row[key] for key in keys} for row in rows(results)]
    return {
        "coco": {"images": images, "annotations": rows(truth), "categories": classes},
        "found": found,
    }


# ---- every way into an evaluation


def data(folder: Path) -> list[Path]:
    truth, results = bdd100k.drawn_frames(7, 12)
    return written(folder, **coco_records(truth, results))


def in_memory(paths: list[Path]) -> detmap.Result:
    truth = detmap.read_truth(paths[0])
    return detmap.evaluate(truth, detmap.read_detections(paths[1], truth), "bdd100k")


def in_parts(paths: list[Path]) -> detmap.Result:
    parts = [detmap.match(*paths, "bdd100k", images=images) for images in (range(5), range(5, 12))]
    return detmap.summarize(parts[0].merge(parts[1]))


def batches(paths: list[Path], images: range, evaluator: detmap.Evaluator) -> detmap.Evaluator:
    truth, found = (json.loads(path.read_text()) for path in paths)
    for i in images:
        rows = [
            [row for row in every if row["image_id"] == i]
            for every in (found, truth["annotations"])
        ]
        sides = [
            {
                "image_id": i,
                "boxes": np.array([row["bbox"] for row in side], dtype=float).reshape(-1, 4),
                "labels": [row["category_id"] for row in side],
            }
            for side in rows
        ]
        sides[0]["scores"] = [row["score"] for row in rows[0]]
        sides[1]["iscrowd"] = [row["iscrowd"] for row in rows[1]]
        sides[1]["area"] = [row["area"] for row in rows[1]]
        evaluator.update(sides[:1], None if evaluator.truth else sides[1:])
    return evaluator


def resumed(paths: list[Path]) -> detmap.Result:
    """The labels of a loaded evaluator are those before the change of names."""
    listed = json.loads(paths[0].read_text())["categories"]
    classes = {each["id"]: each["name"] for each in listed}
    first = detmap.Evaluator("bdd100k", classes=classes, box_format="xywh")
    file = paths[0].with_suffix(".npz")
    batches(paths, range(5), first).save(file)
    again = detmap.Evaluator.load(file)
    assert again.categories == first.categories
    return batches(paths, range(5, 12), again).compute()


def known_truth(paths: list[Path]) -> detmap.Result:
    evaluator = detmap.Evaluator("bdd100k", truth=paths[0], box_format="xywh")
    return batches(paths, range(12), evaluator).compute()


WAYS: dict[str, Callable[[list[Path]], detmap.Result]] = {
    "in memory": in_memory,
    "parts": in_parts,
    "resumed": resumed,
    "known truth": known_truth,
    "bounded": lambda paths: detmap.evaluate(*paths, "bdd100k", memory="2GB"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_numbers(way: str, tmp_path: Path) -> None:
    paths = data(tmp_path)
    whole = detmap.evaluate(*paths, "bdd100k")
    found = WAYS[way](paths)
    np.testing.assert_equal(found.metrics, whole.metrics)
    assert [each["name"] for each in found.per_class] == list(bdd100k.NAMES)


def test_the_error_analysis_and_one_class_use_the_new_names(tmp_path: Path) -> None:
    paths = data(tmp_path)
    whole = detmap.evaluate(*paths, "bdd100k")
    assert detmap.diagnose(*paths, "bdd100k").truth.categories.names == bdd100k.NAMES
    car = detmap.evaluate(*paths, "bdd100k", classes=["car"])
    assert car.metrics["AP"] == next(x["AP"] for x in whole.per_class if x["name"] == "car")
    code, out, _ = run("inspect", paths[0], "-p", "bdd100k")
    assert code == 0
    assert "pedestrian" in out
    assert "other vehicle" not in out


@pytest.mark.slow
def test_compare_and_report_use_the_new_names(tmp_path: Path) -> None:
    """Results with names of 2018 have the numbers of those with names of 2020."""
    truth = [{"name": f"{i}.jpg", "labels": [label("pedestrian", 100)]} for i in range(6)]
    paths = {}
    for name in ("pedestrian", "person"):
        rows = [label(name, 100 + 3 * i, 0.9 - 0.1 * i) for i in range(6)]
        results = [{"name": f"{i}.jpg", "labels": [rows[i]]} for i in range(6)]
        (tmp_path / name).mkdir()
        paths[name] = written(tmp_path / name, truth=truth, results=results)
    files = (*paths["person"], paths["pedestrian"][1], "-p", "bdd100k")
    code, out, _ = run("compare", *files, "--format", "json")
    assert code == 0
    wanted = detmap.evaluate(*paths["pedestrian"], "bdd100k").metrics["AP"]
    assert json.loads(out)["metrics"]["AP"] == [wanted] * 2
    page = tmp_path / "report.html"
    assert run("report", *paths["person"], "-p", "bdd100k", "-o", page)[0] == 0
    text = page.read_text()
    assert ">pedestrian<" in text
    assert ">person<" not in text


def test_explain_names_the_change_of_class_names(tmp_path: Path) -> None:
    """Both ends are those of `evaluate`, also where a protocol reads fewer classes of the file."""
    truth = [{"name": "a.jpg", "labels": [label("car", 100), label("other vehicle", 400)]}]
    results = [{"name": "a.jpg", "labels": [label("car", 400, 0.9), label("car", 100, 0.8)]}]
    for paths in (data(tmp_path), written(tmp_path, truth=truth, results=results)):
        for ends in (("coco-bbox", "bdd100k"), ("bdd100k", "coco-bbox")):
            found = detmap.explain(*paths, *ends)
            numbers = [detmap.evaluate(*paths, end).metrics["AP"] for end in ends]
            assert [found.before, found.after] == numbers
            assert "names of classes" in str(found)


# ---- the rule, on the smallest data


def test_a_name_of_the_results_may_be_another_spelling(tmp_path: Path) -> None:
    """2020 names against 2018 names, in both directions; other names are an error."""
    for ours, theirs in (("person", "pedestrian"), ("pedestrian", "person"), ("van", "caravan")):
        truth = [{"name": "a.jpg", "labels": [label(ours, 100)]}]
        results = [{"name": "a.jpg", "labels": [label(theirs, 100, 0.9)]}]
        paths = written(tmp_path, truth=truth, results=results)
        assert detmap.evaluate(*paths, "bdd100k").metrics["AP50"] == pytest.approx(1)
    results[0]["labels"] = [label("tram", 100, 0.9)]
    with pytest.raises(detmap.DataError, match="tram"):
        detmap.evaluate(*written(tmp_path, truth=truth, results=results), "bdd100k")


@pytest.mark.parametrize("form", ["comp4_det_test_{}.txt", "{}.txt"])
def test_voc_text_is_named_by_any_spelling_of_a_class(form: str, tmp_path: Path) -> None:
    """A file per class, also two files whose names become one class."""
    spellings = (("person", "pedestrian"), ("motor", "motorcycle"), ("van", "caravan", "car"))
    truth, results, files = [], [], dict[str, list[str]]()
    for i in range(6):
        frame = {"name": f"{i}.jpg"}
        own, given = zip(*((names[0], names[i % len(names)]) for names in spellings), strict=True)
        truth.append(frame | {"labels": [label(name, 100) for name in own]})
        scores = [0.9 - 0.01 * i, 0.8 - 0.02 * i, 0.7]
        rows = [label(c, 100 + 3 * i, s) for c, s in zip(given, scores, strict=True)]
        results.append(frame | {"labels": rows})
        for row in rows:
            box = " ".join(str(row["box2d"][side] + 1) for side in ("x1", "y1", "x2", "y2"))
            files.setdefault(row["category"], []).append(f"{i} {row['score']} {box}")
    paths = written(tmp_path, truth=truth, results=results)
    folder = tmp_path / "voc"
    folder.mkdir()
    for name, lines in files.items():
        (folder / form.format(name)).write_text("\n".join(lines) + "\n")
    options = ("-p", "bdd100k", "--detections-format", "voc")
    whole = run("eval", *paths, "-p", "bdd100k", "--format", "json")
    found = run("eval", paths[0], folder, *options, "--format", "json")
    assert whole[0] == found[0] == 0
    one, other = (json.loads(out)["metrics"] for _, out, _ in (whole, found))
    assert one == other
    assert 0 < one["AP"] < 1
    (folder / form.format("tram")).write_text("0 0.5 1 1 9 9\n")
    code, _, error = run("eval", paths[0], folder, *options)
    assert code == 2
    assert "class 'tram' is not in" in error


def test_results_of_2018_have_a_record_per_box(tmp_path: Path) -> None:
    truth = [{"name": "a.jpg", "labels": [label("car", 100)]}, {"name": "b.jpg", "labels": []}]
    row = {"name": "a", "timestamp": 1000, "category": "car", "bbox": [100, 100, 199, 199]}
    rows = [row | {"score": 0.9}, row | {"score": 0.8, "bbox": [400, 100, 499, 199]}]
    paths = written(tmp_path, truth=truth, rows=rows)
    found = detmap.evaluate(*paths, "bdd100k")
    assert found.metrics["AP50"] == pytest.approx(1)
    assert found.counts()["fp"] == 1
    for wrong, place, says in (
        ([*rows, {"name": "b", "labels": []}], r"\[2\]", "both frames"),
        ([rows[0], row | {"score": 0.1, "bbox": [9, 9, 3, 3]}], r"\[1\]\.bbox", "negative size"),
        ([rows[0], row], r"\[1\]", "no score"),
    ):
        with pytest.raises(detmap.DataError, match=f"{place}: .*{says}"):
            detmap.evaluate(*written(tmp_path, truth=truth, rows=wrong), "bdd100k")
    with pytest.raises(detmap.DataError, match="format of 2018"):
        detmap.evaluate(*written(tmp_path, truth=rows, rows=rows), "bdd100k")


def test_a_new_name_that_changes_again_is_refused() -> None:
    rules = protocol.load("coco-bbox")
    for settings in (
        {"classes.renamed": {"a": "b", "b": "c"}},
        {"classes.ignored_as": {"a": "b", "b": "c"}},
        {"classes.renamed": {"b": "c"}, "classes.ignored_as": {"a": "b"}},
        {"classes.renamed": {"a": "a"}},
    ):
        with pytest.raises(detmap.ProtocolError, match=r"classes\.\w+\.\w: the new name"):
            rules.override(settings)
    both = rules.override({"classes.renamed": {"a": "b"}, "classes.ignored_as": {"b": "c"}})
    assert both.classes.new_names() == {"a": "c", "b": "c"}
    assert both.classes.ignored() == {"a", "b"}
    assert protocol.from_dict(both.to_dict(), "test").classes == both.classes
