"""The report in short, for a pull request's comment."""

from __future__ import annotations

from collections.abc import Sequence

from detmap.page import sheets
from detmap.page.changes import changed, difference
from detmap.page.content import Run
from detmap.report import formats
from detmap.report.formats import escaped
from detmap.report.table import Style, Table

METRICS = 12


def text(runs: Sequence[Run], title: str) -> str:
    """Metrics, costs of errors and what stands out, as Markdown."""
    two = len(runs) == 2
    names = [run.name for run in runs]
    metrics = list(runs[0].result.metrics)[:METRICS]
    header = ("metric", *names, *(("change",) if two else ()))
    rows = []
    for metric in metrics:
        cells = [str(run.metric(metric)) for run in runs]
        rows.append(
            (metric, *cells, *((str(difference(runs[0], runs[1], metric)),) if two else ()))
        )
    tables = [Table(title, header, tuple(rows))]
    changes = sheets.gains_apart(runs)
    costs = tuple(
        (
            kind,
            *(str(sheets.gain(run, kind)) for run in runs),
            *map(str, changes.get(kind, [""] if two else [])),
        )
        for kind in runs[0].tide.gain
    )
    tables.append(Table("What errors cost, in points of AP", ("error", *header[1:]), costs))
    lines = []
    if two:
        lines += ["**What changed**", "", *(f"- {escaped(each)}" for each in changed(*runs)), ""]
    for run in runs:
        lines += [f"**What stands out, {escaped(run.name)}**", ""]
        lines += [
            *(f"- {escaped(each)}" for each in run.sentences),
            "",
            f"`{run.result.signature}`",
            "",
        ]
    return formats.markdown(tables, Style()) + "\n" + "\n".join(lines)
