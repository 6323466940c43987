"""Every number that the original code of a tool printed, on the small troublesome sets and on real
detectors.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from numpy._core._multiarray_umath import __cpu_features__

import detmap
from detmap.reproducibility.parity.restated_tools import MatchedOnce
from tests.real.tool_goldens import LIMIT, TOOLS, compared, tables

pytestmark = pytest.mark.slow

KNOWN_SORT = bool(__cpu_features__["AVX512_SKX"])
"""Whether NumPy's unstable sorts order ties as on the processor that made the goldens."""
TIES = 2e-3  # what another order of ties changes in these files, classes included
needs_sort = pytest.mark.skipif(not KNOWN_SORT, reason="NumPy sorts ties otherwise without AVX-512")
SETS = [f"set{i:02d}" for i in range(0, 40, 2)]


@pytest.fixture(scope="module")
def goldens(data: Path) -> dict[str, Any]:
    return dict(json.loads((data / "tools" / "goldens.json").read_text())["tools"])


def sorts_unstably(protocol: detmap.Protocol) -> bool:
    """Whether a tool's own sort decides the order of tied scores or overlaps."""
    sorts = {protocol.matching.sort, protocol.ranking.sort}
    return bool(sorts & {"unstable", "reversed"}) or protocol.matching.equal.startswith("sorted")


def check(name: str, known: MatchedOnce, goldens: dict[str, Any]) -> set[str]:
    """The tools that were compared; where one stops, and nowhere else, a note says so."""
    seen = set()
    for tool, found, codes in compared(name, known, goldens):
        ranking = detmap.load_protocol(TOOLS[tool][0])
        limit = LIMIT if KNOWN_SORT or not sorts_unstably(ranking) else TIES
        assert [each for each in found if each.size > limit] == []
        assert ("reference-stops" in codes) == (not found), tool
        seen.add(tool)
    return seen


@pytest.mark.parametrize("name", SETS)
def test_every_tool_on_a_small_set(name: str, data: Path, goldens: dict[str, Any]) -> None:
    content = json.loads((data / "tools" / "sets" / f"{name}.json").read_text())
    assert check(name, MatchedOnce(*tables(content)), goldens) == set(TOOLS)


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["detector-8603", "yolov2-voc", "tiny-yolov2-voc"])
def test_tools_on_a_real_detector(detector: str, voc2007: Path, goldens: dict[str, Any]) -> None:
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    known = MatchedOnce(truth, detmap.read_detections(voc2007 / detector, truth))
    assert check(detector, known, goldens) == {t for t in TOOLS if detector in goldens[t]}


@needs_sort
def test_the_worked_case_in_two_versions_of_one_tool(voc2007: Path) -> None:
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    known = MatchedOnce(truth, detmap.read_detections(voc2007 / "detector-8603", truth))
    names = ("voc2012", "ultralytics-8.3", "ultralytics-8.4")
    found = [next(iter(known.result(detmap.load_protocol(n)).metrics.values())) for n in names]
    assert [round(100 * value, 4) for value in found] == [89.9943, 86.9794, 84.997]


@needs_sort
def test_the_worked_case_step_by_step(voc2007: Path) -> None:
    """Devkit of 2012 to Ultralytics 8.3 to 8.4, in points, without the steps that are 0."""
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = detmap.read_detections(voc2007 / "detector-8603", truth)
    chain = ("voc-devkit-12", "ultralytics-8.3", "ultralytics-8.4")
    steps = {}
    for start, end in pairwise(chain):
        why = detmap.explain(truth, found, start, end)
        moved = {step.name: round(100 * float(step.change), 4) for step in why.steps}
        steps[end] = {name: change for name, change in moved.items() if change}
    assert steps == {
        "ultralytics-8.3": {
            "extent": -0.1060,
            "neutral": -5.5492,
            "order": -0.0088,
            "integration": 2.6491,
        },
        "ultralytics-8.4": {"integration": -2.6912, "matching": 0.7089},
    }
