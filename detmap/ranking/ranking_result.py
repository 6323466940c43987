"""The result of ``detmap rank``: averages, per-class table, notes and signature."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base import arguments
from detmap.core.base.locks import cached_property
from detmap.core.base.reprs import outline
from detmap.core.base.sums import add_integers
from detmap.core.curves import scores as curves
from detmap.core.output import data_frames, formats
from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Table
from detmap.core.results.resampled import Resampled
from detmap.core.results.signature import environment
from detmap.core.tables import Categories, Note
from detmap.core.tables.digests import data_digest, fold_table
from detmap.errors import DataError, few
from detmap.ranking import ranking_rules, ranking_tables
from detmap.ranking.label_inputs import Samples, samples_of
from detmap.ranking.metrics import (
    ap_measure,
    auc_of,
    averaged,
    check,
    class_values,
    mean,
    positives,
)
from detmap.ranking.ranking_rules import Rules
from detmap.ranking.ranking_tables import RATES
from detmap.ranking.retrieval import ranks, top_of_queries
from detmap.ranking.samples import Classified
from detmap.ranking.thresholds import OperatingPoint, best_f_of_samples, count, threshold_rates
from detmap.version import __version__

if TYPE_CHECKING:
    from detmap.core.statistics.evaluations import Evaluated
    from detmap.core.statistics.subsets import Subsets
    from detmap.ranking.curve_plots import Line


def evaluate(
    table: Classified,
    protocol: str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    k: Sequence[int] = (),
    threshold: float | None = None,
    threads: int | None = None,
) -> RankingResult:
    """Rank the samples of each class and compute the metrics.

    Parameters
    ----------
    table : from `detmap.ranking.read` or `detmap.ranking.from_arrays`
    protocol : ``plain``, ``voc2007`` or ``voc2012``; default by the kind of labels: ``plain`` for
        CSV and arrays, ``voc2007`` for VOC trees of 2007 to 2009, ``voc2012`` for other VOC trees
    settings : changed rules: ``average``, ``integrator``, ``ties``, ``undefined``
    k : ranks at which the retrieval metrics cut the list of classes per sample; default: none
    threshold : score threshold of positive predictions, for the counts; default: none
    threads : number of threads; the result does not depend on it

    Raises
    ------
    DataError : k below 1, an unknown setting or value
    ProtocolError : an unknown protocol
    """
    if protocol is None:
        voc = "voc2007" if 2007 <= table.year <= 2009 else "voc2012"
        protocol = voc if table.family == "voc" else "plain"
    if not isinstance(settings, Mapping | None):
        raise DataError(
            "settings", f"a {type(settings).__name__}", 'give a dict: {"ties": "worst"}'
        )
    wanted = dict(settings or {})
    check(**wanted)
    chosen = ranking_rules.stock(protocol)
    if "integrator" in wanted:
        wanted["ap"] = replace(chosen.ap, integrator=wanted.pop("integrator"))
    if threshold is not None and not math.isfinite(threshold):
        raise DataError("threshold", f"{threshold}", "a finite score")
    return RankingResult(
        table,
        replace(chosen, **wanted),
        tuple(sorted({ranks(each) for each in k})),
        threshold,
        threads,
    )


@dataclass(frozen=True, eq=False)
class RankingResult(Resampled):
    """The result of `detmap.ranking.evaluate`; ``print(result)`` shows it.

    Parameters
    ----------
    table : labels and scores
    rules : the rules
    k : ranks of the retrieval metrics, ascending
    threshold : of the counts, or None
    threads : number of threads
    """

    table: Classified
    rules: Rules
    k: tuple[int, ...] = ()
    threshold: float | None = None
    threads: int | None = field(default=None, repr=False)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Name to value, NaN if undefined: mAP (AP if the average is not ``macro``), AUC; P, R, mAP
        at k.
        """
        return {name: value for name, _, value in self.averages}

    @cached_property
    def per_class(self) -> list[dict[str, Any]]:
        """One dict per class: name, positives, samples, AP, AUC, best F1 and its threshold; with
        `threshold` also counts.
        """
        columns: dict[str, Any] = {
            "name": np.array(self.table.classes, dtype=object),
            "positives": self.positives.astype(np.int64),
            "samples": self.counted.sum(axis=0),
            "AP": self._ap,
            "AUC": self._auc,
            "best_f1": self._best.f,
            "best_f1_threshold": self._best.threshold,
        }
        if self.threshold is not None:
            counts = count(self.samples, self.threshold, axis=0)
            columns |= {name: getattr(counts, name) for name in RATES}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Totals over the table."""
        return {
            "samples": len(self.table),
            "classes": len(self.table.classes),
            "positives": int(self.positives.sum()),
            "left_out": int((~self.counted).sum()),
        }

    @cached_property
    def signature(self) -> str:
        """One line with the rules, data and version behind AP, AUC and their averages.

        The ranks k and the threshold are in the names of their metrics, so they are not in the
        line.
        """
        digest = hashlib.sha256(
            json.dumps(ranking_rules.to_dict(self.rules), sort_keys=True).encode()
        ).hexdigest()[:12]
        state = ";".join(f"{key}={value}" for key, value in self._changes.items()) or "default"
        return "|".join(
            (
                f"rank:{self.rules.name}.{self.rules.version}",
                state,
                f"proto:{digest}",
                f"data:{self._data_digest}",
                f"detmap:{__version__}",
            )
        )

    @cached_property
    def notes(self) -> list[Note]:
        """Caveats."""
        positive = self.positive
        silent = (np.isneginf(self.table.score) | ~self.counted).all(axis=0)
        effect = {"skip": "left out of the mean", "zero": "counted as 0", "one": "counted as 1"}[
            self.rules.undefined
        ]
        orders = {"together": "together", "input": "in the order of the ground truth"}
        order = orders[self.rules.ties]
        tied = add_integers(self._n_tied(k) for k in range(len(self.table.classes)))
        remarks = (
            (
                "class-without-positive",
                f"classes have no positive sample and are {effect}",
                ~positive.any(axis=0),
            ),
            (
                "class-without-negative",
                f"classes have no negative sample: their AUC is {effect}",
                ~(self.counted & ~positive).any(axis=0),
            ),
            ("class-without-prediction", f"classes have no prediction and are {effect}", silent),
        )
        named = [
            Note(code, f"{text}: {few(np.array(self.table.classes)[which])}", int(which.sum()))
            for code, text, which in remarks
        ]
        named.append(
            Note(
                "score-tied",
                f"scores are shared with another sample of their class: ranked {order}",
                tied,
            )
        )
        if self.k or self.rules.average == "samples":
            n_empty = int((~positive.any(axis=1)).sum())
            text = f"samples show no class: their recall and AP are {effect}"
            named.append(Note("sample-without-positive", text, n_empty))
        return [*self.table.notes, *(note for note in named if note.count)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values in fixed order, None for undefined ones: the content of the JSON output."""
        return {
            "metrics": {name: or_none(value) for name, value in self.metrics.items()},
            "per_class": [
                {key: or_none(value) for key, value in row.items()} for row in self.per_class
            ],
            "counts": self.counts,
            "protocol": {
                **ranking_rules.to_dict(self.rules),
                "k": list(self.k),
                "threshold": self.threshold,
                "changes": self._changes,
            },
            "signature": self.signature,
            "notes": [note.to_dict() for note in self.notes],
            "environment": environment(),
        }

    def select(self, sample_ids: ArrayLike) -> RankingResult:
        """The result of some samples, given by id.

        Raises
        ------
        DataError : an id is unknown
        """
        wanted = set(map(str, arguments.ids("samples", sample_ids).tolist()))
        if strange := wanted.difference(self.table.ids):
            what = f"no samples {few(map(repr, sorted(strange)))}"
            raise DataError("samples", what, "give ids of the ground truth")
        return self.part(np.array([each in wanted for each in self.table.ids], dtype=bool))

    def part(self, keep: NDArray[np.bool_]) -> RankingResult:
        """The result of some rows; `keep` is (N,)."""
        table = self.table
        some = replace(
            table,
            ids=tuple(compress(table.ids, keep)),
            positive=table.positive[keep],
            score=table.score[keep],
            counted=None if table.counted is None else table.counted[keep],
        )
        return replace(self, table=some)

    def _sampled(self) -> tuple[NDArray[Any], None, Sequence[str]]:
        return np.sort(np.array(self.table.ids)), None, self.table.classes

    def evaluate_subsets(
        self,
        subsets: Subsets,
        *,
        classes: bool = True,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Evaluated:
        """Every number of the result on subsets of the samples in ascending order of their ids; see
        `intervals`.
        """
        from detmap.ranking.ranking_intervals import evaluate_ranking

        whole = self if threads is None else replace(self, threads=threads)
        return evaluate_ranking(whole, subsets, classes=classes, progress=progress)

    def tables(self) -> list[Table]:
        """The result as tables: averages, classes, counts at the threshold; the last one has the
        signature.
        """
        return ranking_tables.tables(self)

    def lines(self) -> list[Line]:
        """The curves of each class, for `detmap.ranking.curve_plots.draw`."""
        return ranking_tables.lines(self)

    def to_frame(self, table: str = "classes") -> Any:
        """One of the tables, ``metrics``, ``classes`` or ``counts``, as a `pandas.DataFrame`; its
        ``attrs`` hold the signature.

        Raises
        ------
        DetmapError : no such table, or pandas is not installed
        """
        return data_frames.frame(self.tables(), table, self.signature)

    def _repr_html_(self) -> str:
        return formats.html(self.tables())

    def __repr__(self) -> str:
        metrics = [f"{name}={value:.4f}" for name, value in self.metrics.items()]
        data = "{samples} samples, {classes} classes".format_map(self.counts)
        return outline(self, self.rules.name, data, *metrics, self.signature)

    def __str__(self) -> str:
        notes = "".join(f"note: {note}\n" for note in self.notes)
        return formats.text(self.tables()) + notes

    # --- parts ---

    @cached_property
    def samples(self) -> Samples:
        """Labels and scores, checked."""
        return samples_of(self.table)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """(N, K) all of the table where it leaves nothing out."""
        table = self.table
        return (
            np.ones(table.positive.shape, dtype=np.bool_)
            if table.counted is None
            else table.counted
        )

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """(N, K) samples that show the class and count."""
        return self.table.positive & self.counted

    @cached_property
    def positives(self) -> NDArray[np.float64]:
        """(K,) positive samples of each class."""
        return positives(self.samples)

    @cached_property
    def _ap(self) -> NDArray[np.float64]:
        return class_values(self.samples, ap_measure(self.rules.ap, self.rules.ties), self.threads)

    @cached_property
    def _auc(self) -> NDArray[np.float64]:
        return class_values(self.samples, auc_of, self.threads)

    @cached_property
    def _best(self) -> OperatingPoint:
        return best_f_of_samples(self.samples, threads=self.threads)

    @cached_property
    def averages(self) -> list[tuple[str, str, float]]:
        """Name, average and value of each metric."""
        average, undefined = self.rules.average, self.rules.undefined
        rows = []
        if average is not None:
            name = "mAP" if average == "macro" else "AP"
            rows.append(
                (
                    name,
                    average,
                    self._averaged(ap_measure(self.rules.ap, self.rules.ties), self._ap),
                )
            )
            rows.append(("AUC", average, self._averaged(auc_of, self._auc)))
        if average is not None and self.threshold is not None:
            rates = threshold_rates(self.samples, self.threshold, average, undefined)._asdict()
            rows += [
                (f"{RATES[name]}@{self.threshold:g}", average, value)
                for name, value in rates.items()
            ]
        for k in self.k:
            top = zip(
                ("P", "R", "mAP"),
                top_of_queries(self.samples, k, threads=self.threads),
                strict=True,
            )
            rows += [(f"{name}@{k}", "queries", mean(values, undefined)) for name, values in top]
        return rows

    def _averaged(self, measure: Any, values: NDArray[np.float64]) -> float:
        if self.rules.average in ("micro", "samples"):
            return float(
                averaged(
                    self.samples, measure, self.rules.average, self.rules.undefined, self.threads
                )
            )
        return mean(
            values,
            self.rules.undefined,
            self.positives if self.rules.average == "weighted" else None,
        )

    @cached_property
    def _changes(self) -> dict[str, Any]:
        """The changes of the default rules."""
        stock, now = (
            ranking_rules.to_dict(ranking_rules.stock(self.rules.name)),
            ranking_rules.to_dict(self.rules),
        )
        return {key: now[key] for key in now if now[key] != stock[key]}

    @cached_property
    def _data_digest(self) -> str:
        table = self.table
        columns = [table.positive, table.score] + ([] if table.counted is None else [table.counted])
        digest = fold_table(len(table), np.arange(len(table), dtype=np.int32), *columns)
        classes = Categories(np.arange(1, len(table.classes) + 1), table.classes)
        in_order = np.empty(0, dtype=np.uint64)  # the ids say the order of the rows
        return data_digest(classes, np.array(table.ids, dtype=object), digest, in_order)

    def _n_tied(self, k: int) -> int:
        """The number of predictions with tied scores within their class."""
        points = curves.rank(self.samples.class_samples(k), "together")
        entered = np.diff(points.tp + points.fp, prepend=0.0)[points.score > -np.inf]
        return int(entered[entered > 1].sum())
