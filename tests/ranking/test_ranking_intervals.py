"""Confidence intervals of rankings: what is evaluated, what does not matter, what is refused, what
is printed."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from detmap import ranking
from detmap.core.statistics.intervals import Intervals
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from detmap.errors import DataError
from detmap.ranking.ranking_intervals import OF_CLASS
from detmap.ranking.samples import Classified
from tests.reference import ranking as naive
from tests.support.running import run

CLASSES = ("cat", "dog", "bird")
THRESHOLD = 0.7


def drawn(n: int = 120, rates: tuple[float, ...] = (0.5, 0.4, 0.3), digits: int = 2) -> Classified:
    """Samples with tied scores; ids are not in order."""
    rng = np.random.default_rng(4)
    positive = rng.random((n, len(rates))) < rates
    score = (rng.random(positive.shape) + 0.5 * positive).round(digits)
    ids = [f"image-{i}" for i in rng.permutation(n)]
    return ranking.from_arrays(positive, score, classes=CLASSES[: len(rates)], ids=ids)


def with_positives(n: int, n_positive: int, others: int = 60) -> Classified:
    """A class with so many positives beside one with others."""
    positive = np.arange(n)[:, None] < [n_positive, others]
    score = np.random.default_rng(5).random((n, 2)) + 0.3 * positive
    return ranking.from_arrays(positive, score, classes=["rare", "other"])


def nearly_perfect(n_wrong: int) -> Classified:
    """A class of which so many of 60 positives are below all negatives."""
    positive, score = np.arange(200) < 60, np.linspace(1, 0.5, 200)
    score[:n_wrong] = 0.1
    return ranking.from_arrays(positive, score, classes=["a"])


def same(a: Intervals, b: Intervals) -> bool:
    """Whether every bit is equal."""
    return (a.metrics, a.classes) == (b.metrics, b.classes)


# ---- values


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, 2])
def test_a_standard_error_is_that_of_a_naive_evaluation_of_each_subset(groups: int | None) -> None:
    table = drawn()
    counted = np.random.default_rng(6).random(table.score.shape) < 0.9
    result = ranking.evaluate(replace(table, counted=counted), threshold=THRESHOLD)
    by_id = {each: int(each.rpartition("-")[2]) // (groups or 1) for each in table.ids}
    made = result.intervals(seed=9, groups=None if groups is None else by_id)
    ids = np.array(sorted(table.ids))
    dealt = subsets(units(ids, by_id), 9)
    aps, aucs, recalls = [], [], []
    for kept in dealt.ids(ids):
        rows = np.isin(table.ids, kept)
        ap, auc, recall = [], [], []
        for k in range(3):
            some = rows & counted[:, k]
            labels, scores = (each[some, k].tolist() for each in (table.positive, table.score))
            ap.append(average_precision_score(labels, scores))
            auc.append(float(naive.auc_by_pairs(labels, scores)))
            tp, _, _, fn = naive.counts(labels, scores, THRESHOLD)
            recall.append(tp / (tp + fn))
        aps.append(ap)
        aucs.append(auc)
        recalls.append(recall)
    n = dealt.n_parts
    assert n == 25
    for name, row, values in (
        ("mAP", "AP", aps),
        ("AUC", "AUC", aucs),
        (f"recall@{THRESHOLD}", "recall", recalls),
    ):
        every = np.array(values)
        every = np.column_stack([every.mean(axis=1), every])
        se = np.sqrt((n - 1) * every[:n].var(axis=0))
        found = [made.metrics[name], *(made.per_class[each][row] for each in CLASSES)]
        assert [one.se for one in found] == pytest.approx(se.tolist())
        if row != "AP":  # whose bias falls by another rate
            bias = every[n:].mean(axis=0) - [one.value for one in found]
            assert [one.bias for one in found] == pytest.approx(bias.tolist(), abs=1e-12)
        assert all(one.low < one.value < one.high for one in found)
    assert made.units.n == (120 if groups is None else 60)


@pytest.mark.parametrize("average", [*ranking.AVERAGES, None])
@pytest.mark.parametrize("integrator", ranking.INTEGRATORS)
def test_the_values_are_those_of_the_result(average: str | None, integrator: str) -> None:
    settings = {"average": average, "integrator": integrator}
    result = ranking.evaluate(drawn(60), settings=settings, k=[1, 2], threshold=THRESHOLD)
    made = result.intervals()
    assert {name: one.value for name, one in made.metrics.items()} == result.metrics
    for row, of_class in zip(result.per_class, made.classes, strict=True):
        wanted = {name: value for name, value in row.items() if name in of_class}
        assert {name: one.value for name, one in of_class.items()} == wanted
        assert list(of_class) == [*OF_CLASS]
    first = [f"{name} " for name in made.metrics][:1]
    assert made.sentence().startswith(*first or ("",))
    assert bool(made.sentence()) == bool(first)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ranking.INTEGRATORS)
def test_threads_and_the_order_of_the_rows_do_not_matter(integrator: str) -> None:
    table = drawn()
    order = np.random.default_rng(7).permutation(len(table))
    mixed = replace(
        table,
        ids=tuple(np.array(table.ids)[order].tolist()),
        positive=table.positive[order],
        score=table.score[order],
    )
    one, other = (
        ranking.evaluate(each, settings={"integrator": integrator}, threshold=THRESHOLD)
        for each in (table, mixed)
    )
    made = one.intervals(threads=1)
    assert same(made, one.intervals(threads=2))
    assert same(made, other.intervals())
    assert not same(made, one.intervals(seed=1))
    alone = one.intervals(groups={each: each for each in table.ids})
    assert same(made, alone)
    assert alone.signature == f"{made.signature}|unit={alone.units.digest}"


def test_a_part_of_the_samples() -> None:
    table = drawn()
    result = ranking.evaluate(table, k=[2], threshold=THRESHOLD)
    some = result.select([*reversed(table.ids[10:50])])
    naive_part = ranking.from_arrays(
        table.positive[10:50], table.score[10:50], classes=CLASSES, ids=table.ids[10:50]
    )
    again = ranking.evaluate(naive_part, k=[2], threshold=THRESHOLD)
    assert some.to_dict() == again.to_dict()
    with pytest.raises(DataError, match="no samples 'horse'"):
        result.select(["horse"])
    by_number = ranking.evaluate(ranking.from_arrays([0, 1, 1], [0.1, 0.2, 0.3]))
    assert by_number.select([0, 2]).table.ids == ("0", "2")
    assert math.isnan(by_number.select([]).metrics["mAP"])


# ---- refusals


MICRO, SAMPLES = {"average": "micro"}, {"average": "samples"}
ELEVEN = {"integrator": "eleven_point"}


@pytest.mark.parametrize(
    "table, settings, numbers, why",
    [
        (with_positives(49, 25, 25), {}, "mAP AUC rare/AP", "fewer than 50 images"),
        (with_positives(1, 1, 0), {}, "mAP rare/AP", "fewer than two images"),
        (with_positives(90, 20), {}, "rare/AP rare/best_f1 rare/precision", "on 20 images: co"),
        (with_positives(90, 70), {}, "rare/AUC", "a single class on 20 images"),
        (with_positives(90, 2), {}, "mAP AUC recall@0.7", "1 of 2 classes are on 1 to 3 images"),
        (with_positives(90, 88), {}, "AUC", "1 of 2 classes are on 1 to 3 images"),
        (with_positives(90, 0, 20), MICRO, "AP AUC recall@0.7 F1@0.7", "cases on 20 images"),
        (with_positives(90, 0, 20), SAMPLES, "AP AUC recall@0.7", "cases on 20 images"),
        (with_positives(90, 0, 20), {}, "mAP other/AP", "a single class on 20 images"),
        (with_positives(90, 0), {}, "rare/AP rare/AUC", "no positive sample"),
        (with_positives(90, 90), {}, "rare/AUC", "no negative sample"),
        (with_positives(90, 90, 0), {}, "AUC", "no negative sample or no positive sample"),
        (with_positives(90, 30), ELEVEN, "rare/AP other/AP", "--integrator=all_points"),
        (with_positives(90, 30), ELEVEN | MICRO, "AP", "--integrator=all_points"),
        (nearly_perfect(2), {}, "a/best_f1", "few images decide"),
        (nearly_perfect(1), {"integrator": "grid_envelope"}, "mAP a/AP", "moves in steps of 0.010"),
    ],
)
def test_what_is_refused(
    table: Classified, settings: dict[str, str], numbers: str, why: str
) -> None:
    result = ranking.evaluate(table, settings=settings, threshold=THRESHOLD)
    made = result.intervals()
    for place in numbers.split():
        name, _, row = place.partition("/")
        one = made.per_class[name][row] if row else made[name]
        assert why in one.why_not, place
        assert math.isnan(one.low)


@pytest.mark.slow
def test_what_is_not_refused() -> None:
    """Where a rare class has no interval, the mean without classes, and the other class, have."""
    table = with_positives(90, 2)
    for average in ("micro", "samples"):
        made = ranking.evaluate(table, settings={"average": average}, k=[1]).intervals()
        assert all(not one.why_not for one in made.metrics.values())
    assert not made.per_class["other"]["AP"].why_not
    few = ranking.evaluate(with_positives(90, 21)).intervals()
    assert not few.per_class["rare"]["AP"].why_not
    many = ranking.evaluate(nearly_perfect(12), settings={"integrator": "grid_envelope"})
    assert not any(many.intervals().per_class["a"][row].why_not for row in ("best_f1", "AP"))
    mean = ranking.evaluate(drawn(), settings={"integrator": "eleven_point"}).intervals()
    assert not mean.metrics["mAP"].why_not


@pytest.mark.parametrize("undefined", ranking.UNDEFINED)
def test_strange_tables(undefined: str) -> None:
    """Classes of the same name, without positives, without predictions, left out: an interval or a
    reason, and no warning."""
    table = drawn(80, (0.5, 0.0, 1.0))
    score = table.score.copy()
    score[:, 0] = -np.inf
    result = ranking.evaluate(
        replace(table, classes=("a", "a", "b"), score=score, counted=score < 1.3),
        settings={"undefined": undefined},
        k=[1],
        threshold=THRESHOLD,
    )
    made = result.intervals()
    every = [*made.metrics.values(), *(one for of in made.classes for one in of.values())]
    assert len(made.classes) == 3
    assert all((one.low <= one.high) != bool(one.why_not) for one in every)
    assert made.classes[0]["AP"].why_not == "no prediction"


# ---- the command


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    table = drawn()
    for name, values in (("truth", table.positive.astype(int)), ("scores", table.score)):
        rows = [
            f"{i},{','.join(map(str, row))}"
            for i, row in zip(table.ids, values.tolist(), strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"image,{','.join(CLASSES)}", *rows]))
    lines = [f"{each},{k // 2}" for k, each in enumerate(table.ids)]
    (tmp_path / "groups.csv").write_text("\n".join(["image,group", *lines]))
    return [tmp_path / f"{name}.csv" for name in ("truth", "scores", "groups")]


def test_the_text_has_both_tables_of_intervals(files: list[Path]) -> None:
    plain, done = run("rank", *files[:2]), run("rank", *files[:2], "--ci")
    lines = plain.out.splitlines()
    assert done.code == 0
    found = done.out.splitlines()
    assert found[: len(lines) - 2] == lines[:-2]
    after = found[len(lines) - 2 :]
    title = "95 % intervals, 120 images"
    assert after[1] == f"{title}: jackknife, corrected for the small-sample bias"
    assert after[2].split() == ["metric", "value", "SE", "low", "high", "bias"]
    assert [line.split()[0] for line in after[3:5]] == ["mAP", "AUC"]
    assert after[6] == f"{title}, per class"
    assert after[8].split()[:2] == ["cat", "AP"]
    assert lines[-2] in after
    assert ranking.evaluate(drawn()).intervals().sentence() in " ".join(after)
    assert after[-1] == f"{lines[-1]}|ci:jackknife.8|B=57|seed=0"


@pytest.mark.slow
def test_the_json_has_intervals_as_that_of_eval(files: list[Path]) -> None:
    options = ("--ci", "--level", ".9", "--seed", "3", "--groups", files[2])
    content = json.loads(run("rank", *files[:2], *options, "--format", "json").out)
    table = ranking.read(*files[:2])
    made = ranking.evaluate(table).intervals(0.9, 3, files[2])
    assert content["intervals"] == {name: one.to_dict() for name, one in made.metrics.items()}
    assert content["per_class"][2]["intervals"]["AUC"] == made.per_class["bird"]["AUC"].to_dict()
    assert content["sentence"] == made.sentence()
    assert content["signature"].endswith(f"|ci:jackknife.8|B=57|seed=3|unit={made.units.digest}")
    assert made.units.n == 60
    empty = json.loads(run("rank", *files[:2], "--ci", "--average", "none", "--format", "json").out)
    assert (empty["intervals"], empty["sentence"]) == ({}, None)


@pytest.mark.parametrize(
    "options, beginning",
    [
        (["--table", "intervals", "--format", "csv"], "metric,value,SE,low,high,bias"),
        (["--table", "class-intervals", "--format", "csv"], "class,metric,value,SE,low,high,bias"),
        (["--table", "intervals", "--format", "markdown"], "**95 % intervals, 120 images"),
        (["--table", "intervals", "--format", "latex"], "% 95 % intervals, 120 images"),
        (["--average", "none", "--table", "class-intervals"], "95 % intervals, 120 images, per"),
    ],
)
def test_other_formats(files: list[Path], options: list[str], beginning: str) -> None:
    done = run("rank", *files[:2], "--ci", *options)
    assert (done.code, done.out[: len(beginning)]) == (0, beginning)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--level", ".9"], "--level: needs --ci"),
        (["--seed", "1"], "--seed: needs --ci"),
        (["--ci", ".9"], "--ci: .9 is no method"),
        (["--ci", "--level", "2"], "level: 2.0"),
        (["--average", "none", "--ci", "--table", "intervals"], "no table intervals"),
    ],
)
def test_refused_options(files: list[Path], options: list[str], message: str) -> None:
    done = run("rank", *files[:2], *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_sample_without_a_group(files: list[Path]) -> None:
    files[2].write_text("image,group\nimage-1,a\n")
    done = run("rank", *files[:2], "--ci", "--groups", files[2])
    assert done.code == 2
    assert "no group for 119 of 120 images" in done.err
