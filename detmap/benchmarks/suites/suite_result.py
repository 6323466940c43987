"""Evaluates the data sets of a suite one after the other, and computes summary figures."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from detmap.benchmarks.suites.figures import Measured, OnSubset, interval, value
from detmap.benchmarks.suites.suite_file import Row, Suite, read_suite
from detmap.core.adapters import options_of, read_detections
from detmap.core.base.reprs import outline
from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol
from detmap.core.results.signature import environment
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from detmap.core.tables import Note, Truth, truth_key
from detmap.errors import DataError, ProtocolError, few
from detmap.evaluate import evaluate, read_truth_and_protocol

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SuiteResult(Tabular):
    """The return value of `evaluate_suite`.

    Parameters
    ----------
    suite : what was evaluated
    rows : the numbers of each data set
    metrics : names of the metrics, the headline first
    intervals : whether figures have intervals
    notes : warnings, each with the data set as source
    """

    suite: Suite
    rows: tuple[Measured, ...]
    metrics: tuple[str, ...]
    intervals: bool = False
    notes: tuple[Note, ...] = ()

    def figures(self) -> dict[str, dict[str, float]]:
        """Returns figure to metric to value, fractions; NaN if undefined."""
        return {
            each.name: {metric: value(each, metric, self.rows) for metric in self.metrics}
            for each in self.suite.figures
        }

    def figure_intervals(self) -> dict[str, dict[str, tuple[float, float, float]]]:
        """Returns figure to metric to standard error, low and high of the 95 % interval."""
        return {
            each.name: {metric: interval(each, metric, self.rows, LEVEL) for metric in self.metrics}
            for each in self.suite.figures
        }

    @property
    def signature(self) -> str:
        """One line that identifies the data sets, their protocols and the figures."""
        parts = [f"{row.name}={row.group}={row.signature}" for row in self.rows]
        text = "\n".join((*parts, *map(repr, self.suite.figures)))
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        version = environment()["detmap"]
        return f"suite:{self.suite.name}|{len(self.rows)} data sets|{digest}|detmap:{version}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of the JSON output; it identifies every data set by its signature."""
        figures: dict[str, Any] = {
            name: {metric: or_none(number) for metric, number in row.items()}
            for name, row in self.figures().items()
        }
        content: dict[str, Any] = {"suite": self.suite.name, "figures": figures}
        if self.intervals:
            content["intervals"] = {
                name: {
                    metric: dict(zip(("se", "low", "high"), map(or_none, three), strict=True))
                    for metric, three in row.items()
                }
                for name, row in self.figure_intervals().items()
            }
        return content | {
            "data": [
                {
                    "name": row.name,
                    "group": row.group,
                    "metrics": {metric: or_none(row.metrics[metric]) for metric in self.metrics},
                    "counts": dict(row.counts),
                    "signature": row.signature,
                }
                for row in self.rows
            ],
            "signature": self.signature,
            "notes": [note.to_dict() for note in self.notes],
            "environment": environment(),
        }

    def tables(self) -> list[Table]:
        """Returns the tables ``data`` and ``figures``."""
        groups = any(row.group for row in self.rows)
        header = ("data set", *(("group",) if groups else ()), *self.metrics)
        data = tuple(
            (row.name, *((row.group,) if groups else ()), *(row.metrics[m] for m in self.metrics))
            for row in self.rows
        )
        tables = [Table(f"{self.suite.name}: data sets", header, data, name="data")]
        rows: list[tuple[Any, ...]]
        if self.intervals:
            columns: tuple[str, ...] = ("figure", "metric", "value", "se", "low", "high")
            known = self.figure_intervals()
            rows = [
                (name, metric, number, *known[name][metric])
                for name, row in self.figures().items()
                for metric, number in row.items()
            ]
        else:
            columns = ("figure", *self.metrics)
            rows = [(name, *row.values()) for name, row in self.figures().items()]
        lines = (self.signature,)
        return [*tables, Table("figures", columns, tuple(rows), name="figures", lines=lines)]

    def __repr__(self) -> str:
        metric = self.metrics[0]
        figures = (f"{name}={row[metric]:.4f}" for name, row in self.figures().items())
        data = f"{len(self.rows)} data sets"
        return outline(self, self.suite.name, data, f"{metric}:", *figures, self.signature)


