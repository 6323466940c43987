"""LVIS v1: the numbers of lvis-api's own goldens, its arrays on drawn data, and what is said where
protocol and truth are not of one kind.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves.scores import coco_arrays
from detmap.core.tables import Scope
from tests.support import builders as make
from tests.support.drawing import draw_coco, draw_lvis
from tests.support.drawn_tables import read_coco
from tests.support.real_data import data_path
from tests.support.tier import drawn


@pytest.fixture(scope="module")
def official() -> Any:
    pytest.importorskip("lvis", reason="lvis-api is not installed (pip install lvis)")
    from tests.reference import lvis_official

    return lvis_official


@pytest.mark.parametrize("case", ["1", "2"])
def test_the_goldens_of_lvis_api(case: str) -> None:
    place = data_path("benchmarks", "lvis")
    golden = json.loads((place / "goldens_public.json").read_text())["cases"][case]
    result = detmap.evaluate(place / case / "truth.json", place / case / "dets.json")
    assert result.protocol.name == "lvis"  # the default of such a ground truth
    assert list(result.metrics) == list(golden["results"])
    for name, value in golden["results"].items():
        assert abs(result.metrics[name] - value) <= 1e-12, name
    for row in result.per_class:
        value = golden["per_class_AP"][str(row["id"])]
        assert math.isnan(row["AP"]) if value is None else abs(row["AP"] - value) <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(25)))
def test_drawn_data_give_the_arrays_of_lvis_api(seed: int, official: Any) -> None:
    rng = np.random.default_rng(seed)
    limit = int(rng.choice([1, 2, 3, 5, 8, 300]))
    data = draw_lvis(rng)
    tables = read_coco(*data)
    result = detmap.evaluate(*tables, "lvis", settings={"limits.max_dets": [limit]}, threads=1)
    expected = official.run(*data, max_dets=limit)
    for name in ("precision", "recall"):
        assert np.array_equal(coco_arrays(result.matches)[name][..., 0], expected.eval[name])
    found = {name: -1.0 if math.isnan(x) else x for name, x in result.metrics.items()}
    assert found == dict(expected.results)


@pytest.mark.slow
def test_drawn_data_hold_what_lvis_is_about() -> None:
    unjudged = beyond = lenient = ignored = 0
    for seed in range(25):
        truth, detections = read_coco(*draw_lvis(np.random.default_rng(seed)))
        settings = {"limits.max_dets": [3]}
        result = detmap.evaluate(truth, detections, "lvis", settings=settings, threads=1)
        judged = {**settings, "scope.not_exhaustive": "judge"}
        other = detmap.evaluate(truth, detections, "lvis", settings=judged, threads=1)
        unjudged += int(result.matches.unjudged.sum())
        beyond += int(result.matches.beyond.sum())
        lenient += result.counts()["ignored"] != other.counts()["ignored"]
        ignored += bool(truth.role("ignore").any())
    assert min(unjudged, beyond, lenient, ignored) >= 3


def test_lvis_truth_under_the_rules_of_coco_says_so() -> None:
    tables = read_coco(*draw_lvis(np.random.default_rng(1)))
    notes = {note.code: note for note in detmap.evaluate(*tables, "coco-bbox").notes}
    assert "use -p lvis" in notes["scope-unused"].text
    assert notes["scope-unused"].count == len(tables[0].images)
    assert "scope-unused" not in {note.code for note in detmap.evaluate(*tables).notes}


def test_coco_truth_under_the_rules_of_lvis_says_so() -> None:
    tables = read_coco(*draw_coco(np.random.default_rng(1), n_images=3))
    assert detmap.evaluate(*tables).protocol.name == "coco-bbox"
    codes = {note.code for note in detmap.evaluate(*tables, "lvis").notes}
    assert "scope-missing" in codes


def test_dropped_detections_are_counted_in_a_note() -> None:
    categories = [make.category(id=i, frequency="f") for i in (1, 2)]
    image = make.image(id=1, neg_category_ids=[], not_exhaustive_category_ids=[])
    annotation = make.annotation(id=1, image_id=1, category_id=1, bbox=[0, 0, 9, 9], area=81)
    found = [
        make.detection(image_id=1, category_id=k, bbox=[0, 0, 9, h], score=0.5)
        for k, h in ((1, 9), (2, 9), (1, 0))
    ]
    truth = {"images": [image], "annotations": [annotation], "categories": categories}
    result = detmap.evaluate(*read_coco(truth, found))
    notes = {note.code: note for note in result.notes}
    assert notes["unjudged"].count == 2
    assert result.counts()["detections"] == 1


@pytest.mark.slow
def test_parts_merge_to_the_whole_with_what_was_left_out(tmp_path: Path) -> None:
    for seed in range(12):
        tables = read_coco(*draw_lvis(np.random.default_rng(seed)))
        rules = detmap.load_protocol("lvis").override({"limits.max_dets": [3]})
        whole = detmap.match(*tables, rules)
        ids = whole.image_ids
        parts = [whole.select(ids[::2]), whole.select(ids[1::2])]
        merged = parts[1].merge(parts[0])
        merged.save(tmp_path / "matches.npz")
        for other in (merged, detmap.Matches.load(tmp_path / "matches.npz")):
            assert other.data_digest() == whole.data_digest()
            assert np.array_equal(other.unjudged, whole.unjudged)
            assert np.array_equal(other.rank, whole.rank)
            assert np.array_equal(other.tp, whole.tp)
            assert np.array_equal(other.ignored, whole.ignored)


def test_all_that_decides_the_numbers_is_in_the_digest_of_the_data() -> None:
    truth, detections = read_coco(*draw_lvis(np.random.default_rng(3)))
    rules = detmap.load_protocol("lvis")
    known, scope = truth.categories, truth.scope
    assert scope is not None
    other = {
        "groups": replace(truth, categories=replace(known, groups=("f", "f", "f"))),
        "scope": replace(
            truth, scope=Scope(np.zeros_like(scope.off), scope.label[:0], scope.kind[:0])
        ),
        "role": replace(truth, roles={"ignore": ~truth.role("ignore")}),
    }
    digests = {
        name: detmap.match(
            table, replace(detections, categories=table.categories), rules
        ).data_digest()
        for name, table in {"as read": truth, **other}.items()
    }
    assert len(set(digests.values())) == 4


def test_the_size_of_images_is_in_the_digest_where_boxes_are_cut_to_it() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[80, 0, 50, 10]])
    found = detmap.detections_from_arrays(truth, [1], [1], [[80, 0, 20, 10]], [0.5])
    digests = set()
    for clip, width in (("no", 100.0), ("no", 90.0), ("crowdhuman", 100.0), ("crowdhuman", 90.0)):
        images = replace(truth.images, width=np.array([width]), height=np.array([50.0]))
        rules = detmap.load_protocol("coco-bbox").override({"boxes.clip": clip})
        tables = replace(truth, images=images), replace(found, images=images)
        digests.add(detmap.match(*tables, rules).data_digest())
    assert len(digests) == 3
