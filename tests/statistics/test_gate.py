"""Gates: how they are written, and their verdicts at their edges."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from detmap.core.statistics import gate as gates
from detmap.core.statistics.comparison import Pair
from detmap.core.statistics.gate import Gate
from detmap.errors import DataError

T = 1.7108820799094284  # the quantile of 0.95 with 24 degrees of freedom


def judge(gate: Gate, alpha: float = 0.05, **changes: Any) -> gates.Verdict:
    """Of a drop of 2 points, with a standard error of 1."""
    columns = {"metric": "mAP", "difference": -0.02, "se": 0.01, "bias": 0.0, "mdd": 0.03}
    columns["df"] = 24
    columns |= dict.fromkeys(("low", "high", "p", "p_adjusted"), math.nan)
    columns |= {"a": "base", "b": "new", "why_not": ""} | changes
    pair, half, other = (
        Pair(**columns | its)
        for its in ({}, {"b": "third", "metric": "AP50"}, {"b": "third", "se": 9.0})
    )
    one = SimpleNamespace(**columns | {"name": "cat", "metric": "AP"})
    dog = SimpleNamespace(**vars(one) | {"name": "dog", "se": 9.0})
    comparison: Any = SimpleNamespace(
        pairs=[pair, half, other],
        classes=[dog, one],
        units=SimpleNamespace(n=1000, noun="images", counted=lambda: "1,000 images"),
        images_needed=lambda pair, drop: math.ceil(1000 * (pair.mdd / drop) ** 2),
    )
    return gates.judge(comparison, gate, alpha)


@pytest.mark.parametrize(
    "text, expected",
    [
        (".005", Gate("k", 0.5)),
        ("0", Gate("k", 0.0)),
        (".999", Gate("k", 99.9)),
        ("AP50=1e-3", Gate("k", 0.1, "AP50")),
        ("AP50/a=b/c=0.01", Gate("k", 1.0, "AP50", "a=b/c")),
    ],
)
def test_a_gate_is_read_as_it_is_written(text: str, expected: Gate) -> None:
    assert gates.read("k", text) == expected


@pytest.mark.parametrize("text", ["", "x", "AP=", "-0.1", "100.1", "nan", "AP50", "x" * 81, "inf"])
def test_what_is_no_gate(text: str) -> None:
    with pytest.raises(DataError, match=f"^--k: '{text[:80]}'.* from 0 to 1"):
        gates.read("k", text)


def test_no_drop_is_smaller_than_none() -> None:
    assert gates.read("fail-if-drop", "0").points == 0
    for text in ("0", "AP50=0.0", "AP50/person=0"):
        with pytest.raises(DataError, match="smaller than 0"):
            gates.read("require-within", text)
    with pytest.raises(DataError, match=f"^--require-within: '{'x' * 80}': a drop"):
        gates.read("require-within", "x" * 81 + "=0")


@pytest.mark.parametrize("kind, edge", [("fail-if-drop", 2 - T), ("require-within", 2 + T)])
def test_a_gate_passes_from_its_edge_on(kind: str, edge: float) -> None:
    assert not judge(Gate(kind, edge - 1e-6)).passed
    assert judge(Gate(kind, edge + 1e-6)).passed
    assert judge(Gate(kind, 2.0), alpha=0.5).passed is (kind == "fail-if-drop")  # at the edge
    centered = {"difference": -0.5, "low": -0.045, "high": 0.005}  # minus a part of its bias
    for other in (centered, {"bias": 0.005, "why_not": "few images"}):
        assert not judge(Gate(kind, edge - 1e-6), **other).passed
        assert judge(Gate(kind, edge + 1e-6), **other).passed
    assert judge(Gate(kind, edge + 1e-6, "mAP", "cat")).passed


@pytest.mark.parametrize("se", [0.0, math.nan])
@pytest.mark.parametrize("kind", gates.KINDS)
def test_without_a_standard_error_the_margin_decides(kind: str, se: float) -> None:
    drops = kind == "fail-if-drop"
    assert judge(Gate(kind, 1.0), difference=-0.01, se=se).passed is drops  # exactly as much
    assert judge(Gate(kind, 1.0), difference=-0.0099, se=se).passed is (drops or se == 0)
    assert not judge(Gate(kind, 1.0), difference=-0.0101, se=se).passed
    undefined = judge(Gate(kind, 1.0), difference=math.nan, se=se)
    assert undefined == gates.Verdict(False, "FAIL: mAP is undefined")


@pytest.mark.parametrize(("kind", "side"), [("fail-if-drop", -1), ("require-within", 1)])
def test_a_gate_has_the_degrees_of_freedom_of_its_pair(kind: str, side: int) -> None:
    edge = 2 + side * 2.919985580353724  # the quantile of 0.95 with 2 degrees of freedom
    assert judge(Gate(kind, edge + 1e-6), df=2).passed
    assert not judge(Gate(kind, edge - 1e-6), df=2).passed


@pytest.mark.parametrize("kind, edge", [("fail-if-drop", 2 - T), ("require-within", 2 + T)])
def test_a_rise_of_a_miss_rate_is_a_drop(kind: str, edge: float) -> None:
    for metric in ("MR50", "MR-2"):
        worse = {"metric": metric, "difference": 0.02}
        assert not judge(Gate(kind, edge - 1e-6, metric), **worse).passed
        assert judge(Gate(kind, edge + 1e-6, metric), **worse).passed
        assert judge(Gate(kind, 0.01, metric), metric=metric, difference=-0.3).passed
    line = judge(Gate("require-within", 1.0, "MR-2"), metric="MR-2", difference=0.02).line
    assert line.startswith("FAIL: MR-2 rose by 0.0200, to show: a rise smaller than 0.01 (")
    assert "to detect a rise of 0.01 takes" in line


def test_the_line_says_why() -> None:
    assert judge(Gate("fail-if-drop", 1.0)).line == (
        "PASS: mAP dropped by 0.0200, allowed 0.01 (alpha 0.05; standard error 0.0100; "
        "minimum detectable difference with 1,000 images: 0.0300; "
        "to detect a drop of 0.01 takes about 9,000 images)"
    )
    seen = judge(Gate("require-within", 3.0, "", "cat"), difference=0.02346, mdd=0.03)
    assert seen.line == (
        "PASS: AP of cat rose by 0.0235, to show: a drop smaller than 0.03 (alpha 0.05; "
        "standard error 0.0100; minimum detectable difference with 1,000 images: 0.0300)"
    )
    none = judge(Gate("fail-if-drop", 0.0), difference=0.0, se=math.nan, why_not="few images")
    assert none.line == (
        "PASS: mAP did not change, allowed 0 (alpha 0.05; standard error unknown; "
        "no test of it holds its level: few images)"
    )


def test_a_gate_proposes_the_right_name() -> None:
    for gate, right in ((Gate("k", 1.0, "mAP50"), "AP50"), (Gate("k", 1.0, "", "Dog"), "dog")):
        with pytest.raises(DataError, match=f"did you mean '{right}'"):
            judge(gate)


@pytest.mark.parametrize(
    "gate, what",
    [
        (Gate("k", 1.0, "AP75"), "--k: there is no AP75"),
        (Gate("k", 1.0, "", "cow"), "--k: there is no mAP/cow"),
        (Gate("k", 1.0, "AP75", place="gate 2"), "gate 2: there is no AP75"),
    ],
)
def test_a_gate_on_what_is_not_there(gate: Gate, what: str) -> None:
    with pytest.raises(DataError, match=f"^{what}") as error:
        judge(gate)
    assert str(error.value).endswith("metrics: mAP, AP50; classes: cat, dog)")