def evaluate_suite(
    suite: Suite | str | Path,
    *,
    allow_missing: bool = False,
    intervals: bool = False,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> SuiteResult:
    """Evaluates every data set of a suite.

    Parameters
    ----------
    suite : from `read_suite`, or the path of its file
    allow_missing : leave out data sets without files, with a note, instead of raising
    intervals : whether to compute intervals of the figures
    threads : number of threads; has no effect on the result
    progress : called with the name of each data set

    Raises
    ------
    DataError : missing files, all of them by name; invalid input; a metric that is not reported
    """
    if not isinstance(suite, Suite):
        suite = read_suite(suite)
    missing = {row.name: row.missing() for row in suite.rows if row.missing()}
    needed = {figure.to for figure in suite.figures}
    if missing and (not allow_missing or needed & missing.keys()):
        paths = [path for each in missing.values() for path in each]
        what = f"{len(missing)} of {len(suite.rows)} data sets have missing files: "
        fix = "add the files; --allow-missing leaves such data sets out"
        if lost := [each.name for each in suite.figures if each.to in missing]:
            fix = f"add the files of {few(sorted(needed & missing.keys()))}: the "
            fix += f"figure{'s' * (len(lost) > 1)} {few(lost)} divides by them"
        raise DataError(suite.source, what + f"{few(missing)} ({few(paths)})", fix)
    rows, notes, cache = [], [], _Truths()
    known: dict[Row, tuple[Measured, list[Note]]] = {}  # of files that several data sets name
    for row in suite.rows:
        if row.name in missing:
            text = "data sets are left out: files are missing"
            notes.append(Note("data-set-missing", f"{text} ({row.name})", 1, row.name))
            continue
        progress(row.name)
        files = replace(row, name="", group="")
        if files not in known:
            known[files] = _measure(row, suite.metrics, cache, intervals, threads)
        measured, own = known[files]
        rows.append(replace(measured, name=row.name, group=row.group))
        notes += [
            Note(each.code, f"{each.text} ({row.name})", each.count, row.name) for each in own
        ]
    if not rows:
        raise DataError(suite.source, "no data set is left", "add the files")
    metrics = suite.metrics or tuple(
        name for name in rows[0].metrics if all(name in row.metrics for row in rows)
    )
    if not metrics:
        fix = "name one protocol for all data sets"
        raise DataError(suite.source, "the data sets have no common metric", fix)
    return SuiteResult(suite, tuple(rows), metrics, intervals, tuple(notes))


class _Truths:
    """The last ground truth: data sets in a row often share it."""

    def __init__(self) -> None:
        self.key: tuple[Any, ...] | None = None
        self.known: tuple[Truth, Protocol] | None = None

    def read(self, row: Row) -> tuple[Truth, Protocol]:
        """Returns the ground truth of a data set and its protocol."""
        key = (row.truth, row.truth_format, row.protocol)
        if self.known is None or self.key != key:
            options: dict[str, Any] = {"format": row.truth_format} if row.truth_format else {}
            self.known = read_truth_and_protocol(row.truth, row.protocol or None, **options)
            self.key = key
        return self.known


def _measure(
    row: Row, metrics: Sequence[str], cache: _Truths, intervals: bool, threads: int | None
) -> tuple[Measured, list[Note]]:
    """The numbers of one data set, and the notes of its result."""
    try:
        truth, rules = cache.read(row)
        detections = read_detections(
            row.detections, truth, format=row.detections_format or None, **options_of(rules)
        )
        result = evaluate(truth, detections, rules, threads=threads)
        strange = [name for name in metrics if name not in result.metrics]
    except (DataError, ProtocolError) as error:
        raise type(error)(f"data set {row.name}: {error.where}", error.what, error.fix) from None
    if strange:
        fix = f"{rules.name} has {few(result.metrics)}"
        raise DataError(f"data set {row.name}", f"no metric {strange[0]}", fix)
    measured = Measured(
        row.name,
        row.group,
        result.metrics,
        {each["name"]: _numbers(each) for each in result.per_class},
        result.counts(),
        result.signature,
        f"{row.truth.resolve()} {truth_key(truth)}",
    )
    if intervals:
        measured = _with_subsets(measured, result, truth.images.ids)
    return measured, result.notes


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    return {
        key: number
        for key, number in row.items()
        if isinstance(number, float) and not math.isinf(number)
    }


def _with_subsets(measured: Measured, result: Any, image_ids: Any) -> Measured:
    """The numbers with those on subsets of the images; equal images have equal subsets."""
    dealt = subsets(units(image_ids), seed=0)
    found = result.evaluate_subsets(dealt)
    names = [each["name"] for each in result.per_class]
    estimates, rows = found.estimates, []
    rules = dict(zip(found.metrics, estimates.rules, strict=False))
    own = dict(zip(found.metrics, estimates.intervals(LEVEL), strict=False))
    for numbers in [*estimates.parts.tolist(), estimates.whole.tolist()]:
        classes: dict[str, dict[str, float]] = {name: {} for name in names}
        for (k, metric), number in zip(found.cells, numbers[len(found.metrics) :], strict=True):
            classes[names[k]][metric] = number
        rows.append(OnSubset(dict(zip(found.metrics, numbers, strict=False)), classes))
    return replace(measured, subsets=dealt, on_subsets=tuple(rows), rules=rules, own=own)
