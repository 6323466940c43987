"""The doctor of masks and keypoints: fixes keep shapes, and move them with their boxes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.doctor.shaped_rows import along_columns, decoded, encoded, transposed
from tests.analysis.doctor.sample import write
from tests.support.running import run
from tools.doctor_kinds import KINDS, dense, run_text, sizes
from tools.doctor_sets import PROTOCOLS, Set, generated

CASES = [
    ("masks", "classes in another order"),
    ("masks", "file stems"),
    ("masks", "images numbered from 0"),
    ("keypoints", "fractions"),
    ("keypoints", "portrait images turned by 90"),
    ("keypoints", "image ids as text"),
    ("keypoints", "letterboxed to 640"),
]


def wrong(shape: str, kind: str) -> tuple[Set, Set]:
    right = generated(0, shape)
    given = right.copy()
    return right, KINDS[kind].make(given, np.random.default_rng(5)) or given


def ap50(*words: object) -> float:
    done = run("eval", *words, "--format", "json")
    assert done.code == 0, done.err
    return float(json.loads(done.out)["metrics"]["AP50"])


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "kind"), CASES)
def test_a_fix_keeps_and_moves_shapes(tmp_path: Path, shape: str, kind: str) -> None:
    right, given = wrong(shape, kind)
    protocol = ("-p", PROTOCOLS[shape])
    expected = ap50(*write(tmp_path, right), *protocol)
    files = write(tmp_path, given)
    found = json.loads(run("doctor", *files, *protocol, "--format", "json").out)["findings"]
    assert found[0]["name"] in KINDS[kind].wanted
    close = KINDS[kind].close
    assert found[0]["ap50_after"] == pytest.approx(expected, abs=close)
    fixed = ap50(*files, *protocol, *found[0]["fix"].split())
    assert fixed == pytest.approx(expected, abs=close)
    assert run("eval", *files, *protocol, "--strict").code == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masks in C order", "masks with x and y swapped"])
def test_masks_beside_right_boxes_are_noticed_everywhere(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boxes alone look right."""
    monkeypatch.setattr("detmap.analysis.doctor.SECONDS", 60.0)
    right, given = wrong("masks", kind)
    size = sizes(right)
    for one, other in zip(right.rows, given.rows, strict=True):
        mask = dense(one["segmentation"], size[one["image_id"]][::-1])
        y, x = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        other["bbox"] = [int(v) for v in (x[0], y[0], x[-1] - x[0] + 1, y[-1] - y[0] + 1)]
    truth, found = write(tmp_path, given)
    out, name = tmp_path / "out", KINDS[kind].wanted[0]
    for command, *more in (
        ("eval", found),
        ("compare", found, found),
        ("diagnose", found),
        ("match", found, "-o", out.with_suffix(".npz")),
        ("report", found, "-o", out.with_suffix(".html")),
    ):
        done = run(command, truth, *more, "-p", "coco-segm")
        assert (done.code, name in done.err) == (0, True), (command, done.err)
    assert run("eval", truth, found, "-p", "coco-segm", "--strict").code == 2
    in_memory = detmap.evaluate(given.truth, given.rows, "coco-segm")
    assert name in {each.name for each in in_memory.findings}
    for rows, n_notes in ((right.rows, 0), (given.rows, 1)):
        evaluator = detmap.Evaluator("coco-segm", truth=truth)
        for image in given.truth["images"]:
            own = [k for k, row in enumerate(rows) if row["image_id"] == image["id"]]
            boxes = [given.rows[k]["bbox"] for k in own]
            ends = [[x, y, x + w, y + h] for x, y, w, h in boxes]
            one = {"boxes": np.reshape(ends, (-1, 4)), "image_id": image["id"]}
            one["labels"] = [rows[k]["category_id"] for k in own]
            one["scores"] = [rows[k]["score"] for k in own]
            one["masks"] = [rows[k]["segmentation"] for k in own]
            evaluator.update([one])
        codes = [note.code for note in evaluator.compute().notes if note.is_shown]
        assert codes.count("mask-outside-box") == n_notes


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masks in C order", "masks with x and y swapped"])
def test_masks_of_another_order_of_pixels(tmp_path: Path, kind: str) -> None:
    right, given = wrong("masks", kind)
    expected = ap50(*write(tmp_path, right), "-p", "coco-segm")
    files = write(tmp_path, given)
    name = KINDS[kind].wanted[0]
    assert f"1. {name}" in run("doctor", *files, "-p", "coco-segm").out
    fixed = ap50(*files, "-p", "coco-segm", "--fix", name)
    if kind == "masks in C order":  # nothing is lost
        assert fixed == pytest.approx(expected, abs=1e-3)
    assert fixed > 0.3 > ap50(*files, "-p", "coco-segm")


