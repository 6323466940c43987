"""The result of a benchmark's own rule: metrics, per-class table, notes and signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base.locks import cached_property
from detmap.core.base.reprs import outline
from detmap.core.output import formats
from detmap.core.output.named_values import ClassRows, MetricAccess, NamedValues
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol
from detmap.core.results.json_content import json_content
from detmap.core.results.resampled import Resampled
from detmap.core.results.result_tables import class_table, count_lines
from detmap.core.results.signature import signature
from detmap.core.tables import Detections, Note, Truth, fixes
from detmap.core.tables.digests import data_digest, image_digests
from detmap.core.tables.notes import summed
from detmap.errors import DetmapError

if TYPE_CHECKING:
    from detmap.core.results.findings import Findings
    from detmap.core.statistics.evaluations import Evaluated
    from detmap.core.statistics.subsets import Subsets


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """What a rule returns.

    Parameters
    ----------
    metrics : fractions by name, NaN if undefined
    definitions : of a metric, by name: IoU, subset and detection limit, for the table
    per_class : one dict per class: name, id, then its numbers
    notes : remarks on the numbers
    n_points : recall points of AP by few points; 0 for other rules and numbers
    single : id of the class of each metric that is of one class
    """

    metrics: Mapping[str, float]
    definitions: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    per_class: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[Note] = ()
    n_points: int = 0
    single: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BenchmarkResult(MetricAccess, Resampled, Tabular):
    """The return value of `detmap.evaluate` for a benchmark with a rule of its own.

    It has the metrics, intervals, tables and text of `detmap.Result`. What needs the matches of the
    ordinary rules (curves, operating points, ties) is refused by name.
    """

    truth: Truth = field(repr=False)
    detections: Detections = field(repr=False)
    protocol: Protocol
    numbers: Numbers
    inputs: tuple[Any, Any, Protocol, Mapping[str, Any]] | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """Values by name; NaN if undefined."""
        return NamedValues(self.numbers.metrics)

    @property
    def matched(self) -> tuple[Truth, Detections]:
        """Ground truth and detections."""
        return self.truth, self.detections

    @property
    def lower_is_better(self) -> frozenset[str]:
        """The names of metrics of which a lower value is better: none of these rules has one."""
        return frozenset()

    @property
    def per_class(self) -> ClassRows:
        """One dict per class, by position or by name."""
        return ClassRows(NamedValues(row) for row in self.numbers.per_class)

    def classes(self, iou: float | None = None) -> ClassRows:
        """Returns `per_class`."""
        self._refuse_iou(iou)
        return self.per_class

    def flat(self, prefix: str = "", *, classes: bool = False) -> dict[str, float]:
        """Returns one dict of numbers for experiment trackers; see `detmap.Result.flat`."""
        from detmap.core.results.flat_metrics import flat

        return flat(self.metrics, self.per_class if classes else [], prefix, None)

    def counts(self, iou: float | None = None) -> dict[str, int | float]:
        """Returns the numbers of images, classes, objects and detections."""
        self._refuse_iou(iou)
        sizes = {"images": len(self.truth.images), "classes": len(self.truth.categories)}
        return {**sizes, "objects": len(self.truth), "detections": len(self.detections)}

    def _refuse_iou(self, iou: float | None) -> None:
        if iou is not None:
            self.__getattr__("iou")

    @cached_property
    def signature(self) -> str:
        """One line that identifies protocol, changes, data and version."""
        return signature(self.protocol, "+".join((self.data_digest, *self.fixes)))

    @cached_property
    def data_digest(self) -> str:
        """The digest of the evaluated data."""
        truth = self.truth
        order = np.zeros(0, dtype=np.uint64)
        digests = image_digests(truth, self.detections)
        return data_digest(truth.categories, truth.images.ids, digests, order)

    @property
    def lowest_score(self) -> float:
        """The lowest score of the detections; NaN without one."""
        return float(self.detections.score.min()) if len(self.detections) else np.nan

    @property
    def fixes(self) -> tuple[str, ...]:
        """Names of the fixes (``--fix``) applied to the detections."""
        return fixes(self.detections.notes)

    @property
    def notes(self) -> list[Note]:
        """Remarks on the input and the numbers."""
        return summed((*self.truth.notes, *self.detections.notes, *self.numbers.notes))

    @cached_property
    def findings(self) -> Findings:
        """Common mistakes in the input files; see `detmap.Result.findings`."""
        from detmap.core.results.findings import quick_findings

        return quick_findings(self.inputs)

    def select(self, image_ids: ArrayLike) -> BenchmarkResult:
        """Returns the result of some images, given by id, evaluated anew."""
        from detmap.benchmarks.shared import own_rules
        from detmap.core.tables import selection

        part = selection.part(self.truth, self.detections, image_ids, None)
        return own_rules.evaluate(*part, self.protocol)

    def _sampled(self) -> tuple[NDArray[Any], Truth, Sequence[str]]:
        return self.truth.images.ids, self.truth, [str(row["name"]) for row in self.per_class]

    def evaluate_subsets(
        self,
        subsets: Subsets,
        *,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Evaluated:
        """Returns every number of the result on subsets of the images; see `intervals`."""
        from detmap.benchmarks.shared import own_rule_intervals as own

        numbers, n_units = self.numbers, own.units_of_truth(self.truth, subsets.units)
        given = self, self.truth.images.ids, subsets, n_units, numbers.n_points, numbers.single
        return own.evaluate_result(*given, progress=progress)

    def slices(self, images: Mapping[str, ArrayLike]) -> dict[str, BenchmarkResult]:
        """Returns the result of each named set of images."""
        return {name: self.select(image_ids) for name, image_ids in images.items()}

    def to_dict(self, iou: float | None = None) -> dict[str, Any]:
        """Returns the content of the JSON output: plain values, undefined ones as None."""
        return json_content(self, iou)

    def tables(
        self, *, iou: float | None = None, per_class: bool = False, integrators: bool = False
    ) -> list[Table]:
        """Returns the tables: metrics, and on request classes."""
        if integrators:
            self.__getattr__("integrators")
        known = self.numbers.definitions
        cells = [
            (name, *known.get(name, ("", "", "")), value) for name, value in self.metrics.items()
        ]
        header = ("metric", "IoU", "area", "max dets", "value")
        tables = [Table(self.protocol.title, header, tuple(cells), name="metrics")]
        if per_class:
            tables.append(class_table(self.classes(iou)))
        lines = (count_lines(self.counts(), self.lowest_score), self.signature)
        last = tables[-1]
        tables[-1] = Table(last.title, last.header, last.rows, name=last.name, lines=lines)
        return tables

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.metrics:
            return self.metrics[name]
        raise self._refusal(name.replace("_", " "))

    def _refusal(self, what: str) -> DetmapError:
        """The error for what needs the matches of the ordinary rules."""
        return DetmapError(
            f"protocol {self.protocol.name}",
            f"{what}: not available under the rule "
            f"{self.protocol.evaluation.rule}, which has no matches at IoU thresholds",
            "use a protocol with evaluation.rule = matching",
        )

    def _repr_html_(self) -> str:
        found = formats.html(self.findings.tables()) if self.findings else ""
        return found + formats.html(self.tables())

    def __repr__(self) -> str:
        metrics = [f"{name}={value:.4f}" for name, value in self.metrics.items()]
        return outline(self, self.protocol.name, *metrics, self.signature)
