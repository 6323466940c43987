"""The report in short, for a pull request's comment."""

from collections.abc import Sequence

from detmap.analysis.html_report import report_tables
from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.verdict import decide
from detmap.analysis.html_report.what_changed import changed, difference
from detmap.core.output import formats
from detmap.core.output.formats import escaped
from detmap.core.output.table import Style, Table
from detmap.core.results.findings import Finding
from detmap.core.tables import Note

METRICS = 12


def text(
    runs: Sequence[Run], title: str, findings: Sequence[Finding] = (), remarks: Sequence[Note] = ()
) -> str:
    """The doctor's findings, metrics, costs of errors and key findings, as Markdown; `remarks` are
    about the comparison.
    """
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
    gains = zip(*report_tables.gains(runs), strict=True)
    costs = tuple(
        (kind, *map(str, each), *[""] * (len(header) - 1 - len(each)))
        for kind, each in zip(runs[0].tide.gain, gains, strict=True)
    )
    tables.append(Table("AP gain if fixed, in points", ("error", *header[1:]), costs))
    verdict = decide(runs)
    lines = []
    if two:
        lines += ["**What changed**", "", *(f"- {escaped(each)}" for each in changed(*runs)), ""]
    for run in runs:
        lines += [f"**Key findings, {escaped(run.name)}**", ""]
        lines += [
            *(f"- {escaped(each)}" for each in run.sentences),
            "",
            f"`{run.result.signature}`",
            "",
        ]
    above = "".join(f"> **Probable mistake:** {escaped(str(each))}\n\n" for each in findings)
    above += f"**{escaped(verdict.sentence)}** {escaped(verdict.more)}".strip() + "\n\n"
    above += "".join(f"> **Note:** {escaped(str(each))}\n\n" for each in remarks)
    return above + formats.markdown(tables, Style()) + "\n" + "\n".join(lines)
