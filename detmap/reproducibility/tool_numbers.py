"""`detmap.tools`: one pair of files under the rules of every tool."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from detmap.core.adapters.truth_by_protocol import TruthByProtocol
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import NEWEST, Protocol
from detmap.core.results.result_tables import overlaps
from detmap.core.tables import Detections
from detmap.files import read, takes_reading
from detmap.reproducibility.parity import restated_tools
from detmap.reproducibility.reproducing.printed_numbers import Wanted, parse

Row = tuple[str, str, str, float, float, str]
"""Tool, metric, IoU, value, difference, remark."""


@dataclass(frozen=True, slots=True)
class ToolNumbers(Tabular):
    """The numbers of the tools.

    Parameters
    ----------
    rows : of the table; the first one is the reference, unless sorted by distance
    title, below : of the table
    signature : of the reference
    notes : explanations of remarks, and of undefined numbers
    """

    rows: tuple[Row, ...]
    title: str
    below: str
    signature: str
    notes: tuple[str, ...]

    def __getitem__(self, tool: str) -> float:
        """Returns the number of a tool; raises `KeyError` for an unknown one."""
        for row in self.rows:
            if row[0] == tool:
                return row[3]
        raise KeyError(f"no tool {tool!r} here; known: {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the tools."""
        return (row[0] for row in self.rows)

    def tables(self) -> list[Table]:
        """Returns the table ``tools``."""
        header = ("tool", "metric", "IoU", "value", "difference", "remark")
        lines = (self.below, self.signature)
        return [Table(self.title, header, self.rows, lines, name="tools")]


@takes_reading
def tools(
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None = None,
    *,
    only: Sequence[str] | str | None = None,
    near: str | float | None = None,
    settings: Mapping[str, Any] | None = None,
    threads: int | None = None,
    **reading: Any,
) -> ToolNumbers:
    """Evaluates the same files under the rules of other tools.

    >>> import detmap
    >>> found = detmap.tools("shapes", "shapes/detections/contours", only=["voc-devkit-07"])
    >>> round(found["voc-devkit-07"], 4)
    0.6008

    Parameters
    ----------
    truth, detections, protocol, settings, threads : as in `detmap.evaluate`
    only : names of the tools to report
    near : a number; tools are sorted by the distance from it
    reading : options of ``detmap tools``: ``split``, ``truth_format``, ``unknown`` ...

    Raises
    ------
    DataError : invalid input
    """
    wanted = None if near is None else parse(str(near), "near")
    inputs = read(truth, detections, protocol, settings, reading)
    names = [only] if isinstance(only, str) else only
    return tool_numbers(inputs.truths, inputs.detections, inputs.protocol, names, wanted, threads)


def tool_numbers(
    truths: TruthByProtocol,
    detections: Detections,
    rules: Protocol,
    only: Sequence[str] | None,
    wanted: Wanted | None,
    threads: int | None,
) -> ToolNumbers:
    """Does `tools` for tables."""
    known = restated_tools.MatchedLast(truths, detections, threads)
    stock = known.result(rules)
    metric, value = restated_tools.headline(stock)
    newest = None if only is None else [NEWEST.get(each, each) for each in only]
    found = restated_tools.compare_tools(known, rules, newest)
    rows = [(rules.name, metric, overlaps(rules, stock.rows[0]), value, 0.0, "reference")]
    rows += [
        (row.tool, row.metric, row.iou, row.value, row.difference, row.remark) for row in found
    ]
    title = f"tools, compared with {rules.name}"
    below = f"difference: to the metric of {rules.name} over the same IoU, where it has one"
    if wanted is not None:
        rows = nearest(rows, wanted.value)
        title, below = f"tools, nearest to {wanted.text} first", f"difference: to {wanted.text}"
    seen = {word for row in found for word in row.remark.split(", ")}
    undefined: dict[str, list[str]] = {}
    for row in found:
        for note in row.notes if row.remark == "undefined" else ():
            undefined.setdefault(str(note), []).append(row.tool)
    notes = [text for word, text in restated_tools.WORDS.items() if word in seen]
    notes += [f"undefined ({', '.join(names)}): {text}" for text, names in undefined.items()]
    return ToolNumbers(tuple(rows), title, below, stock.signature, tuple(notes))


def nearest(rows: Sequence[Row], wanted: float) -> list[Row]:
    """Returns the rows by distance from a number, undefined ones last."""
    rows = [(*row[:4], row[3] - wanted, row[5]) for row in rows]
    return sorted(rows, key=lambda row: (math.isnan(row[4]), abs(row[4])))
