"""Crowded images under the benchmarks' own rules: pairs come in blocks, which no number depends
on, and what takes too long is refused with the image's name.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.crowdhuman import jaccard_index
from detmap.benchmarks.overlaps import polygon_iou
from detmap.benchmarks.sa_co import cgf1
from detmap.benchmarks.shared import effort, image_pairs
from detmap.benchmarks.shared.image_pairs import EVERY_PAIR, pairs_near
from detmap.benchmarks.uavdt import files as uavdt
from detmap.core.base import pair_limits
from detmap.core.tables import Images
from detmap.errors import CrowdedError
from tests.benchmarks import test_froc as froc_files
from tests.benchmarks import test_kitti as kitti_tables
from tests.benchmarks import test_people as people_tables
from tests.protocol.test_keys import data
from tests.support.tier import drawn

LIMITS = {
    "MOST_LISTED": "LISTED_PER_ROW",
    "MOST_COMPARED": "COMPARED_PER_ROW",
    "MOST_STEPS": "STEPS_PER_ROW",
    "MOST_POLYGONS": "POLYGONS_PER_ROW",
}


def evaluated(tables: Any, protocol: str, **settings: Any) -> str:
    """The metrics and rows in every bit."""
    result = detmap.evaluate(*tables, protocol, settings=settings)
    return repr((result.metrics, result.per_class))


def sphere_files(seed: int, folder: Path) -> tuple[Path, Path]:
    froc_files.spheres(seed, folder)
    return folder / "annotations.csv", folder / "results.csv"


def moving_tables(seed: int) -> Any:
    """Three images, the second without objects, with boxes that tie."""
    rng = np.random.default_rng(seed)
    n, m = 12, 30
    boxes = np.hstack([rng.integers(0, 4, (n, 2)) * 9.0, rng.integers(9, 20, (n, 2))])
    found = boxes[rng.integers(0, n, m)] + rng.integers(-4, 5, (m, 4))
    truth = detmap.truth_from_arrays(
        rng.choice([1, 3], n), rng.integers(1, 3, n), boxes, images=[1, 2, 3]
    )
    motion = {"motion_iou": rng.choice([0.3, 0.7, 0.8, 0.95], n)}
    truth = replace(truth, attributes={**truth.attributes, **motion})
    label, score = rng.integers(1, 3, m), np.round(rng.random(m), 1)
    return truth, detmap.detections_from_arrays(truth, rng.integers(1, 4, m), label, found, score)


@pytest.mark.parametrize("seed", range(drawn(12)))
def test_blocks_of_pairs_change_no_number(seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    def numbers() -> list[str]:
        crowd = people_tables.draw(np.random.default_rng(seed), 4)
        people = people_tables.tables_of(*crowd, size=(40, 40))
        cars = kitti_tables.tables(seed)
        return [
            evaluated(cars, "kitti"),
            evaluated(cars, "froc-boxes"),
            evaluated(cars, "froc-boxes", **{"boxes.extent": "inclusive", "iou.cap": 0}),
            evaluated(cars, "cgf1", **{"cgf1.score": 0}),
            evaluated(sphere_files(seed, tmp_path), "froc-luna16"),
            evaluated(people, "crowdhuman"),
            evaluated(moving_tables(seed), "imagenet-vid"),
        ]

    whole = numbers()
    for module in (image_pairs, cgf1):
        monkeypatch.setattr(module, "AT_ONCE", 3)
    assert numbers() == whole


@pytest.mark.parametrize("seed", range(drawn(30)))
@pytest.mark.parametrize("apart", [0.0, -1.0, EVERY_PAIR])
def test_pairs_that_are_near(seed: int, apart: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_pairs, "AT_ONCE", 4)
    rng = np.random.default_rng(seed)
    names = Images(np.array([3, 5, 9]), ("3", "5", "9"), np.full(3, np.nan), np.full(3, np.nan))
    sides = []
    for n in rng.integers(0, 9, 2):
        corner = rng.integers(0, 5, (n, 2)) * 1.0
        sides.append(
            (rng.integers(0, 3, n), np.hstack([corner, corner + rng.integers(0, 4, (n, 2))]))
        )
    found = [
        pair
        for d, g in pairs_near(names, *sides, apart)
        for pair in zip(d.tolist(), g.tolist(), strict=True)
    ]
    (image, a), (of_image, b) = sides
    assert found == [
        (d, g)
        for d in range(len(a))
        for g in range(len(b))
        if image[d] == of_image[g]
        and not (np.minimum(a[d, 2:], b[g, 2:]) - np.maximum(a[d, :2], b[g, :2]) <= apart).any()
    ]


@pytest.mark.parametrize("seed", range(drawn(60)))
def test_parts_of_edges_are_connected(seed: int) -> None:
    """Also long chains in any order, whose ends are joined in many steps."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    grid = rng.random((n, n)) < rng.choice([0.1, 0.3])
    if seed % 2:
        grid = (np.eye(n) + np.eye(n, k=1) > 0)[rng.permutation(n)][:, rng.permutation(n)]
    i, j = np.nonzero(grid)
    parts = jaccard_index.connected_parts(i, j).tolist()
    names = list(range(len(i)))  # of the edges, until those that meet share one
    for _ in names:
        for a in range(len(i)):
            for b in range(len(i)):
                if i[a] == i[b] or j[a] == j[b]:
                    names[a] = names[b] = min(names[a], names[b])
    assert [parts.index(part) for part in parts] == [names.index(name) for name in names]


