"""Operating points, against a slow twin that tries every threshold in exact fractions."""

import io
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import detmap
from detmap.core.curves.operating_points import Operating
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.drawing import CocoData, coco_data
from tests.support.drawn_tables import read_coco
from tests.support.running import run
from tests.support.tier import drawn

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
relaxed = settings(
    deadline=None, max_examples=drawn(40), suppress_health_check=[HealthCheck.too_slow]
)
PROTOCOLS = st.sampled_from(["coco-bbox", "voc2012"])

Row = dict[str, Any]


class Twin:
    """Counts at a threshold, one detection after the other."""

    def __init__(self, result: detmap.Result) -> None:
        matches, protocol = result.matches, result.protocol
        a, bit = protocol.subset(), 1 << protocol.axes().threshold(0.5)
        self.rows: list[list[tuple[float, bool]]] = []
        self.objects: list[int] = []
        for k in range(len(matches.categories)):
            mine = range(matches.off[k], matches.off[k + 1])
            counted = [d for d in mine if not int(matches.ignored[d, a]) & bit]
            self.rows.append(
                [(float(matches.score[d]), bool(int(matches.tp[d, a]) & bit)) for d in counted]
            )
            objects = range(matches.obj_off[k], matches.obj_off[k + 1])
            self.objects.append(sum(bool(matches.counted[g, a]) for g in objects))

    def at(self, classes: list[int], threshold: float) -> Row:
        """Precision, recall and F1 as fractions, None where they are 0/0."""
        rows = [row for k in classes for row in self.rows[k] if row[0] >= threshold]
        n, tp = sum(self.objects[k] for k in classes), sum(hit for _, hit in rows)
        return {
            "precision": Fraction(tp, len(rows)) if rows else None,
            "recall": Fraction(tp, n) if n else None,
            "f1": Fraction(2 * tp, n + len(rows)) if n else None,
            "tp": tp,
            "fp": len(rows) - tp,
            "missed": n - tp,
        }

    def mean(self, threshold: float) -> Row:
        each = [self.at([k], threshold) for k, n in enumerate(self.objects) if n]
        every = self.at(list(range(len(self.objects))), threshold)
        for name in ("precision", "recall", "f1"):
            values = [row[name] for row in each if row[name] is not None]
            every[name] = sum(values, Fraction(0)) / len(values) if values else None
        return every

    def scores(self, classes: list[int]) -> list[float]:
        return sorted({score for k in classes for score, _ in self.rows[k]}, reverse=True)


def same(found: Row, expected: Row) -> bool:
    """Equal, rates to the last bits of a mean."""
    for name, value in expected.items():
        if value is None:
            if not math.isnan(found[name]):
                return False
        elif not math.isclose(found[name], value, rel_tol=1e-12, abs_tol=1e-12):
            return False
    return True


def judged(result: detmap.Result) -> tuple[Twin, list[tuple[str, Any, list[float]]]]:
    """The twin, and for each row of an outcome its counts at a threshold and its thresholds."""
    twin = Twin(result)
    everything = list(range(len(twin.objects)))
    parts: list[tuple[str, Any, list[float]]] = [
        (f"class {k}", lambda s, k=k: twin.at([k], s), twin.scores([k])) for k in everything
    ]
    parts.append(("micro", lambda s: twin.at(everything, s), twin.scores(everything)))
    parts.append(("macro", twin.mean, twin.scores(everything)))
    return twin, parts


def rows_of(found: Operating) -> list[Row]:
    return [*found.per_class, found.micro, found.macro]


@relaxed
@given(coco_data(), PROTOCOLS, st.sampled_from([-2.0, 0.0, 0.25, 0.3, 0.5, 0.9, 1.0, 3.0]))
def test_threshold_counts_are_the_twins(data: CocoData, protocol: str, threshold: float) -> None:
    result = detmap.evaluate(*read_coco(*data), protocol)
    score = result.matches.score
    assume(threshold <= 1 or not len(score) or score.min() < 0 or score.max() > 1)  # else refused
    _, parts = judged(result)
    for row, (name, at, _) in zip(rows_of(result.operating_point(threshold)), parts, strict=True):
        assert row["threshold"] == threshold
        assert same(row, at(threshold)), name


@relaxed
@given(coco_data(), PROTOCOLS, st.sampled_from([0.0, 0.25, 0.5, 0.9]))
def test_it_is_the_evaluation_of_the_surer_detections_alone(
    data: CocoData, protocol: str, threshold: float
) -> None:
    truth, found = read_coco(*data)
    kept = found.take(np.flatnonzero(found.score >= threshold))
    alone = detmap.evaluate(truth, kept, protocol).per_class
    rows = detmap.evaluate(truth, found, protocol).operating_point(threshold).per_class
    for row, expected in zip(rows, alone, strict=True):
        wanted = {key: expected[key] for key in ("tp", "fp", "missed")}
        assert {key: row[key] for key in ("tp", "fp", "missed")} == wanted


