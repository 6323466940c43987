"""Operating points: precision and recall at score thresholds.

Detections with equal scores share a threshold. Ignored detections and those beyond the detection
limit are excluded. *micro* pools all classes; *macro* is the mean over classes with objects at one
threshold (`detmap.analysis.diagnosis.operating_sweep` adds *classwise*, with a threshold per
class).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import arguments
from detmap.core.base.flat_rows import first_true
from detmap.core.base.reprs import outlined
from detmap.core.base.sums import add_floats
from detmap.core.curves.scores import NO_WEIGHT, Lists, rank
from detmap.core.matching.matches import Matches
from detmap.core.output.named_values import ClassRows, NamedValues
from detmap.core.output.table import Cell, Table
from detmap.core.output.tabular import Tabular
from detmap.core.tables.grouping import last
from detmap.errors import DataError

RATES = ("threshold", "precision", "recall", "f1")

Floats = NDArray[np.float64]
Row = dict[str, Any]


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Metrics at each threshold, descending, (P,) float64 each; ``f`` is F-beta."""

    threshold: Floats
    tp: Floats
    fp: Floats
    precision: Floats
    recall: Floats
    f: Floats
    n_objects: float

    def best(self) -> int | None:
        """Returns the position of the highest F-beta, the first if tied; None if undefined."""
        return int(np.argmax(self.f)) if len(self.f) and not np.isnan(self.f[0]) else None

    def row(self, place: int | None) -> Row:
        """Returns one threshold as a dict; without predictions if `place` is None."""
        if place is None:
            none = 0.0 if self.n_objects else math.nan
            rates, tp, fp = [math.nan, math.nan, none, none], 0, 0
        else:
            columns = (self.threshold, self.precision, self.recall, self.f)
            rates = [float(column[place]) for column in columns]
            tp, fp = int(self.tp[place]), int(self.fp[place])
        row: Row = dict(zip(RATES, rates, strict=True))
        return {**row, "tp": tp, "fp": fp, "missed": int(self.n_objects) - tp}


