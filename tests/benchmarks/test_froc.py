"""FROC of spheres and boxes: the goldens, and a slow restatement."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.benchmarks import goldens
from tests.reference import own_rules
from tests.support.tier import drawn


@pytest.mark.parametrize("case", goldens.CASES)
def test_goldens_of_spheres(case: str) -> None:
    place = goldens.folder("luna16-froc") / case
    for key, golden in goldens.of_case("luna16-froc", case).items():
        most = max(int(key.split()[-1]), 0)  # -1 is no limit
        result = detmap.evaluate(
            place / "annotations.csv",
            place / "results.csv",
            "froc-luna16",
            settings={"froc.most_marks": most},
        )
        expected = [golden["CPM"], *golden["sensitivity at 1/8 .. 8"]]
        assert list(result.metrics.values()) == pytest.approx(expected, abs=goldens.WITHIN)


@pytest.mark.parametrize("case", goldens.CASES)
@pytest.mark.parametrize(("lookup", "name"), [("last", "MULAN"), ("first", "3DCE")])
def test_goldens_of_boxes(case: str, lookup: str, name: str) -> None:
    place = goldens.folder("deeplesion-froc") / case
    seven = [0.125, 0.25, 0.5, 1, 2, 4, 8]
    for key, golden in goldens.of_case("deeplesion-froc", case).items():
        for rates, settings in (("DeepLesion", {}), ("seven", {"froc.rates": seven})):
            result = detmap.evaluate(
                place / "truth.json",
                place / "dets.json",
                "froc-boxes",
                settings={"iou.thresholds": [float(key[4:])], "froc.lookup": lookup} | settings,
            )
            found = list(result.metrics.values())
            assert found[1:] == pytest.approx(golden[name][rates], abs=goldens.WITHIN)
            if (rates, name) == ("DeepLesion", "MULAN"):
                assert found[0] == pytest.approx(golden["mean of .5, 1, 2, 4 (MULAN)"], abs=1e-9)


def spheres(seed: int, folder: Path) -> tuple[list[own_rules.Mark], list[own_rules.Sphere]]:
    """Files of a few scans, with many marks near nodules."""
    rng = np.random.default_rng(seed)
    nodules = [
        (int(rng.integers(5)), tuple(rng.integers(0, 30, 3).tolist()), d, bool(rng.random() < 0.3))
        for d in rng.choice([-1.0, 0.0, 4.0, 9.0, 25.0], 12).tolist()
    ]
    marks = [
        (int(rng.integers(5)), tuple(rng.integers(0, 30, 3).tolist()), round(float(s), 1))
        for s in rng.random(40)
    ]
    head = "seriesuid,coordX,coordY,coordZ,"
    for name, excluded in (("annotations", False), ("annotations_excluded", True)):
        rows = [f"s.{i},{x},{y},{z},{d}" for i, (x, y, z), d, out in nodules if out == excluded]
        text = "\n".join([head + "diameter_mm", *rows])
        (folder / f"{name}.csv").write_text(text + "\n")
    rows = [f"s.{i},{x},{y},{z},{s}" for i, (x, y, z), s in marks]
    (folder / "results.csv").write_text("\n".join([head + "probability", *rows]) + "\n")
    (folder / "seriesuids.csv").write_text("".join(f"s.{i}\n" for i in range(5)))
    return marks, nodules


@pytest.mark.parametrize("seed", range(drawn(30)))
def test_any_spheres_as_restated(seed: int, tmp_path: Path) -> None:
    marks, nodules = spheres(seed, tmp_path)
    result = detmap.evaluate(tmp_path / "annotations.csv", tmp_path / "results.csv", "froc-luna16")
    points = [(0.0, 0), *own_rules.froc_points(marks, nodules, 5)]
    rate, found = np.array(points, dtype=float).T
    n_objects = sum(not out for *_, out in nodules)
    rates = [0.125, 0.25, 0.5, 1, 2, 4, 8]
    expected = np.interp(rates, rate, found / n_objects)
    if not set(rate.tolist()) & set(rates):  # else the reference's rounding decides
        assert list(result.metrics.values())[1:] == pytest.approx(expected.tolist(), abs=1e-9)
    row = result.per_class[0]
    assert (row["found"], row["fp"]) == (found[-1], round(rate[-1] * 5))


@pytest.mark.parametrize(
    ("diameter", "apart", "found"),
    [(10, 4.75, 1), (10, 5, 0), (0, 0, 0), (0, 4, 0), (-1, 4.75, 1), (-1, 5, 0)],
)
def test_a_mark_hits_a_nodule_that_is_nearer_than_its_radius(
    tmp_path: Path, diameter: float, apart: float, found: int
) -> None:
    """A negative diameter is an unknown one, 10 mm; one of 0 is not."""
    head = "seriesuid,coordX,coordY,coordZ,"
    nodules, excluded = f"{head}diameter_mm\ns,1,2,3,{diameter}\n", f"{head}diameter_mm\n"
    texts = {
        **{"annotations.csv": nodules, "annotations_excluded.csv": excluded},
        **{"results.csv": f"{head}probability\ns,1,{2 + apart},3,0.5\n", "seriesuids.csv": "s\n"},
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    result = detmap.evaluate(tmp_path / "annotations.csv", tmp_path / "results.csv", "froc-luna16")
    assert (result.per_class[0]["found"], result.per_class[0]["fp"]) == (found, 1 - found)
    rates = ("1/8", "1/4", "1/2", "1", "2", "4", "8")
    assert [*result.metrics] == ["CPM", *(f"sensitivity@{rate}" for rate in rates)]


Boxes = list[tuple[int, int, int, int]]
A, FAR = (0, 0, 10, 10), (50, 50, 10, 10)


def froc(objects: Boxes, found: Boxes, settings: Any = {}) -> float:  # noqa: B006
    """Sensitivity at one false positive per image, of one image."""
    truth = detmap.truth_from_arrays([1] * len(objects), [1] * len(objects), objects)
    score = np.linspace(0.9, 0.1, len(found))
    detections = detmap.detections_from_arrays(
        truth, [1] * len(found), [1] * len(found), found, score
    )
    crowd = {"crowd": np.array([box == FAR for box in objects])}
    truth = replace(truth, roles=crowd)
    known = {"froc.rates": [1], "froc.mean_up_to": 1} | settings
    return detmap.evaluate(truth, detections, "froc-boxes", settings=known).metrics["CPM"]


def test_a_detection_finds_all_that_it_reaches_and_is_never_false_then() -> None:
    twice = [A, (1, 0, 10, 10)]
    assert froc(twice, [A]) == 1.0
    assert froc([A, (90, 90, 5, 5)], [A, A, A, (30, 30, 5, 5), (90, 90, 5, 5)]) == 1.0


def test_detections_on_ignored_regions_are_not_false() -> None:
    inside = (50, 50, 5, 5)
    objects = [A, FAR]
    far = [(20 * i, 80, 5, 5) for i in range(2)]
    assert froc(objects, [inside, *far, A]) == froc([A], [*far, A])
    assert froc(objects, [inside, *far, A], {"matching.neutral": {}}) == 0.0


def test_each_key_moves_a_number() -> None:
    data = ([A, (90, 90, 5, 5)], [A, (20, 80, 5, 5), (90, 90, 5, 5), (40, 80, 5, 5)])
    assert froc(*data) == 1.0
    assert froc(*data, {"froc.lookup": "first"}) == 0.5
    assert froc(*data, {"froc.rates": [0.5, 1], "froc.mean_up_to": 0.5}) == 0.5
    assert froc([A], [(0, 0, 5, 10)], {"iou.comparison": ">"}) == 0.0
    assert froc([A], [(0, 0, 5, 10)]) == 1.0


@pytest.mark.parametrize(
    ("sort", "scores", "n"),
    [
        ("reversed", [0.5, 0.5, 0.4], 2),
        ("reversed", [0.5, 0.6, 0.4], 0),
        ("stable", [0.5, 0.5, 0.4], 0),
    ],
)
def test_an_order_that_is_left_open_has_a_note(sort: str, scores: list[float], n: int) -> None:
    truth = detmap.truth_from_arrays([1], [1], [A])
    found = detmap.detections_from_arrays(truth, [1] * 3, [1] * 3, [A, FAR, FAR], scores)
    result = detmap.evaluate(truth, found, "froc-boxes", settings={"ranking.sort": sort})
    assert sum(note.count for note in result.notes if note.code == "order-undefined") == n


def test_two_thresholds_are_refused() -> None:
    with pytest.raises(detmap.ProtocolError, match="one threshold"):
        froc([A], [A], {"iou.thresholds": [0.5, 0.7]})


def test_the_limit_drops_all_ties_at_the_cut(tmp_path: Path) -> None:
    spheres(3, tmp_path)
    paths = (tmp_path / "annotations.csv", tmp_path / "results.csv")
    truth = detmap.read_truth(paths[0], format="luna16")
    detections = detmap.read_detections(paths[1], truth, format="luna16")
    cut = detmap.evaluate(truth, detections, "froc-luna16", settings={"froc.most_marks": 3})
    kept = 0
    for i in range(5):
        own = np.sort(detections.score[detections.image == i])[::-1]
        kept += len(own) if len(own) <= 3 else int((own > own[3]).sum())
    (note,) = (note for note in cut.notes if note.code == "marks-cut")
    assert note.count == len(detections) - kept


def test_boxes_are_no_spheres() -> None:
    truth = detmap.truth_from_arrays([1], [1], [A])
    detections = detmap.detections_from_arrays(truth, [1], [1], [A], [0.5])
    with pytest.raises(detmap.DataError, match="spheres"):
        detmap.evaluate(truth, detections, "froc-luna16")