@relaxed
@given(coco_data(), PROTOCOLS)
def test_the_best_f1_is_the_best_of_all(data: CocoData, protocol: str) -> None:
    result = detmap.evaluate(*read_coco(*data), protocol)
    _, parts = judged(result)
    for row, (name, at, scores) in zip(rows_of(result.best_f_beta()), parts, strict=True):
        tried = [(at(score)["f1"], score) for score in scores]
        defined = [each for each in tried if each[0] is not None]
        if not defined:
            assert math.isnan(row["threshold"]), name
            continue
        best = max(f for f, _ in defined)
        assert row["f1"] == pytest.approx(float(best), rel=1e-12)
        assert same(row, at(row["threshold"])), name
        first = max(score for f, score in defined if f == best)
        assert row["threshold"] == first or name == "macro"


@relaxed
@given(coco_data(), PROTOCOLS, st.sampled_from([0.0, 0.3, 0.5, 0.75, 1.0]))
def test_a_threshold_for_precision_or_recall(data: CocoData, protocol: str, wanted: float) -> None:
    result = detmap.evaluate(*read_coco(*data), protocol)
    _, parts = judged(result)
    for what, method, pick in (
        ("precision", result.threshold_for_precision, min),
        ("recall", result.threshold_for_recall, max),
    ):
        for row, (name, at, scores) in zip(rows_of(method(wanted)), parts, strict=True):
            if name == "macro":  # a mean of rounded numbers: to the last bits
                if not math.isnan(row["threshold"]):
                    assert row[what] >= wanted
                    assert same(row, at(row["threshold"]))
                continue
            rates = [(at(score)[what], score) for score in scores]
            good = [score for rate, score in rates if rate is not None and float(rate) >= wanted]
            assert repr(row["threshold"]) == repr(pick(good) if good else math.nan), name
            if good:
                assert same(row, at(row["threshold"])), name


def test_detections_of_one_score_enter_together() -> None:
    truth = detmap.truth_from_arrays([1, 1], [1, 1], [[0, 0, 9, 9], [50, 50, 9, 9]])
    boxes = [[0, 0, 9, 9], [100, 100, 9, 9], [50, 50, 9, 9]]
    found = detmap.detections_from_arrays(truth, [1] * 3, [1] * 3, boxes, [0.5, 0.5, 0.5])
    row = detmap.evaluate(truth, found, "coco-bbox").threshold_for_precision(0.6).per_class[0]
    assert (row["threshold"], row["tp"], row["fp"], row["missed"]) == (0.5, 2, 1, 0)
    row = detmap.evaluate(truth, found, "coco-bbox").threshold_for_precision(0.7).per_class[0]
    assert math.isnan(row["threshold"])
    assert (row["tp"], row["fp"], row["missed"]) == (0, 0, 2)


@pytest.mark.parametrize("iou", [None, 0.75])
def test_the_lowest_threshold_has_the_counts_of_the_result(iou: float | None) -> None:
    result = detmap.evaluate(COCO, RESULTS)
    counts, micro = result.counts(iou), result.operating_point(-1.0, iou=iou).micro
    wanted = {key: counts[key] for key in ("tp", "fp", "missed")}
    assert {key: micro[key] for key in ("tp", "fp", "missed")} == wanted


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("operating_point", math.nan),
        ("best_f_beta", 0.0),
        ("best_f_beta", math.inf),
        ("threshold_for_precision", 1.5),
        ("threshold_for_recall", -0.1),
        ("threshold_for_recall", math.nan),
    ],
)
def test_what_nobody_can_want(method: str, value: float) -> None:
    with pytest.raises(DataError):
        getattr(detmap.evaluate(COCO, RESULTS), method)(value)


@pytest.mark.slow
def test_the_command_tells_what_the_methods_tell() -> None:
    pandas = pytest.importorskip("pandas")
    options = ("--confidence", "0.5", "--best-f1", "--min-precision", "0.9", "--min-recall", "0.8")
    result = detmap.evaluate(COCO, RESULTS)
    content = json.loads(run("eval", COCO, RESULTS, *options, "--format", "json").out)
    expected = {
        "confidence": result.operating_point(0.5),
        "best_f1": result.best_f_beta(),
        "at_precision": result.threshold_for_precision(0.9),
        "at_recall": result.threshold_for_recall(0.8),
    }
    for name, points in expected.items():
        assert content[name] == points.to_dict()
        table = name.replace("_", "-")
        words = (*options, "--table", table, "--format", "csv")
        frame = pandas.read_csv(io.StringIO(run("eval", COCO, RESULTS, *words).out))
        assert frame["class"].tolist()[-2:] == ["(micro)", "(macro)"]
        assert frame["tp"].tolist() == [row["tp"] for row in rows_of(points)]
        scores = [row["threshold"] for row in rows_of(points)]
        assert np.array_equal(frame["threshold"], scores, equal_nan=True)
    plain = run("eval", COCO, RESULTS, *options).out
    assert max(map(len, plain.splitlines())) <= 80
    assert run("eval", COCO, RESULTS, "--confidence", "nan").code == 2
    percent = run("eval", COCO, RESULTS, "--confidence", "50")
    assert (percent.code, "50 % is 0.5" in percent.err) == (2, True)
    assert run("eval", COCO, RESULTS, "--min-recall", "2").code == 2
