"""The result of an evaluation: metrics, per-class table, counts, notes, signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base.locks import cached_property
from detmap.core.base.reprs import outline
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.curves import aggregation
from detmap.core.curves import scores as class_scores
from detmap.core.curves.aggregation import COUNTS
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.output.named_values import ClassRows, MetricAccess, NamedValues
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import LRP, MetricRow
from detmap.core.results import result_notes
from detmap.core.results.resampled import Resampled
from detmap.core.results.signature import signature
from detmap.core.tables import Note, fixes
from detmap.core.tables.digests import digest_of
from detmap.core.tables.notes import summed
from detmap.errors import DataError, DetmapError, ProtocolError

if TYPE_CHECKING:
    from detmap.core.curves.operating_points import Operating
    from detmap.core.matching.matches_overview import Overview
    from detmap.core.output.table import Table
    from detmap.core.results.findings import Findings
    from detmap.core.statistics.evaluations import Evaluated
    from detmap.core.statistics.intervals import Intervals
    from detmap.core.statistics.subsets import Subsets
    from detmap.core.statistics.ties import Tied
    from detmap.core.tables import Detections, Truth


@dataclass(frozen=True, eq=False, repr=False)
class Result(MetricAccess, Resampled, Tabular):
    """The return value of `detmap.evaluate`; ``print(result)`` shows it.

    A mapping from metric to value: ``result["AP"]``, ``"AP50" in result``, ``dict(result)``.

    >>> import detmap
    >>> from detmap.core.base.resources import folder
    >>> sample = folder("datasets") / "shapes"
    >>> result = detmap.evaluate(sample, sample / "detections" / "contours", "coco-bbox")
    >>> round(result["AP50"], 4)  # a fraction; NaN if undefined
    0.606
    >>> round(result.per_class["circle"]["AP50"], 4)
    0.5622
    >>> [row["tp"] for row in result.per_class][:3]  # counts at IoU 0.5, one row per class
    [45, 37, 39]
    >>> recall, precision, score = result.curve("circle", iou=0.75)
    >>> result.signature.split("|")[:2]  # protocol and its changes
    ['coco-bbox.2', 'default']

    Parameters
    ----------
    verdicts : the match rows, or an `Overview` of them if they are on other machines
    scores : the integrated curves
    weights : (I,) float64 image weights; None for 1
    inputs : arguments of `evaluate`: truth, detections, protocol, reader options
    matched : truth and detections, for orders of tied scores; None if not available
    extra : the metrics of the protocol's ``evaluation.extra``
    extra_part : returns these metrics for some images, given by id; None if not available
    """

    verdicts: Matches | Overview
    scores: Scores
    weights: NDArray[np.float64] | None = None
    inputs: tuple[Any, Any, Protocol, Mapping[str, Any]] | None = None
    matched: tuple[Truth, Detections] | None = field(default=None, repr=False)
    extra: Mapping[str, float] = field(default_factory=dict)
    extra_part: Callable[[ArrayLike], Mapping[str, float]] | None = field(default=None, repr=False)

    @property
    def protocol(self) -> Protocol:
        """The protocol of the evaluation."""
        return self.verdicts.protocol

    @cached_property
    def rows(self) -> list[MetricRow]:
        """The definition of each metric: kind, IoU, subset, class group, detection limit."""
        return self.protocol.rows()[0]

    @property
    def lower_is_better(self) -> frozenset[str]:
        """The names of metrics of which a lower value is better."""
        rates = (row.name for row in self.rows if not row.metric.higher_is_better)
        return frozenset((*rates, *(name for name in LRP if name in self.extra)))

    @cached_property
    def findings(self) -> Findings:
        """Common mistakes in the input files, as the quick input checks find them.

        Empty for results of matches without input files.
        """
        from detmap.core.results.findings import quick_findings

        return quick_findings(self.inputs)

    @property
    def metrics(self) -> dict[str, float]:
        """Values by name, fractions in [0, 1]; NaN if undefined."""
        return NamedValues(self._metrics)  # a copy, so callers cannot change the cache

    @cached_property
    def _metrics(self) -> dict[str, float]:
        of = self.protocol, self.verdicts.categories
        means = {row.name: aggregation.mean(self.scores, row, *of) for row in self.rows}
        return means | dict(self.extra)

    @cached_property
    def per_class(self) -> ClassRows:
        """One dict per class: name, id, the AP and AR of the protocol, counts at IoU 0.5.

        Rows are selected by position or by name: ``result.per_class["person"]["AP"]``.
        """
        return self.classes()

    def classes(self, iou: float | None = None) -> ClassRows:
        """Returns `per_class` with the counts at another IoU threshold of the protocol."""
        counts = aggregation.count(self.scores, self.protocol, iou)
        rows = aggregation.class_rows(self.protocol)
        values = {row.name: aggregation.per_class(self.scores, row, self.protocol) for row in rows}
        return ClassRows(
            NamedValues(
                name=name,
                id=int(self.verdicts.categories.ids[k]),
                **{row: float(column[k]) for row, column in values.items()},
                **{field: _count(getattr(counts, field)[k]) for field in COUNTS},
            )
            for k, name in enumerate(self.verdicts.categories.names)
        )

    def flat(
        self, prefix: str = "", *, classes: bool = False, intervals: Intervals | None = None
    ) -> dict[str, float]:
        """Returns one dict of numbers for MLflow, W&B and TensorBoard, without undefined ones.

        Parameters
        ----------
        prefix : of every name, such as ``"val/"``
        classes : whether to add the metrics of classes, as ``per_class/AP/person``
        intervals : from `intervals`, to add ``AP_low`` and ``AP_high``

        Characters that MLflow refuses become ``_``; ``AR@100`` becomes ``AR_at_100``. Names of
        classes are cut to 180 bytes; a class whose name is taken by then gets a number (``_2``).

        Raises `DataError` for arguments of another type.
        """
        from detmap.core.results.flat_metrics import flat

        if not isinstance(prefix, str):
            raise DataError("prefix", f"{prefix!r:.80}", 'give a string such as "val/"')
        if intervals is not None and not hasattr(intervals, "metrics"):
            fix = "give Result.intervals()"
            raise DataError("intervals", f"{intervals!r:.80}", fix)

        rows = self.per_class if classes else []
        return flat(self.metrics, rows, prefix, intervals.metrics if intervals else None)

    def counts(self, iou: float | None = None) -> dict[str, int | float]:
        """Returns totals over classes at an IoU threshold.

        The default is 0.5, or the protocol's first threshold if 0.5 is not evaluated.
        """
        counts = aggregation.count(self.scores, self.protocol, iou)
        return {
            "images": self.verdicts.n_images
            if self.weights is None
            else _count(self.weights.sum()),
            "classes": len(self.verdicts.categories),
            "iou": counts.iou,
            **{field: _count(getattr(counts, field).sum()) for field in COUNTS},
        }

    @cached_property
    def signature(self) -> str:
        """One line that identifies protocol, changes, data and version."""
        line = signature(self.protocol, "+".join((self.data_digest, *self.fixes)))
        return line if self.weights is None else f"{line}|weights:{digest_of(self.weights)}"

    @property
    def data_digest(self) -> str:
        """The digest of the matched data."""
        return self.overview.digest

    @property
    def lowest_score(self) -> float:
        """The lowest score of the evaluated detections; NaN without one."""
        lowest = self.overview.ranking.lowest_score
        return lowest + 0.0 if np.isfinite(lowest) else np.nan  # never -0.0

    @property
    def fixes(self) -> tuple[str, ...]:
        """Names of the fixes (``--fix``) applied to the detections, in order."""
        return fixes(self.verdicts.notes)

    @cached_property
    def overview(self) -> Overview:
        """A summary of the matches without their rows."""
        return self.verdicts.overview() if isinstance(self.verdicts, Matches) else self.verdicts

    @property
    def matches(self) -> Matches:
        """The match rows; raises `DetmapError` if they are on other machines."""
        if not isinstance(self.verdicts, Matches):
            raise DetmapError(
                "matches",
                "the match rows are on other machines, or were not kept in bounded memory",
                "give rows=True to detmap.distributed.evaluate, merge the parts here, or evaluate "
                "without memory=",
            )
        return self.verdicts

    @cached_property
    def notes(self) -> list[Note]:
        """Remarks on the input and the numbers."""
        undefined = aggregation.classes_without_truth(
            self.scores, self.verdicts.categories, self.protocol
        )
        tied: list[Note] = []
        if isinstance(self.verdicts, Matches) and self.weights is None and self.overview.n_tied:
            from detmap.core.statistics import ties

            tied = ties.note(self.verdicts, self.scores)
        return [
            *summed(self.verdicts.notes),
            *result_notes.match_notes(self.overview),
            *result_notes.all_ignored(self.overview, self.scores),
            *undefined,
            *tied,
            *result_notes.left_out(self.protocol),
            *([] if self.extra else result_notes.extra_left_out(self.protocol)),
            *result_notes.stops(self.overview),
            *result_notes.equal_scores(self.overview),
            *result_notes.partial_groups(self.protocol, self.verdicts.categories),
            *result_notes.ungrouped(self.protocol, self.verdicts.categories),
        ]

    def curve(
        self,
        name: str | int,
        iou: float = 0.5,
        subset: str | None = None,
        max_dets: int | None = None,
    ) -> class_scores.Curve:
        """Returns the precision-recall curve of a class at every rank, not interpolated.

        Parameters
        ----------
        name : name or id of the class
        iou : one of the protocol's thresholds
        subset : name of a subset of the objects (default: ``all``)
        max_dets : detection limit (default: the protocol's highest)

        Returns
        -------
        recall, precision, score : each (n,) float64, by descending score, without ignored
            detections; also ``.recall``, ``.precision``, ``.score``

        Raises
        ------
        DetmapError : unknown class, threshold or subset, or no match rows
        """
        k = self.verdicts.categories.index(name)
        t = self.protocol.threshold(iou, where="curve")
        a = self.protocol.subset(subset)
        whole = isinstance(max_dets, int) and not isinstance(max_dets, bool) and max_dets > 0
        if max_dets is not None and not whole:
            raise ProtocolError(
                "curve", f"max_dets {max_dets!r} is not a valid limit", "use a positive integer"
            )
        limit = self.protocol.max_dets()[-1] if max_dets is None else max_dets
        return class_scores.whole_curve(self.matches, k, a, t, limit, self.weights)

    def _sampled(self) -> tuple[NDArray[Any], Truth | None, Sequence[str]]:
        matches = self._unweighted("intervals")
        truth = None if self.matched is None else self.matched[0]
        return matches.image_ids, truth, matches.categories.names

    def evaluate_subsets(
        self,
        subsets: Subsets,
        more: Sequence[MetricRow] = (),
        *,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Evaluated:
        """Returns every number of the result on subsets of the images; see `intervals`.

        Raises
        ------
        DetmapError : no match rows, or no tables to match again where the rule needs it
        """
        from detmap.core.statistics import evaluations

        matches, alone = self._unweighted("intervals"), self.protocol.image_by_image()
        return evaluations.evaluate_matches(
            matches,
            self.scores,
            subsets,
            rows=(*self.rows, *more),
            part=None if alone else lambda kept: self._part(matches.image_ids[kept])[0],
            extra=self.extra if self.extra_part else {},
            extra_of=self.extra_part,
            threads=threads,
            progress=progress,
        )

    def select(self, image_ids: ArrayLike) -> Result:
        """Returns the result of some images, given by id.

        It equals an evaluation of truth and detections restricted to these images. A protocol that
        orders all detections together matches them again.

        Raises
        ------
        DetmapError : an image was not evaluated, no match rows, or no tables to match again
        """
        matches, tables = self._part(image_ids)
        weights = self.weights
        if weights is not None:
            weights = weights[np.isin(self.matches.image_ids, matches.image_ids)]
        scores = class_scores.scores(matches, weights=weights)
        part = Result(matches, scores, weights, matched=tables)
        if self.extra_part is None or weights is not None:
            return part
        return replace(part, extra=self.extra_part(image_ids), extra_part=self.extra_part)

    def _part(self, image_ids: ArrayLike) -> tuple[Matches, tuple[Truth, Detections] | None]:
        """The matches of some images, with their tables if they were matched again."""
        if self.matched is None or self.protocol.image_by_image():
            matches = self.matches.select(image_ids)
            result_notes.require_own_order(matches)
            return matches, None
        from detmap.core.matching.engine import match
        from detmap.core.tables import selection

        tables = selection.part(*self.matched, image_ids, None)
        return match(*tables, self.protocol, digested=False), tables

    def slices(self, images: Mapping[str, ArrayLike]) -> dict[str, Result]:
        """Returns the result of each named set of images; see `detmap.read_slices` for files."""
        if not isinstance(images, Mapping):
            fix = "give a dict: name to ids; detmap.read_slices(path, truth) reads one"
            raise DataError("slices", f"a {type(images).__name__}", fix)
        return {name: self.select(image_ids) for name, image_ids in images.items()}

    def per_image(self, iou: float | None = None) -> list[dict[str, Any]]:
        """Returns one dict per image: id, counts, score of the highest-scoring false positive.

        That is ``worst_score``, NaN without false positives. The counts add up to `counts`.
        """
        from detmap.core.results import slices

        return slices.per_image(*self._rows(iou))

    @proposes_arguments
    def operating_point(self, threshold: float, *, iou: float | None = None) -> Operating:
        """Returns precision, recall, F1, TP, FP and FN of detections at or above a score."""
        return self._operating("operating_point", iou, threshold)

    @proposes_arguments
    def at(self, confidence: float, *, iou: float | None = None) -> Operating:
        """Returns `operating_point` at a confidence: ``result.at(confidence=0.5).micro``."""
        return self.operating_point(confidence, iou=iou)

    @proposes_arguments
    def best_f1(self, *, iou: float | None = None) -> Operating:
        """Returns the score threshold of the highest F1, per class and overall.

        ``result.best_f1().threshold`` is that of all classes together.
        """
        return self.best_f_beta(iou=iou)

    def best_f_beta(self, beta: float = 1.0, *, iou: float | None = None) -> Operating:
        """Returns the score threshold of the highest F-beta, per class and overall."""
        return self._operating("best_f_beta", iou, beta)

    def threshold_for_precision(self, precision: float, *, iou: float | None = None) -> Operating:
        """Returns the lowest score threshold with at least this precision."""
        return self._operating("for_precision", iou, precision)

    def threshold_for_recall(self, recall: float, *, iou: float | None = None) -> Operating:
        """Returns the highest score threshold with at least this recall."""
        return self._operating("for_recall", iou, recall)

    def _operating(self, rule: str, iou: float | None, value: float) -> Operating:
        from detmap.core.curves import operating_points

        points: Operating = getattr(operating_points, rule)(*self._rows(iou), value)
        return points

    @proposes_arguments
    def plot(
        self,
        path: str | Path | None = None,
        *,
        panels: str | Sequence[str] | None = None,
        ax: Any = None,
        iou: float | None = None,
    ) -> Any:
        """Plots precision over recall by class, subset and IoU, and F1 over the score.

        `detmap.plot` draws several results in one plot.

        Parameters
        ----------
        path : .png, .svg or .pdf file to write too; or the name of a panel
        panels : names of the panels: ``classes``, ``subsets``, ``iou``, ``f1`` (default: all)
        ax : Matplotlib axes to draw one panel in (default panel: ``classes``)
        iou : IoU threshold of the counts

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        DetmapError : another suffix, no matplotlib, an unknown panel, or the write fails
        """
        from detmap import wings

        plotted = wings.required_hook("plot_curves")
        return plotted(self, path, panels=panels, ax=ax, iou=iou)

    def confusion_matrix(self, **options: Any) -> Any:
        """Computes the confusion matrix of the classes and background, with `.array`, `.classes`,
        `.plot()` and `.to_frame()`.

        Parameters
        ----------
        options : ``confidence`` (default: that of the highest F1), ``iou``, ``rule`` (``detmap``,
            ``supervision``, ``ultralytics-8.4``, ``mmdet`` ...)

        Raises
        ------
        DetmapError : the tables are not available, or the protocol has no error analysis
        """
        from detmap import wings

        self._unweighted("confusion_matrix")
        if self.matched is None:
            fix = "evaluate ground truth and detections with detmap.evaluate"
            raise DetmapError("confusion_matrix", "the result has no boxes", fix)
        matrix_of = wings.required_hook("confusion_matrix")
        return matrix_of(*self.matched, self.protocol, **options)

    def _rows(self, iou: float | None) -> tuple[Matches, int, int]:
        """The match rows, the main subset, and the threshold of the counts."""
        t = aggregation.threshold_of(self.protocol, iou)
        return self._unweighted("rows"), self.protocol.subset(), t

    def _unweighted(self, what: str) -> Matches:
        if self.weights is not None:
            raise DetmapError(what, "the images are weighted", "use a result without weights")
        return self.matches

    def ties(
        self, *, orders: int = 100, seed: int = 0, threads: int | None = None
    ) -> dict[str, Tied]:
        """Computes lowest and highest value, mean and deviation over random orders of tied scores.

        Raises `DetmapError` for weighted images and protocols without an order of tied scores.
        """
        from detmap.core.statistics import ties

        rows = self._unweighted("ties")
        return ties.ties(rows, self.scores, self.matched, orders=orders, seed=seed, threads=threads)

    def integrators(self) -> dict[str, dict[str, float]]:
        """Computes AP, AP50 and AP75 under each of the four AP interpolations."""
        return aggregation.under_integrators(self.matches, self.weights)

    def to_dict(self, iou: float | None = None) -> dict[str, Any]:
        """Returns the content of the JSON output: plain values, undefined ones as None."""
        from detmap.core.results.json_content import json_content

        return json_content(self, iou)

    def tables(
        self, *, iou: float | None = None, per_class: bool = False, integrators: bool = False
    ) -> list[Table]:
        """Returns the tables: metrics, and on request classes and AP interpolations."""
        from detmap.core.results import result_tables

        tables = [result_tables.metric_table(self.protocol, self.rows, self.metrics)]
        if integrators:
            tables.append(result_tables.integrator_table(self.integrators()))
        if per_class:
            tables.append(result_tables.class_table(self.classes(iou)))
        fixed = (f"detections fixed by --fix {name}" for name in self.fixes)
        lines = (*result_tables.totals(self.counts(iou), self.lowest_score), *fixed, self.signature)
        tables[-1] = replace(tables[-1], lines=lines)
        return tables

    def _repr_html_(self) -> str:
        from detmap.core.output import formats
        from detmap.core.output.tiles import metric_tiles

        found = formats.html(self.findings.tables()) if self.findings else ""
        return found + metric_tiles(self.metrics) + formats.html(self.tables())

    def __repr__(self) -> str:
        metrics = [f"{name}={value:.4f}" for name, value in self.metrics.items()]
        data = f"{self.verdicts.n_images} images, {len(self.verdicts.categories)} classes"
        return outline(self, self.protocol.name, data, *metrics, self.signature)

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> float:
            return self._named_metric(name)


def _count(number: Any) -> int | float:
    """An int if the number is whole, else a float."""
    return int(number) if float(number).is_integer() else float(number)
