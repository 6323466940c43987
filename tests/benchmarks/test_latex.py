"""Every benchmark has a row for a paper's table."""

import math

import pytest

import detmap
from detmap.core.output import formats
from tests.benchmarks import goldens
from tests.benchmarks.test_command_table import CASES

FILES = CASES | {"lvis": CASES["lvis-fixed"]}


@pytest.mark.parametrize("protocol", FILES)
def test_latex_has_every_metric_and_the_row_of_a_paper(protocol: str) -> None:
    name, truth, found = FILES[protocol]
    place = goldens.folder(name) / "1"
    result = detmap.evaluate(place / truth, place / found, protocol)
    text = formats.latex(result.tables(per_class=True))
    shown = ["-" if math.isnan(v) else f"{v:.4f}" for v in result.metrics.values()]
    for metric, value in zip(result.metrics, shown, strict=True):
        metric = metric.replace("_", "\\_")
        assert any(
            line.startswith(f"{metric} &") and line.endswith(f"& {value} \\\\")
            for line in text.splitlines()
        ), metric
    if len(shown) <= formats.WIDEST_ROW:
        assert " & ".join(shown) in text
    else:  # too wide for one row: a row per class
        assert len(result.classes()) > 0
