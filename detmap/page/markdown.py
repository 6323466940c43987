"""The report in short, for a pull request's comment."""

from __future__ import annotations

from collections.abc import Sequence

from detmap.page.changes import changed, difference
from detmap.page.content import Run
from detmap.report import formats
from detmap.report.table import Style, Table

METRICS, ERRORS_SHOWN = 12, 8


def text(runs: Sequence[Run], title: str) -> str:
    """Metrics, costs of errors and what stands out, as Markdown."""
    two = len(runs) == 2
    names = [run.name for run in runs]
    metrics = list(runs[0].result.metrics)[:METRICS]
    header = ("metric", *names, *(("change",) if two else ()))
    rows = []
    for metric in metrics:
        cells = [_interval(run, metric) for run in runs]
        change = difference(runs[0], runs[1], metric).removeprefix("B - A ") if two else ""
        rows.append((metric, *cells, *((change,) if two else ())))
    tables = [Table(title, header, tuple(rows))]
    costs = tuple(
        (kind, *(f"{run.tide.gain[kind]:.2f}" for run in runs)) for kind in runs[0].tide.gain
    )
    tables.append(Table("What errors cost, in points of AP", ("error", *names), costs))
    lines = []
    if two:
        lines += ["**What changed**", "", *(f"- {each}" for each in changed(*runs)), ""]
    for run in runs:
        lines += [f"**What stands out, {run.name}**", ""]
        lines += [*(f"- {each}" for each in run.sentences), "", f"`{run.result.signature}`", ""]
    return formats.markdown(tables, Style()) + "\n" + "\n".join(lines)


def _interval(run: Run, metric: str) -> str:
    shown = run.shown(metric)
    value, low, high = (shown[key] for key in ("value", "low", "high"))
    if value != value:
        return "-"
    if low is None or low != low:
        return f"{100 * value:.2f}"
    return f"{100 * value:.2f} ({100 * low:.2f} to {100 * high:.2f})"
