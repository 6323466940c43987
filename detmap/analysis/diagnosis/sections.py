"""The sections of a diagnosis: each gives its part of the JSON, of the tables and of the report.

To add a section: one module with its functions, and one row of `SECTIONS` (docs/extend.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from detmap.analysis.diagnosis import diagnosis_tables as tables
from detmap.analysis.diagnosis.analysis import Diagnosis
from detmap.analysis.diagnosis.breakdowns import Slice
from detmap.analysis.diagnosis.calibration import calibration
from detmap.analysis.diagnosis.confusion import Confusion
from detmap.analysis.diagnosis.mistakes import Mistake, doubt, images
from detmap.analysis.diagnosis.olrp import olrp
from detmap.analysis.diagnosis.operating_sweep import Point
from detmap.analysis.diagnosis.tide import RULES, Tide, compared_keys, tidecv
from detmap.core.base.locks import cached_property
from detmap.core.output.table import Table
from detmap.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts that the sentences need; `lowest` is the lowest score."""

    tide: Tide
    points: list[Point]
    slices: list[Slice]
    confusion: Confusion
    suspects: list[Mistake]
    lowest: float


@dataclass(frozen=True, slots=True)
class Choices:
    """Whose rules the parts of a diagnosis follow, by the names of their functions' options.

    Parameters
    ----------
    tide_rule : whose numbers ``tide`` has: ``tidecv``, or ``protocol`` for the protocol's own
    tidecv : of `tidecv`: max_dets, mean; its thresholds are the diagnosis's
    confusion : of `confusion`: rule, confidence, iou
    calibration : of `calibration`: n_bins, box_bins, least, min_score
    olrp : of `olrp`: grid
    """

    tide_rule: str = "tidecv"
    tidecv: Mapping[str, Any] = field(default_factory=dict)
    confusion: Mapping[str, Any] = field(default_factory=dict)
    calibration: Mapping[str, Any] = field(default_factory=dict)
    olrp: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Known:
    """What a section is made from.

    Parameters
    ----------
    diagnosis : the pass over the images
    parts : what several sections need
    sentences : the key findings
    choices : whose rules the parts follow
    """

    diagnosis: Diagnosis
    parts: Parts
    sentences: list[str]
    choices: Choices

    @property
    def best_score(self) -> float | None:
        """The score threshold of the highest F1; None without one."""
        score = self.parts.points[0].score
        return None if np.isnan(score) else score

    @cached_property
    def tide(self) -> Tide:
        """The costs of errors by the chosen rule, tidecv's by default."""
        if self.choices.tide_rule not in RULES:
            known = ", ".join(RULES)
            raise DataError("tide: rule", repr(self.choices.tide_rule), f"choose one of {known}")
        if self.choices.tide_rule == "protocol":
            return self.parts.tide
        diagnosis = self.diagnosis
        return tidecv(
            *(diagnosis.tide_tables or (diagnosis.truth, diagnosis.detections)),
            pos_threshold=self.diagnosis.iou,
            background_threshold=self.diagnosis.background,
            compared=compared_keys(self.diagnosis.protocol),
            **self.choices.tidecv,
        )


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a diagnosis.

    Parameters
    ----------
    name : its key in the JSON
    content : returns its plain values, None where nothing is defined
    table : returns its table from the content of all sections, with numbers in percent or not; None
        for a section without a table
    table_name : by which ``--table`` selects it; `name` if ""
    title, lead : heading and first sentence of its part of the report, which shows the table of
        each detector; "" if `detmap.analysis.html_report` draws the section itself
    """

    name: str
    content: Callable[[Known], Any]
    table: Callable[[dict[str, Any], bool], Table] | None = None
    table_name: str = ""
    title: str = ""
    lead: str = ""

    def tabled(self, content: dict[str, Any], *, percent: bool = False) -> Table:
        """Returns its table; call only if there is one."""
        assert self.table is not None
        return replace(self.table(content, percent), name=self.table_name or self.name)


def _sentences(known: Known) -> list[str]:
    """The key findings; first a sentence if tidecv's AP differs in a printed digit."""
    own, theirs = known.parts.tide, known.tide
    has_mode = known.diagnosis.protocol.iou.of != "keypoints"  # tidecv compares no keypoints
    if not has_mode or f"{own.ap:.1f}" == f"{theirs.ap:.1f}":
        return known.sentences
    differs = (
        f"Under tidecv's rules AP{100 * own.iou:g} is {theirs.ap:.1f}, under the protocol's "
        f"{own.ap:.1f}."
    )
    return [differs, *known.sentences]


def _calibration(known: Known) -> dict[str, Any] | None:
    """None if scores are no probabilities."""
    try:
        return calibration(known.diagnosis, **known.choices.calibration).to_dict()
    except DataError:
        if known.choices.calibration:
            raise
        return None


def _olrp(known: Known) -> dict[str, Any]:
    found = olrp(known.diagnosis, **known.choices.olrp)
    classes = {name: each.to_dict() for name, each in found.items() if name}
    return {**found[""].to_dict(), "per_class": classes}


def _images(known: Known) -> list[dict[str, Any]]:
    found = images(known.diagnosis, confidence=known.best_score)
    return [each.to_dict() for each in found]


SECTIONS: tuple[Section, ...] = (
    Section("sentences", _sentences, tables.sentence_table),
    Section("counts", lambda known: known.diagnosis.counts()),
    Section("tide", lambda known: known.tide.to_dict()),
    Section("tide_protocol", lambda known: known.parts.tide.to_dict(), tables.cost_table, "costs"),
    Section("calibration", _calibration),
    Section("olrp", _olrp),
    Section(
        "operating_points",
        lambda known: [point.to_dict() for point in known.parts.points],
        tables.point_table,
        "points",
    ),
    Section(
        "slices", lambda known: [each.to_dict() for each in known.parts.slices], tables.slice_table
    ),
    Section(
        "confusion",
        lambda known: known.parts.confusion.to_dict(),
        tables.confused_table,
        "confused",
    ),
    Section("images", _images, tables.image_table),
    Section("suspects", lambda known: [doubt(each) for each in known.parts.suspects]),
)
TABLES = tuple(each.table_name or each.name for each in SECTIONS if each.table is not None)
"""The names of the tables, in their order."""


def summary_tables(content: dict[str, Any], *, percent: bool = False) -> list[Table]:
    """The summary as tables."""
    return [each.tabled(content, percent=percent) for each in SECTIONS if each.table is not None]
