"""Boxes whose mistake AP50 alone does not show: large objects, objects in the middle, two mistakes
on top of each other; and what parts of files are fixed by.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import MergeError
from tests.analysis.doctor import sample
from tests.analysis.doctor.sample import BoxChange, corners
from tests.support import builders as make
from tests.support.running import run
from tools.doctor_sets import Look, Set, generated

Box = list[float]
LOOK = Look(n_images=40, n_classes=3)
WIDE, HIGH = 640, 480


def drawn(seed: int, n: int, least: float, most: float, *, centered: bool = False) -> Set:
    """Images with one to four objects whose sides have these shares of the image's."""
    rng = np.random.default_rng(seed)
    truth: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    truth["categories"] = [{"id": k, "name": name} for k, name in ((1, "cat"), (2, "dog"))]
    rows = []
    for i in range(1, n + 1):
        truth["images"].append({"id": i, "width": WIDE, "height": HIGH, "file_name": f"{i}.jpg"})
        for _ in range(1 if centered else int(rng.integers(1, 5))):
            side = rng.uniform(least, most, 2) * [WIDE, HIGH]
            share = rng.normal(0.5, 0.04, 2) if centered else rng.random(2)
            middle = ([WIDE, HIGH] - side) * share
            box, kind = [*middle.tolist(), *side.tolist()], int(rng.integers(1, 3))
            record = {"image_id": i, "category_id": kind}
            number = len(truth["annotations"]) + 1
            area = float(side.prod())
            whole = {"id": number, "bbox": box, "area": area, "iscrowd": 0}
            truth["annotations"].append(record | whole)
            noise = 0.02 if centered else 0.05
            if rng.random() < 0.9:
                found = np.array(box) + rng.normal(0, noise, 4) * np.tile(side, 2)
                score = float(rng.uniform(0.4, 1))
                rows.append(record | {"bbox": found.tolist(), "score": score})
            if not centered:
                score = float(rng.uniform(0.1, 0.6))
                beside = [*rng.uniform(0, 200, 2).tolist(), *side.tolist()]
                rows.append(record | {"bbox": beside, "score": score})
    return Set(truth, rows)


def changed(given: Set, change: BoxChange) -> list[dict[str, Any]]:
    return sample.changed(given, sample.of_boxes(change))


def mirrored(b: Any, w: float, h: float) -> Any:
    return [w - b[0] - b[2], *b[1:]]


def upside_down(b: Any, w: float, h: float) -> Any:
    return [w - b[0] - b[2], h - b[1] - b[3], *b[2:]]


def shifted(b: Any, w: float, h: float) -> Any:
    return b + np.array([20, 10, 0, 0])


def half_and_shifted(b: Any, w: float, h: float) -> Any:
    return shifted(b / 2, w, h)


def swapped_and_shifted(b: Any, w: float, h: float) -> Any:
    return shifted(b[[1, 0, 3, 2]], w, h)


def turned_and_in_416(b: Any, w: float, h: float) -> Any:
    if h > w:
        b = np.array([h - b[1] - b[3], b[0], b[3], b[2]])
    scale = 416 / max(w, h)
    return [*(b[:2] * scale + (416 - scale * np.array([w, h])) / 2), *(b[2:] * scale)]


def check(given: Set, rows: list[dict[str, Any]], *names: str) -> list[detmap.Finding]:
    """The findings have these fixes, and what they give is right."""
    findings = [each for each in detmap.doctor(given.truth, rows) if each.fix]
    assert [each.name for each in findings] == list(names)
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")
    for order in (names, names[::-1]):
        result = detmap.evaluate(given.truth, rows, "coco-bbox", fix=list(order))
        assert result["AP"] == pytest.approx(wanted["AP"], abs=0.002)
    return findings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "name"),
    [(corners, "boxes-xyxy"), (mirrored, "boxes-mirrored"), (upside_down, "boxes-turned")],
)
def test_wrong_boxes_of_large_objects_overlap_these_too(change: BoxChange, name: str) -> None:
    given = drawn(1, 60, 0.4, 0.9)
    check(given, changed(given, change), name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "name"), [(mirrored, "boxes-mirrored"), (upside_down, "boxes-turned")]
)
def test_a_turn_and_a_mirror_are_told_apart_where_objects_are_in_the_middle(
    change: BoxChange, name: str
) -> None:
    given = drawn(2, 80, 0.1, 0.3, centered=True)
    check(given, changed(given, change), name)


@pytest.mark.slow
def test_a_turn_of_all_images_is_one_where_few_are_portrait() -> None:
    given = drawn(3, 30, 0.1, 0.5)
    for image in given.truth["images"][:2]:
        image |= {"width": HIGH, "height": WIDE}
        for row in (*given.truth["annotations"], *given.rows):
            if row["image_id"] == image["id"]:
                row["bbox"] = [row["bbox"][k] for k in (1, 0, 3, 2)]
    (finding,) = check(given, changed(given, upside_down), "boxes-turned")
    assert "boxes of all images by 180 degrees" in finding.sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "names"),
    [
        (swapped_and_shifted, ["boxes-xy-swapped"]),
        (half_and_shifted, ["boxes-resized"]),
        (turned_and_in_416, ["boxes-letterboxed", "boxes-turned"]),
    ],
)
def test_two_mistakes_of_boxes(change: BoxChange, names: list[str]) -> None:
    given = generated(4, "boxes", LOOK._replace(n_images=80))
    check(given, changed(given, change), *names)


