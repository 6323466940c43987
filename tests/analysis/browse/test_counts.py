"""The browser's counting, run in Node, against `diagnose` and `confusion` at each threshold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.browse import cases, folder
from detmap.analysis.browse.cases import Shown
from detmap.analysis.diagnosis.breakdowns import slices
from tests.analysis.browse.counting import (
    Expected,
    counted_by_node,
    every_shown,
    require_equal,
    require_lists,
    voc_detectors,
    write,
)
from tests.analysis.diagnosis.test_shape_overlaps import rectangles
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.support import builders as make
from tests.support.tier import drawn

RULES = ("coco-bbox", "voc2007", "voc2012", "lvis", "cityscapes", "tinyperson", "bdd100k", "uavdt")
QUICK, MANY = 12, 1000


def states_of(plain: dict[str, Any], mine: Expected) -> list[dict[str, Any]]:
    """A state without filters, then one per kind, class, group and cell of the matrix."""
    filters: list[dict[str, Any]] = [{"kinds": [k]} for k in range(7)]
    filters += [{"classes": [k]} for k in range(len(mine.found.truth.categories))]
    filters += [{"group": k} for k in range(4)]
    filters += [{"cell": list(cell)} for cell in mine.matrix()]
    return [plain, *({**plain, **each} for each in filters)]


Wanted = list[tuple[int, tuple[Expected, Expected]]]


def job_of(
    every: dict[str, Shown], thresholds: list[tuple[float, float]], place: Path
) -> tuple[dict[str, Any], Wanted]:
    """States of both detectors at pairs of thresholds, and what is expected of them."""
    empty = write(every, place)
    states: list[dict[str, Any]] = []
    wanted: Wanted = []
    for t in thresholds:
        a, b = (Expected(each, at) for each, at in zip(every.values(), t, strict=True))
        for det, mine in enumerate((a, b)):
            wanted.append((len(states), (a, b)))
            states += states_of({**empty, "det": det, "t": t}, mine)
    return {"folder": str(place), "states": states, "open": []}, wanted


def require_results(job: dict[str, Any], results: list[dict[str, Any]], expected: Wanted) -> None:
    ends = [*(begin for begin, _ in expected[1:]), len(results)]
    for (begin, pair), end in zip(expected, ends, strict=True):
        states = job["states"][begin:end]
        require_equal(results[begin], *pair, states[0]["det"])
        require_lists(results[begin:end], states)


def check(made: list[tuple[dict[str, Any], Wanted]], place: Path) -> None:
    jobs = [job for job, _ in made]
    for (job, expected), results in zip(made, counted_by_node(jobs, place), strict=True):
        require_results(job, results, expected)


def drawn_job(seed: int, place: Path) -> tuple[dict[str, Any], Wanted]:
    """Two detectors on a drawn set, each at a threshold of its own."""
    rng, (truth, one) = np.random.default_rng(seed), tables(seed)
    every = every_shown(
        truth, {"a": one, "b": one.take(rng.permutation(len(one))[::2])}, RULES[seed % len(RULES)]
    )
    a, b = (float(rng.choice([0.0, 0.1, 0.5, 0.9, rng.random()])) for _ in range(2))
    return job_of(every, [(a, b)], place / str(seed))


def test_drawn_sets(tmp_path: Path) -> None:
    check([drawn_job(seed, tmp_path) for seed in range(QUICK)], tmp_path)


@pytest.mark.slow
def test_many_drawn_sets(tmp_path: Path) -> None:
    check([drawn_job(seed, tmp_path) for seed in range(QUICK, drawn(MANY + QUICK))], tmp_path)


def sample(rules: str = "coco-bbox", floor: int | None = None) -> dict[str, Shown]:
    truth = detmap.read_truth(make.SHAPES / "instances_test.json")
    files = (make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template"))
    tables = {file.stem: detmap.read_detections(file, truth) for file in files}
    return every_shown(truth, tables, rules, floor)


def test_the_sample_with_the_numbers_of_the_documentation(tmp_path: Path) -> None:
    every = sample()
    job, expected = job_of(every, [tuple(each.best for each in every.values())], tmp_path / "a")
    results = counted_by_node([job], tmp_path)[0]
    assert [results[0]["totals"][name] for name in ("tp", "fp", "missed")] == [143, 63, 156]
    require_results(job, results, expected)


@pytest.mark.slow
def test_thresholds_of_the_sample(tmp_path: Path) -> None:
    thresholds = [(0.0, 0.0), (0.2, 0.6), (0.5, 0.3), (0.7, 0.95), (0.99, 0.5)]
    made = [job_of(sample(rules), thresholds, tmp_path / rules) for rules in RULES[:3]]
    check(made, tmp_path)


@pytest.mark.slow
def test_a_floor_changes_no_number_above_it(tmp_path: Path) -> None:
    every = sample(floor=500)
    assert all(each.floor is not None and len(each.rows) < 3000 for each in every.values())
    at = tuple(each.floor or 0.0 for each in every.values())
    check([job_of(every, [at, (0.5, 0.9)], tmp_path / "a")], tmp_path)


@pytest.mark.slow
def test_more_scores_than_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are round numbers then, and counts at each of them are exact."""
    monkeypatch.setattr(cases, "MOST_STEPS", 100)
    every = sample()
    steps = [each.steps.tolist() for each in every.values()]
    assert [len(each) < 110 for each in steps] == [True, True]
    assert [0.25 in steps[0], 0.75 in steps[1]] == [True, True]
    best = tuple(each.best for each in every.values())
    check([job_of(every, [best, (0.25, 0.75)], tmp_path / "a")], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_masks(seed: int, tmp_path: Path) -> None:
    files = rectangles(tmp_path, seed)
    truth = detmap.read_truth(files[0], shapes="masks")
    found = detmap.read_detections(files[1], truth)
    every = every_shown(
        truth, {"a": found, "b": found.take(np.arange(len(found) // 2))}, "coco-segm"
    )
    check([job_of(every, [(0.0, 0.3), (0.5, 0.5)], tmp_path / "a")], tmp_path)


@pytest.mark.slow
def test_two_detectors_on_voc_2007(voc2007: Path, tmp_path: Path) -> None:
    every = voc_detectors(voc2007)
    thresholds = [tuple(each.best for each in every.values()), (0.05, 0.3), (0.8, 0.6)]
    check([job_of(every, thresholds, tmp_path / "a")], tmp_path)


def test_slices_have_the_objects_of_the_diagnosis(tmp_path: Path) -> None:
    """True positives and missed objects of each slice are those of its recall."""
    every = sample()
    some, state = every["contours"], write(every, tmp_path / "a")
    names = folder.cases.property_content(some)
    plain = {**state, "t": [some.best] * 2}
    jobs = [
        {
            "folder": str(tmp_path / "a"),
            "open": list(range(len(names))),
            "states": [{**plain, "kinds": [kind]} for kind in (0, 6)],
        }
    ]
    right, lost = (dict(each["slices"]) for each in counted_by_node(jobs, tmp_path)[0])
    known = slices(some.diagnosis)
    assert {each.by for each in known} == {each["by"] for each in names}
    for each in known:
        p = next(k for k, one in enumerate(names) if one["by"] == each.by)
        v = names[p]["names"].index(each.name) + 1
        assert (right[p][v], right[p][v] + lost[p][v]) == (each.found, each.objects), each


def test_the_fewest_cases_of_an_image_limit_its_cases(tmp_path: Path) -> None:
    every = sample()
    plain = {**write(every, tmp_path / "a"), "t": [each.best for each in every.values()]}
    states = [{**plain, "kinds": [5], "least": n} for n in (0, 2)]
    job = {"folder": str(tmp_path / "a"), "states": states, "open": []}
    whole, some = counted_by_node([job], tmp_path)[0]
    assert sum(whole["perImage"]) == len(whole["cases"]) == 18
    assert sum(n for n in whole["perImage"] if n > 1) == len(some["cases"]) == 8
    assert len(some["ordered"]) == 8
    high, objects = whole["ordered"], plain | {"classes": [0]}
    assert whole["bySize"] == high  # no objects
    mixed = counted_by_node([{**job, "states": [objects]}], tmp_path)[0][0]
    detections = [code for code in mixed["ordered"] if code >= 0]
    missed = [code for code in mixed["ordered"] if code < 0]
    assert detections
    assert missed
    assert mixed["bySize"] == missed + detections
