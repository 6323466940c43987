"""cgF1: the goldens with one, two and three annotators, and the assignment."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.sa_co.files import ANNOTATOR
from detmap.core.base.assignment import largest_sum
from tests.benchmarks import goldens
from tests.reference import own_rules
from tests.support import builders as make
from tests.support.tier import drawn

PREFIX = "cgF1_eval_bbox_"


@pytest.mark.parametrize("case", goldens.CASES)
def test_goldens(case: str, tmp_path: Path) -> None:
    place = goldens.folder("cgf1") / case
    for key, golden in goldens.of_case("cgf1", case).items():
        numbers = [word for word in key.replace(",", " ").split() if word.isdigit()]
        folder = tmp_path / "".join(numbers)
        folder.mkdir()
        for number in numbers:
            shutil.copy(place / f"truth_{number}.json", folder)
        result = detmap.evaluate(folder / "truth_1.json", place / "dets.json", "cgf1")
        known = {name: value for name, value in golden.items() if name.startswith(PREFIX)}
        assert len(known) > 20
        for name, value in known.items():
            found = result.metrics[name.removeprefix(PREFIX)]
            assert abs(found - value) <= goldens.WITHIN, (key, name)


@pytest.mark.parametrize("case", goldens.CASES)
def test_each_annotator_alone_is_a_row(case: str) -> None:
    place = goldens.folder("cgf1") / case
    golden = goldens.of_case("cgf1", case)["annotator 1"]
    rows = detmap.evaluate(place / "truth_2.json", place / "dets.json", "cgf1").per_class
    assert [row["name"] for row in rows] == ["annotator 1", "annotator 2", "annotator 3"]
    assert abs(rows[0]["cgF1"] - golden[f"{PREFIX}cgF1"]) <= goldens.WITHIN


@pytest.mark.parametrize("seed", range(drawn(200)))
def test_the_assignment_has_the_largest_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random(rng.integers(1, 6, 2))
    values[rng.random(values.shape) < 0.4] = 0.0
    if seed % 2:
        values = np.round(values, 1)  # ties
    assert values[largest_sum(values)].sum() == pytest.approx(
        own_rules.best_assignment(values.tolist())
    )


@pytest.mark.parametrize("seed", range(drawn(60)))
def test_the_assignment_takes_ties_as_scipy_does(seed: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, rng.integers(1, 9, 2)) / 4
    taken = values[optimize.linear_sum_assignment(-values)]
    assert sorted(values[largest_sum(values)]) == sorted(taken[taken > 0])


def pairs(folder: Path, exhaustive: Any = 1, crowd: int = 0, score: float = 0.5) -> tuple[str, str]:
    """Two pairs: an object that is found, and nothing."""
    truth = {
        "images": [{"id": 1, "is_instance_exhaustive": exhaustive}, {"id": 2}],
        "categories": [{"id": 1, "name": "object"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "iscrowd": crowd}
        ],
    }
    found = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": score}]
    paths = folder / "truth.json", folder / "found.json"
    for path, content in zip(paths, (truth, found), strict=True):
        path.write_text(json.dumps(content))
    return str(paths[0]), str(paths[1])


def test_scores_crowds_and_pairs_that_are_not_exhaustive(tmp_path: Path) -> None:
    def mcc(**more: Any) -> float:
        settings = more.pop("settings", {})
        result = detmap.evaluate(*pairs(tmp_path, **more), "cgf1", settings=settings)
        return round(result.metrics["IL_MCC"], 3)

    assert mcc() == 1.0  # a score of exactly 0.5 takes part
    assert mcc(score=0.49) == 0.0
    assert mcc(score=0.49, settings={"cgf1.score": 0.4}) == 1.0
    assert mcc(crowd=1) == 0.0  # a removed object: a false positive
    assert mcc(crowd=1, settings={"matching.neutral": {}}) == 1.0
    assert mcc(exhaustive=0) == 0.0  # one true negative is left


def test_bad_flags_are_named(tmp_path: Path) -> None:
    with pytest.raises(detmap.DataError, match=r"images\[0\].is_instance_exhaustive"):
        detmap.evaluate(*pairs(tmp_path, exhaustive="yes"), "cgf1")


def test_the_files_are_coco_for_other_protocols(tmp_path: Path) -> None:
    assert detmap.evaluate(*pairs(tmp_path), "coco-bbox").metrics["AP"] > 0.99


def test_a_gap_in_the_numbers_of_annotators_is_counted(tmp_path: Path) -> None:
    for number in (1, 3):
        make.write(tmp_path / f"truth_{number}.json", make.instances())
    notes = detmap.read_truth(tmp_path / "truth_1.json", format="sa-co").notes
    assert [note.count for note in notes if note.code == "annotators-missing"] == [1]


def test_annotators_are_in_the_order_of_their_numbers() -> None:
    """Of equal ones the first counts, which is not the tenth."""
    truth = detmap.truth_from_arrays([1], [1], [(0, 0, 9, 9)])
    names = [f"{ANNOTATOR}{i}" for i in range(1, 12)]
    truth = replace(truth, roles={name: np.ones(1, dtype=bool) for name in reversed(names)})
    found = detmap.detections_from_arrays(truth, [1], [1], [(0, 0, 9, 9)], [0.9])
    rows = detmap.evaluate(truth, found, "cgf1").per_class
    assert [(row["name"], row["id"]) for row in rows] == list(zip(names, range(1, 12), strict=True))