def test_many_equal_boxes_are_one_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thresholds of the score, below all scores: the boxes are assigned once."""
    sizes = []
    largest = jaccard_index.largest_sum
    monkeypatch.setattr(
        jaccard_index,
        "largest_sum",
        lambda values, spend: sizes.append(values.shape) or largest(values, spend),
    )
    box = (0.0, 0.0, 9.0, 9.0)
    people = people_tables.tables_of([[(box, False)] * 40], [[(box, 0.95)] * 40], size=(20, 20))
    assert detmap.evaluate(*people, "crowdhuman").metrics["JI"] == pytest.approx(1)
    assert sizes == [(40, 40)]


def limit(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    module = effort if name in ("MOST_ASSIGNED", "MOST_STEPS") else pair_limits
    module = polygon_iou if name == "MOST_POLYGONS" else module
    monkeypatch.setattr(module, name, most)
    if name in LIMITS:
        monkeypatch.setattr(module, LIMITS[name], 0)


@pytest.mark.parametrize("name", ["MOST_LISTED", "MOST_COMPARED"])
def test_too_many_pairs_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = kitti_tables.tables(1)
    limit(monkeypatch, name, 3)
    with pytest.raises(CrowdedError, match=r"image [1234]: the .* too crowded"):
        detmap.evaluate(*tables, "kitti")


@pytest.mark.parametrize("protocol", ["froc-boxes", "froc-luna16", "imagenet-vid"])
def test_too_many_near_pairs_are_refused(protocol: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Apart from one another, the same boxes are not."""
    tables: Any = kitti_tables.tables(1)
    if protocol == "imagenet-vid":
        tables = moving_tables(1)
    elif protocol == "froc-luna16":
        tables = sphere_files(1, tmp_path)
    limit(monkeypatch, "MOST_COMPARED", 3000)
    monkeypatch.setattr(image_pairs, "SLOWER", 100)
    with pytest.raises(CrowdedError, match=r"image .*: the images are too crowded: .* is 30\)"):
        detmap.evaluate(*tables, protocol)


