"""The table of commands in docs/benchmarks.md is what the commands do."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from detmap.core.protocol import names
from tests.benchmarks.goldens import folder
from tests.support.tier import some

ROOT = Path(__file__).resolve().parents[2]


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("table", ROOT / "tools" / "benchmark_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()
OTHERS = {
    name
    for name in names()
    if name.startswith(("coco-", "voc")) or name in ("lvis", "lvis-boundary")
}
"""COCO, VOC and LVIS, and their variants."""


def lines() -> dict[str, str]:
    """The rows of the page by protocol."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    rows = page.partition(TOOL.BEGIN)[2].partition(TOOL.END)[0].strip().splitlines()[2:]
    return {row.split("`")[1]: row for row in rows}


def test_every_protocol_of_a_benchmark_has_a_row() -> None:
    assert set(lines()) == set(TOOL.CASES) == set(names()) - OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("protocol", some(TOOL.CASES, 10))
def test_the_row_is_what_the_commands_do(protocol: str) -> None:
    place = folder(TOOL.CASES[protocol][0])
    cells = TOOL.row(protocol, place.parent.resolve())
    assert f"| {' | '.join(cells)} |" == lines()[protocol]