@pytest.mark.slow
def test_counts_that_are_the_text_of_bytes(tmp_path: Path) -> None:
    given = generated(0, "masks")
    expected = ap50(*write(tmp_path, given), "-p", "coco-segm")
    size = sizes(given)
    for row in given.rows:
        mask = dense(row["segmentation"], size[row["image_id"]][::-1])
        counts = str(run_text(mask).encode())
        row["segmentation"] = {"size": list(mask.shape), "counts": counts}
    files = write(tmp_path, given)
    done = run("eval", *files, "-p", "coco-segm")
    assert done.code == 2
    assert "write counts.decode()" in done.err
    assert "1. masks-as-bytes" in run("doctor", *files, "-p", "coco-segm").out
    fixed = ap50(*files, "-p", "coco-segm", "--fix", "masks-as-bytes")
    assert fixed == pytest.approx(expected, abs=1e-6)


def test_masks_become_run_lengths_and_back() -> None:
    rng = np.random.default_rng(0)
    for height, width in ((3, 5), (4, 4), (1, 7)):
        mask = rng.random((height, width)) < 0.5
        for each in (mask, np.zeros_like(mask), np.ones_like(mask)):
            run_lengths: dict[str, Any] = encoded(each)
            assert np.array_equal(decoded(run_lengths), each)
            other = {**run_lengths, "counts": encoded(each.T)["counts"]}
            assert np.array_equal(decoded(along_columns(other)), each)
    square = rng.random((4, 4)) < 0.5
    for whole in (False, True):
        assert np.array_equal(decoded(transposed(square, whole=whole)), square.T)


@pytest.mark.slow
def test_corners_of_rotated_boxes_are_moved(tmp_path: Path) -> None:
    """DOTA's text: the table holds the shapes, and a protocol that adds classes of detections."""
    rng = np.random.default_rng(0)
    labels, found = tmp_path / "labelTxt", tmp_path / "found"
    labels.mkdir()
    found.mkdir()
    rows: dict[str, list[tuple[str, float, Any]]] = {"plane": [], "ship": [], "harbor": []}
    for i in range(30):
        lines = []
        for name in ("plane", "ship"):
            x, y, w, h = [*rng.uniform(100, 700, 2), *rng.uniform(30, 90, 2)]
            corners = np.array([x, y, x + w, y + 9, x + w - 9, y + h, x - 9, y + h - 9])
            lines.append(" ".join(f"{v:.2f}" for v in corners) + f" {name} 0\n")
            rows[name].append((f"P{i}", float(rng.uniform(0.3, 1)), corners))
        rows["harbor"].append((f"P{i}", 0.1, corners + 300))  # a class that the truth lacks
        (labels / f"P{i}.txt").write_text("".join(lines))

    def wrote(place: Path, factor: float) -> Path:
        place.mkdir(exist_ok=True)
        for name, some in rows.items():
            text = [
                f"{image} {score} {' '.join(map(str, corners * factor))}\n"
                for image, score, corners in some
            ]
            (place / f"Task1_{name}.txt").write_text("".join(text))
        return place

    def result(*words: object) -> Any:
        done = run("eval", labels, *words, "-p", "dota", "--format", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)["metrics"]

    right, half = result(wrote(found, 1.0)), wrote(tmp_path / "half", 0.5)
    assert "1. boxes-resized" in run("doctor", labels, half, "-p", "dota").out
    assert result(half) != right
    assert result(half, "--fix", "boxes-resized") == right


@pytest.mark.slow
def test_records_in_python_keep_their_shapes() -> None:
    import detmap

    right, given = wrong("masks", "classes in another order")
    (finding,) = detmap.doctor(given.truth, given.rows, "coco-segm")
    expected = detmap.evaluate(right.truth, right.rows, "coco-segm")["AP50"]
    assert (finding.name, finding.ap50_after) == ("classes-permuted", pytest.approx(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "is_said"),
    [
        (lambda ring: ring, False),
        (lambda ring: [2 * v for v in ring], True),
        (lambda ring: [*ring[::2], *ring[1::2]], True),
        (lambda ring: [0] * len(ring), False),  # a stand-in of a converter
        (lambda ring: ring[:4], False),
    ],
)
def test_polygons_that_contradict_boxes(tmp_path: Path, change: Any, is_said: bool) -> None:
    given = generated(0)
    for row in given.truth["annotations"]:
        row["segmentation"] = [change(ring) for ring in row["segmentation"]]
    files = write(tmp_path, given)
    for words in (("eval", *files), ("doctor", *files), ("doctor", files[0])):
        done = run(*words, "-p", "coco-bbox")
        assert ("truth-shapes" in done.out + done.err) == is_said, words
    assert run("eval", *files, "-p", "coco-bbox", "--strict").code == 2 * is_said