@pytest.mark.parametrize(
    ("name", "most", "what"),
    [
        ("MOST_ASSIGNED", 8, "3 and 3 boxes are too many to be assigned"),
        ("MOST_STEPS", 5000, "assigning them one-to-one takes too long"),
    ],
)
@pytest.mark.parametrize("protocol", ["crowdhuman", "cgf1"])
def test_a_large_assignment_is_refused(
    protocol: str, name: str, most: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = (0.0, 0.0, 9.0, 9.0)
    boxes = [[(box, False)]] * 2 + [[(box, False)] * 3]
    people = people_tables.tables_of(boxes, [[(box, 0.9) for box, _ in each] for each in boxes])
    images = replace(people[0].images, width=np.full(3, 20.0), height=np.full(3, 20.0))
    people = replace(people[0], images=images), people[1]
    assert detmap.evaluate(*people, protocol)
    limit(monkeypatch, name, most)
    with pytest.raises(CrowdedError, match=f"image 3: .*{what}"):
        detmap.evaluate(*people, protocol)


def test_a_large_assignment_ends_with_2(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    from detmap.cli import main

    lines = {
        "t": {"ID": "a", "gtboxes": [{"tag": "person", "fbox": [0, 0, 9, 9]}] * 3},
        "d": {
            "ID": "a",
            "width": 20,
            "height": 20,
            "dtboxes": [{"box": [0, 0, 9, 9], "score": 0.9, "tag": 1}] * 3,
        },
    }
    for name, line in lines.items():
        (tmp_path / f"{name}.odgt").write_text(json.dumps(line) + "\n")
    limit(monkeypatch, "MOST_ASSIGNED", 8)
    paths = [str(tmp_path / f"{name}.odgt") for name in lines]
    assert main(["eval", *paths, "-p", "crowdhuman"]) == 2
    assert "image 1: 3 and 3 boxes are too many" in capsys.readouterr().err


def test_effort_grows_with_the_boxes() -> None:
    few, many = effort.Effort(10), effort.Effort(10_000_000)
    assert few.left == effort.MOST_STEPS < many.left


def test_boxes_that_differ_between_subsets(monkeypatch: Any) -> None:
    """Seven subsets of Caltech, each as slow as four pairs of a kernel."""
    tables = data(
        *([(9, 9, 9, 99)] * 4, [(9, 9, 9, 99)] * 2, None),
        **{"images": [1, 2], "object_image": [2] * 4, "image": [1, 2]},
        attributes={"visible": [1] * 4, "left": [9] * 4, "right": [18] * 4}
        | {"top": [9] * 4, "bottom": [108] * 4},
    )
    limit(monkeypatch, "MOST_COMPARED", 4 * 7 * 4)
    assert detmap.evaluate(*tables, "caltech")
    limit(monkeypatch, "MOST_COMPARED", 4 * 7 * 4 - 1)
    with pytest.raises(CrowdedError, match="image 2: the images are too crowded: 4 pairs"):
        detmap.evaluate(*tables, "caltech")


def test_the_image_of_too_many_overlaps_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = data([(0, 0, 9, 9)] * 2, [(0, 0, 9, 9)] * 2, size=(20, 20))
    plain = {"evaluation.extra": []}
    limit(monkeypatch, "MOST_LISTED", 4)
    assert detmap.evaluate(*tables, "crowdhuman", settings=plain)
    limit(monkeypatch, "MOST_LISTED", 3)
    with pytest.raises(CrowdedError, match="image 1: the boxes are too crowded"):
        detmap.evaluate(*tables, "crowdhuman", settings=plain)


def ships(folder: Path, image: str, *places: int) -> tuple[Path, Path]:
    """Four objects on one spot, and detections at some places; DOTA's files."""
    for name, line, columns in (
        ("labelTxt/P1.txt", "{box} ship 0\n", [0] * 4),
        ("res/Task1_ship.txt", image + " 0.{i} {box}\n", places),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        boxes = (f"{x} 0 {x + 9} 0 {x + 9} 9 {x} 9" for x in columns)
        lines = (line.format(i=i + 1, box=box) for i, box in enumerate(boxes))
        (folder / name).write_text("".join(lines))
    return folder / "labelTxt", folder / "res"


@pytest.mark.parametrize("protocol", ["dota", "hrsc2016"])
def test_polygons_that_may_overlap_are_counted(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One detection lies on four objects; those beside them cost nothing."""
    limit(monkeypatch, "MOST_POLYGONS", 4)
    assert detmap.evaluate(*ships(tmp_path, "P1", 0, 50, 60, 70), protocol)
    with pytest.raises(CrowdedError, match=r"image 'P1': the polygons are .* more than 4 pairs"):
        detmap.evaluate(*ships(tmp_path, "P1", 0, 0), protocol)


def test_polygons_of_patches_that_may_overlap_are_counted(tmp_path: Path, monkeypatch: Any) -> None:
    limit(monkeypatch, "MOST_POLYGONS", 4)
    patch = "P1__1__0___0"
    assert detmap.evaluate(*ships(tmp_path, patch, 0, 50, 100), "dota")
    with pytest.raises(CrowdedError, match="image 'P1': the polygons are too crowded"):
        detmap.evaluate(*ships(tmp_path, patch, 50, 50, 50, 50), "dota")


def test_frames_that_only_a_number_makes_are_limited(tmp_path: Path, monkeypatch: Any) -> None:
    """A last frame of 3 and one of 4 make 7 images."""
    for name, last in (("M1", 3), ("M2", 4)):
        (tmp_path / f"{name}_gt_whole.txt").write_text(f"{last},1,10,10,50,40,1,1,0\n")
        (tmp_path / f"{name}.txt").write_text("1,-1,10,10,50,40,.9\n")
    assert len(detmap.read_truth(tmp_path, format="uavdt").images) == 7
    monkeypatch.setattr(uavdt, "MOST_FRAMES", 6)
    with pytest.raises(detmap.DataError, match=r"M2_gt_whole.txt: 4 frames, of 7 of all sequences"):
        detmap.evaluate(tmp_path, tmp_path, "uavdt")