@pytest.mark.slow
def test_mirrored_boxes_of_classes_from_zero() -> None:
    given = drawn(5, 60, 0.1, 0.4)
    rows = changed(given, mirrored)
    for row in rows:
        row["category_id"] -= 1
    check(given, rows, "classes-zero-based", "boxes-mirrored")


@pytest.mark.slow
def test_two_mistakes_that_are_not_known_are_not_passed_over() -> None:
    given = generated(4, "boxes", LOOK)
    rows = changed(
        given, lambda b, w, h: np.array(mirrored(b, w, h)) * np.tile([416 / w, 416 / h], 2)
    )
    found = detmap.doctor(given.truth, rows)
    assert [each.name for each in found] == ["unexplained"]


@pytest.mark.slow
def test_percent_in_some_images() -> None:
    given = drawn(6, 60, 0.1, 0.4)
    rows = [
        row | {"score": row["score"] * (100 if row["image_id"] > 30 else 1)} for row in given.rows
    ]
    (finding,) = check(given, rows, "scores-percent")
    assert "in 30 of 60 images no score is above 1" in finding.sentence


@pytest.mark.slow
def test_the_id_of_a_single_image() -> None:
    given = drawn(7, 1, 0.1, 0.3)
    check(given, [row | {"image_id": 0} for row in given.rows], "images-shifted")


@pytest.mark.slow
def test_masks_that_no_fix_can_move_are_named() -> None:
    mask = pytest.importorskip("pycocotools.mask")
    given = generated(4, "masks", LOOK).copy()
    assert not detmap.doctor(given.truth, given.rows, "coco-segm")
    size = {each["id"]: (each["height"], each["width"]) for each in given.truth["images"]}
    for row in given.rows:
        height, width = size[row["image_id"]]
        flipped = [
            [v if k % 2 == 0 else height - v for k, v in enumerate(ring)]
            for ring in row["segmentation"]
        ]
        runs = mask.merge(mask.frPyObjects(flipped, height, width))
        row["segmentation"] = runs | {"counts": runs["counts"].decode()}
        row.pop("bbox", None)
    (finding,) = detmap.doctor(given.truth, given.rows, "coco-segm")
    assert (finding.name, finding.fix) == ("boxes-mirrored", "")
    assert "top and bottom are exchanged" in finding.sentence


def test_images_that_a_weak_detector_finds_nothing_on() -> None:
    """Of images with one or two objects, half had no detection."""
    rng = np.random.default_rng(0)
    given = drawn(8, 60, 0.1, 0.3)
    rows = [row for row in given.rows if rng.random() < 0.35]
    assert not [each for each in detmap.doctor(given.truth, rows) if "without" in each.name]
    rows = [row for row in given.rows if row["image_id"] > 20]
    names = [each.name for each in detmap.doctor(given.truth, rows)]
    assert names == ["images-without-detections"]


@pytest.mark.slow
def test_parts_with_other_guesses_do_not_merge(tmp_path: Path) -> None:
    given = drawn(9, 40, 0.1, 0.4)
    truth = make.write(tmp_path / "truth.json", given.truth)
    rows = changed(given, lambda b, w, h: b * 1.2837)
    parts = [tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "all.npz"]
    for part, ids in zip(parts, (range(1, 21), range(21, 41), range(1, 41)), strict=True):
        images = make.write(tmp_path / f"{part.stem}.txt", "".join(f"{i}\n" for i in ids))
        some = [row for row in rows if row["image_id"] in ids]
        found = make.write(tmp_path / f"{part.stem}.json", some)
        words = [truth, found, "-p", "coco-bbox", "--fix", "boxes-resized", "--images", images]
        assert run("match", *words, "-o", part).code == 0
    done = run("merge", *parts[:2])
    assert done.code == 2
    assert "were fixed by boxes-resized (1.28" in done.err
    assert "match all images at once with --fix" in done.err
    with pytest.raises(MergeError):
        detmap.Matches.load(parts[0]).merge(detmap.Matches.load(parts[1]))
    done = run("merge", parts[2], "--format", "json")
    wanted = detmap.evaluate(given.truth, given.rows, "coco-bbox")
    assert json.loads(done.out)["metrics"]["AP"] == pytest.approx(wanted["AP"], abs=0.02)


def test_batches_of_two_box_formats_have_a_finding() -> None:
    given = drawn(10, 40, 0.1, 0.4)
    sides: dict[int, tuple[list[Any], list[Any]]] = {}
    for side, records in enumerate((changed(given, corners), given.truth["annotations"])):
        for row in records:
            sides.setdefault(row["image_id"], ([], []))[side].append(row)
    ev = detmap.Evaluator("coco-bbox", box_format="xywh", classes=[1, 2])
    for predicted, annotated in sides.values():
        batch = [
            {"boxes": [r["bbox"] for r in each], "labels": [r["category_id"] for r in each]}
            for each in (predicted, annotated)
        ]
        batch[0]["scores"] = [row["score"] for row in predicted]
        ev.update(batch[:1], batch[1:])
    (finding,) = ev.compute().findings
    assert (finding.name, finding.fix) == ("boxes-xyxy", "")
