"""Tables and curves of a ranking result."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from detmap.core.curves import scores as curves
from detmap.core.output.table import Table
from detmap.ranking.metrics import ratio

if TYPE_CHECKING:
    from detmap.ranking.curve_plots import Line
    from detmap.ranking.ranking_result import RankingResult

RATES = {
    "tp": "TP",
    "fp": "FP",
    "tn": "TN",
    "fn": "FN",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
}
"""The counts at a threshold, and their headings."""


def tables(result: RankingResult) -> list[Table]:
    """The result as tables: averages, classes, counts at the threshold; the last one has the
    signature.
    """
    tables = []
    if result.averages:
        ties = {
            "together": "equal scores together",
            "input": "equal scores in the order of the ground truth",
        }[result.rules.ties]
        title = f"{result.rules.name}: {result.rules.ap.rule.title} AP, {ties}"
        header = ("metric", "average", "value")
        tables.append(Table(title, header, tuple(result.averages), name="metrics"))
    rows = tuple(
        (
            row["name"],
            row["positives"],
            row["samples"],
            row["AP"],
            row["AUC"],
            row["best_f1"],
            _score_text(row["best_f1_threshold"]),
        )
        for row in result.per_class
    )
    tables.append(
        Table(
            "classes",
            ("class", "positives", "samples", "AP", "AUC", "best F1", "threshold"),
            rows,
            name="classes",
        )
    )
    if result.threshold is not None:
        rows = tuple((row["name"], *(row[name] for name in RATES)) for row in result.per_class)
        tables.append(
            Table(
                f"predicted positive from score {result.threshold:g}",
                ("class", *RATES.values()),
                rows,
                name="counts",
            )
        )
    totals = "{samples} samples, {classes} classes, {positives} positive labels".format_map(
        result.counts
    )
    if result.counts["left_out"]:
        totals += f", {result.counts['left_out']} labels left out"
    tables[-1] = replace(tables[-1], lines=(totals, result.signature))
    return tables


def lines(result: RankingResult) -> list[Line]:
    """The curves of each class, for `detmap.ranking.curve_plots.draw`; the class's AP and AUC in
    its name.
    """
    from detmap.ranking.curve_plots import Line

    lines = []
    for k, row in enumerate(result.per_class):
        if math.isnan(row["AP"]):
            continue
        points = curves.rank(result.samples.class_samples(k), "together")
        recall, precision = curves.recall_precision(points, result.positives[k : k + 1], 0.0)
        name = f"{row['name']}  AP {row['AP']:.3f}  AUC {row['AUC']:.3f}"
        lines.append(
            Line(name, recall, precision, ratio(points.fp, row["samples"] - row["positives"]))
        )
    return lines


def _score_text(score: float) -> str | None:
    """A threshold with all digits: rounded up it would exclude its sample."""
    return None if math.isnan(score) else repr(score)
