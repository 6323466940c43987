"""Fixes on top of each other: one order, one guess, and the promised AP50 is what `--fix` gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, MergeError
from detmap.analysis.doctor.fix_chain import ordered
from tests.analysis.doctor.sample import Change, changed, corners, of_boxes
from tests.support import builders as make
from tests.support.running import run
from tools.doctor_sets import Look, Set, generated

LOOK = Look(n_images=40, n_classes=5)


@cache
def right(shape: str = "boxes", how: Look = LOOK) -> Set:
    """A set whose images and classes count from 1 without gaps."""
    given = generated(4, shape, how).copy()
    image, name = (
        {each["id"]: i for i, each in enumerate(given.truth[key], start=1)}
        for key in ("images", "categories")
    )
    for row in (*given.truth["annotations"], *given.rows):
        row |= {"image_id": image[row["image_id"]], "category_id": name[row["category_id"]]}
    for key, ids in (("images", image), ("categories", name)):
        for row in given.truth[key]:
            row["id"] = ids[row["id"]]
    return given


def _classes(change: Callable[[int], Any]) -> Change:
    return lambda row, w, h: {"category_id": change(row["category_id"])}


def _letterboxed(b: Any, w: float, h: float) -> Any:
    scale = 608 / max(w, h)
    return [*(b[:2] * scale + (608 - scale * np.array([w, h])) / 2), *(b[2:] * scale)]


BOXES = {
    "fractions": of_boxes(lambda b, w, h: b / [w, h, w, h]),
    "half": of_boxes(lambda b, w, h: b / 2),
    "1.5 times": of_boxes(lambda b, w, h: b * 1.5),
    "416": of_boxes(lambda b, w, h: b / [w, h, w, h] * 416),
    "letterboxed": of_boxes(_letterboxed),
    "corners": of_boxes(corners),
}
CLASSES = {
    "low": _classes(lambda c: c - 1),
    "high": _classes(lambda c: c + 1),
    "text": _classes(str),
    "reversed": _classes(lambda c: 6 - c),
}


def names_of(found: Any) -> list[str]:
    return [each.name for each in found if each.fix]


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "boxes"), [(c, b) for c in CLASSES for b in BOXES])
def test_two_mistakes_are_fixed_in_any_order(classes: str, boxes: str) -> None:
    given = right()
    rows = changed(given, BOXES[boxes], CLASSES[classes])
    found = detmap.doctor(given.truth, rows)
    names = names_of(found)
    assert [name.partition("-")[0] for name in names] == ["classes", "boxes"]
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")
    for each in permutations(names):
        result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=each)
        assert result["AP"] == pytest.approx(wanted["AP"], abs=1e-3)
        assert found[-1].ap50_after == pytest.approx(result["AP50"], abs=1e-9)


def test_the_order_is_images_classes_scores_boxes_and_rows() -> None:
    names = ["rows-repeated", "boxes-xyxy", "scores-percent", "images-shifted", "classes-permuted"]
    for given in permutations(names):
        assert ordered(given) == [names[k] for k in (3, 4, 2, 1, 0)]


@pytest.mark.slow
def test_images_and_classes_from_zero() -> None:
    given = right()
    rows = changed(given, CLASSES["low"], lambda row, w, h: {"image_id": row["image_id"] - 1})
    names = names_of(detmap.doctor(given.truth, rows))
    assert names == ["images-shifted", "classes-zero-based"]
    result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=names)
    assert result["AP"] == detmap.evaluate(given.truth, given.rows, "coco-bbox")["AP"]


def test_images_that_no_shift_explains_are_named() -> None:
    """Never a number that stands for none."""
    given = right()
    last = len(given.truth["images"])
    rows = changed(given, lambda row, w, h: {"image_id": row["image_id"] % last + 1})
    ((found),) = [each for each in detmap.doctor(given.truth, rows) if each.fix]
    assert found.name == "images-shifted"
    assert "--unknown drop" in found.sentence
    with pytest.raises(DataError, match="the ground truth lacks after the fix: 1") as caught:
        detmap.evaluate(given.truth, rows, "coco-bbox", fix=found.name)
    assert 'unknown="drop"' in caught.value.fix
    result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=found.name, unknown="drop")
    kept = [row for row in given.rows if row["image_id"] != last]
    assert result["AP"] == detmap.evaluate(given.truth, kept, "coco-bbox")["AP"]


# --- guessed sizes --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("boxes", ["half", "1.5 times", "416", "letterboxed"])
@pytest.mark.parametrize("noise", [0.03, 0.08])
def test_a_usual_size_is_guessed_exactly(boxes: str, noise: float) -> None:
    given = right("boxes", LOOK._replace(noise=noise))
    rows = changed(given, BOXES[boxes])
    (found,) = [each for each in detmap.doctor(given.truth, rows) if each.fix]
    assert "size guessed; standard error" in found.sentence
    result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=found.name)
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")
    assert result["AP"] == pytest.approx(wanted["AP"], abs=1e-3)
    assert any(found.sentence in str(note) for note in result.notes)


def test_an_unusual_size_has_an_error_that_covers_it() -> None:
    given = right("boxes", LOOK._replace(n_images=80))
    rows = changed(given, of_boxes(lambda b, w, h: b * 1.2837))
    (found,) = [each for each in detmap.doctor(given.truth, rows) if each.fix]
    words = found.sentence.split()
    factor, error = float(words[2]), float(words[words.index("error") + 1].rstrip("):;"))
    assert abs(factor - 1.2837) < 4 * error < 0.02
    result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=found.name)
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")
    assert result["AP"] == pytest.approx(wanted["AP"], abs=0.02)


@pytest.mark.slow
def test_a_doubtful_size_is_said_to_be_approximate() -> None:
    """Or the right number results."""
    given = right("boxes", LOOK._replace(n_images=8, noise=0.1, n_classes=1))
    rows = changed(given, of_boxes(lambda b, w, h: b * 1.2837))
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")["AP"]
    for each in detmap.doctor(given.truth, rows):
        if each.fix:
            result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=each.name)
            is_said = "approximate" in str(result.notes)
            assert is_said or result["AP"] == pytest.approx(wanted, abs=0.02)


# --- what is no fix -------------------------------------------------------------------------------


def test_a_fix_that_spoils_right_boxes_is_refused() -> None:
    given = right()
    with pytest.raises(DataError, match="negative width or height") as caught:
        detmap.evaluate(given.truth, given.rows, "coco-bbox", fix="boxes-xyxy")
    assert caught.value.fix.startswith("remove --fix boxes-xyxy")


def test_ids_as_text_are_the_cause_where_they_explain_all() -> None:
    """Another class would gain by its more frequent objects."""
    given = right("boxes", LOOK._replace(n_classes=2))
    rows = changed(given, _classes(lambda c: "1"))
    found = detmap.doctor(given.truth, rows)
    assert names_of(found) == ["classes-as-text"]
    ones = changed(given, _classes(lambda c: 1))
    result = detmap.evaluate(given.truth, rows, "coco-bbox", fix="classes-as-text")
    assert result["AP"] == detmap.evaluate(given.truth, ones, "coco-bbox")["AP"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pycocotools.mask.decode
def test_masks_of_the_size_width_height() -> None:
    mask = pytest.importorskip("pycocotools.mask")
    given = right("masks", LOOK._replace(n_images=20))
    size = {each["id"]: (each["height"], each["width"]) for each in given.truth["images"]}
    rows, wanted = [], []
    for row in given.rows:
        whole = mask.merge(mask.frPyObjects(row["segmentation"], *size[row["image_id"]]))
        bare = {key: row[key] for key in ("image_id", "category_id", "score")}
        for place, pixels in ((wanted, mask.decode(whole)), (rows, mask.decode(whole).T)):
            runs = mask.encode(np.asfortranarray(pixels))
            place.append(bare | {"segmentation": runs | {"counts": runs["counts"].decode()}})
    (found,) = [each for each in detmap.doctor(given.truth, rows, "coco-segm") if each.fix]
    result = detmap.evaluate(given.truth, rows, "coco-segm", fix=found.name)
    assert result["AP"] == detmap.evaluate(given.truth, wanted, "coco-segm")["AP"]
    assert found.ap50_after == pytest.approx(result["AP50"], abs=1e-9)


# --- parts, other inputs --------------------------------------------------------------------------


@pytest.mark.slow
def test_parts_with_and_without_a_fix_do_not_merge(tmp_path: Path) -> None:
    given = right()
    half = len(given.truth["images"]) // 2
    rows = changed(given, BOXES["corners"])
    truth = make.write(tmp_path / "truth.json", given.truth)
    found = make.write(tmp_path / "found.json", rows)
    part = {}
    for name, ids, fix in (
        ("a", range(1, half), ["--fix", "boxes-xyxy"]),
        ("b", range(half, 2 * half + 1), []),
        ("c", range(half, 2 * half + 1), ["--fix", "boxes-xyxy"]),
    ):
        images = make.write(tmp_path / f"{name}.txt", "".join(f"{i}\n" for i in ids))
        part[name] = tmp_path / f"{name}.npz"
        words = [truth, found, "-p", "coco-bbox", "--images", images, *fix, "-o", part[name]]
        assert run("match", *words).code == 0
    done = run("merge", part["a"], part["b"])
    assert done.code == 2
    assert "a.npz and " in done.err
    assert "by boxes-xyxy in one part, by nothing in the other" in done.err
    assert "match all parts with the same --fix" in done.err
    done = run("merge", part["a"], part["c"], "--format", "json")
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")
    assert json.loads(done.out)["metrics"]["AP"] == wanted["AP"]
    with pytest.raises(MergeError):
        detmap.Matches.load(part["b"]).merge(detmap.Matches.load(part["c"]))


def _lists(given: Set, label: Callable[[int], Any]) -> list[dict[str, Any]]:
    """A prediction per image, with corners."""
    out = []
    for image in given.truth["images"]:
        rows = [row for row in given.rows if row["image_id"] == image["id"]]
        boxes = np.array([row["bbox"] for row in rows]).reshape(-1, 4)
        out.append(
            {
                "image_id": image["id"],
                "boxes": np.column_stack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]),
                "scores": np.array([row["score"] for row in rows]),
                "labels": [label(row["category_id"]) for row in rows],
            }
        )
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "name"),
    [
        (str, "classes-as-text"),
        (lambda c: str(c - 1), "classes-zero-based"),
        (lambda c: c + 1, "classes-one-based"),
        (lambda c: f"k{c}", "classes-permuted"),
    ],
)
def test_labels_of_lists_are_diagnosed_as_of_files(label: Callable[[int], Any], name: str) -> None:
    given = right()
    lists = _lists(given, label)
    with pytest.raises(DataError) as caught:
        detmap.evaluate(given.truth, lists, "coco-bbox")
    assert f'fix="{name}"' in caught.value.fix
    assert names_of(detmap.doctor(given.truth, lists)) == [name]
    dropped = detmap.evaluate(given.truth, lists, "coco-bbox", unknown="drop")
    assert name in names_of(dropped.findings)
    result = detmap.evaluate(given.truth, lists, "coco-bbox", fix=name)
    wanted = detmap.evaluate(given.truth, _lists(given, int), "coco-bbox")
    assert result["AP"] == wanted["AP"]


def test_detections_of_another_data_set_are_not_said_to_be_none(tmp_path: Path) -> None:
    given = right()
    truth = make.write(tmp_path / "truth.json", given.truth)
    lines = [
        f"other_{row['image_id']}.jpg,1,{row['score']},{','.join(map(str, row['bbox']))}\n"
        for row in given.rows
    ]
    header = "image,class_id,score,x,y,width,height\n"
    table = make.write(tmp_path / "found.csv", header + "".join(lines))
    done = run("doctor", truth, table)
    assert done.code == 1
    assert f"none of the {len(lines)} detections is on an image and of a class" in done.out
    assert "'other_1.jpg'" in done.out


def test_results_of_dota_may_name_files_of_images(tmp_path: Path) -> None:
    square = "10 10 50 10 50 40 10 40"
    for i in range(3):
        make.write(tmp_path / "labelTxt" / f"P{i:04d}.txt", f"{square} ship 0\n")
    for name, suffix in (("stems", ""), ("files", ".png")):
        lines = [f"P{i:04d}{suffix} 0.9 {square}\n" for i in range(3)]
        make.write(tmp_path / name / "Task1_ship.txt", "".join(lines))
        result = detmap.evaluate(tmp_path / "labelTxt", tmp_path / name, "dota")
        assert result["mAP"] == pytest.approx(1)


# --- proposals of errors --------------------------------------------------------------------------


def test_proposals_of_errors_lead_on(tmp_path: Path) -> None:
    given = right()
    truth = make.write(tmp_path / "truth.json", given.truth)
    found = make.write(tmp_path / "found.json", given.rows)
    done = run("match", truth, found)
    assert "write `detmap match TRUTH DETECTIONS -o PART`" in done.err
    done = run("eval", truth, found, "--metric", "AP50")
    assert "`detmap eval` prints all" in done.err
    name = {each["id"]: each["file_name"] for each in given.truth["images"]}
    lines = [
        f"{name[row['image_id']]},{row['category_id']},{row['score']},"
        f"{','.join(map(str, row['bbox']))}\n"
        for row in given.rows
    ]
    for columns, is_right in (("xmin,ymin,xmax,ymax", False), ("x,y,width,height", True)):
        header = f"filename,class_id,confidence,{columns}\n"
        table = make.write(tmp_path / "found.csv", header + "".join(lines))
        done = run("eval", truth, table, "-p", "coco-bbox", "--format", "json")
        if is_right:
            wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")["AP"]
            assert json.loads(done.out)["metrics"]["AP"] == wanted
        else:
            assert "rename the columns to x, y, width, height" in done.err