@outlined
@dataclass(frozen=True, slots=True)
class Operating(Tabular):
    """An operating point per class and overall.

    Parameters
    ----------
    per_class : one dict per class, by position or name: name, threshold, precision, recall, f1 (or
        another F-beta, ``f2``), tp, fp, missed; NaN if undefined or if no threshold qualifies
    micro, macro : the same for all classes at one threshold
    """

    per_class: ClassRows
    micro: Row
    macro: Row

    @property
    def threshold(self) -> float:
        """The threshold for all classes together; see `micro`."""
        return float(self.micro["threshold"])

    @property
    def precision(self) -> float:
        """The precision of all classes together."""
        return float(self.micro["precision"])

    @property
    def recall(self) -> float:
        """The recall of all classes together."""
        return float(self.micro["recall"])

    @property
    def f1(self) -> float:
        """F1 of all classes together; another F-beta is ``micro["f2"]``."""
        return float(self.micro["f1"])

    def __getitem__(self, name: str) -> float:
        """Returns a value of all classes together: ``result.at(0.5)["precision"]``."""
        return float(self.micro[name])

    def tables(self) -> list[Table]:
        """Returns the table of classes."""
        return [self.table("operating", "operating points")]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, undefined ones as None."""
        rows = [_plain(row) for row in self.per_class]
        return {"per_class": rows, "micro": _plain(self.micro), "macro": _plain(self.macro)}

    def table(self, name: str, title: str) -> Table:
        """Returns one row per class, then micro and macro."""
        rows = [*self.per_class, {"name": "(micro)"} | self.micro, {"name": "(macro)"} | self.macro]
        columns = [key for key in rows[0] if key != "name"] if self.per_class else [*self.micro]
        header = ("class", *map(_title, columns))
        cells = tuple((row["name"], *(_cell(key, row[key]) for key in columns)) for row in rows)
        return Table(title, header, cells, name=name)


Choice = Callable[[Points], int | None]
"""Returns the position of the wanted threshold, or None."""


def require_score(where: str, value: Any, scores: NDArray[np.float64]) -> float:
    """Returns a threshold of scores. Raises `DataError` for one above 1 if no score is."""
    threshold: float = arguments.number(where, value, "give a score", math.inf)
    if 1 < threshold < math.inf and len(scores) and scores.min() >= 0 and scores.max() <= 1:
        percent = f"{threshold:g} % is {threshold / 100:g}" if threshold <= 100 else ""
        fix = percent or "give a score from 0 to 1"
        raise DataError(where, f"{threshold:g}, but all scores are from 0 to 1", fix)
    return threshold


def operating_point(matches: Matches, a: int, t: int, threshold: float) -> Operating:
    """Returns the metrics of detections at or above a score.

    Raises
    ------
    DataError : the threshold is NaN, or above 1 where all scores are from 0 to 1
    """
    threshold = require_score("threshold", threshold, matches.score)

    def choose(points: Points) -> int | None:
        return last(points.threshold >= threshold)

    chosen = _operating(matches, a, t, 1.0, choose)
    for row in (*chosen.per_class, chosen.micro, chosen.macro):
        row["threshold"] = float(threshold)
    return chosen


def best_f_beta(matches: Matches, a: int, t: int, beta: float) -> Operating:
    """Returns the threshold of the highest F-beta, the highest if tied.

    Raises
    ------
    DataError : beta is not above 0
    """
    if not arguments.number("beta", beta) > 0:
        raise DataError("beta", f"{beta!r}", "use a number above 0, such as 1")
    return _operating(matches, a, t, beta, Points.best)


def for_precision(matches: Matches, a: int, t: int, precision: float) -> Operating:
    """Returns the lowest threshold with at least this precision.

    Raises
    ------
    DataError : not a fraction in [0, 1]
    """
    arguments.fraction("precision", precision)
    return _operating(matches, a, t, 1.0, lambda points: last(points.precision >= precision))


def for_recall(matches: Matches, a: int, t: int, recall: float) -> Operating:
    """Returns the highest threshold with at least this recall.

    Raises
    ------
    DataError : not a fraction in [0, 1]
    """
    arguments.fraction("recall", recall)
    return _operating(matches, a, t, 1.0, lambda points: first_true(points.recall >= recall))


def points_of_classes(matches: Matches, a: int, t: int, beta: float = 1.0) -> list[Points]:
    """Returns every threshold of each class, in one subset at one IoU."""
    n_objects, off = matches.n_objects()[:, a].tolist(), matches.off.tolist()
    return [
        sweep(*_verdicts(matches, slice(off[k], off[k + 1]), a, t), float(n), beta)
        for k, n in enumerate(n_objects)
    ]


def points_of_all(matches: Matches, a: int, t: int, beta: float = 1.0) -> Points:
    """Returns every threshold of all detections pooled."""
    total = float(matches.n_objects()[:, a].sum())
    return sweep(*_verdicts(matches, slice(None), a, t), total, beta)


def macro_points(every: list[Points]) -> Points:
    """Returns the mean over classes with objects, at every score of any class.

    The mean precision excludes classes without predictions at that threshold.
    """
    threshold = np.unique(np.concatenate([np.zeros(0), *(each.threshold for each in every)]))[::-1]
    tp, fp, recall, f, precision, n_precise = np.zeros((6, len(threshold)))
    for points in every:
        place = np.searchsorted(-points.threshold, -threshold, side="right")
        tp += np.append(0.0, points.tp)[place]
        fp += np.append(0.0, points.fp)[place]
        if points.n_objects:
            recall += np.append(0.0, points.recall)[place]
            f += np.append(0.0, points.f)[place]
            precision += np.append(0.0, points.precision)[place]
            n_precise += place > 0
    n_objects = [points.n_objects for points in every]
    n_classes = np.float64(np.count_nonzero(n_objects))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (precision / n_precise, recall / n_classes, f / n_classes)
    return Points(threshold, tp, fp, *means, add_floats(n_objects))


def sweep(score: Floats, hit: NDArray[np.bool_], n_objects: float, beta: float = 1.0) -> Points:
    """Returns every threshold of detections with these scores and hits."""
    off = np.array([0, len(score)], dtype=np.int64)
    ranked = rank(Lists(score, hit, NO_WEIGHT, off), "together")
    tp, fp = ranked.tp, ranked.fp
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = tp / n_objects if n_objects else np.full(len(tp), np.nan)
        f = f_beta(tp, fp, n_objects, beta) if n_objects else np.full(len(tp), np.nan)
    return Points(ranked.score, tp, fp, tp / (tp + fp), recall, f, n_objects)


def f_beta(tp: Floats, fp: Floats, n_objects: float, beta: float) -> Floats:
    """Returns F-beta of each threshold: recall counts beta times as much as precision."""
    return (1 + beta**2) * tp / (beta**2 * n_objects + tp + fp)


def _operating(matches: Matches, a: int, t: int, beta: float, choose: Choice) -> Operating:
    """The chosen threshold of each class, of the pool and of the mean."""
    every, pool = points_of_classes(matches, a, t, beta), points_of_all(matches, a, t, beta)
    rows = [
        {"name": name, **points.row(choose(points))}
        for name, points in zip(matches.categories.names, every, strict=True)
    ]
    mean = macro_points(every)
    found = [*rows, pool.row(choose(pool)), mean.row(choose(mean))]
    *classes, micro, macro = (NamedValues(_labelled(row, beta)) for row in found)
    return Operating(ClassRows(classes), micro, macro)


def _labelled(row: Row, beta: float) -> Row:
    """The row with F-beta under its own name, ``f2``."""
    return {f"f{beta:g}" if key == "f1" else key: value for key, value in row.items()}


def _verdicts(matches: Matches, rows: slice, a: int, t: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Score and hit of the rows that are not ignored."""
    bit = matches.tp.dtype.type(1 << t)
    counts = (matches.ignored[rows, a] & bit) == 0
    return matches.score[rows][counts], ((matches.tp[rows, a] & bit) != 0)[counts]


def _plain(row: Row) -> Row:
    undefined = (isinstance(value, float) and math.isnan(value) for value in row.values())
    return {key: None if none else row[key] for key, none in zip(row, undefined, strict=True)}


def _title(key: str) -> str:
    """F1 and other F-beta; the others as they are."""
    return key.upper() if key[0] == "f" and key != "fp" else key


def _cell(key: str, value: Any) -> Cell:
    """A threshold with all digits: a rounded one could exclude its detection."""
    if key != "threshold":
        return value  # type: ignore[no-any-return]
    return None if math.isnan(value) else repr(value)
