"""CrowdHuman, CityPersons, Caltech and WIDER FACE against goldens and reference implementations."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.crowdhuman import jaccard_index
from detmap.benchmarks.shared.effort import Effort
from detmap.core.adapters import read_truth_for
from detmap.reproducibility import receipt
from tests.protocol.test_keys import FAR, PLAIN, A, B, data
from tests.reference import people
from tests.support.real_data import data_files, data_path
from tests.support.tier import drawn

FILES = {
    "widerface": ("gt", "pred"),
    "crowdhuman": ("annotation.odgt", "results.odgt"),
    "citypersons": ("truth.json", "dets.json"),
    "caltech": ("annotations", "results"),
}
REFERENCES = [0.01, 0.0178, 0.0316, 0.0562, 0.1, 0.1778, 0.3162, 0.5623, 1.0]
MR_4 = [0.0001, 0.0003, 0.001, 0.0032, 0.01, 0.0316, 0.1, 0.3162, 1.0]


def goldens(name: str) -> dict[str, Any]:
    cases: dict[str, Any] = {}
    for path in data_files(f"benchmarks/{name}/goldens*_public.json"):
        cases |= json.loads(path.read_text())["cases"]
    return cases


CASES = [(name, case) for name in FILES for case in goldens(name)]
cases = pytest.mark.parametrize("name, case", CASES or [("", "")])


def read(name: str, case: str) -> tuple[detmap.Truth, detmap.Detections, detmap.Protocol]:
    folder, rules = data_path("benchmarks", name, case), detmap.load_protocol(name)
    truth = read_truth_for(folder / FILES[name][0], rules)
    detections = detmap.read_detections(
        folder / FILES[name][1], truth, preferred_format=rules.files.detections
    )
    return truth, detections, rules


def expected(name: str, golden: dict[str, Any]) -> dict[str, float]:
    if name in ("widerface", "crowdhuman"):
        own = ("Easy", "Medium", "Hard") if name == "widerface" else ("AP", "MR-2", "JI")
        return {metric: golden[metric] for metric in own}
    row = "MR" if name == "citypersons" else "MR50"
    other = {"Overlap=75": "MR75", "Reasonable": row}
    rates = {setup: each["MR-2"] for setup, each in golden.items() if isinstance(each, dict)}
    return {
        other.get(setup, f"{row}-{setup.replace('=', '-')}"): float(rate)
        for setup, rate in rates.items()
    }


@cases
def test_the_numbers_of_the_original_code(name: str, case: str) -> None:
    tables = read(name, case)
    found = detmap.evaluate(*tables).metrics
    wanted = expected(name, goldens(name)[case])
    assert {metric: found[metric] for metric in wanted} == pytest.approx(
        wanted, abs=1e-12, nan_ok=True
    )
    if name == "widerface":
        assert found == wanted


@pytest.mark.parametrize("case", goldens("crowdhuman") or [""])
def test_the_other_numbers_of_crowdhuman(case: str) -> None:
    tables, golden = read("crowdhuman", case), goldens("crowdhuman")[case]
    assert jaccard_index.ji_at_scores(*tables) == pytest.approx(golden["JI_at_score"], abs=1e-12)
    result = detmap.evaluate(*tables, settings={"miss_rate.references": MR_4})
    assert "MR-2" not in result.metrics
    assert result.metrics["MR"] == pytest.approx(golden["MR-4"], abs=1e-12)
    counts = result.counts()
    assert [counts["tp"], counts["fp"]] == [golden["n_tp"], golden["n_fp"]]
    assert result.metrics["AP"] == golden["AP"]


@pytest.mark.parametrize("case", goldens("citypersons") or [""])
def test_the_recalls_of_citypersons(case: str) -> None:
    tables, golden = read("citypersons", case), goldens("citypersons")[case]
    missed = detmap.evaluate(*tables).scores.own["MR"]
    for a, setup in enumerate(each for each in golden.values() if isinstance(each, dict)):
        recalls = 1 - np.exp(missed[a, 0, :, 0])
        assert recalls == pytest.approx(np.array(setup["recall_at_9_fppi"][0]), abs=1e-12)


def test_shuffled_files_of_wider_face_get_the_number_of_the_port_and_a_note() -> None:
    truth, detections, rules = read("widerface", "1")
    rows = np.random.default_rng(3).permutation(len(detections))
    result = detmap.evaluate(truth, detections.take(rows), rules)
    assert max(result.metrics.values()) < 0.52
    assert "score-unsorted" in [note.code for note in result.notes]
    settings = {"detections.score_order": "score"}
    sorted_anyway = detmap.evaluate(truth, detections.take(rows), rules, settings=settings)
    assert sorted_anyway.metrics == detmap.evaluate(truth, detections, rules).metrics


# ---- reference implementations


def draw(rng: Any, n_images: int) -> tuple[list[people.Objects], list[people.Found]]:
    """Crowded objects and detections on a coarse grid, so that overlaps and scores tie."""
    objects: list[people.Objects] = []
    found: list[people.Found] = []
    for _ in range(n_images):
        boxes = [
            tuple(map(float, [*rng.integers(0, 30, 2), *rng.integers(5, 25, 2)]))
            for _ in range(rng.integers(0, 7))
        ]
        objects.append([(box, bool(rng.random() < 0.25)) for box in boxes])
        moved = [
            (b[0] + rng.integers(-2, 3), b[1], b[2], b[3] + rng.integers(0, 4)) for b in boxes * 2
        ]
        found.append([(box, round(float(rng.random()), 1)) for box in moved if rng.random() < 0.7])
    return objects, found


def tables_of(objects: list[people.Objects], found: list[people.Found], **settings: Any) -> Any:
    images = list(range(1, len(objects) + 1))
    rows = [(i, each) for i, image in zip(images, found, strict=True) for each in image]
    things = [(i, each) for i, image in zip(images, objects, strict=True) for each in image]
    return data(
        [box for _, (box, _) in things],
        [box for _, (box, _) in rows],
        [score for _, (_, score) in rows] or None,
        images=images,
        object_image=[i for i, _ in things],
        image=[i for i, _ in rows],
        roles={"ignore": [ignored for _, (_, ignored) in things]},
        **settings,
    )


@pytest.mark.parametrize("seed", range(drawn(24)))
def test_crowds_like_the_reference_implementation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objects, found = draw(rng, 4)
    tables = tables_of(objects, found, size=(200, 200))
    n_objects = sum(not ignored for image in objects for _, ignored in image)
    images = [
        people.greedy(f, o, 0.5, strict=True, epsilon=1e-6)
        for f, o in zip(found, objects, strict=True)
    ]
    points = people.curve(images, max(n_objects, 1))
    plain = {"subsets": {"all": {}}, "detections.margins": {}, "boxes.aspect": 0}
    plain |= {"iou.thresholds": [0.5], "metrics": ["AP", "MR"], "detections.outside": "count"}
    result = detmap.evaluate(*tables, "crowdhuman", settings=plain)
    if not n_objects:
        assert np.isnan(result.metrics["MR"])
        return
    references = list(result.protocol.miss_rate.references)
    wanted = people.miss_rate(points, references, "first_reached", "zero")
    assert result.metrics["MR"] == pytest.approx(wanted, abs=1e-9)
    assert result.metrics["AP"] == pytest.approx(people.straight_lines(points), abs=1e-12)


@pytest.mark.parametrize("seed", range(drawn(24)))
def test_faces_like_the_reference_implementation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objects, found = draw(rng, 4)
    if seed % 2:
        found = [sorted(image, key=lambda each: -each[1]) for image in found]
    scores = {score for image in found for _, score in image}
    if len(scores) < 2 or all(ignored for image in objects for _, ignored in image):
        return
    truth, detections = tables_of(objects, found)
    corners = truth.boxes.copy()
    corners[:, 2:] += corners[:, :2]
    more = detections.boxes.copy()
    more[:, 2:] += more[:, :2]
    listed = (~truth.role("ignore")).astype(float)
    truth = replace(
        truth,
        boxes=corners,
        box_format="voc",
        attributes={
            **truth.attributes,
            **{f"listed_{s}": listed for s in ("easy", "medium", "hard")},
        },
    )
    detections = replace(detections, boxes=more, box_format="voc")
    settings = {"ap.samples": 20, "scope.unlisted": "judge"}
    images = [(f, o) for f, o in zip(found, objects, strict=True) if o]
    kept = np.isin(detections.image, [i for i, o in enumerate(objects) if o])
    rows = np.flatnonzero(kept)
    if len({detections.score[r] for r in rows}) < 2:
        return
    result = detmap.evaluate(truth, detections.take(rows), "widerface", settings=settings)
    assert result.metrics["Easy"] == pytest.approx(people.wider(images, 20), abs=1e-12)


@pytest.mark.parametrize("seed", range(drawn(40)))
def test_pairs_of_the_largest_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6, 2)
    edges = {
        (i, j): 0.5 + rng.integers(1, 9) / 20
        for i in range(n)
        for j in range(m)
        if rng.random() < 0.6
    }
    i, j = np.array(list(edges), dtype=np.int64).reshape(-1, 2).T
    rows = jaccard_index.heaviest_pairs((i, j, np.array(list(edges.values()))), Effort(0))
    pairs = list(zip(*(each.tolist() for each in rows), strict=True))
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert sum(edges[pair] for pair in pairs) == pytest.approx(people.heaviest(edges))


def test_the_jaccard_index_is_an_extra_metric() -> None:
    """One pair of one object and two detections: 1 / 2 of the image; without, 0 of it."""
    tables = data([A], [A, FAR], [0.95, 0.05], size=(100, 100))
    settings = PLAIN | {"evaluation.extra": ["JI"]}
    assert detmap.evaluate(*tables, "coco-bbox", settings=settings).metrics["JI"] == pytest.approx(
        1, abs=1e-5
    )
    low = data([A], [A, FAR], [0.05, 0.05], size=(100, 100))
    found = detmap.evaluate(*low, "coco-bbox", settings=settings).metrics["JI"]
    assert found == pytest.approx(1 / 2, abs=1e-5)
    assert "JI" not in detmap.evaluate(*low, "coco-bbox", settings=PLAIN).metrics
    crowd = data([A, (0, 0, 50, 50)], [A, B], size=(100, 100), roles={"crowd": [False, True]})
    assert detmap.evaluate(*crowd, "coco-bbox", settings=settings).metrics["JI"] == pytest.approx(
        1, abs=1e-5
    )


def test_results_give_the_sizes_that_the_ground_truth_lacks(tmp_path: Path) -> None:
    """Of 50 x 10 the image holds 20 x 10; an image without detections needs no size."""
    person = {"tag": "person", "fbox": [80, 0, 50, 10]}
    truth, found = tmp_path / "t.odgt", tmp_path / "d.odgt"
    truth.write_text(
        "\n".join(json.dumps({"ID": name, "gtboxes": [person]}) for name in ("b", "a"))
    )
    box = {"box": [80, 0, 20, 10], "score": 0.9, "tag": 1}
    found.write_text(json.dumps({"ID": "b", "width": 100, "height": 100, "dtboxes": [box]}))
    result = detmap.evaluate(truth, found, "crowdhuman")
    assert result.counts()["tp"] == 1
    assert "image-without-results" in [note.code for note in result.notes]
    found.write_text(json.dumps({"ID": "b", "dtboxes": [box]}))
    with pytest.raises(detmap.DataError, match="image 1 has no size"):
        detmap.evaluate(truth, found, "crowdhuman")


@pytest.mark.slow
def test_explain_goes_from_caltech_to_other_rules_and_back() -> None:
    """Margins by subset change with the subsets; assignments are not needed."""
    attributes = {name: [50.0] for name in ("left", "right", "top", "bottom")} | {"visible": [1.0]}
    tables = data([(20, 20, 40, 90)], [(20, 20, 40, 90)], images=[1], attributes=attributes)
    for ends in (("caltech", "coco-bbox"), ("coco-bbox", "caltech")):
        found = detmap.explain(*tables, *ends)
        assert (found.before, found.after) == tuple(
            next(iter(detmap.evaluate(*tables, end).metrics.values())) for end in ends
        )


@pytest.mark.parametrize("name", ["citypersons", "caltech", "sodad"])
def test_a_receipt_keeps_the_main_subset(name: str) -> None:
    """It is the first one, and its name may not be the first of the alphabet."""
    rules = detmap.load_protocol(name)
    attributes = {name: [50.0] for name in ("left", "right", "top", "bottom")}
    attributes |= {"visible": [1.0], "vis_ratio": [1.0]}
    tables = data([(20, 20, 40, 90)], [(20, 20, 40, 90)], images=[1], attributes=attributes)
    result = detmap.evaluate(*tables, rules)
    made = receipt.make(result, ("0" * 12, "0" * 12), {}, {}, [])
    again = receipt.parse(made.to_bytes(), "receipt.json").protocol
    assert again.subsets[0].name == rules.subsets[0].name
    np.testing.assert_equal(detmap.evaluate(*tables, again).metrics, result.metrics)
