"""The result of an evaluation: named numbers, per-class table, counts, notes, signature.

More than 400 lines: it is the one object that people hold, and its methods only call others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.base.reprs import outline
from detmap.curves import aggregation
from detmap.curves import scores as curves
from detmap.curves.aggregation import COUNTS
from detmap.curves.scores import Scores
from detmap.errors import DataError, DetmapError, ProtocolError
from detmap.matching.matches import Matches, Overview
from detmap.output import formats
from detmap.output.cell_text import or_none
from detmap.output.table import Table
from detmap.protocol import Protocol
from detmap.protocol.metric_rows import MetricRow
from detmap.results import result_notes as remarks
from detmap.results import result_tables as display
from detmap.results.signature import environment, signature
from detmap.tables import Note, fixes
from detmap.tables.catalog import summed
from detmap.tables.digests import digest_of

if TYPE_CHECKING:
    from detmap.curves.operating_points import Operating
    from detmap.doctor.findings import Finding
    from detmap.statistics.intervals import Intervals
    from detmap.statistics.ties import Tied
    from detmap.tables import Detections, Truth


@dataclass(frozen=True, eq=False)
class Result:
    """What `detmap.evaluate` returns; ``print(result)`` shows it.

    >>> import detmap
    >>> from detmap.base.resources import folder
    >>> sample = folder("datasets") / "shapes"
    >>> result = detmap.evaluate(sample, sample / "detections" / "contours", "coco-bbox")
    >>> round(result.metrics["AP50"], 4)  # a fraction; NaN where nothing is defined
    0.606
    >>> [row["tp"] for row in result.per_class][:3]  # counts at IoU 0.5, a class a row
    [45, 37, 39]
    >>> recall, precision, score = result.curve("circle", iou=0.75)
    >>> result.signature.split("|")[:2]  # rules, and what was changed of them
    ['coco-bbox.2', 'stock']

    Parameters
    ----------
    verdicts : the match rows behind the numbers; an `Overview` of them where they lie on other
        machines
    scores : the integrated curves
    weights : (I,) float64, how often each image counts; None where each counts once
    inputs : what `evaluate` was given: truth, detections, protocol, options of the reader
    matched : the tables behind them, for orders of equal scores; None where it is not at hand
    """

    verdicts: Matches | Overview
    scores: Scores
    weights: NDArray[np.float64] | None = None
    inputs: tuple[Any, Any, Protocol, Mapping[str, Any]] | None = None
    matched: tuple[Truth, Detections] | None = field(default=None, repr=False)

    @property
    def protocol(self) -> Protocol:
        """The rules that were applied."""
        return self.verdicts.protocol

    @cached_property
    def rows(self) -> list[MetricRow]:
        """Where each metric is read: kind, IoU, subset, group of classes, detection limit."""
        return self.protocol.rows()[0]

    @cached_property
    def findings(self) -> list[Finding]:
        """Common mistakes in the input files, as the quick doctor of the command line finds them;
        empty where the result was made of matches alone.
        """
        if self.inputs is None:
            return []
        from detmap.doctor import examine_given

        truth, detections, rules, how = self.inputs
        return examine_given(truth, detections, rules, **how)

    @property
    def metrics(self) -> dict[str, float]:
        """Name to value, a fraction in [0, 1]; NaN where nothing is defined."""
        return dict(self._metrics)  # the caller's own

    @cached_property
    def _metrics(self) -> dict[str, float]:
        categories = self.verdicts.categories
        return {
            row.name: aggregation.mean(self.scores, row, self.protocol, categories)
            for row in self.rows
        }

    @cached_property
    def per_class(self) -> list[dict[str, Any]]:
        """One dict a class: name, id, AP (AP50, AP75, AR as the protocol has them), and counts
        at IoU 0.5.
        """
        return self.classes()

    def classes(self, iou: float | None = None) -> list[dict[str, Any]]:
        """As `per_class`, with the counts at another IoU threshold of the protocol."""
        counts = aggregation.count(self.scores, self.protocol, iou)
        rows = aggregation.class_rows(self.protocol)
        values = {row.name: aggregation.per_class(self.scores, row, self.protocol) for row in rows}
        return [
            {
                "name": name,
                "id": int(self.verdicts.categories.ids[k]),
                **{row: float(column[k]) for row, column in values.items()},
                **{field: _count(getattr(counts, field)[k]) for field in COUNTS},
            }
            for k, name in enumerate(self.verdicts.categories.names)
        ]

    def counts(self, iou: float | None = None) -> dict[str, int | float]:
        """Totals over classes at one IoU threshold: 0.5 where the protocol has it, else its
        first, when left out.
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
        """One line that says which rules, which data and which version made these numbers."""
        line = signature(self.protocol, "+".join((self.overview.digest, *self.fixes)))
        return line if self.weights is None else f"{line}|weights:{digest_of(self.weights)}"

    @property
    def fixes(self) -> tuple[str, ...]:
        """Names of the repairs that the detections were read with (``--fix``), in their order."""
        return fixes(self.verdicts.notes)

    @cached_property
    def overview(self) -> Overview:
        """What is known of the matches without their rows."""
        return self.verdicts if isinstance(self.verdicts, Overview) else self.verdicts.overview()

    @property
    def matches(self) -> Matches:
        """The match rows; a `DetmapError` where they lie on other machines."""
        if isinstance(self.verdicts, Overview):
            raise DetmapError(
                "matches",
                "the match rows lie on other machines",
                "for curves and further integrators match in parts and merge them here",
            )
        return self.verdicts

    @cached_property
    def notes(self) -> list[Note]:
        """What a careful reader would ask."""
        undefined = aggregation.classes_without_truth(
            self.scores, self.verdicts.categories, self.protocol
        )
        tied: list[Note] = []
        if isinstance(self.verdicts, Matches) and self.weights is None and self.overview.n_tied:
            from detmap.curves import tie_bounds as bounds

            tied = bounds.note(self.verdicts, self.scores, self.matched)
        return [
            *summed(self.verdicts.notes),
            *remarks.match_notes(self.overview),
            *undefined,
            *tied,
            *remarks.left_out(self.protocol),
            *remarks.stops(self.verdicts),
        ]

    def curve(
        self,
        name: str | int,
        iou: float = 0.5,
        subset: str | None = None,
        max_dets: int | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The precision-recall curve of a class at every rank, not interpolated.

        Parameters
        ----------
        name : a class by its name or id
        iou : one of the protocol's thresholds
        subset : name of a subset of the objects; ``all`` when left out
        max_dets : another detection limit than the protocol's highest

        Returns
        -------
        recall, precision, score : each (n,) float64, best score first; ignored detections are left
            out

        Raises
        ------
        DetmapError : no such class, threshold or subset, or the rows lie elsewhere
        """
        k = self.verdicts.categories.index(name)
        t = self.protocol.threshold(iou, where="curve")
        a = self.protocol.subset(subset)
        whole = isinstance(max_dets, int) and not isinstance(max_dets, bool) and max_dets > 0
        if max_dets is not None and not whole:
            raise ProtocolError(
                "curve", f"max_dets {max_dets!r} is no limit", "give a whole number from 1"
            )
        limit = self.protocol.max_dets()[-1] if max_dets is None else max_dets
        return curves.whole_curve(self.matches, k, a, t, limit, self.weights)

    def intervals(
        self,
        level: float = 0.95,
        replicates: int = 1000,
        seed: int = 0,
        groups: Mapping[Any, Any] | str | Path | None = None,
        *,
        method: str = "influence",
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Intervals:
        """Standard error, bias and confidence interval of every metric and class.

        Parameters and errors are those of `detmap.statistics.intervals.intervals`: `groups` is a
        mapping from image to group, or a CSV file, where images belong together.
        """
        from detmap.statistics import intervals

        return intervals.intervals(
            self._unweighted("intervals"),
            self.scores,
            level=level,
            replicates=replicates,
            seed=seed,
            groups=groups,
            method=method,
            threads=threads,
            progress=progress,
        )

    def select(self, image_ids: ArrayLike) -> Result:
        """The result of some of the images alone, given by their ids: in every bit that of an
        evaluation of truth and detections restricted to them, unless a note says that the
        protocol's order of equal scores is that of all images.

        Raises
        ------
        DetmapError : an image that was not evaluated, or the rows lie elsewhere
        """
        whole, weights = self.matches, self.weights
        matches = remarks.slice_notes(whole.select(image_ids))
        if weights is not None:
            weights = weights[np.isin(whole.image_ids, matches.image_ids)]
        return Result(matches, curves.scores(matches, weights=weights), weights)

    def slices(self, images: Mapping[str, ArrayLike]) -> dict[str, Result]:
        """The result of each named set of images, as `select`; `detmap.read_slices` reads such
        sets.
        """
        if not isinstance(images, Mapping):
            raise DataError("slices", f"a {type(images).__name__}", "give image ids by name")
        return {name: self.select(image_ids) for name, image_ids in images.items()}

    def per_image(self, iou: float | None = None) -> list[dict[str, Any]]:
        """One dict an image: its id, counts that add up to `counts`, and ``worst_score``, the
        score of its surest false positive, NaN where there is none.
        """
        from detmap.results import slices as slicing

        return slicing.per_image(*self._rows(iou))

    def operating_point(self, threshold: float, *, iou: float | None = None) -> Operating:
        """Precision, recall, F1, TP, FP and missed objects from a score on."""
        return self._operating("operating_point", iou, threshold)

    def best_f_beta(self, beta: float = 1.0, *, iou: float | None = None) -> Operating:
        """The threshold of the highest F-beta of each class, and of all of them together."""
        return self._operating("best_f_beta", iou, beta)

    def threshold_for_precision(self, precision: float, *, iou: float | None = None) -> Operating:
        """The lowest threshold with at least the wanted precision: the one of most recall."""
        return self._operating("for_precision", iou, precision)

    def threshold_for_recall(self, recall: float, *, iou: float | None = None) -> Operating:
        """The highest threshold with at least the wanted recall: the one of fewest detections."""
        return self._operating("for_recall", iou, recall)

    def _operating(self, rule: str, iou: float | None, value: float) -> Operating:
        from detmap.curves import operating_points as operating

        points: Operating = getattr(operating, rule)(*self._rows(iou), value)
        return points

    def plot(self, path: str | Path, *, iou: float | None = None) -> None:
        """Draw precision over recall by class, subset and IoU, and F1 over the score, to a .png,
        .svg or .pdf file.

        Raises
        ------
        DetmapError : another suffix, matplotlib is missing, the place cannot be written
        """
        from detmap.results import curve_plots as pictures

        matches, _, t = self._rows(iou)
        pictures.write(path, matches, t, self.signature)

    def _rows(self, iou: float | None) -> tuple[Matches, int, int]:
        """The rows, the main subset, and the threshold at which is counted."""
        t = aggregation.threshold_of(self.protocol, iou)
        return self._unweighted("rows"), self.protocol.subset(), t

    def _unweighted(self, what: str) -> Matches:
        if self.weights is not None:
            raise DetmapError(what, "the images are weighted", "ask the result without weights")
        return self.matches

    def ties(
        self, *, orders: int = 100, seed: int = 0, threads: int | None = None
    ) -> dict[str, Tied]:
        """Bounds, expectation and spread of every metric over the orders of equal scores."""
        from detmap.statistics import ties

        given = self._unweighted("ties"), self.scores, self.matched
        return ties.ties(*given, orders=orders, seed=seed, threads=threads)

    def integrators(self) -> dict[str, dict[str, float]]:
        """AP, and AP50 and AP75 where evaluated, under each of the four integrators, from the
        same matches.
        """
        return aggregation.under_integrators(self.matches, self.weights)

    def to_dict(self, iou: float | None = None) -> dict[str, Any]:
        """Plain values in a fixed order, undefined ones as None: the content of the JSON output;
        counts at `iou`.
        """
        return {
            "metrics": {name: or_none(value) for name, value in self.metrics.items()},
            "per_class": [
                {key: or_none(value) for key, value in row.items()} for row in self.classes(iou)
            ],
            "counts": self.counts(iou),
            "protocol": {**self.protocol.to_dict(), "changes": dict(self.protocol.changes)},
            "signature": self.signature,
            **({"fixes": list(self.fixes)} if self.fixes else {}),
            "notes": [
                {"code": note.code, "count": note.count, "text": note.text, "source": note.source}
                for note in self.notes
            ],
            "environment": environment(),
        }

    def tables(
        self, *, iou: float | None = None, per_class: bool = False, integrators: bool = False
    ) -> list[Table]:
        """The result as tables: the metrics, and on demand classes and integrators; the last one
        carries the signature.
        """
        tables = [display.metric_table(self.protocol, self.rows, self.metrics)]
        if integrators:
            tables.append(display.integrator_table(self.integrators()))
        if per_class:
            tables.append(display.class_table(self.classes(iou)))
        repaired = (f"detections repaired by --fix {name}" for name in self.fixes)
        lines = (*display.totals(self.counts(iou)), *repaired, self.signature)
        tables[-1] = replace(tables[-1], lines=lines)
        return tables

    def to_frame(self, table: str = "metrics", *, iou: float | None = None) -> Any:
        """One of the tables as a `pandas.DataFrame`, numbers
        as they are; its ``attrs`` hold the signature.

        Parameters
        ----------
        table : ``metrics``, ``classes`` or ``integrators``
        iou : of the counts of classes

        Raises
        ------
        DetmapError : no such table, or pandas is not installed
        """
        tables = self.tables(iou=iou, per_class=True, integrators=table == "integrators")
        from detmap.output import data_frames as frames

        return frames.frame(tables, table, self.signature)

    def _repr_html_(self) -> str:
        from detmap.output.tiles import metric_tiles

        return metric_tiles(self.metrics) + formats.html(self.tables())

    def __repr__(self) -> str:
        metrics = [f"{name}={value:.4f}" for name, value in self.metrics.items()]
        data = f"{self.verdicts.n_images} images, {len(self.verdicts.categories)} classes"
        return outline(self, self.protocol.name, data, *metrics, self.signature)

    def __str__(self) -> str:
        notes = "".join(f"note: {note}\n" for note in self.notes)
        return formats.text(self.tables()) + notes


def _count(number: Any) -> int | float:
    """A count, or a weight where that is not whole."""
    return int(number) if float(number).is_integer() else float(number)