def posed(given: Set, change: Any) -> None:
    """Change the (17, 3) points of each row."""
    for row in given.rows:
        points = np.reshape(row["keypoints"], (-1, 3))
        row["keypoints"] = np.asarray(change(points), dtype=float).ravel().tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda p: p[[0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15]],
        lambda p: np.roll(p, 1, axis=0),
    ],
)
def test_another_order_of_keypoints_is_measured(tmp_path: Path, change: Any) -> None:
    given = generated(0, "keypoints").copy()
    posed(given, change)
    files = write(tmp_path, given)
    (finding,) = detmap.doctor(*files, "coco-keypoints")
    assert finding.name == "unexplained"
    assert "0% keypoints that fit" in finding.sentence
    assert "if the points are in another order" in finding.sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("boxes-normalised", lambda p: p / [1600, 1200, 1]),
        ("boxes-xy-swapped", lambda p: p[:, [1, 0, 2]]),
        ("boxes-resized", lambda p: p * [0.5, 0.5, 1]),
        ("boxes-shifted", lambda p: np.add(p, [12, 8, 0])),
    ],
)
def test_points_that_do_not_fill_an_object(tmp_path: Path, name: str, change: Any) -> None:
    """Boxes around points are compared with boxes around the points of objects."""
    given = generated(0, "keypoints").copy()
    for image in given.truth["images"]:
        image |= {"width": 1600, "height": 1200}
    for each in given.truth["annotations"]:
        x, y, w, h = each["bbox"]
        each["bbox"] = [x - 0.2 * w, y - 0.3 * h, 1.4 * w, 1.7 * h]
        each["area"] = w * h
    posed(given, change)
    found = detmap.doctor(*write(tmp_path, given), "coco-keypoints")
    assert [each.name for each in found] == [name]


def rotated(center: Any, size: Any, angle: Any) -> Any:
    """(n, 4, 2) corners."""
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2 * size[:, None]
    c, s = np.cos(angle), np.sin(angle)
    turn = np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], -2)
    return corners @ turn + center[:, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("", lambda c, s, a: rotated(c, s, a)),
        ("width and height are exchanged", lambda c, s, a: rotated(c, s[:, ::-1], a)),
        ("angles have the other sign", lambda c, s, a: rotated(c, s, -a)),
        ("put in order around the box", lambda c, s, a: rotated(c, s, a)[:, [0, 2, 1, 3]]),
    ],
)
def test_another_meaning_of_rotated_boxes_is_seen(tmp_path: Path, said: str, change: Any) -> None:
    rng = np.random.default_rng(0)
    center, size = rng.uniform(100, 900, (200, 2)), rng.uniform([50, 15], [120, 45], (200, 2))
    angle, image = rng.uniform(-1.5, 1.5, 200), np.sort(rng.integers(0, 20, 200))
    truth, found = tmp_path / "labelTxt", tmp_path / "found"
    truth.mkdir()
    found.mkdir()
    objects = rotated(center, size, angle).reshape(-1, 8)
    rows = change(center, size * rng.normal(1, 0.05, (200, 2)), angle).reshape(-1, 8)
    for k in range(20):
        lines = [" ".join(f"{v:.1f}" for v in each) for each in objects[image == k]]
        (truth / f"P{k}.txt").write_text("".join(f"{line} ship 0\n" for line in lines))
    numbers = [" ".join(f"{v:.1f}" for v in row) for row in rows]
    lines = [f"P{image[k]} {1 - k / 200:.4f} {numbers[k]}" for k in range(200)]
    (found / "Task1_ship.txt").write_text("\n".join(lines))
    findings = detmap.doctor(truth, found, "dota")
    assert [each.name for each in findings] == (["unexplained"] if said else [])
    assert not said or said in findings[0].sentence


BAD_BOXES = ([0, 0, 4], [], "abcd", [0, 0, 4, 4, 5], [0, 0, "a", 4], {}, 5, [[0, 0, 4, 4]], None)


@pytest.mark.parametrize("with_mask", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("box", BAD_BOXES, ids=str)
def test_a_box_beside_masks_that_is_not_four_numbers_is_named(
    tmp_path: Path, box: Any, last: bool, with_mask: bool
) -> None:
    """The search for a cause of the error ended in a traceback."""
    mask = {"size": [4, 4], "counts": "0`0"}
    row = {"image_id": 1, "category_id": 1, "segmentation": mask, "score": 0.5}
    truth = {
        "images": [{"id": 1, "height": 4, "width": 4}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{**row, "id": 1, "area": 16, "bbox": [0, 0, 4, 4]}],
    }
    bad = row | {"bbox": box}
    if not with_mask:
        del bad["segmentation"]
    rows = [row | {"bbox": [0, 0, 4, 4]}, bad][:: 1 if last else -1]
    files = write(tmp_path, Set(truth, rows))
    if with_mask and not last and not box:  # the first record without a box decides for all
        assert detmap.evaluate(*files, "coco-segm")["AP"] > 0.99
        return
    with pytest.raises(detmap.DataError, match=rf"\[{int(last)}\]\.(bbox|segmentation)"):
        detmap.evaluate(*files, "coco-segm")
